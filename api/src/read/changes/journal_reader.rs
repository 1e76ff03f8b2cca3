//! Journal reader: copies new changes from the journal (the list of changes of served rows) to a ring buffer. All
//! change streams of the instance read this buffer. Without streams, the journal is not read.
//!
//! Ring buffer of the newest changes. All streams of an instance read from it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::db::error_chain;
use store::ids::JournalPosition;
use telemetry::LogLimit;
use tokio::sync::watch;

use super::change::Change;
use super::change_page::{ChangePage, ChangeSelection};
use crate::parameters::{ChangeKind, JournalPlace};
use crate::read::QueryError;
use crate::read::projection::Projection;

/// Maximum number of changes per read of the journal.
const PAGE: i64 = 500;
/// Pause between two reads while the journal has more changes. During the pause, streams read the new changes from the
/// ring, so that they do not fall behind.
const PAUSE: Duration = Duration::from_millis(25);
/// Start position of the empty ring while no stream uses the ring. `NEVER` is greater than every journal position. A
/// new stream that looks for its place in the ring therefore gets [`Lagged`] until the ring is restarted.
const NEVER: JournalPosition = JournalPosition(i64::MAX);

/// Journal reader. It owns the ring of the newest changes, which all streams of an instance share. [`Self::run`] fills
/// the ring.
#[derive(Debug)]
pub(crate) struct JournalReader {
    ring: Mutex<ChangeRing>,
    /// Number of updates of the ring. Each increase wakes the waiting streams.
    appended: watch::Sender<u64>,
    /// Number of streams that follow the ring. It changes only while the ring is locked.
    followers: watch::Sender<usize>,
}

/// Handle of a stream that follows the ring. The journal reader pauses after the last handle is dropped.
#[derive(Debug)]
pub(crate) struct RingSubscription {
    reader: Arc<JournalReader>,
    appended: watch::Receiver<u64>,
}

/// Progress of the journal reader. `journal` is the id of the journal.
struct Progress {
    journal: String,
    /// Place in the journal from which the next read continues.
    place: JournalPlace,
}

