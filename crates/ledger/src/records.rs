//! Generic record streams: numbered bodies that the ledger does not read.

use sqlx::any::AnyRow;
use usage::Timestamp;

use crate::{Ledger, LedgerError, row::Columns as _};

/// A record of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    pub seq: u64,
    pub body: Vec<u8>,
    pub recorded_at: Timestamp,
}

impl Ledger {
    /// Begins a stream with its first record and notes whose it is, in one transaction; a `Conflict` if it was begun before.
    pub async fn record_stream_begin(
        &self,
        owner: &str,
        stream: &str,
        body: &[u8],
    ) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        let now = tx.now();
        let insert = include_str!("../../../sql/ledger/queries/records/stream_insert.sql");
        tx.run("beginning a stream", insert, |s| s.text(owner).text(stream).done()).await?;
        let append = include_str!("../../../sql/ledger/queries/records/append.sql");
        let appended = tx
            .run("beginning a stream", append, |s| s.text(stream).integer(1).bytes(body).time(now).done())
            .await?;
        match appended {
            0 => Err(LedgerError::Conflict { constraint: format!("record 1 of {stream}") }),
            _ => tx.commit().await,
        }
    }

    /// An owner's streams after a name, in order, each with its first record.
    pub async fn record_stream_list(
        &self,
        owner: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, RecordRow)>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/records/stream_list.sql");
        let rows = self
            .rows("listing streams", list, |s| s.text(owner).text(after).integer(i64::from(limit)).done())
            .await?;
        rows.iter().map(|row| Ok((row.text("stream")?, record(row)?))).collect()
    }

    /// Appends the record `seq` of a stream; a `Conflict` unless it is the next one.
    pub async fn record_append(&self, stream: &str, seq: u64, body: &[u8]) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let append = include_str!("../../../sql/ledger/queries/records/append.sql");
        let appended = self
            .run("appending a record", append, |s| {
                s.text(stream).number("a record's number", seq).bytes(body).time(now).done()
            })
            .await?;
        match appended {
            0 => Err(LedgerError::Conflict { constraint: format!("record {seq} of {stream}") }),
            _ => Ok(()),
        }
    }

    /// Records after a number, in order.
    pub async fn record_read(
        &self,
        stream: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<RecordRow>, LedgerError> {
        let read = include_str!("../../../sql/ledger/queries/records/read.sql");
        let rows = self
            .rows("reading records", read, |s| {
                s.text(stream).number("a record's number", after).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &AnyRow) -> Result<RecordRow, LedgerError> {
    Ok(RecordRow { seq: row.number("seq")?, body: row.bytes("body")?, recorded_at: row.time("recorded_at")? })
}
