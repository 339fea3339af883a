use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::EngineError;

/// The data folder, held by this process alone. The engine locks its folder too, but says only that it did not start.
pub(super) struct Folder {
    path: PathBuf,
    temporary: bool,
    lock: Mutex<Option<File>>,
}

impl Folder {
    pub(super) fn lock(path: Option<&Path>) -> Result<Self, EngineError> {
        let temporary = path.is_none();
        let path = match path {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("clickhouse-embedded-{}", uuid::Uuid::new_v4())),
        };
        let failed = |source| EngineError::Folder { path: path.clone(), source };
        std::fs::create_dir_all(&path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let failed = |source| EngineError::Folder { path: path.clone(), source };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("engine.lock"))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(EngineError::FolderInUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(Self { path, temporary, lock: Mutex::new(Some(file)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, name: &str, content: &str) -> Result<PathBuf, EngineError> {
        let file = self.path.join(name);
        std::fs::write(&file, content)
            .map_err(|source: io::Error| EngineError::Folder { path: self.path.clone(), source })?;
        Ok(file)
    }

    /// After the engine is down.
    pub(super) fn release(&self) {
        let Some(_held) = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        if self.temporary
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            tracing::warn!(%error, folder = %self.path.display(), "the engine's temporary folder was not removed");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.release();
    }
}
