use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the engine could not be opened, served or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error(
        "the engine library was not found in {}; install it with scripts/install-engine.sh or name it with CONTEXTMETER_CHDB",
        list(searched)
    )]
    LibraryNotFound { searched: Vec<PathBuf> },
    #[error("the engine library {} cannot be loaded", path.display())]
    LibraryLoad {
        path: PathBuf,
        #[source]
        source: libloading::Error,
    },
    #[error("the engine library {} is version {found}; {wanted} is needed: run scripts/install-engine.sh", path.display())]
    LibraryVersion { path: PathBuf, found: String, wanted: &'static str },
    #[error("the data folder {} cannot be used", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the data folder {} is open in another process; stop that one or ask it over HTTP", path.display())]
    FolderInUse { path: PathBuf },
    #[error("this process already runs the engine on {}; one process runs one engine", path.display())]
    AlreadyOpen { path: PathBuf },
    #[error("the engine did not start on {}", path.display())]
    NotStarted { path: PathBuf },
    #[error("the address {address} cannot be listened on")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("an engine without a password may only listen on a loopback address, not on {address}")]
    OpenToTheNetwork { address: SocketAddr },
    #[error("the engine's password is empty")]
    EmptyPassword,
    #[error("the engine is closed")]
    Closed,
    #[error("no thread could be started for the engine")]
    Thread {
        #[source]
        source: std::io::Error,
    },
    #[error("the engine refused a statement: {0}")]
    Statement(Exception),
}

/// An exception in the engine's words, with its code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Exception {
    pub code: u32,
    pub message: String,
}

impl Exception {
    pub(crate) fn new(code: u32, name: &str, text: impl std::fmt::Display) -> Self {
        Self { code, message: format!("Code: {code}. DB::Exception: {text}. ({name})") }
    }

    /// Takes the code out of the engine's `Code: N. DB::Exception: …`.
    pub(crate) fn from_engine(text: &str) -> Self {
        let start = text.find("Code: ");
        let code = start
            .and_then(|at| text.get(at + 6..))
            .and_then(|rest| rest.split('.').next())
            .and_then(|digits| digits.trim().parse().ok());
        match (start, code) {
            (Some(at), Some(code)) => {
                Self { code, message: text.get(at..).unwrap_or(text).trim().to_owned() }
            }
            _ => Self::new(1001, "STD_EXCEPTION", text.trim()),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
