//! Every way to write a report wrong has a code and the place. One row a fear.

use usage::{Limits, Rejection, TurnReport};

use crate::sample;

fn refused(body: &str) -> Rejection {
    let rejection = TurnReport::from_json(body.as_bytes()).expect_err(body);
    assert_eq!(rejection.findings.len(), 1, "{rejection:?}");
    let detail = &rejection.findings[0].detail;
    assert!(detail.ends_with('.') && detail.starts_with(char::is_uppercase), "a sentence: {detail}");
    assert!(detail.len() < 1200, "short even where the sender was not: {} bytes", detail.len());
    rejection
}

fn check(rows: &[(&str, String, &str, &str, &str)]) {
    for (fear, body, overall, code, pointer) in rows {
        let rejection = refused(body);
        assert_eq!(
            (rejection.code, sample::codes(&rejection)),
            (*overall, vec![(*code, *pointer)]),
            "{fear}: {rejection:?}"
        );
    }
}

const INVALID: &str = "invalid_report";

#[test]
fn odd_numbers_are_refused_where_they_stand() {
    let budget = "\"budget_requested\":4096";
    let row = |fear, number: &str, code| {
        let body = sample::text(budget, &format!("\"budget_requested\":{number}"));
        (fear, body, INVALID, code, "/report/budget_requested")
    };
    check(&[
        row("a fraction", "1.0", "not_an_integer"),
        row("an exponent", "1e3", "not_an_integer"),
        row("minus nothing", "-0", "not_an_integer"),
        row("negative", "-5", "negative_number"),
        row("most negative", "-9223372036854775808", "negative_number"),
        row("below 64 bits", "-9223372036854775809", "not_an_integer"),
        row("64 bits and one", "18446744073709551616", "not_an_integer"),
        row("beyond a float", "1e999", "number_out_of_range"),
        row("a string", "\"5\"", "wrong_type"),
        row("null", "null", "null_member"),
        row("a truth", "true", "wrong_type"),
        row("a list", "[1]", "wrong_type"),
        (
            "not a number",
            sample::text(budget, "\"budget_requested\":NaN"),
            "malformed_json",
            "malformed_json",
            "/report/budget_requested",
        ),
        (
            "leading zero",
            sample::text(budget, "\"budget_requested\":007"),
            "malformed_json",
            "malformed_json",
            "/report/budget_requested",
        ),
        (
            "a count beyond 32 bits",
            sample::text("\"frames_rejected\":3", "\"frames_rejected\":4294967296"),
            INVALID,
            "number_out_of_range",
            "/report/providers/2/frames_rejected",
        ),
        (
            "a frame's cost in a deep place",
            sample::text("\"token_cost\":41", "\"token_cost\":41.5"),
            INVALID,
            "not_an_integer",
            "/report/providers/0/served_frames/1/token_cost",
        ),
    ]);
}

#[test]
fn numbers_past_two_to_the_53_keep_their_digits() {
    let body = sample::text("\"budget_requested\":4096", "\"budget_requested\":9007199254740993");
    let report = TurnReport::from_json(body.as_bytes()).unwrap();
    assert_eq!(report.report.budget_requested, 9_007_199_254_740_993);
    assert_eq!(String::from_utf8(report.to_json()).unwrap(), body);
}

