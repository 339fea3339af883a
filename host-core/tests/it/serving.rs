use host_core::{Provider, protocol::PROTOCOL_VERSION, providers::NotesProvider, serve_stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::provider_id;

/// Sends lines to a served provider and returns its answers.
async fn session(lines: &[String]) -> Vec<Value> {
    let notes = NotesProvider::new(provider_id("notes")).note("n1", "Coffee", "Cleaned on Fridays.");
    assert_eq!(notes.id().as_str(), "notes");
    let (mut ours, theirs) = tokio::io::duplex(64);
    let serving = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(theirs);
        serve_stdio(&notes, reader, writer).await
    });
    let mut answers = Vec::new();
    let (reader, mut writer) = tokio::io::split(&mut ours);
    let mut reader = BufReader::new(reader).lines();
    for line in lines {
        writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let answer = reader.next_line().await.unwrap().unwrap();
        answers.push(serde_json::from_str(&answer).unwrap());
    }
    writer.write_all(b"{\"type\":\"shutdown\"}\n").await.unwrap();
    assert_eq!(reader.next_line().await.unwrap(), None);
    serving.await.unwrap().unwrap();
    answers
}

#[tokio::test]
async fn what_is_not_understood_is_answered_and_ends_nothing() {
    let query =
        json!({"type": "query", "id": "x7", "query": {"goal": "coffee", "max_frames": 8, "max_tokens": 100}});
    let hello = json!({"type": "handshake", "protocol_version": PROTOCOL_VERSION}).to_string();
    let answers = session(&[
        query.to_string(),
        "this is no message".to_owned(),
        json!({"type": "handshake", "protocol_version": "contextgraph/2.0"}).to_string(),
        hello,
        query.to_string(),
        json!({"type": "verify", "request": {"frames": []}}).to_string(),
    ])
    .await;
    assert_eq!((&answers[0]["code"], &answers[0]["id"]), (&json!("bad_request"), &json!("x7")));
    assert_eq!(answers[1]["code"], "bad_request");
    assert_eq!(answers[2]["code"], "incompatible_version");
    assert_eq!(answers[3]["type"], "handshake_ack");
    assert_eq!(answers[3]["capabilities"]["correlation"], true);
    assert_eq!((&answers[4]["type"], &answers[4]["id"]), (&json!("frames"), &json!("x7")));
    assert_eq!(answers[4]["result"]["frames"][0]["token_cost"], 5);
    assert_eq!(answers[5]["code"], "bad_request");
}
