use serde_json::{Value, json};
use usage::{
    AcknowledgementBody, Commitment, Encoder, ErasureKey, EventId, EventKind, MeterDefinition, MeterFilter,
    Position, Quantity, ReportHash, ReportKey, ReportRecord, Salt, Timestamp, TurnReport, UsageEventParts,
    audit_content, frame_commitment,
};

use super::{bytes, committed::vector, number, text};

/// Composed and decomposed: alike to the eye, and two identities.
const COMPOSED: &str = "caf\u{e9}";
const DECOMPOSED: &str = "cafe\u{301}";

pub(super) fn all() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("acknowledgement", rows(acknowledgement, &acknowledgements())),
        ("content_hash", rows(content_hash, &contents())),
        ("encoding", rows(encoding, &encodings())),
        ("event_id", rows(event_id, &events())),
        ("frame_commitment", rows(commitment, &frames())),
        ("meter", rows(meter, &meters())),
        ("report", rows(report, &reports())),
        ("report_key", rows(report_key, &report_keys())),
        ("salt", rows(salt, &salts())),
        ("time", rows(time, &times())),
    ]
}

fn rows(compute: fn(&Value) -> Value, inputs: &[(&str, Value)]) -> Vec<Value> {
    inputs.iter().map(|(name, input)| vector(name, input.clone(), compute(input))).collect()
}

/// A tag and then fields, each an object of one member that says how its value is written.
fn encoding(input: &Value) -> Value {
    let mut encoder = Encoder::new(text(&input["tag"]));
    for field in input["fields"].as_array().unwrap() {
        let (kind, value) = field.as_object().unwrap().iter().next().unwrap();
        encoder = match kind.as_str() {
            "text" => encoder.text(text(value)),
            "u32" => encoder.u32(number(value)),
            "u64" => encoder.u64(number(value)),
            "i64" => encoder.i64(value.as_i64().unwrap()),
            "optional_text" => encoder.option(value.as_str(), Encoder::text),
            "list_of_texts" => {
                encoder.list(value.as_array().unwrap(), |encoder, item| encoder.text(text(item)))
            }
            other => panic!("no field is a {other}"),
        };
    }
    let bytes = encoder.clone().into_bytes();
    json!({ "bytes": hex::encode(bytes), "sha256": hex::encode(encoder.hash()) })
}

fn encodings() -> Vec<(&'static str, Value)> {
    vec![
        ("a tag alone", json!({ "tag": "cm.example.1", "fields": [] })),
        ("an empty text", json!({ "tag": "cm.example.1", "fields": [{ "text": "" }] })),
        ("composed", json!({ "tag": "cm.example.1", "fields": [{ "text": COMPOSED }] })),
        ("decomposed", json!({ "tag": "cm.example.1", "fields": [{ "text": DECOMPOSED }] })),
        ("a character of four bytes", json!({ "tag": "cm.example.1", "fields": [{ "text": "😀" }] })),
        (
            "integers",
            json!({ "tag": "cm.example.1", "fields": [{ "u32": 1 }, { "u32": u32::MAX }, { "u64": 0 }, { "u64": u64::MAX }] }),
        ),
        (
            "times before and after 1970",
            json!({ "tag": "cm.example.1", "fields": [{ "i64": -1 }, { "i64": 1_796_040_000_000_000_i64 }] }),
        ),
        (
            "nothing, and an empty text, are two values",
            json!({ "tag": "cm.example.1", "fields": [{ "optional_text": null }, { "optional_text": "" }] }),
        ),
        (
            "lists",
            json!({ "tag": "cm.example.1", "fields": [{ "list_of_texts": [] }, { "list_of_texts": ["", "a"] }] }),
        ),
    ]
}

fn time(input: &Value) -> Value {
    let at = Timestamp::parse_rfc3339(text(&input["text"])).unwrap();
    json!({ "micros": at.as_micros() })
}

