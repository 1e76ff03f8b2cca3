//! Column of a Parquet file, with its values buffered until the next row group. Every value is optional, and decimals
//! are exact.
//!
//! Types of published columns and their names in Postgres, Parquet and the manifest.
//!
//! Writer of one Parquet file: rows are buffered and written as row groups with zstd compression.

use std::io::Write;
use std::str;
use std::sync::Arc;

use anyhow::anyhow;
use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use market::day::day_number;
use market::decimal::ExactDecimal;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rust_decimal::Decimal;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Column, Row};

/// Day number of 1970-01-01. Day 1 is 0001-01-01.
const UNIX_EPOCH_DAY: i32 = 719_163;

/// Column with the buffered values of the next row group.
#[derive(Debug)]
pub(crate) struct ParquetColumn {
    pub(super) name: String,
    pub(super) kind: ColumnType,
    values: ColumnValues,
    /// Parquet definition level of each row: 1 for a value, 0 for null.
    present: Vec<i16>,
}

/// Buffered values, without nulls.
#[derive(Debug)]
enum ColumnValues {
    Text(Vec<ByteArray>),
    Flags(Vec<bool>),
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    /// Decimals as big-endian integers of sixteen bytes.
    Decimals(Vec<u8>),
}

/// Appends an optional value to a column whose buffer is `ColumnValues::$variant`.
macro_rules! push_value {
    ($column:expr, $variant:ident, $value:expr) => {{
        let value = $value;
        $column.present.push(i16::from(value.is_some()));
        if let ColumnValues::$variant(values) = &mut $column.values {
            values.extend(value);
        }
    }};
}

impl ParquetColumn {
    pub(crate) fn new(name: &str, kind: ColumnType) -> Self {
        let values = match kind {
            ColumnType::Text => ColumnValues::Text(Vec::new()),
            ColumnType::Flag => ColumnValues::Flags(Vec::new()),
            ColumnType::Integer | ColumnType::Date => ColumnValues::Narrow(Vec::new()),
            ColumnType::Long | ColumnType::Instant => ColumnValues::Wide(Vec::new()),
            ColumnType::Decimal(_) => ColumnValues::Decimals(Vec::new()),
        };
        Self { name: name.to_owned(), kind, values, present: Vec::new() }
    }

    pub(super) fn rows(&self) -> usize {
        self.present.len()
    }

    /// Appends the value of column `index` of a Postgres row.
    pub(super) fn push(&mut self, row: &Row, index: usize) -> anyhow::Result<()> {
        match self.kind {
            ColumnType::Text => {
                let text: Option<TextValue<'_>> = row.try_get(index)?;
                self.push_text(text.map(|TextValue(text)| ByteArray::from(text)));
            }
            ColumnType::Flag => push_value!(self, Flags, row.try_get::<_, Option<bool>>(index)?),
            ColumnType::Integer => push_value!(self, Narrow, row.try_get::<_, Option<i32>>(index)?),
            ColumnType::Date => self.push_day(row.try_get::<_, Option<NaiveDate>>(index)?.map(day_number)),
            ColumnType::Long => self.push_wide(row.try_get(index)?),
            ColumnType::Instant => {
                let instant: Option<DateTime<Utc>> = row.try_get(index)?;
                self.push_wide(instant.map(|instant| instant.timestamp_micros()));
            }
            ColumnType::Decimal(scale) => {
                let value: Option<ExactDecimal> = row.try_get(index)?;
                let units = value.map(|ExactDecimal(value)| self.units(value, scale)).transpose()?;
                self.push_units(units);
            }
        }
        Ok(())
    }

    /// Converts a decimal to an integer in units of 10^-`scale`. For example, 1.25 with scale 3 becomes 1250.
    fn units(&self, value: Decimal, scale: u32) -> anyhow::Result<i128> {
        let value = if value.scale() > scale { value.normalize() } else { value };
        let power = scale.checked_sub(value.scale()).map(|places| 10i128.pow(places));
        power
            .and_then(|power| value.mantissa().checked_mul(power))
            .ok_or_else(|| unscalable(&self.name, &value.to_string(), scale))
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_text(Some(ByteArray::from(text)));
    }

    pub(super) fn push_text(&mut self, text: Option<ByteArray>) {
        push_value!(self, Text, text);
    }

    /// Appends a day number. Day 1 is 0001-01-01.
    pub(super) fn push_day(&mut self, day: Option<i32>) {
        push_value!(self, Narrow, day.map(|day| day - UNIX_EPOCH_DAY));
    }

    pub(super) fn push_wide(&mut self, value: Option<i64>) {
        push_value!(self, Wide, value);
    }

