//! Statements as sealing commits them, each by a run of its own.

use ledger::{Ledger, SealCommit, SealRunRow, StatementRow};
use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

pub(crate) struct Statement {
    pub(crate) platform: PlatformId,
    pub(crate) customer: CustomerId,
    pub(crate) meter: MeterId,
    pub(crate) hour: Hour,
    pub(crate) piece: (Timestamp, Timestamp),
    pub(crate) revision: u32,
    pub(crate) sum: u128,
}

/// Commits it and notes that its run is recorded. Gives back its id.
pub(crate) async fn seal(ledger: &Ledger, statement: Statement) -> String {
    let run_id = commit(ledger, statement).await;
    ledger.seal_run_recorded(&run_id.0).await.unwrap();
    run_id.1
}

/// Commits it: its run and its id.
pub(crate) async fn commit(ledger: &Ledger, statement: Statement) -> (String, String) {
    let platform = statement.platform;
    let log_index = ledger.statement_list(&platform, None, None, 0, 1_000).await.unwrap().len() as u64 + 1;
    let (run_id, statement_id) = (format!("run_{log_index:032x}"), format!("stm_{log_index:032x}"));
    let runs = ledger.seal_run_list(&platform, statement.hour).await.unwrap();
    let now = ledger.now().await.unwrap();
    let run = SealRunRow {
        run_id: run_id.clone(),
        platform: platform.clone(),
        hour: statement.hour,
        ordinal: runs.len() as u64 + 1,
        cut_id: 1,
        events: 0,
        silent: Vec::new(),
        deferred: 0,
        committed_at: now,
        recorded_at: None,
    };
    let row = StatementRow {
        statement_id: statement_id.clone(),
        platform,
        customer: statement.customer,
        meter: statement.meter,
        definition_hash: [1; 32],
        hour: statement.hour,
        piece_start: statement.piece.0,
        piece_end: statement.piece.1,
        revision: statement.revision,
        count: 1,
        sum: statement.sum,
        root: [2; 32],
        statement_hash: [u8::try_from(log_index % 251).unwrap(); 32],
        log_index,
        run_id: run_id.clone(),
        recorded: false,
    };
    let commit =
        SealCommit { run, deferrals: Vec::new(), pieces: Vec::new(), statements: vec![row], log: None };
    let lease = ledger.lease_acquire("test/seal", "test", 60_000_000).await.unwrap().unwrap();
    ledger.seal_commit(&lease, &commit).await.unwrap();
    ledger.lease_release(&lease).await.unwrap();
    (run_id, statement_id)
}
