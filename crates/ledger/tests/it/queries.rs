//! The files of SQL: none is forgotten, none is broken on one of the databases.

use std::path::{Path, PathBuf};

use ledger::{Ledger, LedgerOptions};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, SqlSafeStr as _};

const ROOM: &str = env!("CARGO_MANIFEST_DIR");

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn queries() -> Vec<PathBuf> {
    let queries = files(&Path::new(ROOM).join("../../sql/ledger/queries"), ".sql");
    assert!(queries.len() > 50, "only {} queries: is the folder right?", queries.len());
    queries
}

#[tokio::test]
async fn every_query_prepares_on_both_databases() {
    sqlx::any::install_default_drivers();
    let server = ledger::testing::PostgresServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite://{}", folder.path().join("l.sqlite").display());
    let mut faults = Vec::new();
    for (own, other, url) in [
        ("_sqlite.sql", "_postgres.sql", sqlite),
        ("_postgres.sql", "_sqlite.sql", server.database("queries").await.unwrap()),
    ] {
        Ledger::open(LedgerOptions::new(url.clone())).await.unwrap().migrate().await.unwrap();
        let mut connection = AnyConnection::connect(&url).await.unwrap();
        for query in queries().into_iter().filter(|query| !query.to_str().unwrap().ends_with(other)) {
            let text = std::fs::read_to_string(&query).unwrap();
            assert!(text.starts_with("-- "), "{}: its first line says what it does", query.display());
            if let Err(error) = connection.prepare(AssertSqlSafe(text).into_sql_str()).await {
                faults.push(format!("{} ({own}): {error}", query.display()));
            }
        }
        let broken = connection.prepare(AssertSqlSafe("SELECT nothing FROM nowhere").into_sql_str()).await;
        assert!(broken.is_err(), "{own}: preparing finds faults");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_query_is_used() {
    let sources: String = files(&Path::new(ROOM).join("src"), ".rs")
        .into_iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for query in queries() {
        let name = query.strip_prefix(Path::new(ROOM).join("../../sql/ledger/queries")).unwrap();
        assert!(
            sources.contains(&format!("queries/{}", name.display())),
            "{} is used by nothing",
            name.display()
        );
    }
}
