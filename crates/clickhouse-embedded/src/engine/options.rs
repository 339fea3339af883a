use std::path::PathBuf;
use std::time::Duration;

use super::folder::Folder;
use crate::{EngineError, library};

/// How to start the engine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The engine library, see [`locate_library`](crate::locate_library).
    pub library: Option<PathBuf>,
    /// The data folder, made if absent. `None`: a temporary folder that `close` removes.
    pub path: Option<PathBuf>,
    /// Above this the engine refuses statements. `None`: the engine's own rule, a share of the machine's memory.
    pub max_server_memory_bytes: Option<u64>,
    /// What the engine keeps of index marks in memory.
    pub mark_cache_bytes: u64,
    /// Makes every MergeTree table flush to the disk before an insert or a merge counts, unless its DDL says otherwise.
    /// Without it a power cut may take acknowledged rows.
    pub fsync: bool,
    /// The longest body of an INSERT, decoded. It is held in memory as one block, so that it is stored whole or not at
    /// all.
    pub max_body_bytes: u64,
    /// Threads for merges; the engine's default in process is 2.
    pub background_pool_size: Option<u32>,
    /// How long `close` lets statements under way finish before it ends them.
    pub close_grace: Duration,
}

impl EngineOptions {
    pub fn new(library: PathBuf, path: PathBuf) -> Self {
        Self { library: Some(library), path: Some(path), ..Self::temporary() }
    }

    /// A temporary folder and no library yet.
    fn temporary() -> Self {
        Self {
            library: None,
            path: None,
            max_server_memory_bytes: None,
            mark_cache_bytes: 256 * 1024 * 1024,
            fsync: false,
            max_body_bytes: 1024 * 1024 * 1024,
            background_pool_size: None,
            close_grace: Duration::from_secs(10),
        }
    }

    /// An engine on a temporary folder.
    pub fn in_temporary_folder(library: PathBuf) -> Self {
        Self { library: Some(library), ..Self::temporary() }
    }

    /// The engine's start arguments. Table defaults can only be said in a configuration file, which is written anew.
    pub(super) fn arguments(&self, folder: &Folder) -> Result<Vec<Vec<u8>>, EngineError> {
        let flush = u8::from(self.fsync);
        let config = format!(
            "<clickhouse><merge_tree><fsync_after_insert>{flush}</fsync_after_insert>\
             <fsync_part_directory>{flush}</fsync_part_directory>\
             <min_rows_to_fsync_after_merge>{flush}</min_rows_to_fsync_after_merge></merge_tree></clickhouse>\n"
        );
        let config_file = folder.write("engine.xml", &config)?;
        let mut arguments = vec![
            library::argument("path", folder.path())?,
            library::argument("config-file", &config_file)?,
            b"--implicit_select=0".to_vec(),
            format!("--mark_cache_size={}", self.mark_cache_bytes).into_bytes(),
        ];
        if let Some(bytes) = self.max_server_memory_bytes {
            arguments.push(format!("--max_server_memory_usage={bytes}").into_bytes());
        }
        if let Some(threads) = self.background_pool_size {
            arguments.push(format!("--background_pool_size={threads}").into_bytes());
        }
        Ok(arguments)
    }
}
