//! API keys by the hash of their secret.

use sqlx::any::AnyRow;
use usage::{PlatformId, Timestamp};

use crate::{Ledger, LedgerError, row::Columns as _, row::Statement};

/// A key. The secret is nowhere in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub key_id: String,
    pub platform: PlatformId,
    pub livemode: bool,
    pub secret_hash: [u8; 32],
    pub label: String,
    /// Names of scopes, in their fixed order.
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
}

impl Ledger {
    pub async fn key_insert(&self, key: &KeyRow) -> Result<(), LedgerError> {
        let insert = include_str!("../../../sql/ledger/queries/keys/insert.sql");
        self.run("inserting a key", insert, |s| {
            s.text(&key.key_id)
                .text(key.platform.as_str())
                .flag(key.livemode)
                .bytes(&key.secret_hash)
                .text(&key.label)
                .text(&key.scopes.join(","))
                .time(key.created_at)
                .integer_or_null(key.expires_at.map(Timestamp::as_micros))
                .done()
        })
        .await
        .map(drop)
    }

    pub async fn key_list(&self, platform: &PlatformId) -> Result<Vec<KeyRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/keys/list.sql");
        let rows = self.rows("listing keys", list, |s| s.text(platform.as_str()).done()).await?;
        rows.iter().map(read).collect()
    }

    /// Every key that is not revoked, of all platforms.
    pub async fn key_snapshot(&self) -> Result<Vec<KeyRow>, LedgerError> {
        let snapshot = include_str!("../../../sql/ledger/queries/keys/snapshot.sql");
        self.rows("reading the keys", snapshot, Statement::done).await?.iter().map(read).collect()
    }

    /// Revokes a key of a platform; one that is revoked already or another platform's is not found.
    pub async fn key_revoke(&self, platform: &PlatformId, key_id: &str) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let revoke = include_str!("../../../sql/ledger/queries/keys/revoke.sql");
        let changed = self
            .run("revoking a key", revoke, |s| s.text(platform.as_str()).text(key_id).time(now).done())
            .await?;
        match changed {
            0 => Err(LedgerError::NotFound { what: format!("key {key_id}") }),
            _ => Ok(()),
        }
    }

    /// Notes when keys were last used.
    pub async fn key_touch_many(&self, used: &[(String, Timestamp)]) -> Result<(), LedgerError> {
        let touch = include_str!("../../../sql/ledger/queries/keys/touch.sql");
        let mut tx = self.write().await?;
        for (key_id, at) in used {
            tx.run("noting a key's use", touch, |s| s.text(key_id).time(*at).done()).await?;
        }
        tx.commit().await
    }
}

fn read(row: &AnyRow) -> Result<KeyRow, LedgerError> {
    let scopes = row.text("scopes")?;
    Ok(KeyRow {
        key_id: row.text("key_id")?,
        platform: row.parsed("platform_id", PlatformId::parse)?,
        livemode: row.flag("livemode")?,
        secret_hash: row.array("secret_hash")?,
        label: row.text("label")?,
        scopes: scopes.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect(),
        created_at: row.time("created_at")?,
        expires_at: row.time_or_null("expires_at")?,
        revoked_at: row.time_or_null("revoked_at")?,
        last_used_at: row.time_or_null("last_used_at")?,
    })
}
