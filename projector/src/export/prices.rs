//! Prices, unpacked: a file a year. Readers share the years, each over a connection and on a core of its own.

use std::path::Path;
use std::pin::pin;

use bytes::Bytes;
use futures::TryStreamExt;
use market::bars::{Bars, MISSING, Packed};
use parquet::data_type::ByteArray;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::column::Column;
use super::error::ExportError;
use super::kind::{Kind, SCALE};
use super::part::{Part, PartWriter};
use super::rows::path;

const PRICES: &str = include_str!("../../queries/export/prices.sql");

/// The columns of a file of prices.
pub(super) fn columns() -> Vec<Column> {
    [
        ("symbol", Kind::Text),
        ("date", Kind::Date),
        ("open", Kind::Decimal(SCALE)),
        ("high", Kind::Decimal(SCALE)),
        ("low", Kind::Decimal(SCALE)),
        ("close", Kind::Decimal(SCALE)),
        ("vwap", Kind::Decimal(SCALE)),
        ("volume", Kind::Long),
        ("trade_count", Kind::Long),
    ]
    .map(|(name, kind)| Column::new(name, kind))
    .into()
}

/// Writes the years of one of so many readers; `wrote` is told of each security's year.
pub(super) async fn write(
    client: &Client,
    (reader, readers): (i32, i32),
    folder: &Path,
    wrote: impl Fn(),
) -> Result<Vec<Part>, ExportError> {
    let parameters: [&(dyn ToSql + Sync); 2] = [&readers, &reader];
    let mut rows = pin!(client.query_raw(PRICES, parameters).await?);
    let (mut files, mut part): (Vec<Part>, Option<(i32, PartWriter)>) = (Vec::new(), None);
    while let Some(row) = rows.try_next().await? {
        let year: i32 = row.try_get("year")?;
        tokio::task::block_in_place(|| {
            if part.as_ref().is_some_and(|(open, _)| *open != year) {
                files.extend(part.take().map(|(_, part)| part.finish()).transpose()?);
            }
            let (_, part) = match &mut part {
                Some(part) => part,
                none => {
                    none.insert((year, PartWriter::create(folder, path("prices", Some(year)), columns())?))
                }
            };
            add(part, &row, year)
        })?;
        wrote();
    }
    let last = part.map(|(_, part)| tokio::task::block_in_place(|| part.finish()));
    files.extend(last.transpose()?);
    Ok(files)
}

/// Adds a security's year.
fn add(part: &mut PartWriter, row: &Row, year: i32) -> Result<(), ExportError> {
    let symbol: &str = row.try_get("symbol")?;
    let packed = Packed {
        days: row.try_get("days")?,
        close: row.try_get("close")?,
        range: row.try_get("range")?,
        volume: row.try_get("volume")?,
        extra: row.try_get("extra")?,
        versions: Vec::new(),
    };
    let bars =
        packed.unpack().map_err(|source| ExportError::Bars { symbol: symbol.to_owned(), year, source })?;
    let power = power(&bars, symbol)?;
    let [symbols, days, open, high, low, close, vwap, volume, trade_count] = part.columns() else {
        return Ok(());
    };
    let text = ByteArray::from(Bytes::copy_from_slice(symbol.as_bytes()));
    for day in &bars.day {
        symbols.push_text(Some(text.clone()));
        days.push_day(Some(*day));
    }
    let rows = bars.len();
    for (column, values) in
        [(open, &bars.open), (high, &bars.high), (low, &bars.low), (close, &bars.close), (vwap, &bars.vwap)]
    {
        present(values, rows)
            .for_each(|price| column.push_units(price.map(|price| i128::from(price) * power)));
    }
    for (column, values) in [(volume, &bars.volume), (trade_count, &bars.trade_count)] {
        present(values, rows).for_each(|count| column.push_wide(count));
    }
    part.gathered()
}

/// What a price is multiplied by to be in units of a decimal's last place.
fn power(bars: &Bars, symbol: &str) -> Result<i128, ExportError> {
    let places = SCALE.checked_sub(bars.scale).ok_or_else(|| ExportError::Decimal {
        column: "close".to_owned(),
        value: format!("a price of {symbol} with {} places", bars.scale),
        scale: SCALE,
    })?;
    Ok(10i128.pow(places))
}

/// The values of so many bars; an empty column has none.
fn present(values: &[i64], rows: usize) -> impl Iterator<Item = Option<i64>> {
    let absent = std::iter::repeat_n(None, rows - values.len().min(rows));
    values.iter().map(|value| (*value != MISSING).then_some(*value)).chain(absent)
}
