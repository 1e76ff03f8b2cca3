//! Reads and writes of rows of table `superseded_bars`.

use std::collections::HashMap;

use codec::bars::{pack_superseded, unpack_superseded};
use market::bars::SupersededBars;
use store::copy::copy_into;
use store::years::SupersededBarsRow;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::applied_facts::{AppliedBars, BarsKey, key_columns};

const LAST: &str = include_str!("../../queries/superseded_bars_last.sql");
const DELETE: &str = include_str!("../../queries/superseded_bars_delete.sql");
const TAKE: &str = include_str!("../../queries/superseded_bars_take.sql");

/// Maximum number of bytes of a row that gets more bars. The limit bounds what is written again for each new bar.
const ROW_BYTES: usize = 4_000;

/// Deletes the rows of some years, and returns their bars.
pub(super) async fn take_superseded(
    transaction: &Transaction<'_>,
    keys: &[BarsKey],
) -> Result<HashMap<BarsKey, Vec<SupersededBars>>, ApplyError> {
    let (symbols, sources, years) = key_columns(keys);
    let mut taken: HashMap<BarsKey, Vec<SupersededBars>> = HashMap::new();
    for row in transaction.query(TAKE, &[&symbols, &sources, &years]).await? {
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
    let (symbols, sources, numbers) = key_columns(years.iter().map(|year| &year.key));
    let mut last: HashMap<BarsKey, (i32, Vec<u8>)> = HashMap::new();
    for row in transaction.query(LAST, &[&symbols, &sources, &numbers]).await? {
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
        let (symbols, sources, numbers) = key_columns(replaced.iter().map(|(key, _)| *key));
        let parts: Vec<i32> = replaced.iter().map(|(_, part)| *part).collect();
        transaction.execute(DELETE, &[&symbols, &sources, &numbers, &parts]).await?;
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
