//! Opening a folder: a new epoch from the ledger, and the end of the former one.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use fjall::{Database, KeyspaceCreateOptions};
use ledger::{EpochState as LedgerState, Ledger};
use tokio::sync::{Notify, watch};
use usage::SharedClock;

use super::{EpochState, Frontier, Journal, Record, Tables, keys, record::Value as _};
use crate::{IngestError, error::During as _};

const FOLDER_ID: &str = "folder_id";
/// Stands while the ledger is asked for an epoch: one that the folder does not know then came from an opening that did
/// not live to write it down, and nothing was accepted in it.
const OPENING: &str = "opening";

impl Journal {
    pub(crate) async fn open(
        folder: PathBuf,
        ledger: &Ledger,
        clock: SharedClock,
    ) -> Result<Self, IngestError> {
        let (tables, found) = blocking(move || {
            let tables = Tables::open(&folder)?;
            let found = tables.look()?;
            Ok((tables, found))
        })
        .await?;
        let rows = ledger.epoch_list().await?;
        for (epoch, state) in &found.epochs {
            if !state.is_finished() && !rows.iter().any(|row| row.epoch == *epoch) {
                return Err(IngestError::OlderLedger { epoch: *epoch });
            }
        }
        let open = rows.iter().find(|row| row.folder == found.folder_id && row.state == LedgerState::Open);
        let former = match open {
            None => None,
            Some(row) => match found.ends.iter().find(|(epoch, _)| *epoch == row.epoch) {
                // Confirmed was what stood on the disk: the folder that said so held more than this one.
                Some((_, last_seq)) if *last_seq < row.confirmed_seq => {
                    return Err(IngestError::OlderFolder { epoch: row.epoch });
                }
                Some(known) => Some(*known),
                None if found.was_opening => Some((row.epoch, 0)),
                None => return Err(IngestError::OlderFolder { epoch: row.epoch }),
            },
        };
        let tables = blocking(move || tables.mark_opening().map(|()| tables)).await?;
        let row = ledger.epoch_open(&found.folder_id, former).await?;
        if let Some((epoch, _)) = found.epochs.iter().rev().find(|(epoch, _)| *epoch >= row.epoch) {
            return Err(IngestError::OlderLedger { epoch: *epoch });
        }
        let epoch = row.epoch;
        let tables = blocking(move || tables.begin(epoch, &found).map(|()| tables)).await?;
        Ok(Journal {
            tables,
            epoch,
            clock,
            // The ledger takes the epoch as complete up to its opening.
            frontier: Mutex::new(Frontier {
                appended_seq: 0,
                in_flight: None,
                floor: row.opened_at,
                stored_seq: 0,
                former_rows: 0,
            }),
            appended: Notify::new(),
            fatal: watch::Sender::new(None),
        })
    }
}

/// What a folder holds.
struct Found {
    folder_id: String,
    was_opening: bool,
    epochs: Vec<(u64, EpochState)>,
    /// The last seq of each epoch that has no end yet.
    ends: Vec<(u64, u64)>,
}

impl Tables {
    fn open(folder: &Path) -> Result<Self, IngestError> {
        let db = Database::builder(folder).open().during("opening the folder")?;
        let table = |name| db.keyspace(name, KeyspaceCreateOptions::default).during("opening a table");
        Ok(Tables {
            meta: table("meta")?,
            index: table("index")?,
            records: table("records")?,
            blocks: table("blocks")?,
            epochs: table("epochs")?,
            counts: table("counts")?,
            quarantine: table("quarantine")?,
            db,
        })
    }

    fn look(&self) -> Result<Found, IngestError> {
        let epochs = self.epoch_states()?;
        let mut ends = Vec::new();
        for (epoch, state) in epochs.iter().filter(|(_, state)| state.end_seq.is_none()) {
            ends.push((*epoch, self.last_seq(*epoch, state)?));
        }
        Ok(Found {
            folder_id: self.folder_id()?,
            was_opening: self.meta.contains_key(OPENING).during("reading the folder")?,
            epochs,
            ends,
        })
    }

    fn folder_id(&self) -> Result<String, IngestError> {
        if let Some(bytes) = self.meta.get(FOLDER_ID).during("reading the folder")? {
            return String::from_utf8(bytes.to_vec())
                .map_err(|error| IngestError::Corrupt { what: "folder id", reason: error.to_string() });
        }
        let id = format!("journal_{}", uuid::Uuid::now_v7().simple());
        let mut batch = self.batch();
        batch.insert(&self.meta, FOLDER_ID, id.as_str());
        batch.commit().during("naming the folder")?;
        Ok(id)
    }

    pub(super) fn epoch_states(&self) -> Result<Vec<(u64, EpochState)>, IngestError> {
        let mut states = Vec::new();
        for entry in self.epochs.iter() {
            let (key, value) = entry.into_inner().during("reading the epochs")?;
            let key = <[u8; 8]>::try_from(&*key)
                .map_err(|error| IngestError::Corrupt { what: "epoch", reason: error.to_string() })?;
            states.push((u64::from_be_bytes(key), EpochState::decode(&value)?));
        }
        Ok(states)
    }

    fn last_seq(&self, epoch: u64, state: &EpochState) -> Result<u64, IngestError> {
        let Some(last) = self.records.prefix(keys::epoch(epoch)).next_back() else {
            return Ok(state.stored_seq);
        };
        let record = Record::decode(&last.value().during("reading the last record")?)?;
        Ok(record.last_seq.max(state.stored_seq))
    }

    fn mark_opening(&self) -> Result<(), IngestError> {
        let mut batch = self.batch();
        batch.insert(&self.meta, OPENING, "");
        batch.commit().during("preparing an epoch")
    }

    fn begin(&self, epoch: u64, found: &Found) -> Result<(), IngestError> {
        let mut batch = self.batch();
        for (former, state) in &found.epochs {
            if let Some((_, end)) = found.ends.iter().find(|(ended, _)| ended == former) {
                let ended = EpochState { end_seq: Some(*end), ..*state };
                batch.insert(&self.epochs, keys::epoch(*former), ended.encode()?);
            }
        }
        batch.insert(&self.epochs, keys::epoch(epoch), EpochState::default().encode()?);
        batch.remove(&self.meta, OPENING);
        batch.commit().during("beginning an epoch")
    }
}

/// Runs what waits for the disk where nobody waits for it.
pub(crate) async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, IngestError> + Send + 'static,
) -> Result<T, IngestError> {
    match tokio::task::spawn_blocking(task).await {
        Ok(result) => result,
        Err(error) => Err(IngestError::Thread(std::io::Error::other(error))),
    }
}
