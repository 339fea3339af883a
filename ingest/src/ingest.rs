use std::{path::PathBuf, sync::Arc, time::Duration};

use ledger::Ledger;
use proof::SigningKey;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};
use usage::SharedClock;
use usage_store::UsageStore;
use web::{Readiness, Routes};

use crate::{
    IngestError,
    http::{self, Settings},
    journal::{Appender, Journal, blocking, forget_daily},
    writer::{Progress, Writer},
};

/// What the room needs from others.
pub struct IngestDeps {
    pub ledger: Ledger,
    pub store: UsageStore,
    pub clock: SharedClock,
    /// Signs acknowledgements.
    pub signer: Arc<SigningKey>,
}

/// How the room works.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The journal's folder; one process has it at a time.
    pub journal_dir: PathBuf,
    /// How long the first report of a group waits for others. Zero: groups form by themselves while the disk is busy.
    pub group_window: Duration,
    pub max_body_bytes: usize,
    /// Rows that go into the store together.
    pub block_rows: usize,
    /// How often an idle journal tells the ledger that it lacks nothing.
    pub heartbeat_interval: Duration,
}

impl IngestOptions {
    /// The defaults, with a folder.
    pub fn new(journal_dir: impl Into<PathBuf>) -> Self {
        IngestOptions {
            journal_dir: journal_dir.into(),
            group_window: Duration::ZERO,
            max_body_bytes: 8 << 20,
            block_rows: 50_000,
            heartbeat_interval: Duration::from_secs(1),
        }
    }
}

/// How far our own epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    pub epoch: u64,
    /// The last position that was given and is on the disk.
    pub appended_seq: u64,
    /// Every position up to here is in the store, and the ledger knows.
    pub confirmed_seq: u64,
}

/// The running room. Dropping it ends its tasks as a crash would: nothing acknowledged is lost.
pub struct Ingest {
    parts: Arc<Parts>,
    asked: watch::Sender<u64>,
    progress: watch::Receiver<Progress>,
    writer: JoinHandle<()>,
    shutdown: CancellationToken,
    _end: DropGuard,
}

/// What the handlers share.
pub(crate) struct Parts {
    pub(crate) journal: Arc<Journal>,
    pub(crate) appender: Appender,
    pub(crate) settings: Settings,
    pub(crate) store: UsageStore,
    pub(crate) clock: SharedClock,
    pub(crate) signer: Arc<SigningKey>,
    pub(crate) kid: String,
    pub(crate) max_body_bytes: usize,
}

impl Ingest {
    /// Opens the journal in a new epoch and starts to drain what former epochs left.
    ///
    /// # Errors
    ///
    /// When the folder is in use or damaged, or the ledger gives no epoch; see [`IngestError::is_retryable`].
    pub async fn open(deps: IngestDeps, options: IngestOptions) -> Result<Ingest, IngestError> {
        let IngestDeps { ledger, store, clock, signer } = deps;
        let journal = Journal::open(options.journal_dir, &ledger, Arc::clone(&clock)).await?;
        let journal = Arc::new(journal);
        tracing::info!(epoch = journal.epoch, "the journal is open");
        let quarantined = blocking({
            let journal = Arc::clone(&journal);
            move || journal.quarantined()
        });
        match quarantined.await? {
            0 => {}
            reports => {
                tracing::warn!(reports, "the journal holds reports that the store refused; look at them")
            }
        }
        let appender = Appender::start(Arc::clone(&journal), options.group_window)?;
        let shutdown = CancellationToken::new();
        let (asked, questions) = watch::channel(0);
        let (tell, progress) = watch::channel(Progress::default());
        let writer = Writer {
            journal: Arc::clone(&journal),
            store: store.clone(),
            ledger: ledger.clone(),
            block_rows: options.block_rows.max(1),
            heartbeat_interval: options.heartbeat_interval,
            progress: tell,
            asked: questions,
            shutdown: shutdown.clone(),
        };
        let sweep = forget_daily(Arc::downgrade(&journal), Arc::clone(&clock), shutdown.clone());
        tokio::spawn(sweep);
        let parts = Parts {
            settings: Settings::new(ledger, Arc::clone(&clock)),
            journal,
            appender,
            store,
            clock,
            kid: signer.kid(),
            signer,
            max_body_bytes: options.max_body_bytes,
        };
        Ok(Ingest {
            parts: Arc::new(parts),
            asked,
            progress,
            writer: tokio::spawn(writer.run()),
            _end: shutdown.clone().drop_guard(),
            shutdown,
        })
    }

