//! Reads and writes of rows of table `bars`.
//!
//! Reads and writes of rows of table `superseded_bars`.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use codec::bars::{PackedBars, pack_superseded, unpack_superseded};
use market::bars::SupersededBars;
use market::symbol::Symbol;
use store::copy::{CopyRow, copy_encoded, copy_into, encode_values};
use store::db::DbError;
use store::facts::read_packed_bars;
use store::past_facts::{BarsKey, bar_columns};
use store::rows::{BarsRow, SupersededBarsRow};
use store::symbol_facts::SymbolLinks;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::AppliedBars;

const EXISTING: &str = include_str!("../../queries/bars_existing.sql");
const DELETE: &str = include_str!("../../queries/bars_delete.sql");

/// Maximum number of rows that are merged at the same time. A row is one year of one symbol and source. The limit
/// bounds the memory, because unpacked bars need many times the memory of packed bars.
pub(super) const YEARS_PER_BATCH: usize = 1_000;

/// Merged years that differ from the stored years, and their rows encoded for COPY.
#[derive(Default)]
pub(super) struct MergedYears {
    pub(super) years: Vec<AppliedBars>,
    /// Encoded rows of the years that change.
    pub(super) rows: Vec<Bytes>,
}

impl FromIterator<(AppliedBars, Option<Bytes>)> for MergedYears {
    fn from_iter<T: IntoIterator<Item = (AppliedBars, Option<Bytes>)>>(encoded: T) -> Self {
        let mut merged = Self::default();
        for (year, row) in encoded {
            merged.years.push(year);
            merged.rows.extend(row);
        }
        merged
    }
}

pub(super) async fn load_existing(
    transaction: &Transaction<'_>,
    keys: &[BarsKey],
) -> Result<HashMap<BarsKey, PackedBars>, ApplyError> {
    let mut existing = HashMap::new();
    let (symbols, sources, years) = bar_columns(keys);
    for row in transaction.query(EXISTING, &[&symbols, &sources, &years]).await? {
        let key = (row.try_get("symbol")?, row.try_get("source")?, row.try_get("year")?);
        existing.insert(key, read_packed_bars(&row)?);
    }
    Ok(existing)
}

/// Replaces the rows of the merged years. The lock on the fact set's row excludes other writers.
pub(super) async fn write_years(
    transaction: &Transaction<'_>,
    merged: &MergedYears,
) -> Result<(), ApplyError> {
    let (symbols, sources, years) = bar_columns(
        merged.years.iter().filter(|merged| merged.changes && merged.replaces).map(|merged| &merged.key),
    );
    if !symbols.is_empty() {
        transaction.execute(DELETE, &[&symbols, &sources, &years]).await?;
    }
    if !merged.rows.is_empty() {
        copy_encoded(transaction, BarsRow::STATEMENT, merged.rows.iter().cloned().map(Ok)).await?;
    }
    add_superseded(transaction, &merged.years).await
}

/// Stores links between the spellings of a symbol, for example `BAC.A` and `BAC.PRA`. Only the symbols of new rows of
/// table `bars` are linked.
pub(super) async fn store_spellings(
    transaction: &Transaction<'_>,
    written: &[AppliedBars],
) -> Result<(), ApplyError> {
    let mut links = SymbolLinks::default();
    for new in written.iter().filter(|written| !written.replaces) {
        links.add_spellings(&Symbol::from_stored(&new.key.0));
    }
    links.store(transaction).await?;
    Ok(())
}

/// Encodes the row of a year; `None` if the row does not change, or if no bar counts.
pub(super) fn encode_year(written: AppliedBars) -> Result<(AppliedBars, Option<Bytes>), ApplyError> {
    let AppliedBars { key: (symbol, source, year), changes, digest, packed, last_day, .. } = &written;
    if !changes || packed.days.is_empty() {
        return Ok((written, None));
    }
    let row = BarsRow::new(symbol, source, *year, *last_day, *digest, packed);
    let mut out = BytesMut::new();
    encode_values(BarsRow::TYPES, &row.values(), &mut out).map_err(DbError::from)?;
    Ok((written, Some(out.freeze())))
}