    /// Appends a decimal, given as an integer in units of the column's last decimal place. For example, 125 is 1.25 in
    /// a column with two places.
    pub(super) fn push_units(&mut self, units: Option<i128>) {
        self.present.push(i16::from(units.is_some()));
        if let ColumnValues::Decimals(values) = &mut self.values {
            values.extend(units.iter().flat_map(|units| units.to_be_bytes()));
        }
    }

    /// Writes the buffered values to a row group and empties the buffer.
    pub(super) fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = self.present.as_slice();
        match (&mut self.values, writer) {
            (ColumnValues::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                write_values(writer, values, present)?;
            }
            (ColumnValues::Flags(values), ColumnWriter::BoolColumnWriter(writer)) => {
                write_values(writer, values, present)?;
            }
            (ColumnValues::Narrow(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                write_values(writer, values, present)?;
            }
            (ColumnValues::Wide(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                write_values(writer, values, present)?;
            }
            (ColumnValues::Decimals(values), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let bytes = Bytes::from(std::mem::take(values));
                let cut = |start| {
                    FixedLenByteArray::from(ByteArray::from(bytes.slice(start..start + DECIMAL_BYTES)))
                };
                let mut decimals = (0..bytes.len()).step_by(DECIMAL_BYTES).map(cut).collect();
                write_values(writer, &mut decimals, present)?;
            }
            _ => return Err(ParquetError::General(format!("column {} has another type", self.name))),
        }
        self.present.clear();
        Ok(())
    }
}

/// Writes buffered values and empties their buffer.
fn write_values<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    values: &mut Vec<T::T>,
    present: &[i16],
) -> Result<(), ParquetError> {
    writer.write_batch(values, Some(present), None)?;
    values.clear();
    Ok(())
}

/// Value of a Postgres column of type `text` or `json`.
struct TextValue<'a>(&'a str);

impl<'a> FromSql<'a> for TextValue<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(str::from_utf8(raw)?))
    }

    fn accepts(column: &Type) -> bool {
        matches!(*column, Type::TEXT | Type::JSON)
    }
}

/// Decimal places of a published numeric column that has no declared scale. Divisions are rounded to 18 places.
const SCALE: u32 = 18;
/// Offset that Postgres adds to the type modifier of a numeric column.
const MODIFIER: i32 = 4;
/// Error for a value that does not fit a decimal column.
pub(super) fn unscalable(column: &str, value: &str, scale: u32) -> anyhow::Error {
    anyhow!(
        "cannot publish {value} in column {column}: its decimals have 38 digits, {scale} of them after the point"
    )
}

/// Number of bytes of a decimal with 38 digits.
pub(super) const DECIMAL_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Flag,
    Integer,
    Date,
    Long,
    Instant,
    /// Decimal with the given number of decimal places.
    Decimal(u32),
}

impl ColumnType {
    /// Type for a Postgres column. JSON values become text. `None` for a column type that cannot be published.
    pub(super) fn from_postgres(column: &Column) -> Option<Self> {
        Some(match *column.type_() {
            Type::TEXT | Type::JSON => Self::Text,
            Type::BOOL => Self::Flag,
            Type::INT4 => Self::Integer,
            Type::DATE => Self::Date,
            Type::INT8 => Self::Long,
            Type::TIMESTAMPTZ => Self::Instant,
            Type::NUMERIC => Self::Decimal(match column.type_modifier() - MODIFIER {
                said @ 0.. => (said & 0x7ff).unsigned_abs(),
                _ => SCALE,
            }),
            _ => return None,
        })
    }

    /// Declaration of a column in a Parquet schema.
    pub(super) fn parquet_declaration(self, name: &str) -> String {
        match self {
            Self::Text => format!("optional byte_array {name} (utf8);"),
            Self::Flag => format!("optional boolean {name};"),
            Self::Integer => format!("optional int32 {name};"),
            Self::Date => format!("optional int32 {name} (date);"),
            Self::Long => format!("optional int64 {name};"),
            Self::Instant => format!("optional int64 {name} (timestamp(micros,true));"),
            Self::Decimal(scale) => {
                format!("optional fixed_len_byte_array({DECIMAL_BYTES}) {name} (decimal(38,{scale}));")
            }
        }
    }

    /// Name of the type in SQL.
    pub(super) fn sql_name(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Flag => "boolean".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Date => "date".to_owned(),
            Self::Long => "bigint".to_owned(),
            Self::Instant => "timestamp with time zone".to_owned(),
            Self::Decimal(scale) => format!("decimal(38,{scale})"),
        }
    }
}

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
