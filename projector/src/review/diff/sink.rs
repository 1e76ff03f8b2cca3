//! Output file for differing values: interface of the CSV and Parquet writers, and their column names.

use std::fmt;

use super::difference::RowDifference;

/// Column names of the file.
pub(super) const HEADER: [&str; 7] = ["table", "symbol", "key", "change", "column", "a", "b"];

/// Output file for differing values.
pub(crate) trait DifferenceSink: fmt::Debug {
    /// Writes one line or row per differing column.
    fn write(&mut self, difference: &RowDifference) -> anyhow::Result<()>;

    /// Completes the file and gives it its final name.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}
