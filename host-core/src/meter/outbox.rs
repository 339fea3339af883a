use std::{
    fmt,
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::MeterError;

/// The folder of one host. A file has its whole content or is not there: it is written beside, synced, renamed, and its folder synced.
pub(super) struct Outbox {
    pending: PathBuf,
    refused: PathBuf,
    epoch: String,
    seq: AtomicU64,
    /// Locked while this value lives.
    _lock: File,
}

/// The name of a report's file: epoch and number. Names sort by age, since epochs begin with their time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(String);

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const REPORT: &str = ".json";
const PROBLEM: &str = ".problem.json";
const HALF_WRITTEN: &str = ".tmp";

impl Outbox {
    pub(super) fn open(folder: &Path) -> Result<Self, MeterError> {
        let (pending, refused) = (folder.join("pending"), folder.join("refused"));
        for path in [&pending, &refused] {
            fs::create_dir_all(path).map_err(failed("create", path))?;
        }
        sync_folder(folder)?;
        let lock_path = folder.join("lock");
        let lock = File::create(&lock_path).map_err(failed("create", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MeterError::InUse { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed("lock", &lock_path)(source)),
        }
        for path in [&pending, &refused] {
            for name in names(path, HALF_WRITTEN)? {
                let path = path.join(name);
                fs::remove_file(&path).map_err(failed("remove", &path))?; // a crash came before it was durable
            }
        }
        let epoch = uuid::Uuid::now_v7().to_string();
        Ok(Self { pending, refused, epoch, seq: AtomicU64::new(1), _lock: lock })
    }

    pub(super) fn epoch(&self) -> String {
        self.epoch.clone()
    }

    /// Never given out twice. A number whose report could not be written stays a gap, and the service asks about it: rightly so.
    pub(super) fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn write(&self, seq: u64, body: &[u8]) -> Result<Entry, MeterError> {
        let entry = Entry(format!("{}-{seq:020}", self.epoch));
        write_whole(&self.pending, &format!("{entry}{REPORT}"), body)?;
        Ok(entry)
    }

    /// Oldest first.
    pub(super) fn pending(&self) -> Result<Vec<Entry>, MeterError> {
        entries(&self.pending)
    }

    pub(super) fn refused(&self) -> Result<Vec<Entry>, MeterError> {
        entries(&self.refused)
    }

    pub(super) fn read(&self, entry: &Entry) -> Result<Option<Vec<u8>>, MeterError> {
        let path = self.pending.join(format!("{entry}{REPORT}"));
        match fs::read(&path) {
            Ok(body) => Ok(Some(body)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// The removal is not synced: after a power cut the report is posted again, and answered as a duplicate.
    pub(super) fn remove(&self, entry: &Entry) -> Result<(), MeterError> {
        let path = self.pending.join(format!("{entry}{REPORT}"));
        gone_is_done(fs::remove_file(&path)).map_err(failed("remove", &path))
    }

    /// The answer first, so that no report lies aside without its reason.
    pub(super) fn set_aside(&self, entry: &Entry, problem: &[u8]) -> Result<(), MeterError> {
        write_whole(&self.refused, &format!("{entry}{PROBLEM}"), problem)?;
        let path = self.pending.join(format!("{entry}{REPORT}"));
        gone_is_done(fs::rename(&path, self.refused.join(format!("{entry}{REPORT}"))))
            .map_err(failed("move", &path))?;
        sync_folder(&self.refused)
    }
}

fn entries(folder: &Path) -> Result<Vec<Entry>, MeterError> {
    let mut entries: Vec<_> = names(folder, REPORT)?
        .into_iter()
        .filter(|name| !name.ends_with(PROBLEM))
        .filter_map(|name| name.strip_suffix(REPORT).map(|name| Entry(name.to_owned())))
        .collect();
    entries.sort();
    Ok(entries)
}

fn names(folder: &Path, end: &str) -> Result<Vec<String>, MeterError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let name = entry.map_err(failed("read", folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| name.ends_with(end)));
    }
    Ok(names)
}

fn write_whole(folder: &Path, name: &str, content: &[u8]) -> Result<(), MeterError> {
    let (beside, path) = (folder.join(format!("{name}{HALF_WRITTEN}")), folder.join(name));
    let mut file = File::create(&beside).map_err(failed("create", &beside))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed("write", &beside))?;
    fs::rename(&beside, &path).map_err(failed("rename", &beside))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), MeterError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

/// Two tasks may have delivered the same report; the service knows it for one.
fn gone_is_done(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MeterError {
    move |source| MeterError::Disk { operation, path: path.to_owned(), source }
}