#[test]
fn unknown_doubled_missing_and_null_members_are_refused_with_their_names() {
    check(&[
        ("unknown at the top", sample::text("\"turn_id\":\"7\"", "\"turn_id\":\"7\",\"tampered\":true"), INVALID, "unknown_member", "/tampered"),
        (
            "a typing error",
            sample::text("\"budget_consumed\":", "\"budget_consummed\":"),
            INVALID,
            "unknown_member",
            "/report/budget_consummed",
        ),
        (
            "a name that needs escaping",
            sample::text("\"turn_id\":\"7\"", "\"turn_id\":\"7\",\"a/b~c\":1"),
            INVALID,
            "unknown_member",
            "/a~1b~0c",
        ),
        (
            "unknown in a frame",
            sample::text("\"frame_id\":\"m-1\"", "\"frame_id\":\"m-1\",\"score\":1"),
            INVALID,
            "unknown_member",
            "/report/providers/1/served_frames/0/frame/score",
        ),
        (
            "doubled",
            sample::text("\"budget_consumed\":1341", "\"budget_consumed\":1341,\"budget_consumed\":1341"),
            INVALID,
            "duplicate_member",
            "/report/budget_consumed",
        ),
        (
            "doubled in a provider",
            sample::text("\"frames_rejected\":1,", "\"frames_rejected\":1,\"frames_rejected\":0,"),
            INVALID,
            "duplicate_member",
            "/report/providers/0/frames_rejected",
        ),
        (
            "doubled in a consent",
            sample::text("\"scope\":\"third-party-index\"", "\"scope\":\"a\",\"scope\":\"b\""),
            INVALID,
            "duplicate_member",
            "/consents/0/scope",
        ),
        ("missing", sample::text("\"turn_id\":\"7\",", ""), INVALID, "missing_member", "/turn_id"),
        (
            "missing in a provider",
            sample::text("\"frames_rejected\":3,", ""),
            INVALID,
            "missing_member",
            "/report/providers/2/frames_rejected",
        ),
        (
            "null list",
            r#"{"customer_id":"a","request_id":"b","turn_id":"c","report":{"budget_requested":0,"budget_consumed":0,"as_of":"x","providers":null}}"#.to_owned(),
            INVALID,
            "null_member",
            "/report/providers",
        ),
        (
            "null for an absent digest",
            sample::text("\"content_digest\":\"blake3:AF13\"", "\"content_digest\":null"),
            INVALID,
            "null_member",
            "/report/providers/1/served_frames/0/frame/content_digest",
        ),
        (
            "null for an absent origin",
            r#"{"customer_id":"a","request_id":"b","turn_id":"c","origin":null}"#.to_owned(),
            INVALID,
            "null_member",
            "/origin",
        ),
        ("null identity", sample::text("\"turn_id\":\"7\"", "\"turn_id\":null"), INVALID, "null_member", "/turn_id"),
        ("null everything", "null".to_owned(), INVALID, "null_member", ""),
    ]);
}

