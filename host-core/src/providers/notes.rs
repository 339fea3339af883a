use async_trait::async_trait;
use contextgraph_types::{Capabilities, ContextQuery, ContextQueryResult, FrameKind, QueryCapability};
use usage::ProviderId;

use super::rank::{Page, best};
use crate::{Provider, ProviderError};

/// Notes held in memory: one frame of kind `memory` each, found by their words.
#[derive(Debug, Clone)]
pub struct NotesProvider {
    id: ProviderId,
    notes: Vec<Page>,
}

impl NotesProvider {
    pub fn new(id: ProviderId) -> Self {
        Self { id, notes: Vec::new() }
    }

    /// Adds a note. `key` is its frame id, which it must not share with another note.
    #[must_use]
    pub fn note(mut self, key: &str, title: &str, text: &str) -> Self {
        let page =
            Page::new(key.to_owned(), FrameKind::Memory, title, format!("Note: {title}"), text.to_owned());
        self.notes.push(page);
        self
    }
}

#[async_trait]
impl Provider for NotesProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: QueryCapability { kinds: vec!["memory".to_owned()] },
            ..Capabilities::default()
        }
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        Ok(best(&self.notes, query))
    }
}
