//! Erasure keys: one secret a customer, from which its events' salts come.

use usage::{CustomerId, PlatformId};

use crate::{Ledger, LedgerError, row::Columns as _, row::one};

impl Ledger {
    /// The secret of a customer; `candidate` becomes it if there is none yet. Two who offer at once get the same.
    pub async fn erasure_key_get_or_create(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        candidate: [u8; 32],
    ) -> Result<[u8; 32], LedgerError> {
        let now = self.now().await?;
        let insert = include_str!("../../../sql/ledger/queries/erasure/insert.sql");
        self.run("offering an erasure key", insert, |s| {
            s.text(platform.as_str()).text(customer.as_str()).bytes(&candidate).time(now).done()
        })
        .await?;
        let get = include_str!("../../../sql/ledger/queries/erasure/get.sql");
        let rows = self
            .rows("reading an erasure key", get, |s| s.text(platform.as_str()).text(customer.as_str()).done())
            .await?;
        one(rows, || format!("erasure key of {customer}"))?.array("secret")
    }
}
