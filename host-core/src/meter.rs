mod outbox;
mod post;

use std::{path::PathBuf, sync::Arc, time::Duration};

use usage::{HostId, Origin, Position, Rejection, TurnReport};

use crate::note::note;
use outbox::{Entry, Outbox};
use post::{Answer, Poster};

/// Where a host's reports go, and where they wait.
#[derive(Clone)]
pub struct MeterOptions {
    /// A folder of this host alone; it is made if it is not there.
    pub folder: PathBuf,
    /// The address of ingest, such as `https://meter.example`; reports go to `/v1/reports` below it.
    pub endpoint: String,
    /// `cm_test_…` or `cm_live_…`, with the scope `ingest`.
    pub api_key: String,
    pub host_id: HostId,
    /// For one post, from the connection to the whole answer; thirty seconds without.
    pub timeout: Duration,
    /// Lets the key go over plain HTTP to another machine. Without, only to a loopback address.
    pub plain_http: bool,
}

impl MeterOptions {
    pub fn new(
        folder: impl Into<PathBuf>,
        endpoint: impl Into<String>,
        api_key: impl Into<String>,
        host_id: HostId,
    ) -> Self {
        let timeout = Duration::from_secs(30);
        Self {
            folder: folder.into(),
            endpoint: endpoint.into(),
            api_key: api_key.into(),
            host_id,
            timeout,
            plain_http: false,
        }
    }
}

/// Hands turn reports to Contextmeter and loses none: a report is on this disk before it is posted, and stays until it is acknowledged.
///
/// The folder has `pending/`, one file a report, and `refused/`, the reports that were refused for their content, each beside the answer
/// that says why (`….problem.json`). Every opening is a new epoch (a UUID of version 7), within which reports are numbered from 1, so
/// that the service can see a gap. A report is removed at the 200 that acknowledges it. Keeping it further, until a heartbeat says
/// that its position is stored, comes with heartbeats.
pub struct Meter {
    outbox: Arc<Outbox>,
    poster: Poster,
    host_id: HostId,
    /// Held by the flush under way, so that two do not post the same.
    flushing: tokio::sync::Mutex<()>,
}

/// Why the meter does not take a report, or does not open.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    #[error("failed to {operation} {path}")]
    Disk {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Two meters would number different reports alike and post each other's.
    #[error("the outbox {path} is open in another process or meter")]
    InUse { path: PathBuf },
    #[error("the endpoint cannot be used: {detail}")]
    Endpoint { detail: &'static str },
    #[error("the API key has characters that no header carries")]
    ApiKey,
    #[error("failed to make the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The service would refuse it; it was not written.
    #[error("the report is not consistent")]
    Report(#[source] Rejection),
    #[error("the runtime ended the write")]
    Ended,
}

/// A report that is safe, and how far it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub origin: Origin,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Durable at the service and removed here. `duplicate`: the service had it already.
    Acknowledged { position: Position, duplicate: bool },
    /// Still in the outbox; [`Meter::flush`] posts it again.
    Kept { why: String },
    /// Refused for its content, moved aside with the answer. Posting it again would not help.
    Refused { status: u16, code: String },
}

/// What a flush did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlushSummary {
    pub acknowledged: usize,
    pub refused: usize,
    /// In the outbox at the end.
    pub kept: usize,
    /// Why it stopped before the last one.
    pub why_kept: Option<String>,
}

impl Meter {
    pub async fn open(options: MeterOptions) -> Result<Self, MeterError> {
        let poster = Poster::new(&options)?;
        let folder = options.folder;
        let outbox = blocking(move || Outbox::open(&folder)).await?;
        Ok(Self {
            outbox: Arc::new(outbox),
            poster,
            host_id: options.host_id,
            flushing: tokio::sync::Mutex::new(()),
        })
    }

    /// Numbers the report, makes it durable here, and posts it.
    ///
    /// An error means that the report is not durable. Whatever the service answers, or whether it answers at all, is no error: the report is
    /// safe, and [`Recorded::delivery`] says how far it got. Dropping the future leaves it in the outbox.
    pub async fn record(&self, report: TurnReport) -> Result<Recorded, MeterError> {
        // Audited before it gets a number, because a number without a report is a gap.
        let mut report = usage::audit_content(report).map_err(MeterError::Report)?.into_report();
        let seq = self.outbox.next_seq();
        let origin = Origin { host_id: self.host_id.clone(), epoch: self.outbox.epoch(), seq };
        report.origin = Some(origin.clone());
        let body = report.to_json();
        let (outbox, written) = (Arc::clone(&self.outbox), body.clone());
        let entry = blocking(move || outbox.write(seq, &written)).await?;
        // From here on it is durable, so nothing is an error any more.
        let delivery = self
            .deliver(entry, body)
            .await
            .unwrap_or_else(|error| Delivery::Kept { why: note(&error.to_string()) });
        Ok(Recorded { origin, delivery })
    }

    /// Posts what waits, oldest first, until one finds no service.
    pub async fn flush(&self) -> Result<FlushSummary, MeterError> {
        let _flushing = self.flushing.lock().await;
        let mut summary = FlushSummary::default();
        let outbox = Arc::clone(&self.outbox);
        for entry in blocking(move || outbox.pending()).await? {
            let (outbox, wanted) = (Arc::clone(&self.outbox), entry.clone());
            // One that another task has delivered in the meantime is gone.
            let Some(body) = blocking(move || outbox.read(&wanted)).await? else { continue };
            match self.deliver(entry, body).await? {
                Delivery::Acknowledged { .. } => summary.acknowledged += 1,
                Delivery::Refused { .. } => summary.refused += 1,
                Delivery::Kept { why } => {
                    summary.why_kept = Some(why);
                    break;
                }
            }
        }
        summary.kept = self.pending_count().await?;
        Ok(summary)
    }

    /// How many reports wait in the outbox.
    pub async fn pending_count(&self) -> Result<usize, MeterError> {
        let outbox = Arc::clone(&self.outbox);
        Ok(blocking(move || outbox.pending()).await?.len())
    }

    /// How many reports were refused and lie aside.
    pub async fn refused_count(&self) -> Result<usize, MeterError> {
        let outbox = Arc::clone(&self.outbox);
        Ok(blocking(move || outbox.refused()).await?.len())
    }

    async fn deliver(&self, entry: Entry, body: Vec<u8>) -> Result<Delivery, MeterError> {
        let outbox = Arc::clone(&self.outbox);
        match self.poster.post(body).await {
            Answer::Acknowledged { position, duplicate } => {
                blocking(move || outbox.remove(&entry)).await?;
                Ok(Delivery::Acknowledged { position, duplicate })
            }
            Answer::Refused { status, code, body } => {
                tracing::warn!(status, %code, report = %entry, "a report was refused and lies aside");
                blocking(move || outbox.set_aside(&entry, &body)).await?;
                Ok(Delivery::Refused { status, code })
            }
            Answer::Later { why } => {
                tracing::debug!(%why, report = %entry, "a report waits in the outbox");
                Ok(Delivery::Kept { why })
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MeterError> + Send + 'static,
) -> Result<T, MeterError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| MeterError::Ended)?
}
