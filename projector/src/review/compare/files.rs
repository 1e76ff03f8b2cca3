//! Output file of a comparison, with one line (CSV) or row (Parquet) per differing value. All columns are text.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context;
use telemetry::escape_formula;

use super::cell::CellValue;
use super::row_difference::RowDifference;
#[cfg(feature = "parquet")]
use crate::export::{ColumnType, ParquetColumn, ParquetFileWriter};
use crate::review::output_file::AtomicFile;

const HEADER: [&str; 7] = ["table", "symbol", "key", "change", "column", "a", "b"];

#[derive(Debug)]
pub(crate) struct DifferenceFile {
    writer: Writer,
    file: AtomicFile,
}

#[derive(Debug)]
enum Writer {
    Csv(csv::Writer<BufWriter<File>>),
    #[cfg(feature = "parquet")]
    Parquet(ParquetFileWriter),
}

impl DifferenceFile {
    pub(crate) fn create_csv(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(created));
        writer.write_record(HEADER).with_context(|| file.to_string())?;
        Ok(Self { writer: Writer::Csv(writer), file })
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn create_parquet(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let columns = HEADER.map(|name| ParquetColumn::new(name, ColumnType::Text)).into();
        let folder = file.path().parent().unwrap_or(Path::new(""));
        let name = file.path().file_name().unwrap_or_default();
        let writer = ParquetFileWriter::open(created, folder, name.into(), columns);
        Ok(Self { writer: Writer::Parquet(writer.with_context(|| file.to_string())?), file })
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
                #[cfg(feature = "parquet")]
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
            #[cfg(feature = "parquet")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_formulas_are_escaped_and_numbers_keep_their_sign() {
        assert_eq!(csv_cell(&CellValue::Text("=1+1".to_owned())), "'=1+1");
        assert_eq!(csv_cell(&CellValue::Integer(-5)), "-5");
    }
}
