//! Price frames into facts: bars merged per symbol, source and year, packed, one row each.

use std::collections::HashMap;

use event_log::frame::{Body, Frame};
use market::bars::{Bars, Packed};
use rayon::prelude::*;
use store::copy::copy_into;
use store::facts::packed;
use store::symbol_facts::{Columns, Years};
use store::years::BarsRow;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::resident::Resident;
use crate::written::{WrittenYear, YearKey};

const EXISTING: &str = include_str!("../queries/bars_existing.sql");
const DELETE: &str = include_str!("../queries/bars_delete.sql");
const MARK_DIRTY: &str = include_str!("../queries/symbols_mark_dirty.sql");

/// Years merged at a time: unpacked and packed once more, they are many times as large.
const TOGETHER: usize = 1_000;

/// Merges the frames' bars into the stored years, marks the symbols of those that are others now dirty, and gives them.
pub async fn apply_prices(
    transaction: &Transaction<'_>,
    fact_set: &str,
    frames: &[&Frame],
    resident: &Resident,
) -> Result<Vec<WrittenYear>, ApplyError> {
    let years = by_year(frames);
    if years.is_empty() {
        return Ok(Vec::new());
    }
    // In the key's order, a symbol's years lie together, where they are read together.
    let mut years: Vec<(YearKey, Vec<Bars>)> = years.into_iter().collect();
    years.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (mut written, mut merged) = (Vec::with_capacity(years.len()), Vec::new());
    let mut years = years.into_iter();
    while years.len() > 0 {
        let work = with_stored(transaction, years.by_ref().take(TOGETHER), resident).await?;
        // Postgres takes what was merged before meanwhile.
        let (next, ()) = futures::try_join!(merge_all(work), write(transaction, &merged))?;
        written.append(&mut merged);
        merged = next;
    }
    write(transaction, &merged).await?;
    written.append(&mut merged);
    let mut symbols: Vec<&str> = written.iter().map(|written| written.key.0.as_str()).collect();
    symbols.dedup();
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols]).await?;
    Ok(written)
}

/// A year, the bars that are said of it, and those that are stored.
type Work = (YearKey, Vec<Bars>, Option<Packed>);

/// Reads what is stored of some years.
async fn with_stored(
    transaction: &Transaction<'_>,
    years: impl Iterator<Item = (YearKey, Vec<Bars>)>,
    resident: &Resident,
) -> Result<Vec<Work>, ApplyError> {
    let years: Vec<(YearKey, Vec<Bars>)> = years.collect();
    let mut existing = existing(transaction, years.iter().map(|(key, _)| key), resident).await?;
    let with_stored = |(key, parts)| {
        let stored = existing.remove(&key);
        (key, parts, stored)
    };
    Ok(years.into_iter().map(with_stored).collect())
}

/// Merges bars into the stored years on all cores, and gives those that are others now.
async fn merge_all(work: Vec<Work>) -> Result<Vec<WrittenYear>, ApplyError> {
    let merge_all = || {
        let merged =
            work.into_par_iter().filter_map(|(key, parts, stored)| merge(key, parts, stored).transpose());
        merged.collect()
    };
    tokio::task::spawn_blocking(merge_all).await.map_err(|error| ApplyError::Ended(error.to_string()))?
}

/// Copies the years in, in place of those that were there. The fact set's lock keeps every other writer away.
async fn write(transaction: &Transaction<'_>, merged: &[WrittenYear]) -> Result<(), ApplyError> {
    let replaced: Vec<&YearKey> = merged.iter().filter(|m| m.replaces).map(|m| &m.key).collect();
    if !replaced.is_empty() {
        let symbols: Vec<&str> = replaced.iter().map(|key| key.0.as_str()).collect();
        let sources: Vec<&str> = replaced.iter().map(|key| key.1.as_str()).collect();
        let years: Vec<i32> = replaced.iter().map(|key| key.2).collect();
        transaction.execute(DELETE, &[&symbols, &sources, &years]).await?;
    }
    copy_into(transaction, &merged.iter().map(row).collect::<Vec<_>>()).await?;
    Ok(())
}

fn row(written: &WrittenYear) -> BarsRow<'_> {
    let (symbol, source, year) = &written.key;
    BarsRow::of(symbol, source, *year, written.last_day, written.digest, &written.packed)
}

fn by_year(frames: &[&Frame]) -> HashMap<YearKey, Vec<Bars>> {
    let pieces: Vec<(YearKey, Bars)> = tokio::task::block_in_place(|| {
        frames
            .par_iter()
            .flat_map_iter(|frame| match &frame.body {
                Body::Prices(series) => series.iter().map(|s| (frame.source.clone(), s)).collect(),
                _ => Vec::new(),
            })
            .flat_map_iter(|(source, series)| {
                let symbol = series.symbol.to_string();
                series
                    .bars
                    .by_year()
                    .into_iter()
                    .map(move |(year, bars)| ((symbol.clone(), source.clone(), year), bars))
            })
            .collect()
    });
    let mut years: HashMap<YearKey, Vec<Bars>> = HashMap::new();
    for (key, bars) in pieces {
        years.entry(key).or_default().push(bars);
    }
    years
}

/// The stored years, from memory where they are held.
async fn existing<'a>(
    transaction: &Transaction<'_>,
    keys: impl Iterator<Item = &'a YearKey>,
    resident: &Resident,
) -> Result<HashMap<YearKey, Packed>, ApplyError> {
    let (mut existing, mut missing): (HashMap<YearKey, Packed>, Vec<&YearKey>) = Default::default();
    for key in keys {
        let held = resident.get(&key.0).map(|facts| facts.year(&key.1, key.2).map(Years::columns));
        match held {
            Some(Some(Columns::All(packed))) => drop(existing.insert(key.clone(), packed.as_ref().clone())),
            // What is held of a symbol is everything that it has.
            Some(None) => {}
            Some(Some(Columns::Closes { .. })) | None => missing.push(key),
        }
    }
    if missing.is_empty() {
        return Ok(existing);
    }
    let symbols: Vec<&str> = missing.iter().map(|key| key.0.as_str()).collect();
    let sources: Vec<&str> = missing.iter().map(|key| key.1.as_str()).collect();
    let numbers: Vec<i32> = missing.iter().map(|key| key.2).collect();
    for row in transaction.query(EXISTING, &[&symbols, &sources, &numbers]).await? {
        let key = (row.try_get("symbol")?, row.try_get("source")?, row.try_get("year")?);
        existing.insert(key, packed(&row)?);
    }
    Ok(existing)
}

/// The merged year, or `None` when it is what was stored.
fn merge(
    key: YearKey,
    mut parts: Vec<Bars>,
    stored: Option<Packed>,
) -> Result<Option<WrittenYear>, ApplyError> {
    let failed = |symbol: &str| {
        let symbol = symbol.to_owned();
        move |source| ApplyError::Bars { symbol, source }
    };
    if let Some(stored) = &stored {
        parts.push(stored.unpack().map_err(failed(&key.0))?);
    }
    let bars = Bars::merge_all(parts).map_err(failed(&key.0))?;
    let packed = bars.pack().map_err(failed(&key.0))?;
    if stored.as_ref() == Some(&packed) {
        return Ok(None);
    }
    let (last_day, digest) = (bars.last_live_day(), packed.digest());
    Ok(Some(WrittenYear { key, replaces: stored.is_some(), last_day, digest, packed }))
}
