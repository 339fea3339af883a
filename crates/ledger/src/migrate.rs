//! The schema: numbered migrations with their hashes, applied in order, once, by one at a time.

use sha2::{Digest as _, Sha256};

use crate::{Backend, Ledger, LedgerError, row::Columns as _, row::Statement};

struct Migration {
    version: i64,
    name: &'static str,
    text: &'static str,
}

macro_rules! migrations {
    ($($version:literal $file:literal),* $(,)?) => {
        &[$(Migration {
            version: $version,
            name: $file,
            text: include_str!(concat!("../../../sql/ledger/migrations/", $file)),
        }),*]
    };
}

const MIGRATIONS: &[Migration] = migrations![
    1 "0001_core.sql",
    2 "0002_sealing.sql",
    3 "0003_payments.sql",
    4 "0004_record_streams.sql",
];

/// What a migration run found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    pub applied: Vec<&'static str>,
    pub version: i64,
}

impl Ledger {
    /// Brings the schema to this program's. Safe to run twice and by two at once.
    ///
    /// # Errors
    ///
    /// A schema that is newer than the program, or a migration whose text changed after it was applied, is refused.
    pub async fn migrate(&self) -> Result<MigrationReport, LedgerError> {
        let mut tx = self.write().await?;
        if self.backend() == Backend::Postgres {
            let lock = include_str!("../../../sql/ledger/queries/schema/lock_postgres.sql");
            tx.rows("locking the schema", lock, Statement::done).await?;
        }
        let create = include_str!("../../../sql/ledger/queries/schema/create.sql");
        tx.run("creating the table of migrations", create, Statement::done).await?;
        let list = include_str!("../../../sql/ledger/queries/schema/list.sql");
        let rows = tx.rows("listing migrations", list, Statement::done).await?;

        let known = MIGRATIONS.last().map_or(0, |m| m.version);
        let mut applied = Vec::new();
        for row in &rows {
            let version = row.integer("version")?;
            let Some(ours) = MIGRATIONS.iter().find(|m| m.version == version) else {
                return Err(LedgerError::NewerSchema { found: version, known });
            };
            if row.bytes("checksum")? != checksum(ours) {
                return Err(LedgerError::ChecksumChanged { version });
            }
            applied.push(version);
        }
        let mut report = MigrationReport { applied: Vec::new(), version: known };
        for migration in MIGRATIONS.iter().filter(|m| !applied.contains(&m.version)) {
            tx.script("applying a migration", migration.text).await?;
            let insert = include_str!("../../../sql/ledger/queries/schema/insert.sql");
            let now = tx.now();
            tx.run("noting a migration", insert, |s| {
                s.integer(migration.version).text(migration.name).bytes(&checksum(migration)).time(now).done()
            })
            .await?;
            report.applied.push(migration.name);
        }
        tx.commit().await?;
        Ok(report)
    }
}

fn checksum(migration: &Migration) -> Vec<u8> {
    Sha256::digest(migration.text).to_vec()
}