impl JournalReader {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            ring: Mutex::new(ChangeRing::new(NEVER)),
            appended: watch::Sender::new(0),
            followers: watch::Sender::new(0),
        })
    }

    /// Registers a stream that reads from the ring.
    pub(crate) fn follow(self: &Arc<Self>) -> RingSubscription {
        let appended = self.appended.subscribe();
        let _ring = self.ring.lock();
        self.followers.send_modify(|count| *count += 1);
        RingSubscription { reader: Arc::clone(self), appended }
    }

    /// Reads the journal until the process ends.
    pub(crate) async fn run(self: Arc<Self>, projection: Arc<Projection>) {
        static LIMIT: LogLimit = LogLimit::new();
        let (mut followers, mut progress) = (self.followers.subscribe(), None);
        // `wait_for` cannot fail, because `self` owns the sender.
        while followers.wait_for(|count| *count > 0).await.is_ok() {
            let polled = projection.polled();
            if let Err(error) = self.read_new(&projection, &mut progress).await
                && let Some(suppressed) = LIMIT.admit()
            {
                tracing::warn!(error = %error_chain(&error), suppressed, "cannot read the journal");
            }
            if self.rest() {
                progress = None;
            } else {
                polled.await;
            }
        }
    }

    /// Empties the ring if no stream follows it. Returns true if the ring was emptied.
    fn rest(&self) -> bool {
        let mut ring = self.ring.lock();
        let is_unused = *self.followers.borrow() == 0;
        if is_unused {
            ring.restart(NEVER);
        }
        is_unused
    }

    /// Appends all new changes to the ring.
    async fn read_new(
        &self,
        projection: &Projection,
        progress: &mut Option<Progress>,
    ) -> Result<(), QueryError> {
        loop {
            let generation = projection.pin()?;
            let position = generation.version().position;
            let after = match progress {
                Some(progress) if progress.place == JournalPlace::after_commit(position) => return Ok(()),
                Some(progress) if progress.place.position > position => return Ok(()),
                Some(progress) => progress.place.clone(),
                None => JournalPlace::after_commit(position),
            };
            let selection = ChangeSelection { symbols: None, kinds: ChangeKind::ALL, notices: None };
            let page = generation
                .run_while_responsive(ChangePage::read(&generation, &after, selection, PAGE))
                .await?;
            generation.record_returned_version(page.version);
            if progress.as_ref().is_none_or(|progress| progress.journal != page.journal) {
                // Positions of different journals are not comparable. Streams of the former journal end, and their
                // clients download all data again.
                let is_first = progress.is_none();
                self.ring.lock().restart(if is_first { after.position } else { page.version.position });
                let place = JournalPlace::after_commit(page.version.position);
                *progress = Some(Progress { journal: page.journal.clone(), place });
                if !is_first {
                    self.appended.send_modify(|count| *count += 1);
                    return Ok(());
                }
            }
            let complete = (!page.has_more).then_some(page.end.position);
            self.ring.lock().append(page.changes, complete);
            *progress = Some(Progress { journal: page.journal, place: page.end });
            self.appended.send_modify(|count| *count += 1);
            if complete.is_some() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl RingSubscription {
    /// Index in the ring of the first change after a journal position.
    pub(crate) fn index_after(&self, position: JournalPosition) -> Result<usize, Lagged> {
        self.reader.ring.lock().index_after(position)
    }

    /// Returns at most `limit` changes of the ring, beginning at an index.
    pub(crate) fn read(&mut self, index: usize, limit: usize) -> Result<RingRead, Lagged> {
        self.appended.mark_unchanged();
        self.reader.ring.lock().read(index, limit)
    }

    /// Waits until changes are appended to the ring. Returns at once if this has happened since the last call of
    /// [`Self::read`].
    pub(crate) async fn appended(&mut self) {
        // `changed` cannot fail, because `reader` owns the sender.
        let _ = self.appended.changed().await;
    }
}

impl Drop for RingSubscription {
    fn drop(&mut self) {
        let _ring = self.reader.ring.lock();
        self.reader.followers.send_modify(|count| *count -= 1);
    }
}

/// Maximum number of changes in the ring.
const CAPACITY: usize = 8_192;
/// Maximum size of the changes in the ring, in bytes. A dividend takes about 2 kB. All factors of a security take at
/// most about 10 kB.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Error for a reader whose next change was already evicted from the ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the changes are no longer in memory")]
pub(crate) struct Lagged;

/// Result of one read of the ring.
#[derive(Debug)]
pub(crate) struct RingRead {
    pub(crate) changes: Vec<Arc<Change>>,
    /// Index of the change at which the next read begins.
    pub(crate) next: usize,
    /// Journal position up to which the reader now has all changes. `None` if this read did not reach the end of the
    /// ring.
    pub(crate) complete: Option<JournalPosition>,
}

/// Ring buffer of the newest changes. The index of a change is a running number. It stays the same when older changes
/// are evicted from the ring.
#[derive(Debug)]
pub(super) struct ChangeRing {
    capacity: usize,
    changes: VecDeque<Arc<Change>>,
    /// Approximate size of the changes in the ring, in bytes.
    bytes: usize,
    /// Index of the oldest change in the ring.
    first: usize,
    /// The ring contains every change after this journal position, up to the position `complete`.
    start: JournalPosition,
    /// All changes up to this journal position were appended to the ring.
    complete: JournalPosition,
}

impl ChangeRing {
    /// Creates an empty ring for the changes after a journal position.
    pub(super) fn new(position: JournalPosition) -> Self {
        Self {
            capacity: CAPACITY,
            changes: VecDeque::new(),
            bytes: 0,
            first: 0,
            start: position,
            complete: position,
        }
    }

    /// Empties the ring. The changes after `position` can then be appended. The next read of every reader fails with
    /// [`Lagged`].
    pub(super) fn restart(&mut self, position: JournalPosition) {
        // One index is skipped. Otherwise the next read of a reader at the end of the ring would succeed.
        self.first = self.end() + 1;
        self.changes.clear();
        self.bytes = 0;
        (self.start, self.complete) = (position, position);
    }

    /// Appends changes. `complete` is the new value of the field `complete`; `None` does not change the field.
    pub(super) fn append(&mut self, changes: Vec<Change>, complete: Option<JournalPosition>) {
        for change in changes {
            debug_assert!(change.position >= self.complete, "changes are in commit order");
            self.bytes += change.size();
            self.changes.push_back(Arc::new(change));
            while self.changes.len() > self.capacity || self.bytes > MAX_BYTES {
                let Some(evicted) = self.changes.pop_front() else { break };
                self.bytes -= evicted.size();
                self.first += 1;
                self.start = evicted.position;
            }
        }
        self.complete = complete.unwrap_or(self.complete);
    }

    /// Index of the first change after a journal position.
    pub(super) fn index_after(&self, position: JournalPosition) -> Result<usize, Lagged> {
        if position < self.start {
            return Err(Lagged);
        }
        let index = self.changes.partition_point(|change| change.position <= position);
        Ok(self.first + index)
    }

    /// Returns at most `limit` changes, beginning with the change that has this index.
    pub(super) fn read(&self, index: usize, limit: usize) -> Result<RingRead, Lagged> {
        let skipped =
            index.checked_sub(self.first).filter(|skipped| *skipped <= self.changes.len()).ok_or(Lagged)?;
        let changes: Vec<Arc<Change>> = self.changes.iter().skip(skipped).take(limit).cloned().collect();
        let is_end = skipped + changes.len() == self.changes.len();
        let next = index + changes.len();
        Ok(RingRead { changes, next, complete: is_end.then_some(self.complete) })
    }

    fn end(&self) -> usize {
        self.first + self.changes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{ChangeKind, RowKey};
    use crate::read::changes::change::ChangeContent;

    fn changes(positions: &[i64]) -> Vec<Change> {
        let change = |position: &i64| Change {
            position: JournalPosition(*position),
            key: RowKey { live: true, kind: ChangeKind::Lists, symbol: String::new(), id: String::new() },
            completes_commit: true,
            other_symbols: Arc::default(),
            content: ChangeContent::Value(None),
        };
        positions.iter().map(change).collect()
    }

    fn positions(read: &RingRead) -> Vec<i64> {
        read.changes.iter().map(|change| change.position.0).collect()
    }

    fn ring(positions: &[i64]) -> ChangeRing {
        let mut ring = ChangeRing { capacity: 4, ..ChangeRing::new(JournalPosition(10)) };
        ring.append(changes(positions), Some(JournalPosition(20)));
        ring
    }

    #[test]
    fn a_reader_gets_every_change_behind_its_position_once() {
        let ring = ring(&[11, 12, 12]);
        let index = ring.index_after(JournalPosition(11)).expect("in the ring");
        let first = ring.read(index, 1).expect("in the ring");
        assert_eq!((positions(&first), first.complete), (vec![12], None));
        let rest = ring.read(first.next, 9).expect("in the ring");
        assert_eq!((positions(&rest), rest.complete), (vec![12], Some(JournalPosition(20))));
        let none = ring.read(rest.next, 9).expect("in the ring");
        assert_eq!((positions(&none), none.complete), (vec![], Some(JournalPosition(20))));
    }

    #[test]
    fn an_overtaken_reader_lags() {
        let mut ring = ring(&[11, 12, 12, 13]);
        let index = ring.index_after(JournalPosition(10)).expect("in the ring");
        ring.append(changes(&[21, 22]), None);
        assert_eq!(ring.read(index, 9).map(|read| positions(&read)), Err(Lagged));
        // One change of commit 12 was evicted, so the ring no longer has the complete commit.
        assert_eq!(ring.index_after(JournalPosition(11)), Err(Lagged));
        let index = ring.index_after(JournalPosition(12)).expect("in the ring");
        assert_eq!(ring.read(index, 9).map(|read| positions(&read)), Ok(vec![13, 21, 22]));
    }

    #[test]
    fn all_readers_lag_behind_a_restart() {
        let mut ring = ring(&[11]);
        let index = ring.index_after(JournalPosition(20)).expect("in the ring");
        ring.restart(JournalPosition(30));
        assert_eq!(ring.read(index, 9).map(|read| positions(&read)), Err(Lagged));
        assert_eq!(ring.index_after(JournalPosition(29)), Err(Lagged));
        assert!(ring.index_after(JournalPosition(30)).is_ok());
    }
}
