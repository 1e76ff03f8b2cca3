//! Output files of a review. A file is written under a temporary name and renamed when it is complete.
//!
//! The file of a comparison has one line (CSV) or row (Parquet) per differing value. All columns are text.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use telemetry::escape_formula;
use telemetry::report::Report;

use super::row_difference::{CellValue, RowDifference};
use crate::publish::{ColumnType, ParquetColumn, ParquetWriter};

const HEADER: [&str; 7] = ["table", "symbol", "key", "change", "column", "a", "b"];

#[derive(Debug)]
pub(crate) struct DifferenceFile {
    writer: Writer,
    file: AtomicFile,
}

#[derive(Debug)]
enum Writer {
    Csv(csv::Writer<BufWriter<File>>),
    Parquet(ParquetWriter<File>),
}

impl DifferenceFile {
    pub(crate) fn create_csv(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(created));
        writer.write_record(HEADER).with_context(|| file.to_string())?;
        Ok(Self { writer: Writer::Csv(writer), file })
    }

    pub(crate) fn create_parquet(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let columns = HEADER.map(|name| ParquetColumn::new(name, ColumnType::Text)).into();
        let writer = ParquetWriter::new(created, columns).with_context(|| file.to_string())?;
        Ok(Self { writer: Writer::Parquet(writer), file })
    }

    pub(super) fn write(&mut self, difference: &RowDifference) -> anyhow::Result<()> {
        let (symbol, key, change) =
            (difference.owner(), difference.rest_of_key(), difference.change.to_string());
        for changed in &difference.columns {
            let written = match &mut self.writer {
                Writer::Csv(writer) => {
                    let (symbol, key) = (escape_formula(symbol.clone()), escape_formula(key.clone()));
                    let (a, b) = (csv_cell(&changed.a), csv_cell(&changed.b));
                    let line = [difference.table, &symbol, &key, &change, &changed.column, &a, &b];
                    writer.write_record(line).map_err(anyhow::Error::from)
                }
                Writer::Parquet(writer) => {
                    let (a, b) = (changed.a.to_string(), changed.b.to_string());
                    let row = [difference.table, &symbol, &key, &change, &changed.column, &a, &b];
                    writer.columns().iter_mut().zip(row).for_each(|(column, value)| column.push_str(value));
                    writer.flush_full_group().map_err(anyhow::Error::from)
                }
            };
            written.with_context(|| self.file.to_string())?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { writer, file } = self;
        match writer {
            Writer::Csv(writer) => {
                let inner = writer.into_inner().map_err(csv::IntoInnerError::into_error);
                inner.with_context(|| file.to_string())?;
            }
            Writer::Parquet(writer) => {
                writer.finish().with_context(|| file.to_string())?;
            }
        }
        file.finish()
    }
}

/// Formats a value for the CSV file. Text that a spreadsheet would evaluate as a formula is escaped. Numbers are not
/// escaped, even if they start with a minus sign.
fn csv_cell(cell: &CellValue) -> String {
    match cell {
        CellValue::Text(_) | CellValue::Json(_) => escape_formula(cell.to_string()),
        _ => cell.to_string(),
    }
}

/// Maximum number of rows per table and per topic on a page, unless `--limit` is larger.
pub(crate) const HTML_ROWS: usize = 500;

/// File with a temporary name until it is complete. If this value is dropped before [`AtomicFile::finish`], the
/// temporary file is removed.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    wanted: PathBuf,
    written: PathBuf,
}

impl AtomicFile {
    /// Creates the temporary file. `wanted` is the path that the complete file gets.
    pub(crate) fn create(wanted: &Path) -> anyhow::Result<(File, Self)> {
        let name = wanted
            .file_name()
            .with_context(|| format!("cannot create {}: the path has no file name", wanted.display()))?;
        let written = wanted.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        let file = Self { wanted: wanted.to_owned(), written };
        // Remove the temporary file that an interrupted command left. If a link is created at the path after this,
        // `create_new` fails instead of following the link.
        let _ = fs::remove_file(&file.written);
        Ok((File::create_new(&file.written).with_context(|| file.to_string())?, file))
    }

    pub(crate) fn finish(self) -> anyhow::Result<()> {
        fs::rename(&self.written, &self.wanted).with_context(|| self.to_string())
    }
}

impl fmt::Display for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}", self.wanted.display())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After the rename, no file has the temporary name.
        let _ = fs::remove_file(&self.written);
    }
}

/// HTML file for a report. It is created before the report is computed, so that a file error is reported early.
#[derive(Debug)]
pub(crate) struct PageFile {
    created: File,
    file: AtomicFile,
}

impl PageFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        Ok(Self { created, file })
    }

    pub(crate) fn write(self, report: &Report) -> anyhow::Result<()> {
        let Self { mut created, file } = self;
        let mut page = String::new();
        report.write_page(&mut page)?;
        created.write_all(page.as_bytes()).with_context(|| file.to_string())?;
        file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_formulas_are_escaped_and_numbers_keep_their_sign() {
        assert_eq!(csv_cell(&CellValue::Text("=1+1".to_owned())), "'=1+1");
        assert_eq!(csv_cell(&CellValue::Integer(-5)), "-5");
    }
}
