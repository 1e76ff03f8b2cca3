//! Difference of one row between two versions of a read table.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::cell::CellValue;

/// Kind of a difference. `Added`: only the second version has the row. `Removed`: only the first version has the row.
/// `Changed`: both versions have the row, with different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        })
    }
}

/// Differing row, with its key and with both values of each differing column.
#[derive(Debug, Clone, Serialize)]
pub struct RowDifference {
    /// Name of the read table.
    #[serde(skip)]
    pub table: &'static str,
    /// Key columns and their values, in the order of the table's key.
    #[serde(serialize_with = "as_object")]
    pub key: Vec<(&'static str, CellValue)>,
    /// Kind of the difference.
    pub change: ChangeKind,
    /// Differing columns. Key columns are left out. If only one version has the row, these are all columns with a
    /// value.
    #[serde(serialize_with = "as_pairs")]
    pub columns: Vec<ColumnDifference>,
    /// Sentences that explain the difference; empty unless explanations were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// One differing column of a row, with its values in both versions.
#[derive(Debug, Clone)]
pub struct ColumnDifference {
    pub column: String,
    pub a: CellValue,
    pub b: CellValue,
}

impl RowDifference {
    /// Finds a differing column by its name; `None` if the column does not differ.
    pub(crate) fn column(&self, name: &str) -> Option<&ColumnDifference> {
        self.columns.iter().find(|changed| changed.column == name)
    }

    /// Value of the first key column: the security, fund or sector of the row.
    pub(crate) fn owner(&self) -> String {
        self.key.first().map(|(_, cell)| cell.to_string()).unwrap_or_default()
    }

    /// Values of the key columns after the first, as text.
    pub(crate) fn rest_of_key(&self) -> String {
        let rest = self.key.iter().skip(1).map(|(_, cell)| cell.to_string());
        rest.collect::<Vec<_>>().join(" ")
    }
}

fn as_object<S: Serializer>(key: &[(&'static str, CellValue)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(key.iter().map(|(name, cell)| (name, cell)))
}

fn as_pairs<S: Serializer>(columns: &[ColumnDifference], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(columns.len()))?;
    for ColumnDifference { column, a, b } in columns {
        map.serialize_entry(column, &(a, b))?;
    }
    map.end()
}

/// Column names in an output file. Each line of the file has one differing value.
pub(super) const HEADER: [&str; 7] = ["table", "symbol", "key", "change", "column", "a", "b"];

/// Output file with one line or row per differing value.
pub(crate) trait DifferenceSink: fmt::Debug {
    /// Writes one differing row: a line for each of its differing columns.
    fn write(&mut self, difference: &RowDifference) -> anyhow::Result<()>;

    /// Completes the file and gives it its final name.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}
