//! One row that differs.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::cell::CellValue;

/// How a row differs.
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

/// One differing row: what identifies it, and the columns that differ with both values.
#[derive(Debug, Clone, Serialize)]
pub struct RowDifference {
    /// Name of the read table that the row is of.
    #[serde(skip)]
    pub table: &'static str,
    /// What identifies the row: key columns with their values, in the table's order.
    #[serde(serialize_with = "as_object")]
    pub key: Vec<(&'static str, CellValue)>,
    /// Which of the generations have the row.
    pub change: ChangeKind,
    /// Columns beside the key that differ; of a row that one side lacks, those with a value.
    #[serde(serialize_with = "as_pairs")]
    pub columns: Vec<ColumnDifference>,
    /// Why, where it was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// A column of a differing row.
#[derive(Debug, Clone)]
pub struct ColumnDifference {
    pub column: String,
    pub a: CellValue,
    pub b: CellValue,
}

impl RowDifference {
    /// A column that differs.
    pub(super) fn column(&self, name: &str) -> Option<&ColumnDifference> {
        self.columns.iter().find(|changed| changed.column == name)
    }

    /// The first part of the key: whose row it is.
    pub(super) fn owner(&self) -> String {
        self.key.first().map(|(_, cell)| cell.to_string()).unwrap_or_default()
    }

    /// The other parts of the key, for people.
    pub(super) fn rest_of_key(&self) -> String {
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
