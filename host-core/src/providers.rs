//! Providers that live in this process.

mod docs;
mod notes;
mod rank;

pub use docs::{DocsError, DocsProvider};
pub use notes::NotesProvider;
