//! Ring buffer of the newest changes. All streams of an instance read from it.

use std::collections::VecDeque;
use std::sync::Arc;

use store::ids::JournalPosition;

use super::change::Change;

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
    pub(crate) next: u64,
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
    first: u64,
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
    pub(super) fn index_after(&self, position: JournalPosition) -> Result<u64, Lagged> {
        if position < self.start {
            return Err(Lagged);
        }
        let index = self.changes.partition_point(|change| change.position <= position);
        // A `usize` has at most 64 bits on every target.
        Ok(self.first + u64::try_from(index).unwrap_or(u64::MAX))
    }

    /// Returns at most `limit` changes, beginning with the change that has this index.
    pub(super) fn read(&self, index: u64, limit: usize) -> Result<RingRead, Lagged> {
        let skipped = index.checked_sub(self.first).and_then(|skipped| usize::try_from(skipped).ok());
        let skipped = skipped.filter(|skipped| *skipped <= self.changes.len()).ok_or(Lagged)?;
        let changes: Vec<Arc<Change>> = self.changes.iter().skip(skipped).take(limit).cloned().collect();
        let is_end = skipped + changes.len() == self.changes.len();
        let next = index + u64::try_from(changes.len()).unwrap_or_default();
        Ok(RingRead { changes, next, complete: is_end.then_some(self.complete) })
    }

    fn end(&self) -> u64 {
        // A `usize` has at most 64 bits on every target.
        self.first + u64::try_from(self.changes.len()).unwrap_or(u64::MAX)
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
