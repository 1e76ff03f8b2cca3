//! What an export says of itself: `manifest.json` beside the tables' folders.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use chrono::NaiveDate;
use serde::Serialize;

use super::column::ParquetColumn;
use super::error::ExportError;
use super::file_writer::ExportedFile;

/// The manifest's own name.
const NAME: &str = "manifest.json";

/// What an export holds, and what it was made from.
#[derive(Debug, Serialize)]
pub struct ExportManifest {
    /// Of this layout of files.
    pub format: u32,
    /// As the API names it.
    pub data_version: String,
    pub generation: i32,
    /// Log sequence the tables are at.
    pub sequence: i64,
    pub as_of: Option<NaiveDate>,
    pub method_version: String,
    /// Rule parameters that are not their defaults.
    pub rules: BTreeMap<String, String>,
    /// What was said when the generation was last promoted.
    pub note: Option<String>,
    pub tables: Vec<TableManifest>,
}

/// A table of an export.
#[derive(Debug, Serialize)]
pub struct TableManifest {
    pub name: &'static str,
    /// What its folders `year=…` are told apart by.
    pub partitioned_by: Option<&'static str>,
    pub columns: Vec<ColumnManifest>,
    pub rows: u64,
    pub files: Vec<ExportedFile>,
}

/// A column of an exported table.
#[derive(Debug, Serialize)]
pub struct ColumnManifest {
    pub name: String,
    /// As SQL says it.
    pub r#type: String,
}

impl TableManifest {
    /// A table and its files, by path.
    pub(super) fn new(
        name: &'static str,
        partitioned_by: Option<&'static str>,
        columns: &[ParquetColumn],
        mut files: Vec<ExportedFile>,
    ) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let described = |column: &ParquetColumn| ColumnManifest {
            name: column.name.clone(),
            r#type: column.kind.sql_name(),
        };
        let rows = files.iter().map(|part| part.rows).sum();
        Self { name, partitioned_by, columns: columns.iter().map(described).collect(), rows, files }
    }
}

impl ExportManifest {
    /// Writes it to disk.
    pub(super) fn write(&self, folder: &Path) -> Result<(), ExportError> {
        let path = folder.join(NAME);
        let text = serde_json::to_string_pretty(self)?;
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|source| ExportError::File { path, source })
    }
}
