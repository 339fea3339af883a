//! Many reports in one request.

use serde_json::Value;

use crate::world::{World, noon, report};

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_batch_has_its_answer_in_its_place() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    let lines = [
        report("1", &[10]).to_string(),
        "{".to_owned(),
        report("2", &[20]).to_string(),
        String::new(),
        report("1", &[10]).to_string(),
        report("2", &[21]).to_string(),
    ];
    let (status, text) =
        room.text("POST", "/v1/reports/batch", "application/x-ndjson", lines.join("\n")).await;
    assert_eq!(status, 200, "{text}");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<(u64, u64)> =
        answers.iter().map(|a| (a["line"].as_u64().unwrap(), a["status"].as_u64().unwrap())).collect();
    assert_eq!(seen, [(1, 200), (2, 400), (3, 200), (4, 200), (5, 409)], "{text}");
    assert_eq!(answers[1]["problem"]["code"], "malformed_json");
    assert_eq!(answers[4]["problem"]["code"], "report_conflict");
    assert_eq!(answers[0]["answer"]["status"], "accepted");
    assert_eq!(answers[3]["answer"]["status"], "duplicate");
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (2, 30));
}
