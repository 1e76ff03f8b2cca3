//! Conversion of a Parquet file to CSV text. A binary double becomes the shortest decimal with the same value. Row
//! groups are read page by page, to limit the memory.

use std::fs::File;
use std::io::{self, Cursor, Read};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use parquet::basic::{LogicalType, TimeUnit, Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::SchemaDescriptor;
use telemetry::shorten;

use super::feed_files::MAX_LISTED;

/// Maximum length of a column name in a summary, in characters.
const MAX_NAME_CHARS: usize = 40;
/// Length of the CSV text that is converted at once, in bytes. The last row may exceed it.
const PIECE_BYTES: usize = 64 * 1024;

/// Reader that returns the rows of a Parquet file as CSV text.
pub(crate) struct ParquetTable {
    rows: RowIter<'static>,
    /// One flag per column: true if its values are times in nanoseconds since 1970, as pandas writes them.
    nanoseconds: Vec<bool>,
    text: Cursor<Vec<u8>>,
}

impl ParquetTable {
    /// Opens a Parquet file. The first line of the text is the header with the column names.
    pub(crate) fn open(file: File) -> io::Result<Self> {
        let reader = SerializedFileReader::new(file).map_err(unreadable)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let names = names(&schema)?;
        let nanoseconds = schema.columns().iter().map(|column| {
            matches!(column.logical_type_ref(), Some(LogicalType::Timestamp(kind)) if kind.unit == TimeUnit::NANOS)
        });
        let nanoseconds = nanoseconds.collect();
        let mut text = csv::Writer::from_writer(Vec::new());
        text.write_record(names).map_err(io::Error::from)?;
        let text = Cursor::new(text.into_inner().map_err(|error| error.into_error())?);
        Ok(Self { rows: reader.into_iter(), nanoseconds, text })
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.text).into_inner();
        bytes.clear();
        let mut text = csv::Writer::from_writer(bytes);
        while text.get_ref().len() < PIECE_BYTES {
            let Some(row) = self.rows.next().transpose().map_err(unreadable)? else { break };
            text.write_record(cells(row, &self.nanoseconds)?).map_err(io::Error::from)?;
        }
        self.text = Cursor::new(text.into_inner().map_err(|error| error.into_error())?);
        Ok(())
    }
}

impl Read for ParquetTable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text.position() == self.text.get_ref().len() as u64 {
            self.fill()?;
        }
        self.text.read(buffer)
    }
}

/// Names of the columns whose type is a binary double or float.
pub(crate) fn double_columns(file: File) -> io::Result<Vec<String>> {
    let reader = SerializedFileReader::new(file).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns().iter();
    let doubles = columns.filter(|column| matches!(column.physical_type(), Type::DOUBLE | Type::FLOAT));
    Ok(doubles.take(MAX_LISTED).map(|column| shorten(column.name(), MAX_NAME_CHARS)).collect())
}

/// Names of the columns. Fails if a column is nested, that is, a group of other columns.
fn names(schema: &SchemaDescriptor) -> io::Result<Vec<String>> {
    let fields = schema.root_schema().get_fields();
    match fields.iter().find(|field| field.is_group()) {
        Some(nested) => {
            let message = format!("column {} has nested rows: write a flat table", nested.name());
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
        None => Ok(fields.iter().map(|field| field.name().to_owned()).collect()),
    }
}

fn cells(row: Row, nanoseconds: &[bool]) -> io::Result<Vec<String>> {
    let columns = row.into_columns().into_iter().zip(nanoseconds);
    columns.map(|((name, field), nanoseconds)| cell(&name, field, *nanoseconds)).collect()
}

fn cell(name: &str, field: Field, nanoseconds: bool) -> io::Result<String> {
    Ok(match field {
        Field::Null => String::new(),
        Field::Str(text) => text,
        Field::Double(value) => value.to_string(),
        Field::Float(value) => value.to_string(),
        Field::Date(days) => date(name, days)?,
        Field::Long(ticks) if nanoseconds => time(DateTime::from_timestamp_nanos(ticks)),
        Field::TimestampMicros(ticks) => time(moment(name, DateTime::from_timestamp_micros(ticks))?),
        Field::TimestampMillis(ticks) => time(moment(name, DateTime::from_timestamp_millis(ticks))?),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        other => other.to_string(),
    })
}

fn date(name: &str, days: i32) -> io::Result<String> {
    let date = NaiveDate::default().checked_add_signed(TimeDelta::days(days.into()));
    Ok(date.ok_or_else(|| beyond(name))?.to_string())
}

fn moment(name: &str, moment: Option<DateTime<Utc>>) -> io::Result<DateTime<Utc>> {
    moment.ok_or_else(|| beyond(name))
}

/// Formats a time. A time at midnight UTC is written as a date only.
fn time(moment: DateTime<Utc>) -> String {
    let time = moment.time();
    if time == chrono::NaiveTime::MIN { moment.date_naive().to_string() } else { moment.to_rfc3339() }
}

fn beyond(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("column {name} has a day beyond the calendar"))
}

fn unreadable(error: ParquetError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read Parquet: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    #[test]
    fn long_cells_that_repeat_are_converted_a_few_at_a_time() {
        const CELL: usize = 100_000;
        let file = tempfile::tempfile().unwrap();
        let schema = parse_message_type("message rows { required binary name (UTF8); }").unwrap();
        let mut writer =
            SerializedFileWriter::new(file.try_clone().unwrap(), Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let cells = vec![ByteArray::from("x".repeat(CELL).as_str()); 500];
        column.typed::<ByteArrayType>().write_batch(&cells, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        assert!(file.metadata().unwrap().len() < 3 * CELL as u64, "a dictionary has the cell once");
        let mut table = ParquetTable::open(file).unwrap();
        let (mut buffer, mut length, mut longest) = (vec![0; CELL], 0, 0);
        loop {
            let read = table.read(&mut buffer).unwrap();
            (length, longest) = (length + read, longest.max(table.text.get_ref().len()));
            if read == 0 {
                break;
            }
        }
        assert_eq!(length, "name\n".len() + 500 * (CELL + 1));
        assert!(longest <= PIECE_BYTES + CELL + 1, "{longest}");
    }
}
