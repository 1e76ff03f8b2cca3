//! Export of the tables. All tables except prices are streamed from Postgres.
//!
//! Prices are unpacked, and written to one file per calendar year. Parallel readers divide the years among themselves.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;

use anyhow::{Context, bail};
use bytes::Bytes;
use codec::bars::PackedBars;
use futures::TryStreamExt;
use market::bars::{Bars, MISSING};
use parquet::data_type::ByteArray;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::column::{ColumnType, ParquetColumn, SCALE, unscalable};
use super::file_writer::{ExportedFile, ParquetFileWriter, TableFiles};
use super::manifest::TableManifest;

/// Query of an exported table. With a first column [`PARTITION`], each year is written to its own folder.
pub(super) struct TableQuery {
    name: &'static str,
    statement: &'static str,
}

macro_rules! tables {
    ($($name:literal),* $(,)?) => {
        &[$(TableQuery { name: $name, statement: include_str!(concat!("../../queries/export/", $name, ".sql")) }),*]
    };
}

/// Every exported table except prices.
pub(super) const TABLES: &[TableQuery] = tables![
    "stocks",
    "quotes",
    "fundamentals",
    "metrics",
    "dividends",
    "splits",
    "factors",
    "quarantine",
    "etfs",
    "holdings",
    "sectors",
];

/// Columns with the security of a row. Of holdings, the first one is the fund.
const OWNERS: [&str; 2] = ["etf_symbol", "symbol"];

/// Name of the query column with the year, if the rows are written to one folder per year. It is the first column.
const PARTITION: &str = "partition";

/// Exports a table of the generation that is first in the client's search path, without the rows of securities in
/// `left_out`.
pub(super) async fn write_table(
    client: &Client,
    table: &TableQuery,
    folder: &Path,
    left_out: &HashSet<String>,
) -> anyhow::Result<TableManifest> {
    let statement = client.prepare(table.statement).await?;
    let partitioned = statement.columns().first().is_some_and(|column| column.name() == PARTITION);
    let mut rows = pin!(client.query_raw(&statement, std::iter::empty::<&(dyn ToSql + Sync)>()).await?);
    let columns = || parquet_columns(table, &statement, partitioned);
    let mut files = TableFiles::new(table.name, folder);
    let owner = statement.columns().iter().position(|column| OWNERS.contains(&column.name()));
    while let Some(row) = rows.try_next().await? {
        if let Some(owner) = owner.filter(|_| !left_out.is_empty())
            && left_out.contains(row.try_get::<_, &str>(owner)?)
        {
            continue;
        }
        let year: Option<i32> = if partitioned { Some(row.try_get(0)?) } else { None };
        add_row(files.writer(year, columns)?, &row, usize::from(partitioned))?;
    }
    if files.is_empty() {
        // A table without rows still has a file with its columns.
        files.writer(None, columns)?;
    }
    let partition = partitioned.then_some("year of ex_date");
    Ok(TableManifest::new(table.name, partition, &columns()?, files.finish()?))
}

fn add_row(part: &mut ParquetFileWriter, row: &Row, first: usize) -> anyhow::Result<()> {
    for (place, column) in part.columns().iter_mut().enumerate() {
        column.push(row, first + place)?;
    }
    part.flush_full_group()
}

fn parquet_columns(
    table: &TableQuery,
    statement: &Statement,
    partitioned: bool,
) -> anyhow::Result<Vec<ParquetColumn>> {
    let columns = statement.columns().iter().skip(usize::from(partitioned));
    let column = |column: &tokio_postgres::Column| match ColumnType::from_postgres(column) {
        Some(kind) => Ok(ParquetColumn::new(column.name(), kind)),
        None => bail!(
            "cannot export column {} of {}: type {} is not supported",
            column.name(),
            table.name,
            column.type_()
        ),
    };
    columns.map(column).collect()
}

const PRICES: &str = include_str!("../../queries/export/prices.sql");

