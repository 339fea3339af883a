/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not there, not reachable, or without our tables yet. The same call may be made again later, whole.
    #[error("the usage store is unavailable while {operation}")]
    Unavailable {
        operation: &'static str,
        #[source]
        source: clickhouse::error::Error,
    },
    /// It answered that it will not: the same call fails again. `code` is ClickHouse's.
    #[error("the usage store refused {operation} (code {code}): {message}")]
    Refused { operation: &'static str, code: i32, message: String },
    /// What it holds or was given does not have the form that it must have.
    #[error("the usage store holds what it should not, found while {operation}: {detail}")]
    Corrupt { operation: &'static str, detail: String },
    /// Its schema was made by a newer program.
    #[error(
        "the usage store's schema has version {found}, this program knows {known}: use the newer program"
    )]
    NewerSchema { found: u32, known: u32 },
    /// An applied migration has another text than this program's.
    #[error("migration {version} of the usage store was applied with another text")]
    ChecksumChanged { version: u32 },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Refused { .. }
            | Self::Corrupt { .. }
            | Self::NewerSchema { .. }
            | Self::ChecksumChanged { .. } => false,
        }
    }
}

/// Codes after which waiting helps: no such table or database yet, time-outs, memory, too many parts or queries, replicas
/// that are not ready, a server that is starting or shutting down.
const PASSING: &[i32] =
    &[3, 60, 81, 159, 160, 202, 203, 209, 210, 225, 236, 241, 242, 252, 285, 319, 394, 439, 999];

pub(crate) fn failed(operation: &'static str, source: clickhouse::error::Error) -> StoreError {
    use clickhouse::error::Error;
    match &source {
        Error::BadResponse(message) => match code(message) {
            Some(code) if !PASSING.contains(&code) => {
                StoreError::Refused { operation, code, message: message.chars().take(500).collect() }
            }
            _ => StoreError::Unavailable { operation, source },
        },
        Error::Network(_) | Error::TimedOut => StoreError::Unavailable { operation, source },
        other => StoreError::Corrupt { operation, detail: other.to_string() },
    }
}

/// ClickHouse's exceptions begin with `Code: 60. DB::Exception: …`.
fn code(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("Code: ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn the_code_of_an_exception_is_found_where_there_is_one() {
        for (message, expected) in [
            ("Code: 60. DB::Exception: Table x does not exist. (UNKNOWN_TABLE)", Some(60)),
            ("bad gateway", None),
            ("Code: . DB::Exception", None),
            ("Code: 99999999999999", None),
        ] {
            assert_eq!(code(message), expected, "{message}");
        }
    }
}
