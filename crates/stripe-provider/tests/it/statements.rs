//! Statements as sealing commits them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use billing::payments::{BilledStatement, Statements};
use ledger::{Ledger, LedgerError};
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

#[derive(Default, Clone)]
pub(crate) struct Sealed(Arc<List>);

#[derive(Default)]
struct List(Mutex<Vec<BilledStatement>>);

impl Sealed {
    pub(crate) fn shared(&self) -> Arc<dyn Statements> {
        self.0.clone()
    }

    pub(crate) async fn add(&self, _: &Ledger, statement: Statement) -> String {
        let mut all = self.0.0.lock().unwrap();
        let log_index = all.len() as u64 + 1;
        let statement_id = format!("stm_{log_index:032x}");
        all.push(BilledStatement {
            statement_id: statement_id.clone(),
            platform: statement.platform,
            customer: statement.customer,
            meter: statement.meter,
            hour: statement.hour,
            piece_start: statement.piece.0,
            piece_end: statement.piece.1,
            revision: statement.revision,
            sum: statement.sum,
            hash: [u8::try_from(log_index % 251).unwrap(); 32],
            log_index,
        });
        statement_id
    }
}

#[async_trait]
impl Statements for List {
    async fn log(
        &self,
        platform: &PlatformId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<BilledStatement>, LedgerError> {
        let all = self.0.lock().unwrap();
        let rows = all.iter().filter(|row| row.platform == *platform && row.log_index > after);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    async fn get(&self, platform: &PlatformId, id: &str) -> Result<Option<BilledStatement>, LedgerError> {
        let all = self.0.lock().unwrap();
        Ok(all.iter().find(|row| row.platform == *platform && row.statement_id == id).cloned())
    }

    async fn unsealed(&self, _: &PlatformId, _: Hour, _: Hour) -> Result<Vec<Hour>, LedgerError> {
        Ok(Vec::new())
    }
}
