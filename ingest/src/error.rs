/// Why the journal cannot be opened or went on strike.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// The folder is in use, unreadable, or the disk failed.
    #[error("the journal's store failed while {operation}")]
    Storage {
        operation: &'static str,
        #[source]
        source: fjall::Error,
    },
    #[error("the journal cannot start its thread")]
    Thread(#[source] std::io::Error),
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// A value that this program cannot have written.
    #[error("the journal's {what} is damaged: {reason}")]
    Corrupt { what: &'static str, reason: String },
    /// The epoch must come from the ledger, so that no two journals ever share positions.
    #[error("the ledger gave no epoch")]
    Ledger(#[from] ledger::LedgerError),
    /// The folder is an older copy of itself: what was accepted after the copy is not in it, and must not be declared ended.
    #[error(
        "the ledger knows more of epoch {epoch} than this journal folder holds: it is an older copy; put the newest folder back"
    )]
    OlderFolder { epoch: u64 },
    /// The ledger is an older copy of itself.
    #[error(
        "the ledger does not know epoch {epoch}, which this folder has used: it is an older copy; restore a newer one"
    )]
    OlderLedger { epoch: u64 },
}

impl IngestError {
    /// Whether opening may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            IngestError::Ledger(error) => error.retryable(),
            IngestError::Storage { .. }
            | IngestError::Thread(_)
            | IngestError::Random(_)
            | IngestError::Corrupt { .. }
            | IngestError::OlderFolder { .. }
            | IngestError::OlderLedger { .. } => false,
        }
    }
}

/// Names the operation that failed.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T, IngestError>;
}

impl<T> During<T> for fjall::Result<T> {
    fn during(self, operation: &'static str) -> Result<T, IngestError> {
        self.map_err(|source| IngestError::Storage { operation, source })
    }
}
