//! CSV file of a comparison, with one line per differing value.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context;
use telemetry::output::escape_formula;

use super::cell::CellValue;
use super::difference::{DifferenceSink, HEADER, RowDifference};
use crate::review::atomic_file::AtomicFile;

#[derive(Debug)]
pub(crate) struct CsvDifferences {
    writer: csv::Writer<BufWriter<File>>,
    file: AtomicFile,
}

impl CsvDifferences {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(created));
        writer.write_record(HEADER).with_context(|| file.to_string())?;
        Ok(Self { writer, file })
    }
}

impl DifferenceSink for CsvDifferences {
    fn write(&mut self, difference: &RowDifference) -> anyhow::Result<()> {
        let (symbol, key) = (escape_formula(difference.owner()), escape_formula(difference.rest_of_key()));
        let change = difference.change.to_string();
        for changed in &difference.columns {
            let (a, b) = (csv_cell(&changed.a), csv_cell(&changed.b));
            let line = [difference.table, &symbol, &key, &change, &changed.column, &a, &b];
            self.writer.write_record(line).with_context(|| self.file.to_string())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        let Self { writer, file } = *self;
        let inner = writer.into_inner().map_err(csv::IntoInnerError::into_error);
        inner.with_context(|| file.to_string())?;
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
