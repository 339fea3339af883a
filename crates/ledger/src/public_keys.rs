//! Public halves of signing keys, kept for ever.

use usage::Timestamp;

use crate::{Ledger, LedgerError, row::Columns as _, row::Statement};

/// A public key and what it signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeyRow {
    pub kid: String,
    /// `acknowledgement` or `head`.
    pub family: String,
    pub public_key: [u8; 32],
    pub created_at: Timestamp,
}

impl Ledger {
    /// Keeps a public key; one that is there already stays as it is.
    pub async fn public_key_insert(
        &self,
        kid: &str,
        family: &str,
        public_key: [u8; 32],
    ) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let insert = include_str!("../../../sql/ledger/queries/public_keys/insert.sql");
        self.run("keeping a public key", insert, |s| {
            s.text(kid).text(family).bytes(&public_key).time(now).done()
        })
        .await
        .map(drop)
    }

    pub async fn public_key_list(&self) -> Result<Vec<PublicKeyRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/public_keys/list.sql");
        let rows = self.rows("listing public keys", list, Statement::done).await?;
        rows.iter()
            .map(|row| {
                Ok(PublicKeyRow {
                    kid: row.text("kid")?,
                    family: row.text("family")?,
                    public_key: row.array("public_key")?,
                    created_at: row.time("created_at")?,
                })
            })
            .collect()
    }
}
