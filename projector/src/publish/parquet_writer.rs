//! Writer of one Parquet file: rows are buffered and written as row groups with zstd compression.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::column::ParquetColumn;

/// Number of rows after which a row group is written.
const ROW_GROUP_ROWS: usize = 200_000;

#[derive(Debug)]
pub(crate) struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ParquetColumn>,
    rows: u64,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Creates the writer of an empty file.
    pub(crate) fn new(file: W, columns: Vec<ParquetColumn>) -> Result<Self, ParquetError> {
        let declared: String =
            columns.iter().map(|column| column.kind.parquet_declaration(&column.name)).collect();
        let schema = parse_message_type(&format!("message row {{ {declared} }}"))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(None)
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, columns, rows: 0 })
    }

    /// Returns the buffered columns. For each row, the caller appends one value to every column.
    pub(crate) fn columns(&mut self) -> &mut [ParquetColumn] {
        &mut self.columns
    }

    /// Writes a row group if enough rows are buffered.
    pub(crate) fn flush_full_group(&mut self) -> Result<(), ParquetError> {
        if self.columns.first().is_some_and(|column| column.rows() >= ROW_GROUP_ROWS) {
            return self.flush_group();
        }
        Ok(())
    }

    fn flush_group(&mut self) -> Result<(), ParquetError> {
        let rows = self.columns.first().map_or(0, ParquetColumn::rows);
        if rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("the file has no column {}", column.name)))?;
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Writes the remaining rows and the footer. Returns the output and the number of rows.
    pub(crate) fn finish(mut self) -> Result<(W, u64), ParquetError> {
        self.flush_group()?;
        Ok((self.writer.into_inner()?, self.rows))
    }
}