pub(super) fn price_columns() -> Vec<ParquetColumn> {
    [
        ("symbol", ColumnType::Text),
        ("date", ColumnType::Date),
        ("open", ColumnType::Decimal(SCALE)),
        ("high", ColumnType::Decimal(SCALE)),
        ("low", ColumnType::Decimal(SCALE)),
        ("close", ColumnType::Decimal(SCALE)),
        ("vwap", ColumnType::Decimal(SCALE)),
        ("volume", ColumnType::Long),
        ("trade_count", ColumnType::Long),
    ]
    .map(|(name, kind)| ParquetColumn::new(name, kind))
    .into()
}

/// Exports prices as reader number `reader` (from 0) of `readers` parallel readers. Calls `wrote` after each written
/// year of a security. Leaves out the securities in `left_out`.
pub(super) async fn write_prices(
    client: &Client,
    (reader, readers): (i32, i32),
    folder: &Path,
    left_out: &HashSet<String>,
    wrote: impl Fn(),
) -> anyhow::Result<Vec<ExportedFile>> {
    let parameters: [&(dyn ToSql + Sync); 2] = [&readers, &reader];
    let mut rows = pin!(client.query_raw(PRICES, parameters).await?);
    let mut files = TableFiles::new("prices", folder);
    while let Some(row) = rows.try_next().await? {
        if left_out.contains(row.try_get::<_, &str>("symbol")?) {
            wrote();
            continue;
        }
        let year: i32 = row.try_get("year")?;
        tokio::task::block_in_place(|| {
            add_year(files.writer(Some(year), || Ok(price_columns()))?, &row, year)
        })?;
        wrote();
    }
    tokio::task::block_in_place(|| files.finish())
}

/// Appends the bars of one security in one year.
fn add_year(part: &mut ParquetFileWriter, row: &Row, year: i32) -> anyhow::Result<()> {
    let symbol: &str = row.try_get("symbol")?;
    let packed = PackedBars {
        days: row.try_get("days")?,
        close: row.try_get("close")?,
        range: row.try_get("range")?,
        volume: row.try_get("volume")?,
        extra: row.try_get("extra")?,
        versions: Vec::new(),
    };
    let bars = packed.unpack().with_context(|| format!("cannot unpack the prices of {symbol} in {year}"))?;
    let factor = decimal_factor(&bars, symbol)?;
    let [symbols, days, open, high, low, close, vwap, volume, trade_count] = part.columns() else {
        return Ok(());
    };
    let text = ByteArray::from(Bytes::copy_from_slice(symbol.as_bytes()));
    for day in &bars.day {
        symbols.push_text(Some(text.clone()));
        days.push_day(Some(*day));
    }
    let rows = bars.len();
    let scaled = |price: Option<i64>| price.map(|price| i128::from(price) * factor);
    present_values(bars.open.iter(), rows).for_each(|price| open.push_units(scaled(price)));
    present_values(bars.high.iter(), rows).for_each(|price| high.push_units(scaled(price)));
    present_values(bars.low.iter(), rows).for_each(|price| low.push_units(scaled(price)));
    present_values(bars.close.iter(), rows).for_each(|price| close.push_units(scaled(price)));
    present_values(bars.vwap.iter(), rows).for_each(|price| vwap.push_units(scaled(price)));
    present_values(bars.volume.iter(), rows).for_each(|count| volume.push_wide(count));
    present_values(bars.trade_count.iter(), rows).for_each(|count| trade_count.push_wide(count));
    part.flush_full_group()
}

/// Factor that scales the integer prices of `bars` to [`SCALE`] decimal places.
fn decimal_factor(bars: &Bars, symbol: &str) -> anyhow::Result<i128> {
    let places = SCALE.checked_sub(bars.scale).ok_or_else(|| {
        unscalable("close", &format!("a price of {symbol} with {} places", bars.scale), SCALE)
    })?;
    Ok(10i128.pow(places))
}

/// Values of one column of bars, with `None` for a missing value. `rows` is the number of bars. An empty column has no
/// value for any bar, so the result is then `None` for each bar.
fn present_values<'a>(
    values: impl Iterator<Item = &'a i64>,
    rows: usize,
) -> impl Iterator<Item = Option<i64>> {
    let present = values.map(|value| (*value != MISSING).then_some(*value));
    present.chain(std::iter::repeat(None)).take(rows)
}
