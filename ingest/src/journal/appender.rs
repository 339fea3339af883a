//! The one thread that decides and appends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use usage::{Rejection, ReportHash, ReportRecord, Timestamp};
use usage_store::{EventRow, ReportRow};

use super::{IndexEntry, Journal, Record, keys, record::Value as _};
use crate::{IngestError, error::During as _};

/// Submissions that may wait at once; the rest waits outside, without its rows.
const QUEUE: usize = 4_096;
/// A group ends here, so that the first of it does not wait for ever.
const GROUP_RECORDS: usize = 1_000;
const GROUP_BYTES: usize = 16 << 20;

/// A report on its way into the journal, with everything that can be computed before its position is known.
pub(crate) struct Submission {
    key: Vec<u8>,
    report_hash: ReportHash,
    /// Set when its accounting time may not be accepted any more (or yet): then only a repeat is answered.
    untimely: Option<Rejection>,
    body: Vec<u8>,
    report: ReportRow,
    events: Vec<EventRow>,
}

impl Submission {
    pub(crate) fn new(record: &ReportRecord, untimely: Option<Rejection>) -> Self {
        // Position and time are filled in by the thread, which alone knows them.
        let nowhere = usage::Position { epoch: 0, seq: 0 };
        let never = Timestamp::from_micros(0);
        Submission {
            key: keys::report(&record.platform, record.report_key),
            report_hash: record.report_hash,
            untimely,
            body: record.audited.report().to_json(),
            report: ReportRow::new(record, 0, 0, 0, never),
            events: record.events.iter().map(|event| EventRow::new(event, nowhere, never)).collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.body.len()
    }

    fn into_record(mut self, entry: &IndexEntry) -> Record {
        self.report.epoch = entry.epoch;
        self.report.first_seq = entry.first_seq;
        self.report.last_seq = entry.last_seq;
        self.report.received_at = entry.received_at;
        for (event, seq) in self.events.iter_mut().zip(entry.first_seq..) {
            event.epoch = entry.epoch;
            event.seq = seq;
            event.received_at = entry.received_at;
        }
        Record {
            received_at: entry.received_at,
            first_seq: entry.first_seq,
            last_seq: entry.last_seq,
            body: self.body,
            report: self.report,
            events: self.events,
        }
    }
}

/// What became of a report; it is on the disk by now.
#[derive(Debug)]
pub(crate) enum Decision {
    Accepted(IndexEntry),
    /// The same content was accepted before, there.
    Duplicate(IndexEntry),
    /// Other content was accepted before, there.
    Conflict(IndexEntry),
    Untimely(Rejection),
}

impl Decision {
    /// Here and not where it is answered: who posted may be gone by then.
    fn count(&self) {
        match self {
            Decision::Accepted(_) => metrics::counter!("contextmeter_reports_accepted_total").increment(1),
            Decision::Duplicate(_) => metrics::counter!("contextmeter_reports_duplicate_total").increment(1),
            Decision::Conflict(_) => metrics::counter!("contextmeter_reports_conflict_total").increment(1),
            Decision::Untimely(_) => {}
        }
    }
}

pub(super) struct Waiting {
    pub(super) submission: Submission,
    pub(super) answer: oneshot::Sender<Decision>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The way to the thread.
pub(crate) struct Appender {
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
    places: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Appender {
    pub(crate) fn start(journal: Arc<Journal>, window: Duration) -> Result<Self, IngestError> {
        let (queue, waiting) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || run(&journal, &waiting, window))
            .map_err(IngestError::Thread)?;
        Ok(Appender {
            queue: Mutex::new(Some(queue)),
            places: Arc::new(Semaphore::new(QUEUE)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Gives a submission its place in the order of decisions. None when the journal is closed; the answer fails when the
    /// journal ended before it could promise anything.
    pub(crate) async fn enqueue(&self, submission: Submission) -> Option<oneshot::Receiver<Decision>> {
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (answer, decision) = oneshot::channel();
        queue.send(Waiting { submission, answer, _permit: permit }).ok()?;
        Some(decision)
    }

    /// Lets what waits be appended and ends the thread.
    pub(crate) async fn end(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the journal's thread ended badly");
            }
        }
    }

    /// Takes nothing more; the thread ends by itself.
    pub(crate) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.places.close();
    }
}

/// Whoever drops the journal may open its folder again at once: the thread, which holds it open, has ended by then.
impl Drop for Appender {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join(); // that it panicked was said by its vigil
        }
    }
}

/// A thread that dies otherwise must be known to be dead.
struct Vigil<'a>(&'a Journal);

impl Drop for Vigil<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(&IngestError::Thread(std::io::Error::other("it panicked")));
        }
    }
}

fn run(journal: &Journal, waiting: &mpsc::Receiver<Waiting>, window: Duration) {
    let _vigil = Vigil(journal);
    while let Ok(first) = waiting.recv() {
        let group = gather(first, waiting, window);
        // A failure was made known by the journal; dropping the group tells those who wait that nothing is promised.
        if let Err(error) = append(journal, group) {
            journal.fail(&error);
            return;
        }
    }
}

