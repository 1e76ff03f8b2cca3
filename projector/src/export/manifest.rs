//! Manifest of an export: `manifest.json` in its folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use chrono::NaiveDate;
use event_log::sequence::Sequence;
use serde::Serialize;
use store::ids::GenerationId;

use super::column::ParquetColumn;
use super::file_writer::ExportedFile;

const NAME: &str = "manifest.json";

/// Content and origin of an export.
#[derive(Debug, Serialize)]
pub struct ExportManifest {
    /// Version of the file layout.
    pub format: u32,
    /// Data version of the tables, written as in API responses, for example `g1.121`: generation and log sequence.
    pub data_version: String,
    /// Number of the generation.
    pub generation: GenerationId,
    /// Sequence of the last log message that the tables include.
    pub sequence: Sequence,
    /// Market date of the tables (as-of date of the figures); `None` if nothing was derived yet.
    pub as_of: Option<NaiveDate>,
    /// Version of the rules that derived the tables.
    pub method_version: String,
    /// Rule parameters that differ from their defaults.
    pub rules: BTreeMap<String, String>,
    /// Text that the operator gave as the reason for the generation's last promotion; `None` without a reason.
    pub note: Option<String>,
    /// Securities without rows in the files; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Exported tables with their files.
    pub tables: Vec<TableManifest>,
}

/// Securities that rest on sources which must not be redistributed.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// Names of these sources.
    pub sources: Vec<String>,
    /// Number of securities.
    pub securities: usize,
}

/// Exported table.
#[derive(Debug, Serialize)]
pub struct TableManifest {
    /// Name of the table and of its folder.
    pub name: &'static str,
    /// Value that divides the rows into folders, for example `year of date`; `None` if the table is one file.
    pub partitioned_by: Option<&'static str>,
    /// Columns, in the same order as in the files.
    pub columns: Vec<ColumnManifest>,
    /// Number of rows in all files.
    pub rows: u64,
    /// Files, sorted by path.
    pub files: Vec<ExportedFile>,
}

/// Column of an exported table.
#[derive(Debug, Serialize)]
pub struct ColumnManifest {
    /// Name of the column.
    pub name: String,
    /// SQL name of the type.
    pub r#type: String,
}

impl TableManifest {
    /// Describes a table. Its files are sorted by path.
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
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(NAME);
        let text = serde_json::to_string_pretty(self).context("cannot encode the manifest")?;
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}