fn times() -> Vec<(&'static str, Value)> {
    vec![
        ("the epoch", json!({ "text": "1970-01-01T00:00:00Z" })),
        ("digits beyond the microsecond are cut off", json!({ "text": "2026-11-30T12:00:00.123456999Z" })),
        (
            "before the epoch they are cut off in the same direction",
            json!({ "text": "1969-12-31T23:59:59.9999999Z" }),
        ),
        ("an offset", json!({ "text": "2026-11-30T14:30:00.5+02:30" })),
        ("small letters", json!({ "text": "2026-11-30t12:00:00z" })),
        ("the last day", json!({ "text": "9999-12-31T23:59:59.999999Z" })),
    ]
}

fn event_id(input: &Value) -> Value {
    let platform = text(&input["platform"]).parse().unwrap();
    let id = match EventKind::parse(text(&input["kind"])).unwrap() {
        EventKind::Context => EventId::context(
            &platform,
            &text(&input["request_id"]).parse().unwrap(),
            &text(&input["turn_id"]).parse().unwrap(),
            &text(&input["provider_id"]).parse().unwrap(),
        ),
        EventKind::Delegation => EventId::delegation(
            &platform,
            text(&input["source"]),
            text(&input["stream"]),
            text(&input["attempt"]),
        ),
    };
    json!({ "event_id": id })
}

fn events() -> Vec<(&'static str, Value)> {
    let context = |request: &str, turn: &str, provider: &str| json!({ "kind": "context", "platform": "reseller", "request_id": request, "turn_id": turn, "provider_id": provider });
    vec![
        ("plain", context("req-81", "7", "docs")),
        ("fields that read alike when joined: first", context("ab", "c", "d")),
        ("fields that read alike when joined: second", context("a", "bc", "d")),
        ("composed", context(COMPOSED, "7", "docs")),
        ("decomposed", context(DECOMPOSED, "7", "docs")),
        ("three scripts and a picture", context("запрос 日本", "ターン", "😀")),
        ("the longest", context(&"x".repeat(200), &"é".repeat(100), "p")),
        (
            "a delegation",
            json!({ "kind": "delegation", "platform": "reseller", "source": "agent-a", "stream": "s-1", "attempt": "1" }),
        ),
    ]
}

fn report_key(input: &Value) -> Value {
    let platform = text(&input["platform"]).parse().unwrap();
    let (request, turn) = (text(&input["request_id"]).parse(), text(&input["turn_id"]).parse());
    let key = ReportKey::new(&platform, &request.unwrap(), &turn.unwrap());
    json!({ "report_key": key })
}

fn report_keys() -> Vec<(&'static str, Value)> {
    let of = |platform: &str, request: &str, turn: &str| json!({ "platform": platform, "request_id": request, "turn_id": turn });
    vec![
        ("plain", of("reseller", "req-81", "7")),
        ("another platform", of("reseller-2", "req-81", "7")),
        ("unicode", of("reseller", "日本 😀", DECOMPOSED)),
    ]
}

fn salt(input: &Value) -> Value {
    let event = Salt::of_event(
        &ErasureKey::from_bytes(bytes(&input["erasure_key"])),
        EventId(bytes(&input["event_id"])),
    );
    json!({ "event_salt": event, "frame_salt": event.of_frame(number(&input["place"])) })
}

fn salts() -> Vec<(&'static str, Value)> {
    let of = |key: &str, event: &str, place: u32| json!({ "erasure_key": key.repeat(32), "event_id": event.repeat(16), "place": place });
    vec![
        ("the first frame", of("01", "ab", 0)),
        ("the second frame", of("01", "ab", 1)),
        ("the last possible place", of("01", "ab", u32::MAX)),
        ("another key", of("02", "ab", 0)),
        ("a key and an event of zeros", of("00", "00", 0)),
    ]
}

fn commitment(input: &Value) -> Value {
    let commitment = frame_commitment(
        Salt(bytes(&input["event_salt"])),
        number(&input["place"]),
        &text(&input["provider_id"]).parse().unwrap(),
        &text(&input["frame_id"]).parse().unwrap(),
        input["content_digest"].as_str(),
    );
    json!({ "commitment": commitment })
}