/// One group: what is there, and what comes within the window. While a group is being made durable the next one gathers by itself.
fn gather(first: Waiting, waiting: &mpsc::Receiver<Waiting>, window: Duration) -> Vec<Waiting> {
    let end = Instant::now() + window;
    let mut bytes = first.submission.bytes();
    let mut group = vec![first];
    while group.len() < GROUP_RECORDS && bytes < GROUP_BYTES {
        let left = end.saturating_duration_since(Instant::now());
        let next = if left.is_zero() { waiting.try_recv().ok() } else { waiting.recv_timeout(left).ok() };
        let Some(next) = next else { break };
        bytes = bytes.saturating_add(next.submission.bytes());
        group.push(next);
    }
    group
}

pub(super) fn append(journal: &Journal, group: Vec<Waiting>) -> Result<(), IngestError> {
    let (at, mut last_seq) = journal.begin_group();
    let mut batch = journal.batch();
    let mut new: HashMap<Vec<u8>, IndexEntry> = HashMap::new();
    let mut answers = Vec::with_capacity(group.len());
    for Waiting { submission, answer, _permit } in group {
        let known = match new.get(&submission.key) {
            Some(entry) => Some(*entry),
            None => {
                let found = journal.tables.index.get(&submission.key).during("looking a report up")?;
                found.map(|bytes| IndexEntry::decode(&bytes)).transpose()?
            }
        };
        let decision = match (known, submission.untimely.clone()) {
            (Some(entry), _) if entry.report_hash == submission.report_hash.0 => Decision::Duplicate(entry),
            (Some(entry), _) => Decision::Conflict(entry),
            (None, Some(rejection)) => Decision::Untimely(rejection),
            (None, None) => {
                let entry = place(journal.epoch, last_seq, at, &submission)?;
                last_seq = entry.last_seq;
                let index_key = submission.key.clone();
                let record = submission.into_record(&entry);
                batch.insert(&journal.tables.index, index_key.clone(), entry.encode()?);
                let key = keys::position(entry.epoch, entry.first_seq);
                batch.insert(&journal.tables.records, key, record.encode()?);
                new.insert(index_key, entry);
                Decision::Accepted(entry)
            }
        };
        answers.push((answer, decision));
    }
    if !new.is_empty() {
        journal.commit(batch, "appending")?;
    }
    journal.end_group(last_seq);
    for (answer, decision) in answers {
        decision.count();
        // Who went away posts again and is told that it is a repeat.
        let _ = answer.send(decision);
    }
    Ok(())
}

fn place(
    epoch: u64,
    last_seq: u64,
    at: Timestamp,
    submission: &Submission,
) -> Result<IndexEntry, IngestError> {
    let seqs = u64::try_from(submission.events.len().max(1)).unwrap_or(u64::MAX);
    let full = || IngestError::Corrupt { what: "epoch", reason: "its positions are used up".to_owned() };
    Ok(IndexEntry {
        report_hash: submission.report_hash.0,
        epoch,
        first_seq: last_seq.checked_add(1).ok_or_else(full)?,
        last_seq: last_seq.checked_add(seqs).ok_or_else(full)?,
        received_at: at.as_micros(),
    })
}

#[cfg(test)]
mod tests {
    use super::Decision;
    use crate::journal::testing::{Desk, late, submission};

    #[tokio::test]
    async fn g2_g3_within_one_group_the_first_decides_and_the_others_are_judged_by_it() {
        let desk = Desk::open().await;
        let group =
            [submission("1", &[9]), submission("1", &[9]), submission("1", &[8]), submission("2", &[8])];
        let decisions = desk.decide(group.into());
        let [
            Decision::Accepted(first),
            Decision::Duplicate(same),
            Decision::Conflict(other),
            Decision::Accepted(second),
        ] = &decisions[..]
        else {
            panic!("{decisions:?}")
        };
        assert_eq!((same, other), (first, first));
        assert_eq!((first.last_seq, second.first_seq, desk.journal.appended_seq()), (1, 2, 2));
        assert_eq!(desk.find("1"), Some(*first));
    }

    #[tokio::test]
    async fn a_report_has_a_position_for_each_event_and_its_acknowledgement_names_the_last() {
        let desk = Desk::open().await;
        let [Decision::Accepted(three), Decision::Accepted(none), Decision::Accepted(two)] = &desk
            .decide([submission("1", &[1, 2, 3]), submission("2", &[]), submission("3", &[4, 5])].into())[..]
        else {
            panic!("not accepted")
        };
        assert_eq!((three.first_seq, three.last_seq, three.position().seq), (1, 3, 3));
        assert_eq!((none.first_seq, none.last_seq, none.position().seq), (4, 4, 4));
        assert_eq!((two.first_seq, two.last_seq, two.position().seq), (5, 6, 6));
        let record = desk.journal.record(three).unwrap().unwrap();
        let seqs: Vec<u64> = record.events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [1, 2, 3]);
    }

    #[tokio::test]
    async fn only_a_new_report_is_refused_for_its_time() {
        let desk = Desk::open().await;
        desk.accept(&[("1", 9)]);
        let decisions = desk.decide([late("1", &[9]), late("1", &[8]), late("2", &[9])].into());
        assert!(
            matches!(&decisions[..], [Decision::Duplicate(_), Decision::Conflict(_), Decision::Untimely(_)]),
            "{decisions:?}"
        );
        assert_eq!((desk.journal.appended_seq(), desk.find("2")), (1, None));
    }
}
