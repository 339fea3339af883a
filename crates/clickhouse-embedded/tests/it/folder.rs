use std::io::Read;
use std::process::{Command, Stdio};

use clickhouse_embedded::test_support::{test_library, test_options};
use clickhouse_embedded::{Engine, EngineError, EngineOptions, locate_library};

use crate::support::{client, count, database, execute, open};

/// Set in a process that this file starts: the folder it is to open.
const CHILD: &str = "CLICKHOUSE_EMBEDDED_SECOND_PROCESS";

#[tokio::test]
async fn a_second_process_is_refused_by_name_of_the_folder_and_the_first_goes_on() {
    if let Ok(folder) = std::env::var(CHILD) {
        match Engine::open(test_options(folder).unwrap()).await {
            Ok(_) => println!("opened"),
            Err(error) => println!("refused: {error}"),
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let name = "folder::a_second_process_is_refused_by_name_of_the_folder_and_the_first_goes_on";
    let mut second = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    second.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    second.wait().unwrap();

    assert!(said.contains("refused: ") && said.contains("is open in another process"), "{said}");
    assert!(said.contains(folder.path().to_str().unwrap()), "{said}");
    assert_eq!(count(&client(&engine), "SELECT toUInt64(1)").await, 1);
}

#[tokio::test]
async fn a_second_engine_in_the_process_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(folder.path()).await;
    for path in [folder.path(), other.path()] {
        let refused = Engine::open(test_options(path).unwrap()).await;
        assert!(matches!(refused, Err(EngineError::AlreadyOpen { .. })));
    }
    assert_eq!(count(&client(&engine), "SELECT toUInt64(1)").await, 1);
}

#[tokio::test]
async fn what_was_stored_is_there_after_close_and_open() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let engine = open(folder.path()).await;
        assert!(engine.version().starts_with("26."), "{}", engine.version());
        let client = database(&engine);
        execute(&client, "CREATE TABLE IF NOT EXISTS n (n UInt64) ENGINE = MergeTree ORDER BY n").await;
        execute(&client, "INSERT INTO n SELECT number FROM numbers(100)").await;
        assert_eq!(count(&client, "SELECT count() FROM n").await, round * 100);
        engine.close().await.unwrap();
        let refused = client.query("SELECT 1").fetch_one::<u8>().await;
        assert!(refused.is_err());
    }
}

#[tokio::test]
async fn dropping_every_handle_closes_the_engine_too() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let engine = Engine::open(test_options(folder.path()).unwrap()).await.unwrap();
        drop(engine);
    }
}

#[tokio::test]
async fn a_temporary_folder_is_gone_after_close() {
    let engine = Engine::open(EngineOptions::in_temporary_folder(test_library().unwrap())).await.unwrap();
    let path = engine.path().to_owned();
    assert_eq!(count(&client(&engine), "SELECT toUInt64(1)").await, 1);
    engine.close().await.unwrap();
    assert!(!path.exists());
}

#[test]
fn a_library_that_is_not_there_is_an_error_that_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("libchdb.so");
    let message = locate_library(Some(&named), None, &[]).unwrap_err().to_string();
    assert!(
        message.contains("scripts/install-engine.sh") && message.contains(named.to_str().unwrap()),
        "{message}"
    );
    // What the environment names is not replaced by what lies around.
    std::fs::create_dir_all(folder.path().join(".tools/chdb")).unwrap();
    std::fs::write(folder.path().join(".tools/chdb/libchdb.so"), "x").unwrap();
    let hints = [folder.path().join("crates/deep")];
    assert!(locate_library(None, Some(named.as_os_str()), &hints).is_err());
    let found = locate_library(None, None, &hints).unwrap();
    assert_eq!(found, folder.path().join(".tools/chdb/libchdb.so"));
}

#[tokio::test]
async fn a_file_that_is_no_engine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libchdb.so");
    std::fs::write(&file, "not a library").unwrap();
    let refused = Engine::open(EngineOptions::new(file, folder.path().join("data"))).await;
    assert!(matches!(refused, Err(EngineError::LibraryLoad { .. })));
}
