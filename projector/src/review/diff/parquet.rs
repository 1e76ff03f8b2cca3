//! Parquet file of a comparison (`--parquet`), with one row per differing value. All columns are text, as in the CSV
//! file.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Context;

use super::difference::{DifferenceSink, HEADER, RowDifference};
use crate::export::{ColumnType, ParquetColumn, ParquetFileWriter};
use crate::review::atomic_file::AtomicFile;

#[derive(Debug)]
pub(super) struct ParquetDifferences {
    writer: ParquetFileWriter,
    file: AtomicFile,
}

impl ParquetDifferences {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        let columns = HEADER.map(|name| ParquetColumn::new(name, ColumnType::Text)).into();
        let folder = file.path().parent().unwrap_or(Path::new(""));
        let name = file.path().file_name().unwrap_or(OsStr::new(""));
        let writer = ParquetFileWriter::open(created, folder, name.into(), columns);
        Ok(Self { writer: writer.with_context(|| file.to_string())?, file })
    }
}

impl DifferenceSink for ParquetDifferences {
    fn write(&mut self, difference: &RowDifference) -> anyhow::Result<()> {
        let (symbol, key) = (difference.owner(), difference.rest_of_key());
        let change = difference.change.to_string();
        for changed in &difference.columns {
            let (a, b) = (changed.a.to_string(), changed.b.to_string());
            let row = [difference.table, &symbol, &key, &change, &changed.column, &a, &b];
            self.writer.columns().iter_mut().zip(row).for_each(|(column, value)| column.push_str(value));
            self.writer.flush_full_group().with_context(|| self.file.to_string())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        let Self { writer, file } = *self;
        writer.finish().with_context(|| file.to_string())?;
        file.finish()
    }
}
