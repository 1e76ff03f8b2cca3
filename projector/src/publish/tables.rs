//! Files of the tables. A file has the rows of one shard of securities in one table; for prices, in one calendar year.
//!
//! A security belongs to a shard by a hash of its symbol, so that a new security changes one shard. A file whose digest
//! is in the newest published version is not read again.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::TryStreamExt;
use market::bars::{Bars, MISSING};
use parquet::data_type::ByteArray;
use store::facts::read_packed_bars;
use store::published_files::{PublishedColumn, PublishedFile, PublishedTable};
use tokio::task::block_in_place;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::column::{ColumnType, ParquetColumn, unscalable};
use super::uploads::{FORMAT, ParquetFile, Uploads};
use crate::write::digest_index;

/// Decimal places of published prices. A price has at most ten.
const PRICE_SCALE: u32 = 12;
/// Maximum number of securities in a shard, on average.
const SHARD_SECURITIES: usize = 4096;

const SECURITIES: &str = include_str!("../../queries/publish/securities.sql");
const YEARS: &str = include_str!("../../queries/publish/years.sql");
const PRICES: &str = include_str!("../../queries/publish/prices.sql");

macro_rules! tables {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../queries/publish/", $name, ".sql")))),*]
    };
}

/// Name and query of every published table except prices. A table without digests is one file; its query has no
/// parameters.
pub(super) const TABLES: [(&str, &str); 12] = tables![
    "symbols",
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

/// Securities of one shard, in the order of their symbols.
pub(super) struct SecurityShard {
    symbols: Vec<String>,
    /// Digests of the tables of each security; `None` if a security has none.
    digests: Option<Vec<Vec<i64>>>,
}

/// Rows of one file of prices: the symbols and digests of one year and shard.
pub(super) type PriceShards = BTreeMap<(i32, usize), Vec<(String, i64)>>;

fn shard_of(symbol: &str, shards: usize) -> usize {
    let hash = blake3::hash(symbol.as_bytes());
    usize::from(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]])) % shards
}

/// Divides the securities of the generation that is first in the client's search path.
pub(super) async fn load_shards(
    client: &Client,
    left_out: &HashSet<String>,
) -> anyhow::Result<Vec<SecurityShard>> {
    let rows = client.query(SECURITIES, &[]).await?;
    // A power of two: while the market grows, most shards stay as they are.
    let count = rows.len().div_ceil(SHARD_SECURITIES).next_power_of_two();
    let mut shards: Vec<SecurityShard> = Vec::new();
    shards.resize_with(count, || SecurityShard { symbols: Vec::new(), digests: Some(Vec::new()) });
    for row in &rows {
        let symbol: String = row.try_get("symbol")?;
        if left_out.contains(&symbol) {
            continue;
        }
        let shard = &mut shards[shard_of(&symbol, count)];
        shard.symbols.push(symbol);
        match (row.try_get::<_, Option<Vec<i64>>>("tables")?, &mut shard.digests) {
            (Some(digests), Some(all)) => all.push(digests),
            _ => shard.digests = None,
        }
    }
    Ok(shards)
}

impl SecurityShard {
    /// Digest of the rows in a table; `None` if a security has no digests.
    fn digest(&self, table: &str, index: usize) -> Option<String> {
        let digests = self.digests.as_ref()?.iter().map(|tables| tables.get(index).copied());
        let digests: Option<Vec<i64>> = digests.collect();
        Some(digest_rows(table, self.symbols.iter().map(String::as_str).zip(digests?)))
    }
}

