//! The schema: numbered migrations whose statements may run twice and by two at once, with the hash of each applied text.

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{StoreError, UsageStore, error::failed};

struct Migration {
    version: u32,
    name: &'static str,
    text: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "0001_usage.sql",
    text: include_str!("../../../sql/clickhouse/migrations/0001_usage.sql"),
}];

/// What a migration run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreMigrationReport {
    pub applied: Vec<&'static str>,
    pub version: u32,
}

#[derive(Row, Serialize, Deserialize)]
struct Applied {
    version: u32,
    name: String,
    checksum: [u8; 32],
}

impl UsageStore {
    /// Brings the schema to this program's, the database included. Safe to run twice and by two at once.
    ///
    /// # Errors
    ///
    /// A schema that is newer than the program, or a migration whose text changed after it was applied, is refused.
    pub async fn migrate(&self) -> Result<StoreMigrationReport, StoreError> {
        let error = |error| failed("migrating", error);
        let database = format!(
            "CREATE DATABASE IF NOT EXISTS `{}` {} ENGINE = Atomic",
            self.options.database,
            self.on_cluster()
        );
        self.client.clone().with_database("").query(&database).execute().await.map_err(error)?;
        let create = include_str!("../../../sql/clickhouse/queries/schema/create.sql");
        self.query(&self.laid_out(create)).execute().await.map_err(error)?;

        let list = include_str!("../../../sql/clickhouse/queries/schema/list.sql");
        let applied: Vec<Applied> = self.query(list).fetch_all().await.map_err(error)?;
        let known = MIGRATIONS.last().map_or(0, |migration| migration.version);
        for row in &applied {
            let ours = MIGRATIONS
                .iter()
                .find(|migration| migration.version == row.version)
                .ok_or(StoreError::NewerSchema { found: row.version, known })?;
            if row.checksum != checksum(ours) {
                return Err(StoreError::ChecksumChanged { version: row.version });
            }
        }
        let mut report = StoreMigrationReport { applied: Vec::new(), version: known };
        for migration in
            MIGRATIONS.iter().filter(|ours| !applied.iter().any(|row| row.version == ours.version))
        {
            for statement in
                self.laid_out(migration.text).split(";\n").map(str::trim).filter(|s| !s.is_empty())
            {
                self.query(statement).execute().await.map_err(error)?;
            }
            let row = Applied {
                version: migration.version,
                name: migration.name.to_owned(),
                checksum: checksum(migration),
            };
            self.insert_rows("schema_migrations", &[row]).await?;
            report.applied.push(migration.name);
        }
        Ok(report)
    }

    fn on_cluster(&self) -> String {
        self.options.cluster.as_ref().map(|name| format!("ON CLUSTER `{name}`")).unwrap_or_default()
    }

    fn laid_out(&self, text: &str) -> String {
        let replicated = if self.options.cluster.is_some() { "Replicated" } else { "" };
        text.replace("{{on_cluster}}", &self.on_cluster()).replace("{{replicated}}", replicated)
    }
}

fn checksum(migration: &Migration) -> [u8; 32] {
    Sha256::digest(migration.text).into()
}