#[test]
fn an_object_is_an_object_and_not_a_list_of_its_members() {
    let frame = r#"{"provider_id":"memory","frame_id":"m-1","content_digest":"blake3:AF13"}"#;
    check(&[
        ("the whole", r#"["acme","req","7"]"#.to_owned(), INVALID, "wrong_type", ""),
        (
            "the report",
            r#"{"customer_id":"a","request_id":"b","turn_id":"c","report":[100,0,"x",[]]}"#.to_owned(),
            INVALID,
            "wrong_type",
            "/report",
        ),
        (
            "a frame",
            sample::text(frame, r#"["memory","m-1","blake3:AF13"]"#),
            INVALID,
            "wrong_type",
            "/report/providers/1/served_frames/0/frame",
        ),
        (
            "a grantor",
            sample::text(r#"{"kind":"human","id":"ada"}"#, r#"["human","ada"]"#),
            INVALID,
            "wrong_type",
            "/consents/0/grantor",
        ),
        (
            "an outcome that is none",
            sample::text("\"outcome\":\"served\"", "\"outcome\":\"great\""),
            INVALID,
            "unknown_value",
            "/legs/0/outcome",
        ),
        (
            "an outcome of another kind",
            sample::text("\"outcome\":\"served\"", "\"outcome\":{\"served\":null}"),
            INVALID,
            "wrong_type",
            "/legs/0/outcome",
        ),
        (
            "a grantor of no kind",
            sample::text("\"kind\":\"human\"", "\"kind\":\"robot\""),
            INVALID,
            "unknown_value",
            "/consents/0/grantor/kind",
        ),
    ]);
}

#[test]
fn texts_that_no_log_or_key_should_hold_are_refused() {
    let long = "x".repeat(201);
    check(&[
        ("empty request", sample::text("\"req-81\"", "\"\""), INVALID, "id_empty", "/request_id"),
        (
            "empty turn",
            sample::text("\"turn_id\":\"7\"", "\"turn_id\":\"\""),
            INVALID,
            "id_empty",
            "/turn_id",
        ),
        (
            "empty frame",
            sample::text("\"m-1\"", "\"\""),
            INVALID,
            "id_empty",
            "/report/providers/1/served_frames/0/frame/frame_id",
        ),
        (
            "too long",
            sample::text("\"req-81\"", &format!("\"{long}\"")),
            INVALID,
            "id_too_long",
            "/request_id",
        ),
        ("line end", sample::text("\"req-81\"", "\"a\\nb\""), INVALID, "id_control_character", "/request_id"),
        (
            "nothing at all",
            sample::text("\"req-81\"", "\"a\\u0000\""),
            INVALID,
            "id_control_character",
            "/request_id",
        ),
        (
            "second control block",
            sample::text("\"req-81\"", "\"a\\u0085\""),
            INVALID,
            "id_control_character",
            "/request_id",
        ),
        (
            "line separator",
            sample::text("\"req-81\"", "\"a\\u2028b\""),
            INVALID,
            "id_control_character",
            "/request_id",
        ),
        (
            "identity as a number",
            sample::text("\"turn_id\":\"7\"", "\"turn_id\":7"),
            INVALID,
            "wrong_type",
            "/turn_id",
        ),
        ("half a pair", sample::text("\"req-81\"", "\"\\ud83d\""), INVALID, "lone_surrogate", "/request_id"),
        (
            "half a pair and text",
            sample::text("\"req-81\"", "\"\\ud83dabc\""),
            INVALID,
            "lone_surrogate",
            "/request_id",
        ),
        (
            "the second half first",
            sample::text("\"req-81\"", "\"\\ude00\""),
            INVALID,
            "lone_surrogate",
            "/request_id",
        ),
        (
            "two first halves",
            sample::text("\"req-81\"", "\"\\ud83d\\ud83d\""),
            INVALID,
            "lone_surrogate",
            "/request_id",
        ),
        (
            "empty digest",
            sample::text("\"blake3:AF13\"", "\"\""),
            INVALID,
            "digest_empty",
            "/report/providers/1/served_frames/0/frame/content_digest",
        ),
        (
            "empty epoch",
            sample::text("\"01987c5e-0000-7000-8000-000000000001\"", "\"\""),
            INVALID,
            "text_empty",
            "/origin/epoch",
        ),
        (
            "a reason that obeys",
            sample::text("declared cost differs from content", "\\u001b[2J"),
            INVALID,
            "text_control_character",
            "/legs/1/reasons/0",
        ),
    ]);
}

#[test]
fn a_pair_of_surrogates_is_the_character() {
    let report = TurnReport::from_json(sample::text("\"req-81\"", "\"\\ud83d\\ude00\"").as_bytes()).unwrap();
    assert_eq!(report.request_id.as_str(), "😀");
}

#[test]
fn what_is_not_json_is_called_so() {
    let whole = sample::compact();
    let half = whole[..whole.len() / 2].to_owned();
    check(&[
        ("nothing", String::new(), "malformed_json", "malformed_json", ""),
        ("two values", format!("{whole}{whole}"), "malformed_json", "trailing_data", ""),
        ("a comma after", format!("{whole},"), "malformed_json", "trailing_data", ""),
        ("a page of a proxy", "<html>502</html>".to_owned(), "malformed_json", "malformed_json", ""),
    ]);
    assert_eq!(refused(&half).code, "malformed_json");
    let mut bytes = whole.into_bytes();
    let at = bytes.windows(6).position(|part| part == b"req-81").unwrap();
    bytes[at] = 0xff;
    let rejection = TurnReport::from_json(&bytes).unwrap_err();
    assert_eq!(
        (rejection.code, sample::codes(&rejection)),
        ("malformed_json", vec![("malformed_json", "/request_id")])
    );
}

#[test]
fn depth_and_breadth_are_bounded_before_memory_is() {
    let deep = "[".repeat(100_000);
    let rejection = TurnReport::from_json(
        sample::text("\"scope\":\"third-party-index\"", &format!("\"scope\":{deep}")).as_bytes(),
    );
    assert_eq!(rejection.unwrap_err().findings[0].pointer, "/consents/0/scope");

    let provider = |at: usize| {
        format!(r#"{{"provider_id":"p{at}","frames_served":0,"frames_rejected":0,"token_cost":0}}"#)
    };
    let body = |count: usize| {
        let providers: Vec<String> = (0..count).map(provider).collect();
        format!(
            r#"{{"customer_id":"a","request_id":"b","turn_id":"c","report":{{"budget_requested":0,"budget_consumed":0,"as_of":"2026-11-30T12:00:00Z","providers":[{}]}}}}"#,
            providers.join(",")
        )
    };
    assert!(TurnReport::from_json(body(Limits::PROVIDERS).as_bytes()).is_ok());
    let rejection = refused(&body(Limits::PROVIDERS + 1));
    assert_eq!(sample::codes(&rejection), [("too_many_providers", "/report/providers")]);

    let long = "y".repeat(100_000);
    let rejection = refused(&sample::text("\"turn_id\":\"7\"", &format!("\"turn_id\":\"7\",\"{long}\":1")));
    assert_eq!(rejection.findings[0].code, "unknown_member");
}

#[test]
fn a_report_inside_another_document_is_refused_with_the_place_in_that_document() {
    let rejection = refused(&sample::text("\"turn_id\":\"7\"", "\"turn_id\":7")).under("/data");
    assert_eq!(sample::codes(&rejection), [("wrong_type", "/data/turn_id")]);
    assert_eq!(rejection.to_string(), "invalid_report: wrong_type at `/data/turn_id`");
}