fn frames() -> Vec<(&'static str, Value)> {
    let of = |place: u32, provider: &str, frame: &str, digest: Option<&str>| json!({ "event_salt": "5a".repeat(32), "place": place, "provider_id": provider, "frame_id": frame, "content_digest": digest });
    let digest = format!("sha256:{}", "0f".repeat(32));
    vec![
        ("the usual digest", of(0, "docs", "intro", Some(&digest))),
        ("a digest is hashed as received: capitals", of(0, "docs", "intro", Some(&digest.replace('f', "F")))),
        ("another algorithm", of(0, "docs", "intro", Some("blake3:AF13"))),
        ("no digest", of(0, "docs", "intro", None)),
        ("the same frame at the next place", of(1, "docs", "intro", None)),
        ("unicode", of(0, "ドキュメント", "文脈/図 1 😀", None)),
        ("the longest frame id", of(0, "docs", &"f".repeat(1024), None)),
    ]
}

fn content_hash(input: &Value) -> Value {
    let customer = text(&input["customer_id"]).parse().unwrap();
    let parts = UsageEventParts {
        event_id: EventId(bytes(&input["event_id"])),
        customer: &customer,
        as_of: Timestamp::from_micros(input["as_of"].as_i64().unwrap()),
        tokens: number(&input["tokens"]),
        frames_served: number(&input["frames_served"]),
        frames_rejected: number(&input["frames_rejected"]),
    };
    let frames = input["frames"].as_array().unwrap();
    let frames = frames.iter().map(|frame| (number(&frame["cost"]), Commitment(bytes(&frame["commitment"]))));
    json!({ "content_hash": parts.content_hash(frames) })
}

fn contents() -> Vec<(&'static str, Value)> {
    let of = |customer: &str, as_of: i64, rejected: u32, costs: &[u64]| {
        let frames: Vec<Value> = costs
            .iter()
            .zip(1u8..)
            .map(|(cost, at)| json!({ "cost": cost, "commitment": hex::encode([at; 32]) }))
            .collect();
        json!({
            "event_id": "ab".repeat(16), "customer_id": customer, "as_of": as_of, "tokens": costs.iter().sum::<u64>(),
            "frames_served": costs.len(), "frames_rejected": rejected, "frames": frames,
        })
    };
    vec![
        ("two frames", of("acme", 1_796_040_000_250_000, 1, &[900, 41])),
        ("the same frames the other way round", of("acme", 1_796_040_000_250_000, 1, &[41, 900])),
        ("no frame, all rejected", of("acme", 1_796_040_000_250_000, u32::MAX, &[])),
        ("a frame that costs nothing", of("acme", 1_796_040_000_250_000, 0, &[0])),
        ("the most a frame can cost", of("acme", 1_796_040_000_250_000, 0, &[u64::MAX])),
        ("before 1970, unicode", of("株式会社 😀", -1, 0, &[1])),
    ]
}

/// A whole report, as a host has it: body in, every hash out.
fn report(input: &Value) -> Value {
    let body = TurnReport::from_json(text(&input["body"]).as_bytes()).unwrap();
    let audited = audit_content(body).unwrap();
    let erasure = ErasureKey::from_bytes(bytes(&input["erasure_key"]));
    let record = ReportRecord::build(&text(&input["platform"]).parse().unwrap(), &audited, &erasure);
    let events = record.events.iter().map(|event| {
        let commitments = event.frames.iter().map(|frame| frame.commitment);
        json!({
            "provider_id": event.provider_id, "event_id": event.event_id, "salt": event.salt,
            "commitments": commitments.collect::<Vec<_>>(), "content_hash": event.content_hash,
        })
    });
    json!({
        "as_of": audited.as_of().as_micros(), "report_key": record.report_key,
        "events": events.collect::<Vec<_>>(), "report_hash": record.report_hash,
    })
}

