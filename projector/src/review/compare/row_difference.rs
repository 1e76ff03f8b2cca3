//! Difference of one row between two versions of a read table.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::cell::CellValue;

/// Kind of a difference. `Added`: only the second version has the row. `Removed`: only the first version has the row.
/// `Changed`: both versions have the row, with different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeKind {
    Added,
    Removed,
    Changed,
}

impl ChangeKind {
    pub(super) fn of<T>(sides: [Option<&T>; 2]) -> Self {
        match sides {
            [None, _] => Self::Added,
            [_, None] => Self::Removed,
            _ => Self::Changed,
        }
    }
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

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RowDifference {
    #[serde(skip)]
    pub table: &'static str,
    /// Key columns and their values, in the order of the table's key.
    #[serde(serialize_with = "as_object")]
    pub key: Vec<(&'static str, CellValue)>,
    pub change: ChangeKind,
    /// Differing columns, without key columns. If only one version has the row, the list has every column with a value.
    #[serde(serialize_with = "as_pairs")]
    pub columns: Vec<ColumnDifference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ColumnDifference {
    pub column: String,
    pub a: CellValue,
    pub b: CellValue,
}

impl RowDifference {
    pub(super) fn column(&self, name: &str) -> Option<&ColumnDifference> {
        self.columns.iter().find(|changed| changed.column == name)
    }

    /// Value of the first key column: the security, fund or sector of the row.
    pub(crate) fn owner(&self) -> String {
        self.key.first().map(|(_, cell)| cell.to_string()).unwrap_or_default()
    }

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