    pub fn routes(&self) -> Routes {
        http::routes(Arc::clone(&self.parts))
    }

    /// Adds what must hold before reports are welcome. An absent store or ledger is no reason to refuse them.
    pub fn readiness(&self, readiness: &Readiness) {
        let failure = self.parts.journal.failure();
        let progress = self.progress.clone();
        readiness.register("journal", move || {
            let failed = failure.borrow().clone();
            let ended = progress.has_changed().is_err();
            async move {
                match failed {
                    Some(reason) => Err(reason),
                    None if ended => Err("the journal is closed".to_owned()),
                    None => Ok(()),
                }
            }
        });
        let (ledger, clock) = (self.parts.settings.ledger(), Arc::clone(&self.parts.clock));
        readiness.register("clock", move || {
            let (ledger, clock) = (ledger.clone(), Arc::clone(&clock));
            async move {
                // Without the ledger there is nothing to compare with, and reports are taken.
                let Ok(theirs) = ledger.now().await else { return Ok(()) };
                let apart = clock.now().micros_since(theirs);
                if apart.unsigned_abs() > CLOCK_MICROS {
                    return Err(format!(
                        "the clock differs from the ledger's by {apart} microseconds; set it right"
                    ));
                }
                Ok(())
            }
        });
    }

    pub fn backlog(&self) -> Backlog {
        // Read in this order, the second can never be beyond the first.
        let confirmed_seq = self.progress.borrow().confirmed_seq;
        Backlog {
            epoch: self.parts.journal.epoch,
            appended_seq: self.parts.journal.appended_seq(),
            confirmed_seq,
        }
    }

    /// What keeps the writer from going on, if anything does.
    pub fn trouble(&self) -> Option<String> {
        self.progress.borrow().trouble.clone()
    }

    /// Waits until everything that was accepted before the call, by former epochs too, is in the store and the ledger knows it,
    /// and knows as well that up to now nothing is missing.
    pub async fn drained(&self) {
        let mut ticket = 0;
        self.asked.send_modify(|asked| {
            *asked = asked.saturating_add(1);
            ticket = *asked;
        });
        let mut progress = self.progress.clone();
        // The writer ended: then nothing will be drained in this process.
        let _ = progress.wait_for(|progress| progress.answered >= ticket).await;
    }

    /// Ends when the journal can promise nothing any more, with the reason. The process must end then.
    pub async fn fatal(&self) -> String {
        let mut failure = self.parts.journal.failure();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Appends what waits and ends the tasks. What is not stored by then is stored after the next opening.
    pub async fn shutdown(self) {
        self.parts.appender.end().await;
        self.shutdown.cancel();
        if let Err(error) = self.writer.await {
            tracing::error!(%error, "the writer ended badly");
        }
    }
}

/// A journal whose clock is further from the ledger's would put reports into wrong minutes.
const CLOCK_MICROS: u128 = 2_000_000;

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use usage::SystemClock;
    use usage_store::{StoreOptions, UsageStore};

    use super::{Ingest, IngestDeps, IngestOptions, SigningKey};
    use crate::IngestError;

    #[tokio::test]
    async fn g1_a_journal_that_failed_says_so_once_and_for_all() {
        let test = ledger::testing::sqlite(None).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deps = IngestDeps {
            ledger: test.ledger.clone(),
            store: UsageStore::over_url("http://127.0.0.1:1", "default", "", StoreOptions::default()),
            clock: Arc::new(SystemClock),
            signer: Arc::new(SigningKey::from_bytes(&[7; 32])),
        };
        let ingest = Ingest::open(deps, IngestOptions::new(folder.path().join("journal"))).await.unwrap();
        tokio::select! {
            biased;
            reason = ingest.fatal() => panic!("{reason}"),
            () = tokio::task::yield_now() => {}
        }
        ingest.parts.journal.fail(&IngestError::Thread(io::Error::other("the disk is gone")));
        for _ in 0..2 {
            assert!(ingest.fatal().await.ends_with("the disk is gone"));
        }
        ingest.shutdown().await;
    }
}
