//! Every request that came, for tests to judge by.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

const ENTRIES_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    next: u64,
    dropped: u64,
}

/// One request and its answer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) account: Option<String>,
    pub(crate) livemode: bool,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) stripe_version: Option<String>,
    pub(crate) params: Value,
    /// How many calls of this one's customer and meter ran when it came, itself included.
    pub(crate) concurrent: u32,
    /// None while it runs, or when the connection was dropped.
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) replayed: bool,
    pub(crate) fault: Option<String>,
    pub(crate) request_id: String,
}

impl Journal {
    pub(crate) fn push(&mut self, mut entry: Entry) -> u64 {
        let seq = self.next;
        self.next += 1;
        entry.seq = seq;
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(entry);
        seq
    }

    pub(crate) fn entry(&mut self, seq: u64) -> Option<&mut Entry> {
        let first = self.entries.front()?.seq;
        self.entries.get_mut(usize::try_from(seq.checked_sub(first)?).ok()?)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Numbers go on.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.dropped = 0;
    }
}
