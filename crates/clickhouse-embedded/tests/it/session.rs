use crate::support::{ask, code, open, text};

#[tokio::test]
async fn a_session_keeps_its_temporary_tables_and_settings_and_a_request_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let ask = async |address: &str, sql: &'static str| ask(&engine, address, &[], sql).await;

    assert_eq!(ask("?session_id=s", "CREATE TEMPORARY TABLE x (n UInt8)").await.status(), 200);
    assert_eq!(ask("?session_id=s", "INSERT INTO x VALUES (1), (2)").await.status(), 200);
    assert_eq!(
        text(&ask("?session_id=s&max_threads=3", "SELECT sum(n), getSetting('max_threads') FROM x").await),
        "3\t3\n"
    );
    assert_eq!(ask("?session_id=s", "SET max_block_size = 77").await.status(), 200);
    let settings = "SELECT name, value, changed FROM system.settings WHERE name IN ('max_block_size', 'max_threads', 'max_insert_block_size') AND changed";
    assert_eq!(text(&ask("?session_id=s", settings).await), "max_block_size\t77\t1\n");
    assert_eq!(ask("?session_id=other", "SELECT * FROM x").await.status(), 404);
    assert_eq!(ask("", "SELECT * FROM x").await.status(), 404);

    // After an error the session goes on.
    assert_eq!(ask("?session_id=s", "SELECT throwIf(1)").await.status(), 500);
    assert_eq!(text(&ask("?session_id=s", "SELECT count() FROM x").await), "2\n");

    assert_eq!(code(&ask("?session_id=absent&session_check=1", "SELECT 1").await), "372");
    assert_eq!(ask("?session_id=s&close_session=1", "SELECT 1").await.status(), 200);
    assert_eq!(code(&ask("?session_id=s&session_check=1", "SELECT 1").await), "372");
}

#[tokio::test]
async fn two_requests_of_one_session_run_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let slow = ask(&engine, "?session_id=s", &[], "SELECT sleep(0.3)");
    let other = ask(&engine, "?session_id=s", &[], "SELECT 1");
    let (slow, other) = tokio::join!(slow, other);
    assert_eq!((slow.status().as_u16(), other.status().as_u16()), (200, 200));
}
