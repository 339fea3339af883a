use proof::{
    Hash, HeadBody, Leaf, PeriodItem, ProofFile, SigningKey, Statement, SumNode, VerifyingKey, inclusion,
    log, period_root, sum_root,
};
use serde_json::{Value, json};

use super::committed::vector;
use crate::sample;

pub(super) fn all() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("head", rows(head, heads())),
        ("key", rows(key, keys())),
        ("log", rows(log_root, logs())),
        ("log_consistency", rows(log_consistency, consistencies())),
        ("log_inclusion", rows(log_inclusion, log_inclusions())),
        ("period_root", rows(period, periods())),
        (
            "proof_file",
            rows(proof_file, vec![named("everything opened but one frame", json!(sample::proof_file()))]),
        ),
        ("signature", rows(signature, signatures())),
        ("statement", rows(statement, statements())),
        ("sum_tree", rows(tree, trees())),
        ("sum_tree_inclusion", rows(tree_inclusion, tree_inclusions())),
    ]
}

type Row = (String, Value);

fn named(name: impl Into<String>, input: Value) -> Row {
    (name.into(), input)
}

fn rows(compute: fn(&Value) -> Value, inputs: Vec<Row>) -> Vec<Value> {
    inputs.into_iter().map(|(name, input)| vector(&name, input.clone(), compute(&input))).collect()
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn hashes(value: &Value) -> Vec<Hash> {
    value.as_array().unwrap().iter().map(bytes).collect()
}

fn tree(input: &Value) -> Value {
    json!({ "root": sum_root(&read::<Vec<Leaf>>(&input["leaves"])).unwrap() })
}

fn trees() -> Vec<Row> {
    let sizes = [0, 1, 2, 3, 5, 8]
        .map(|size| named(format!("{size} leaves"), json!({ "leaves": sample::leaves(size) })));
    let with = |quantities: &[u64]| {
        let mut leaves = sample::leaves(u8::try_from(quantities.len()).unwrap());
        for (leaf, quantity) in leaves.iter_mut().zip(quantities) {
            leaf.quantity = *quantity;
        }
        json!({ "leaves": leaves })
    };
    let mut all = sizes.to_vec();
    all.push(named("a leaf of nothing is a leaf", with(&[0])));
    all.push(named("a sum beyond 64 bits", with(&[u64::MAX, u64::MAX, u64::MAX])));
    all
}

fn tree_inclusion(input: &Value) -> Value {
    let leaves: Vec<Leaf> = read(&input["leaves"]);
    json!(inclusion(&leaves, bytes(&input["event_id"])).unwrap())
}

fn tree_inclusions() -> Vec<Row> {
    let of = |size: u8, at: u8| {
        let input = json!({ "leaves": sample::leaves(size), "event_id": hex::encode([at; 16]) });
        named(format!("leaf {at} of {size}"), input)
    };
    [(1, 0), (2, 1), (3, 2), (5, 2), (5, 4), (8, 5)].map(|(size, at)| of(size, at)).to_vec()
}

fn statement(input: &Value) -> Value {
    json!({ "statement_hash": hex::encode(read::<Statement>(input).hash()) })
}

fn statements() -> Vec<Row> {
    let of = |customer: &str, revision: u32, root: SumNode| {
        json!(Statement {
            platform: "reseller".to_owned(),
            customer: customer.to_owned(),
            meter: "context_tokens".to_owned(),
            definition_hash: [0xde; 32],
            piece_start: 1_796_040_000_000_000,
            piece_end: 1_796_043_600_000_000,
            revision,
            root,
        })
    };
    let huge = SumNode { hash: [0xaa; 32], count: u64::MAX, sum: u128::MAX };
    vec![
        named("five events", of("acme", 1, sum_root(&sample::leaves(5)).unwrap())),
        named("the next revision", of("acme", 2, sum_root(&sample::leaves(5)).unwrap())),
        named("no event", of("acme", 1, SumNode::empty())),
        named("the largest numbers", of("acme", u32::MAX, huge)),
        named("unicode", of("株式会社 😀", 1, SumNode::empty())),
    ]
}

fn log_root(input: &Value) -> Value {
    json!({ "root": hex::encode(log::root(&hashes(&input["entries"]))) })
}

fn texts(entries: &[Hash]) -> Vec<String> {
    entries.iter().map(hex::encode).collect()
}

fn logs() -> Vec<Row> {
    let of = |size| named(format!("{size} entries"), json!({ "entries": texts(&sample::entries(size)) }));
    [0, 1, 2, 3, 5, 8].map(of).to_vec()
}

fn log_inclusion(input: &Value) -> Value {
    json!(log::inclusion(&hashes(&input["entries"]), input["index"].as_u64().unwrap()).unwrap())
}

fn log_inclusions() -> Vec<Row> {
    let of = |(size, index): (u8, u64)| {
        let input = json!({ "entries": texts(&sample::entries(size)), "index": index });
        named(format!("entry {index} of {size}"), input)
    };
    [(1, 0), (2, 0), (3, 2), (5, 3), (5, 4), (8, 6)].map(of).to_vec()
}

fn log_consistency(input: &Value) -> Value {
    json!(log::consistency(&hashes(&input["entries"]), input["first_size"].as_u64().unwrap()).unwrap())
}

fn consistencies() -> Vec<Row> {
    let of = |(first, second): (u64, u8)| {
        let input = json!({ "entries": texts(&sample::entries(second)), "first_size": first });
        named(format!("from {first} to {second}"), input)
    };
    [(0, 3), (3, 3), (1, 2), (2, 5), (3, 5), (4, 8), (6, 8), (7, 8)].map(of).to_vec()
}

fn head(input: &Value) -> Value {
    let body = HeadBody {
        platform: read(&input["platform"]),
        size: read(&input["size"]),
        root: bytes(&input["root"]),
        at: read(&input["at"]),
    };
    json!({ "to_sign": hex::encode(body.to_sign()) })
}

fn heads() -> Vec<Row> {
    let of = |size: u64, root: Hash, at: i64| json!({ "platform": "reseller", "size": size, "root": hex::encode(root), "at": at });
    vec![
        named("five entries", of(5, log::root(&sample::entries(5)), 1_796_044_500_000_000)),
        named("an empty log", of(0, log::root(&[]), 1_796_044_500_000_000)),
        named("the largest size, before 1970", of(u64::MAX, [0xff; 32], -1)),
    ]
}

fn period(input: &Value) -> Value {
    let statements: Vec<(String, Hash)> = input["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (read(&item["placement"]), bytes(&item["statement"])))
        .collect();
    let items: Vec<PeriodItem<'_>> = statements
        .iter()
        .map(|(placement, statement)| PeriodItem { placement, statement: *statement })
        .collect();
    json!({ "period_root": hex::encode(period_root(&items)) })
}

fn periods() -> Vec<Row> {
    let of = |items: &[(&str, u8)]| {
        let item = |(placement, at): &(&str, u8)| json!({ "placement": placement, "statement": hex::encode([*at; 32]) });
        json!({ "items": items.iter().map(item).collect::<Vec<_>>() })
    };
    vec![
        named("nothing was placed", of(&[])),
        named("one", of(&[("plc_00112233445566778899aabbccddeeff", 1)])),
        named("two parts of one statement", of(&[("plc_00", 1), ("plc_01", 1)])),
        named("the other order is another root", of(&[("plc_01", 1), ("plc_00", 1)])),
    ]
}

fn key(input: &Value) -> Value {
    let key = VerifyingKey::from_base64(input["public_key"].as_str().unwrap()).unwrap();
    json!({ "kid": key.kid() })
}

fn keys() -> Vec<Row> {
    let of = |secret: u8| json!({ "public_key": SigningKey::from_bytes(&[secret; 32]).verifying_key().to_base64() });
    vec![named("one", of(0x11)), named("another", of(0x22))]
}

fn signature(input: &Value) -> Value {
    let key = SigningKey::from_bytes(&bytes(&input["secret"]));
    let message = hex::decode(input["message"].as_str().unwrap()).unwrap();
    let public: VerifyingKey = read(&input["public_key"]);
    assert_eq!(key.verifying_key(), public);
    let signature = key.sign(&message);
    public.verify(&message, &signature).unwrap();
    json!({ "kid": key.kid(), "signature": signature })
}

fn signatures() -> Vec<Row> {
    let of = |secret: u8, message: &Value| {
        let public = SigningKey::from_bytes(&[secret; 32]).verifying_key();
        json!({ "secret": hex::encode([secret; 32]), "public_key": public, "message": message })
    };
    let acknowledged = super::committed::group("acknowledgement");
    let head = head(&heads()[0].1);
    vec![
        named("a head", of(0x11, &head["to_sign"])),
        named("an acknowledgement", of(0x22, &acknowledged[0]["output"]["to_sign"])),
    ]
}

fn proof_file(input: &Value) -> Value {
    json!(read::<ProofFile>(input).verify().unwrap())
}
