//! What can go wrong in the ledger, in words that a caller can act on.

/// Why the ledger did not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The database cannot be reached or did not answer in time; nothing is known to be wrong with the request.
    #[error("the ledger is not available while {operation}")]
    Unavailable {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row that must be alone is there already.
    #[error("{constraint} is taken")]
    Conflict { constraint: String },
    #[error("there is no {what}")]
    NotFound { what: String },
    /// Another holder has the lease now; what this one was about to commit must not be committed.
    #[error("the lease {lease} is no longer held")]
    FenceLost { lease: String },
    /// A row that our code cannot have written.
    #[error("the ledger's {column} is damaged: {reason}")]
    Corrupt { column: &'static str, reason: String },
    /// A number that no row of ours can hold.
    #[error("{what} is larger than the ledger can hold")]
    TooLarge { what: &'static str },
    #[error("the ledger has schema {found}, this program knows up to {known}; run a newer program")]
    NewerSchema { found: i64, known: i64 },
    #[error("migration {version} was changed after it was applied; restore its file")]
    ChecksumChanged { version: i64 },
}

impl LedgerError {
    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            LedgerError::Unavailable { .. } | LedgerError::FenceLost { .. } => true,
            LedgerError::Conflict { .. }
            | LedgerError::NotFound { .. }
            | LedgerError::Corrupt { .. }
            | LedgerError::TooLarge { .. }
            | LedgerError::NewerSchema { .. }
            | LedgerError::ChecksumChanged { .. } => false,
        }
    }

    /// Sorts a database's error: a uniqueness that was broken is a conflict, the rest is the database's trouble.
    pub(crate) fn of(operation: &'static str, source: sqlx::Error) -> LedgerError {
        if let sqlx::Error::Database(database) = &source
            && database.is_unique_violation()
        {
            return LedgerError::Conflict {
                constraint: database.constraint().unwrap_or(operation).to_owned(),
            };
        }
        LedgerError::Unavailable { operation, source: Box::new(source) }
    }
}
