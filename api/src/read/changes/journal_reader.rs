//! Journal reader: copies new changes from the journal (the list of changes of served rows) to a ring buffer. All
//! change streams of the instance read this buffer. Without streams, the journal is not read.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::db::error_chain;
use store::ids::JournalPosition;
use telemetry::LogLimit;
use tokio::sync::watch;

use super::change_page::{ChangePage, ChangeSelection};
use super::change_ring::{ChangeRing, Lagged, RingRead};
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
    pub(crate) fn index_after(&self, position: JournalPosition) -> Result<u64, Lagged> {
        self.reader.ring.lock().index_after(position)
    }

    /// Returns at most `limit` changes of the ring, beginning at an index.
    pub(crate) fn read(&mut self, index: u64, limit: usize) -> Result<RingRead, Lagged> {
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