fn reports() -> Vec<(&'static str, Value)> {
    let of = |body: &str| json!({ "platform": "reseller", "erasure_key": "07".repeat(32), "body": body });
    let full = include_str!("../golden/turn_report_full.json");
    let bare = {
        let mut report = TurnReport::from_json(full.as_bytes()).unwrap();
        (report.origin, report.consents, report.legs) = (None, Vec::new(), Vec::new());
        String::from_utf8(report.to_json()).unwrap()
    };
    let one = |id: &str, cost: u64| {
        format!(
            r#"{{"customer_id":"{id}","request_id":"{id}","turn_id":"1","report":{{"budget_requested":{cost},"budget_consumed":{cost},"as_of":"2026-11-30T14:00:00.0000019+02:00","providers":[{{"provider_id":"{id}","frames_served":1,"frames_rejected":0,"token_cost":{cost},"served_frames":[{{"frame":{{"provider_id":"{id}","frame_id":"{id}"}},"token_cost":{cost}}}]}}]}}}}"#
        )
    };
    vec![
        ("something of everything", of(full)),
        ("origin, consents and legs are outside every hash", of(&bare)),
        ("no provider", of(include_str!("../golden/turn_report_least.json"))),
        ("escapes: what is hashed is the text they stand for", of(&one(r"caf\u00e9 \ud83d\ude00", 12))),
        ("the same without escapes", of(&one("café 😀", 12))),
        ("no tokens", of(&one("a", 0))),
        ("the most tokens", of(&one("a", u64::MAX))),
    ]
}

fn acknowledgement(input: &Value) -> Value {
    let body = AcknowledgementBody {
        platform: text(&input["platform"]).parse().unwrap(),
        request_id: text(&input["request_id"]).parse().unwrap(),
        turn_id: text(&input["turn_id"]).parse().unwrap(),
        report_hash: ReportHash(bytes(&input["report_hash"])),
        position: Position { epoch: number(&input["epoch"]), seq: number(&input["seq"]) },
        at: Timestamp::from_micros(input["at"].as_i64().unwrap()),
    };
    json!({ "to_sign": hex::encode(body.to_sign()) })
}

fn acknowledgements() -> Vec<(&'static str, Value)> {
    let of = |request: &str, epoch: u64, seq: u64, at: i64| {
        json!({
            "platform": "reseller", "request_id": request, "turn_id": "7", "report_hash": "cd".repeat(32),
            "epoch": epoch, "seq": seq, "at": at,
        })
    };
    vec![
        ("plain", of("req-81", 3, 81, 1_796_040_000_412_000)),
        ("the furthest position", of("req-81", u64::MAX, u64::MAX, 1_796_040_000_412_000)),
        ("unicode", of("日本 😀", 1, 1, 0)),
    ]
}

fn meter(input: &Value) -> Value {
    let providers = input["providers"].as_array();
    let definition = MeterDefinition {
        meter_id: text(&input["meter"]).parse().unwrap(),
        filter: MeterFilter {
            kind: EventKind::parse(text(&input["kind"])).unwrap(),
            providers: providers.map(|ids| ids.iter().map(|id| text(id).parse().unwrap()).collect()),
        },
        quantity: Quantity::parse(text(&input["quantity"])).unwrap(),
    };
    json!({ "definition_hash": hex::encode(definition.definition_hash()) })
}

fn meters() -> Vec<(&'static str, Value)> {
    let of = |kind: &str, providers: Value, quantity: &str| json!({ "meter": "context_tokens", "kind": kind, "providers": providers, "quantity": quantity });
    vec![
        ("every provider", of("context", Value::Null, "tokens")),
        ("no provider is not every provider", of("context", json!([]), "tokens")),
        ("frames of two providers", of("context", json!(["docs", "memory"]), "frames_served")),
        ("the order of bytes, not of UTF-16", of("context", json!(["😀", "～", "z", "é"]), "events")),
        ("delegations", of("delegation", Value::Null, "events")),
    ]
}
