//! Reads and writes of rows of table `bars`.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use codec::bars::PackedBars;
use market::symbol::Symbol;
use store::copy::{CopyRow, copy_encoded, encode_values};
use store::db::DbError;
use store::facts::read_packed_bars;
use store::symbol_facts::SymbolLinks;
use store::years::BarsRow;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::applied_facts::{AppliedBars, BarsKey, key_columns};
use crate::facts::superseded_years::add_superseded;

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
    let (symbols, sources, years) = key_columns(keys);
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
    let (symbols, sources, years) = key_columns(
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
