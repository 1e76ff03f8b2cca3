//! One column of a file while its rows are gathered: every value is optional, decimals are exact.

use std::str;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use market::bars::day_number;
use market::value::Exact;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::error::ExportError;
use super::kind::{DECIMAL_BYTES, Kind};

/// 1970-01-01 as a day number.
const EPOCH: i32 = 719_163;

/// A column and its values since the last row group.
#[derive(Debug)]
pub(crate) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    values: Values,
    /// 1 where there is a value, 0 where there is none.
    present: Vec<i16>,
}

/// The values that are there.
#[derive(Debug)]
enum Values {
    Text(Vec<ByteArray>),
    Flags(Vec<bool>),
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    /// Big-endian, sixteen bytes each.
    Decimals(Vec<u8>),
}

impl Column {
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
            Kind::Integer | Kind::Date => Values::Narrow(Vec::new()),
            Kind::Long | Kind::Instant => Values::Wide(Vec::new()),
            Kind::Decimal(_) => Values::Decimals(Vec::new()),
        };
        Self { name: name.to_owned(), kind, values, present: Vec::new() }
    }

    /// Rows since the last row group.
    pub(super) fn rows(&self) -> usize {
        self.present.len()
    }

    /// Adds what a row has in a place.
    pub(super) fn push(&mut self, row: &Row, place: usize) -> Result<(), ExportError> {
        match self.kind {
            Kind::Text => {
                let text: Option<Text<'_>> = row.try_get(place)?;
                self.push_text(text.map(|Text(text)| ByteArray::from(text)));
            }
            Kind::Flag => self.push_flag(row.try_get(place)?),
            Kind::Integer => self.push_narrow(row.try_get(place)?),
            Kind::Date => self.push_day(row.try_get::<_, Option<NaiveDate>>(place)?.map(day_number)),
            Kind::Long => self.push_wide(row.try_get(place)?),
            Kind::Instant => {
                let instant: Option<DateTime<Utc>> = row.try_get(place)?;
                self.push_wide(instant.map(|instant| instant.timestamp_micros()));
            }
            Kind::Decimal(scale) => {
                let value: Option<Exact> = row.try_get(place)?;
                let units = value.map(|Exact(value)| self.units(value, scale)).transpose()?;
                self.push_units(units);
            }
        }
        Ok(())
    }

    /// A decimal in units of its last place.
    fn units(&self, value: Decimal, scale: u32) -> Result<i128, ExportError> {
        let value = if value.scale() > scale { value.normalize() } else { value };
        let power = scale.checked_sub(value.scale()).map(|places| 10i128.pow(places));
        power.and_then(|power| value.mantissa().checked_mul(power)).ok_or_else(|| ExportError::Decimal {
            column: self.name.clone(),
            value: value.to_string(),
            scale,
        })
    }

    /// Adds a text.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_text(Some(ByteArray::from(text)));
    }

    pub(super) fn push_text(&mut self, text: Option<ByteArray>) {
        self.present.push(i16::from(text.is_some()));
        if let Values::Text(values) = &mut self.values {
            values.extend(text);
        }
    }

    fn push_flag(&mut self, flag: Option<bool>) {
        self.present.push(i16::from(flag.is_some()));
        if let Values::Flags(values) = &mut self.values {
            values.extend(flag);
        }
    }

    fn push_narrow(&mut self, value: Option<i32>) {
        self.present.push(i16::from(value.is_some()));
        if let Values::Narrow(values) = &mut self.values {
            values.extend(value);
        }
    }

    /// A day number, from 0001-01-01.
    pub(super) fn push_day(&mut self, day: Option<i32>) {
        self.push_narrow(day.map(|day| day - EPOCH));
    }

    pub(super) fn push_wide(&mut self, value: Option<i64>) {
        self.present.push(i16::from(value.is_some()));
        if let Values::Wide(values) = &mut self.values {
            values.extend(value);
        }
    }

    /// A decimal in units of its last place.
    pub(super) fn push_units(&mut self, units: Option<i128>) {
        self.present.push(i16::from(units.is_some()));
        if let Values::Decimals(values) = &mut self.values {
            values.extend(units.iter().flat_map(|units| units.to_be_bytes()));
        }
    }

    /// Writes the values as a column of a row group, and begins the next.
    pub(super) fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = Some(self.present.as_slice());
        match (&mut self.values, writer) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Flags(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Narrow(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Wide(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, present, None)?;
                values.clear();
            }
            (Values::Decimals(values), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let bytes = Bytes::from(std::mem::take(values));
                let cut = |start| {
                    FixedLenByteArray::from(ByteArray::from(bytes.slice(start..start + DECIMAL_BYTES)))
                };
                let decimals: Vec<FixedLenByteArray> =
                    (0..bytes.len()).step_by(DECIMAL_BYTES).map(cut).collect();
                writer.write_batch(&decimals, present, None)?;
            }
            _ => return Err(ParquetError::General(format!("column {} is of another type", self.name))),
        }
        self.present.clear();
        Ok(())
    }
}

/// Text, also of a nested value.
struct Text<'a>(&'a str);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(str::from_utf8(raw)?))
    }

    fn accepts(column: &Type) -> bool {
        matches!(*column, Type::TEXT | Type::JSON)
    }
}
