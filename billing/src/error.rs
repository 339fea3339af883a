use ledger::LedgerError;
use usage_store::StoreError;
use web::{Problem, codes};

use crate::payments::PaymentsError;

/// Why sealing, verifying or a look-up stopped. What was committed until then stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BillingError {
    #[error("the ledger failed")]
    Ledger(#[from] LedgerError),
    #[error("the usage store failed")]
    Store(#[from] StoreError),
    #[error("the payments tasks failed")]
    Payments(#[from] PaymentsError),
    #[error("a commitment cannot be made")]
    Proof(#[from] proof::ProofError),
    /// Another process has the lease.
    #[error("another process seals")]
    Busy,
    /// Something that our code cannot have written.
    #[error("{what} is damaged")]
    Damaged { what: String },
    #[error("{what} does not fit")]
    TooLarge { what: &'static str },
}

impl From<BillingError> for Problem {
    fn from(error: BillingError) -> Problem {
        match error {
            BillingError::Ledger(error) => error.into(),
            BillingError::Payments(error) => error.into(),
            BillingError::Busy => Problem::new(&codes::BUSY)
                .detail("Another worker seals now; ask again after the time in Retry-After.")
                .retry_after(5),
            BillingError::Store(error) if error.is_retryable() => Problem::new(&codes::STORE_UNAVAILABLE)
                .detail("The usage store does not answer; ask again after the time in Retry-After.")
                .retry_after(5)
                .internal(&error),
            BillingError::Store(error) => Problem::new(&codes::INTERNAL).internal(&error),
            error @ (BillingError::Proof(_)
            | BillingError::Damaged { .. }
            | BillingError::TooLarge { .. }) => Problem::new(&codes::INTERNAL).internal(&error),
        }
    }
}