fn digest_rows<'a>(file: &str, rows: impl IntoIterator<Item = (&'a str, i64)>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&FORMAT.to_le_bytes()).update(file.as_bytes()).update(b"\n");
    for (symbol, digest) in rows {
        hasher.update(symbol.as_bytes()).update(b"\n").update(&digest.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Publishes the files of one table. The client's search path begins with the analysts' views of the generation.
pub(super) async fn publish_table(
    client: &Client,
    (name, query): (&'static str, &str),
    shards: &[SecurityShard],
    uploads: &mut Uploads,
) -> anyhow::Result<PublishedTable> {
    let statement = client.prepare(query).await?;
    let columns = || parquet_columns(name, &statement);
    let mut files = Vec::new();
    let Some(index) = digest_index(name) else {
        let file = read_rows(client, &statement, &[], columns()?).await?;
        files.push(uploads.add(name, None, file).await?);
        return Ok(describe(name, &columns()?, files));
    };
    for shard in shards {
        let digest = shard.digest(name, index);
        let file = match uploads.find_unchanged(digest.as_deref()) {
            Some(file) => file,
            None => {
                let file = read_rows(client, &statement, &[&shard.symbols], columns()?).await?;
                uploads.add(name, digest, file).await?
            }
        };
        files.push(file);
    }
    Ok(describe(name, &columns()?, files))
}

async fn read_rows(
    client: &Client,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
    columns: Vec<ParquetColumn>,
) -> anyhow::Result<ParquetFile> {
    let mut rows = pin!(client.query_raw(statement, parameters.iter().copied()).await?);
    let mut file = ParquetFile::new(Vec::new(), columns)?;
    while let Some(row) = rows.try_next().await? {
        for (index, column) in file.columns().iter_mut().enumerate() {
            column.push(&row, index)?;
        }
        block_in_place(|| file.flush_full_group())?;
    }
    Ok(file)
}

fn parquet_columns(table: &str, statement: &Statement) -> anyhow::Result<Vec<ParquetColumn>> {
    let column = |column: &tokio_postgres::Column| match ColumnType::from_postgres(column) {
        Some(kind) => Ok(ParquetColumn::new(column.name(), kind)),
        None => bail!(
            "cannot publish column {} of {table}: type {} is not supported",
            column.name(),
            column.type_()
        ),
    };
    statement.columns().iter().map(column).collect()
}

fn describe(name: &str, columns: &[ParquetColumn], files: Vec<PublishedFile>) -> PublishedTable {
    let describe = |column: &ParquetColumn| PublishedColumn {
        name: column.name.clone(),
        r#type: column.kind.sql_name(),
    };
    let rows = files.iter().map(|file| file.rows).sum();
    PublishedTable { name: name.to_owned(), columns: columns.iter().map(describe).collect(), rows, files }
}

/// Divides the prices of the generation that is first in the client's search path into files.
pub(super) async fn load_price_shards(
    client: &Client,
    shards: usize,
    left_out: &HashSet<String>,
) -> anyhow::Result<PriceShards> {
    let mut rows = pin!(client.query_raw(YEARS, std::iter::empty::<&(dyn ToSql + Sync)>()).await?);
    let mut files = PriceShards::new();
    while let Some(row) = rows.try_next().await? {
        let symbol: String = row.try_get("symbol")?;
        if left_out.contains(&symbol) {
            continue;
        }
        let file = files.entry((row.try_get("year")?, shard_of(&symbol, shards))).or_default();
        file.push((symbol, row.try_get("digest")?));
    }
    Ok(files)
}

/// Publishes the files of the prices. The client's search path begins with the generation.
pub(super) async fn publish_prices(
    client: &Client,
    shards: &PriceShards,
    uploads: &mut Uploads,
) -> anyhow::Result<PublishedTable> {
    let statement = client.prepare(PRICES).await?;
    let mut files = Vec::new();
    for ((year, _), rows) in shards {
        let rows_of_file = rows.iter().map(|(symbol, digest)| (symbol.as_str(), *digest));
        let digest = digest_rows(&format!("prices/{year}"), rows_of_file);
        if let Some(file) = uploads.find_unchanged(Some(&digest)) {
            files.push(file);
            continue;
        }
        let symbols: Vec<&str> = rows.iter().map(|(symbol, _)| symbol.as_str()).collect();
        let parameters: [&(dyn ToSql + Sync); 2] = [year, &symbols];
        let mut rows = pin!(client.query_raw(&statement, parameters).await?);
        let mut file = ParquetFile::new(Vec::new(), price_columns())?;
        while let Some(row) = rows.try_next().await? {
            block_in_place(|| add_bars(&mut file, &row, *year))?;
        }
        files.push(uploads.add("prices", Some(digest), file).await?);
    }
    if files.is_empty() {
        files.push(uploads.add("prices", None, ParquetFile::new(Vec::new(), price_columns())?).await?);
    }
    Ok(describe("prices", &price_columns(), files))
}

fn price_columns() -> Vec<ParquetColumn> {
    [
        ("symbol", ColumnType::Text),
        ("date", ColumnType::Date),
        ("open", ColumnType::Decimal(PRICE_SCALE)),
        ("high", ColumnType::Decimal(PRICE_SCALE)),
        ("low", ColumnType::Decimal(PRICE_SCALE)),
        ("close", ColumnType::Decimal(PRICE_SCALE)),
        ("vwap", ColumnType::Decimal(PRICE_SCALE)),
        ("volume", ColumnType::Long),
        ("trade_count", ColumnType::Long),
    ]
    .map(|(name, kind)| ParquetColumn::new(name, kind))
    .into()
}

/// Appends the bars of one security in one year.
fn add_bars(file: &mut ParquetFile, row: &Row, year: i32) -> anyhow::Result<()> {
    let symbol: &str = row.try_get("symbol")?;
    let packed = read_packed_bars(row)?;
    let bars = packed.unpack().with_context(|| format!("cannot unpack the prices of {symbol} in {year}"))?;
    let factor = decimal_factor(&bars, symbol)?;
    let [symbols, days, open, high, low, close, vwap, volume, trade_count] = file.columns() else {
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
    Ok(file.flush_full_group()?)
}

/// Factor that scales the integer prices of `bars` to [`PRICE_SCALE`] decimal places.
fn decimal_factor(bars: &Bars, symbol: &str) -> anyhow::Result<i128> {
    let places = PRICE_SCALE.checked_sub(bars.scale).ok_or_else(|| {
        unscalable("close", &format!("a price of {symbol} with {} places", bars.scale), PRICE_SCALE)
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
