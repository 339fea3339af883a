//! Leaves, entries and one proof file that has everything.

use proof::{
    EventOpening, FileFormat, FrameOpening, Hash, HeadBody, KeyFamily, Leaf, MeterOpening, OpenedFrame,
    OpenedTurn, ProofFile, PublicKey, SignedHead, SigningKey, Statement, inclusion, log, sum_root,
};
use serde_json::Value;

use crate::vectors::committed;

/// As many leaves as asked for, with ids that increase and quantities that differ.
pub(crate) fn leaves(count: u8) -> Vec<Leaf> {
    let leaf = |at: u8| Leaf { event_id: [at; 16], content_hash: [!at; 32], quantity: u64::from(at) * 100 };
    (0..count).map(leaf).collect()
}

pub(crate) fn entries(count: u8) -> Vec<Hash> {
    (0..count).map(|at| [at; 32]).collect()
}

/// The pair that signs heads in the samples. Its secret is no secret.
pub(crate) fn head_key() -> SigningKey {
    SigningKey::from_bytes(&[0x11; 32])
}

/// What `usage` published of its own report, so that this crate's second encoder has to agree with it.
pub(crate) fn proof_file() -> ProofFile {
    let report = committed::group("report").swap_remove(0);
    let body: Value = serde_json::from_str(report["input"]["body"].as_str().unwrap()).unwrap();
    let (received, event) = (&body["report"]["providers"][0], &report["output"]["events"][0]);
    let frames: Vec<(&Value, &Value)> = received["served_frames"]
        .as_array()
        .unwrap()
        .iter()
        .zip(event["commitments"].as_array().unwrap())
        .collect();
    let frame = |at: usize, salt: Option<Hash>| FrameOpening {
        cost: frames[at].0["token_cost"].as_u64().unwrap(),
        commitment: hash(frames[at].1),
        opened: salt.map(|salt| OpenedFrame {
            salt,
            frame_id: word(&frames[at].0["frame"]["frame_id"]),
            content_digest: frames[at].0["frame"]["content_digest"].as_str().map(str::to_owned),
        }),
    };
    let opening = EventOpening {
        kind: "context".to_owned(),
        provider: word(&received["provider_id"]),
        as_of: report["output"]["as_of"].as_i64().unwrap(),
        tokens: received["token_cost"].as_u64().unwrap(),
        frames_served: 2,
        frames_rejected: 1,
        // One frame is shown by name, its neighbour stays closed.
        frames: vec![frame(0, None), frame(1, Some(second_frame_salt(event)))],
        turn: Some(OpenedTurn { request_id: word(&body["request_id"]), turn_id: word(&body["turn_id"]) }),
    };
    let meter = MeterOpening {
        kind: "context".to_owned(),
        providers: Some(vec!["docs".to_owned(), "memory".to_owned()]),
        quantity: "tokens".to_owned(),
    };
    let leaf = Leaf {
        event_id: id(&event["event_id"]),
        content_hash: hash(&event["content_hash"]),
        quantity: opening.tokens,
    };
    let mut all = leaves(4);
    all.push(leaf);
    all.sort_by_key(|leaf| leaf.event_id);
    let statement = Statement {
        platform: word(&report["input"]["platform"]),
        customer: word(&body["customer_id"]),
        meter: "context_tokens".to_owned(),
        definition_hash: meter.definition_hash("context_tokens"),
        piece_start: opening.as_of - 250_000,
        piece_end: opening.as_of - 250_000 + 3_600_000_000,
        revision: 1,
        root: sum_root(&all).unwrap(),
    };
    let mut log = entries(5);
    log[2] = statement.hash();
    let body = HeadBody {
        platform: statement.platform.clone(),
        size: 5,
        root: log::root(&log),
        at: statement.piece_end + 900_000_000,
    };
    ProofFile {
        format: FileFormat::V1,
        inclusion: inclusion(&all, leaf.event_id).unwrap(),
        leaf,
        log: log::inclusion(&log, 2).unwrap(),
        head: SignedHead::sign(body, &head_key()),
        keys: vec![PublicKey::new(KeyFamily::Head, head_key().verifying_key())],
        event: Some(opening),
        meter: Some(meter),
        statement,
    }
}

/// HMAC of the event's salt, by hand: the crate knows only the salts of frames.
fn second_frame_salt(event: &Value) -> Hash {
    use sha2::{Digest as _, Sha256};
    let salt: Hash = hash(&event["salt"]);
    let mut block = [0u8; 64];
    block[..32].copy_from_slice(&salt);
    let inner = Sha256::digest([&block.map(|byte| byte ^ 0x36)[..], &1u32.to_be_bytes()].concat());
    Sha256::digest([&block.map(|byte| byte ^ 0x5c)[..], &inner[..]].concat()).into()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn id(value: &Value) -> [u8; 16] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn hash(value: &Value) -> Hash {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}
