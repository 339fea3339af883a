use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::EngineError;

/// Where `scripts/install-engine.sh` puts the library below a repository or tools folder's parent.
const INSTALLED: &str = ".tools/chdb/libchdb.so";

/// Finds the engine library: the one named explicitly, else the one the environment names, else below the first hint
/// that has it. A hint is a library, a folder that holds `libchdb.so`, or a folder at or above which the library is
/// installed. What was named but is not there is an error, never a reason to take another.
pub fn locate_library(
    explicit: Option<&Path>,
    environment: Option<&OsStr>,
    hints: &[PathBuf],
) -> Result<PathBuf, EngineError> {
    let named = explicit
        .map(Path::to_owned)
        .or_else(|| environment.filter(|value| !value.is_empty()).map(PathBuf::from));
    if let Some(named) = named {
        let library = if named.is_dir() { named.join("libchdb.so") } else { named };
        return if library.is_file() {
            Ok(library)
        } else {
            Err(EngineError::LibraryNotFound { searched: vec![library] })
        };
    }

    let mut searched = Vec::new();
    for hint in hints {
        if hint.is_file() {
            return Ok(hint.clone());
        }
        let beside = std::iter::once(hint.join("libchdb.so"));
        let above = hint.ancestors().map(|folder| folder.join(INSTALLED));
        for candidate in beside.chain(above) {
            if candidate.is_file() {
                return Ok(candidate);
            }
            searched.push(candidate);
        }
    }
    Err(EngineError::LibraryNotFound { searched })
}
