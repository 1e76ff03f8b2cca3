//! Buffer for rows of one kind until they fill a record batch.

use event_log::record_batch::TARGET_BYTES;

/// Estimated number of bytes by which an encoded row is longer than its text in the source file.
const ROW_BYTES: usize = 160;

/// Rows of one kind that do not fill a record batch yet.
pub(super) struct PendingRows<T> {
    rows: Vec<T>,
    bytes: usize,
    line: u64,
}

impl<T> Default for PendingRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: 0, line: 0 }
    }
}

impl<T> PendingRows<T> {
    /// Adds a row. If the rows fill a record batch, removes and returns them, with the line of the first row.
    pub(super) fn push(&mut self, line: u64, row: T, bytes: usize) -> Option<(Vec<T>, u64)> {
        if self.rows.is_empty() {
            self.line = line;
        }
        self.rows.push(row);
        self.bytes += bytes + ROW_BYTES;
        if self.bytes >= TARGET_BYTES { self.take() } else { None }
    }

    /// Removes and returns all rows, and the source line of the first row; `None` if the buffer is empty.
    pub(super) fn take(&mut self) -> Option<(Vec<T>, u64)> {
        self.bytes = 0;
        (!self.rows.is_empty()).then(|| (std::mem::take(&mut self.rows), self.line))
    }
}
