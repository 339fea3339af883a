//! For tests, of this crate and of others.

use std::path::{Path, PathBuf};

use crate::{EngineError, EngineOptions, locate_library};

/// The engine library for a test: the one `CONTEXTMETER_CHDB` names, else the one installed in a `.tools` folder at or
/// above the crate under test.
pub fn test_library() -> Result<PathBuf, EngineError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told where the library is by the environment alone"
    )]
    let (named, manifest) = (std::env::var_os("CONTEXTMETER_CHDB"), std::env::var_os("CARGO_MANIFEST_DIR"));
    let hints = [
        manifest.map(PathBuf::from),
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()),
        std::env::current_dir().ok(),
    ];
    let hints: Vec<PathBuf> = hints.into_iter().flatten().collect();
    locate_library(None, named.as_deref(), &hints)
}

/// Options for a test's engine: small caches, the folder given.
pub fn test_options(path: impl Into<PathBuf>) -> Result<EngineOptions, EngineError> {
    Ok(EngineOptions::new(test_library()?, path.into()))
}
