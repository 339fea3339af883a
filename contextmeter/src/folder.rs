//! The data folder: who owns it, where that process answers, and the secrets that lie in it.
//!
//! ```text
//! lock            held by the one process that has the folder open
//! run.json        where that process answers; gone when nobody runs
//! operator.key    the token of the operator's own commands (mode 0600)
//! keys/           private halves of the signing keys (mode 0600)
//! journal/        reports on their way to the store
//! ledger.sqlite   the ledger, unless it is a Postgres
//! engine/         the embedded ClickHouse, unless the store is a server
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Where a running process answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunInfo {
    pub(crate) pid: u32,
    pub(crate) role: String,
    pub(crate) url: String,
}

/// What can go wrong with a data folder, each with its way out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("another process has {path} open{who}; stop it, or give another folder with --data", path = path.display())]
    Taken { path: PathBuf, who: String },
    #[error("cannot {action} {path}", path = path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is damaged: {reason}; restore it from a copy", path = path.display())]
    Damaged { path: PathBuf, reason: &'static str },
}

/// A data folder by its path; nothing is open.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// The one process that has the folder open. The lock goes with the value.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    folder: Folder,
    _lock: File,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Folder {
        Folder { path: path.to_path_buf() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(crate) fn engine(&self) -> PathBuf {
        self.path.join("engine")
    }

    pub(crate) fn ledger_url(&self) -> String {
        format!("sqlite://{}", self.path.join("ledger.sqlite").display())
    }

    pub(crate) fn sandbox_state(&self) -> PathBuf {
        self.path.join("stripe-sandbox.json")
    }

    /// Takes the folder for this process, making it if it is missing. Never waits.
    pub(crate) fn open(&self) -> Result<OpenFolder, FolderError> {
        fs::create_dir_all(&self.path).map_err(|e| self.io("create", &self.path, e))?;
        let path = self.path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| self.io("open", &path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let who = match self.run_info() {
                    Some(run) => format!(" (process {}, {}, {})", run.pid, run.role, run.url),
                    None => String::new(),
                };
                return Err(FolderError::Taken { path: self.path.clone(), who });
            }
            Err(fs::TryLockError::Error(e)) => return Err(self.io("lock", &path, e)),
        }
        // Whoever wrote it is gone: we hold the lock.
        remove_if_there(&self.path.join("run.json")).map_err(|e| self.io("remove", &self.path, e))?;
        Ok(OpenFolder { folder: self.clone(), _lock: lock })
    }

    /// Where the running process answers, as far as its file can be read.
    pub(crate) fn run_info(&self) -> Option<RunInfo> {
        serde_json::from_slice(&fs::read(self.path.join("run.json")).ok()?).ok()
    }

    /// The operator's token if the folder has one.
    pub(crate) fn operator_key(&self) -> Result<Option<String>, FolderError> {
        let path = self.path.join("operator.key");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.io("read", &path, e)),
        }
    }

    fn io(&self, action: &'static str, path: &Path, source: io::Error) -> FolderError {
        FolderError::Io { action, path: path.to_path_buf(), source }
    }
}

impl std::ops::Deref for OpenFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl OpenFolder {
    /// Tells other commands where this process answers, until the value that is returned goes.
    pub(crate) fn announce(&self, role: &str, url: &str) -> Result<Announcement, FolderError> {
        let run = RunInfo { pid: std::process::id(), role: role.to_owned(), url: url.to_owned() };
        let path = self.path.join("run.json");
        let text = serde_json::to_vec_pretty(&run).unwrap_or_default();
        write_whole(&path, &text, 0o644).map_err(|e| self.io("write", &path, e))?;
        Ok(Announcement { path })
    }

    /// The operator's token, made at first use.
    pub(crate) fn operator_key_or_create(&self) -> Result<String, FolderError> {
        if let Some(key) = self.operator_key()? {
            return Ok(key);
        }
        let key = format!("cm_operator_{}", hex::encode(random()?));
        let path = self.path.join("operator.key");
        write_whole(&path, key.as_bytes(), 0o600).map_err(|e| self.io("write", &path, e))?;
        Ok(key)
    }

    /// A signing key by name, made at first use.
    pub(crate) fn signing_key(&self, name: &str) -> Result<proof::SigningKey, FolderError> {
        let folder = self.path.join("keys");
        fs::create_dir_all(&folder).map_err(|e| self.io("create", &folder, e))?;
        let path = folder.join(format!("{name}.key"));
        let seed: [u8; 32] = match File::open(&path) {
            Ok(mut file) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(|e| self.io("read", &path, e))?;
                hex::decode(text.trim())
                    .ok()
                    .and_then(|bytes| bytes.try_into().ok())
                    .ok_or(FolderError::Damaged { path, reason: "a signing key is 64 hexadecimal digits" })?
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let seed = random()?;
                write_whole(&path, hex::encode(seed).as_bytes(), 0o600)
                    .map_err(|e| self.io("write", &path, e))?;
                seed
            }
            Err(e) => return Err(self.io("read", &path, e)),
        };
        Ok(proof::SigningKey::from_bytes(&seed))
    }
}

/// Removes `run.json` when the process stops answering.
#[derive(Debug)]
pub(crate) struct Announcement {
    path: PathBuf,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if let Err(error) = remove_if_there(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the announcement");
        }
    }
}

fn random() -> Result<[u8; 32], FolderError> {
    let mut bytes = [0; 32];
    let path = Path::new("/dev/urandom");
    File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(|source| FolderError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    })?;
    Ok(bytes)
}

/// Writes beside, syncs, renames: a reader sees the old file or the new one, also after a power cut.
fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