const LAST_SUPERSEDED: &str = include_str!("../../queries/superseded_bars_last.sql");
const DELETE_SUPERSEDED: &str = include_str!("../../queries/superseded_bars_delete.sql");
const TAKE_SUPERSEDED: &str = include_str!("../../queries/superseded_bars_take.sql");

/// Maximum number of bytes of a row that gets more bars. The limit bounds what is written again for each new bar.
const ROW_BYTES: usize = 4_000;

/// Deletes the rows of some years, and returns their bars.
pub(super) async fn take_superseded(
    transaction: &Transaction<'_>,
    keys: &[BarsKey],
) -> Result<HashMap<BarsKey, Vec<SupersededBars>>, ApplyError> {
    let (symbols, sources, years) = bar_columns(keys);
    let mut taken: HashMap<BarsKey, Vec<SupersededBars>> = HashMap::new();
    for row in transaction.query(TAKE_SUPERSEDED, &[&symbols, &sources, &years]).await? {
        let key: BarsKey = (row.try_get("symbol")?, row.try_get("source")?, row.try_get("year")?);
        let bars = unpack(&key, row.try_get("packed")?)?;
        taken.entry(key).or_default().push(bars);
    }
    Ok(taken)
}

/// Adds the superseded bars of some years. If the last row of a year is short, it is replaced by a row that has the new
/// bars too.
pub(super) async fn add_superseded(
    transaction: &Transaction<'_>,
    years: &[AppliedBars],
) -> Result<(), ApplyError> {
    let years: Vec<&AppliedBars> = years.iter().filter(|year| !year.superseded.is_empty()).collect();
    if years.is_empty() {
        return Ok(());
    }
    let (symbols, sources, numbers) = bar_columns(years.iter().map(|year| &year.key));
    let mut last: HashMap<BarsKey, (i32, Vec<u8>)> = HashMap::new();
    for row in transaction.query(LAST_SUPERSEDED, &[&symbols, &sources, &numbers]).await? {
        let key = (row.try_get("symbol")?, row.try_get("source")?, row.try_get("year")?);
        last.insert(key, (row.try_get("part")?, row.try_get("packed")?));
    }
    let (mut replaced, mut rows) = (Vec::new(), Vec::with_capacity(years.len()));
    for year in years {
        let AppliedBars { key, superseded, .. } = year;
        let last = last.remove(key);
        let joined = match &last {
            Some((part, packed)) if packed.len() < ROW_BYTES => {
                // Bars that do not fit the scale or the versions of the row begin a new row.
                unpack(key, packed)?.append(superseded.clone()).ok().map(|joined| (*part, joined))
            }
            _ => None,
        };
        let failed = |source| ApplyError::Bars { symbol: key.0.clone(), source };
        rows.push(match joined {
            Some((part, joined)) => {
                replaced.push((key, part));
                (key, part, pack_superseded(&joined).map_err(failed)?)
            }
            None => {
                let part = last.map_or(1, |(part, _)| part + 1);
                (key, part, pack_superseded(superseded).map_err(failed)?)
            }
        });
    }
    if !replaced.is_empty() {
        let (symbols, sources, numbers) = bar_columns(replaced.iter().map(|(key, _)| *key));
        let parts: Vec<i32> = replaced.iter().map(|(_, part)| *part).collect();
        transaction.execute(DELETE_SUPERSEDED, &[&symbols, &sources, &numbers, &parts]).await?;
    }
    let rows = rows.iter().map(|((symbol, source, year), part, packed)| SupersededBarsRow {
        symbol,
        source,
        year: *year,
        part: *part,
        packed,
    });
    copy_into(transaction, &rows.collect::<Vec<_>>()).await?;
    Ok(())
}

fn unpack(key: &BarsKey, packed: &[u8]) -> Result<SupersededBars, ApplyError> {
    unpack_superseded(packed).map_err(|source| ApplyError::Bars { symbol: key.0.clone(), source })
}
