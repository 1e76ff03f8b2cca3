//! Stored prices: the bars of record batches are merged into one packed row per symbol, source and year.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use codec::bars::{PackedBars, PackedBarsError};
use event_log::record_batch::{BatchId, Body, RecordBatch};
use market::bars::{Bars, BarsError, SupersededBars};
use rayon::prelude::*;
use store::symbol_facts::{PackedColumns, PackedYears, SymbolFacts};
use store::view::RunStates;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::divided_years::divide_years;
use crate::facts::fact_cache::FactCache;
use crate::facts::fact_cache::{AppliedBars, BarsKey};
use crate::facts::stored_years::{
    MergedYears, YEARS_PER_BATCH, encode_year, load_existing, store_spellings, write_years,
};

const MARK_DIRTY: &str = include_str!("../../queries/symbols_mark_dirty.sql");

/// Merges the bars of record batches into the rows of table `bars`, and marks changed symbols dirty. The bars of batches
/// in `hidden` do not count. Returns the merged rows, and the symbols of all other changed rows.
pub async fn apply_prices(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[&RecordBatch],
    hidden: &HashSet<BatchId>,
    states: &RunStates,
    cache: &FactCache,
) -> Result<(Vec<AppliedBars>, Vec<String>), ApplyError> {
    let mut years = bars_by_year(batches);
    if years.is_empty() {
        return Ok(Default::default());
    }
    let is_hidden =
        |bars: &Bars| bars.versions.iter().any(|version| hidden.contains(&BatchId(version.frame)));
    let divided = years.extract_if(|_, parts| parts.iter().any(is_hidden)).collect();
    let divided = divide_years(transaction, divided, states).await?;
    // Sort by key, so that the years of a symbol are adjacent, as in the table.
    let mut years: Vec<(BarsKey, Vec<Bars>)> = years.into_iter().collect();
    years.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (mut written, mut merged) = (Vec::with_capacity(years.len()), MergedYears::default());
    let mut years = years.into_iter();
    while years.len() > 0 {
        let work = load_stored_years(transaction, years.by_ref().take(YEARS_PER_BATCH), cache).await?;
        // Postgres writes the years of the previous chunk while the current chunk is merged.
        let (next, ()) = futures::try_join!(merge_years(work), write_years(transaction, &merged))?;
        written.append(&mut merged.years);
        merged = next;
    }
    write_years(transaction, &merged).await?;
    written.append(&mut merged.years);
    store_spellings(transaction, &written).await?;
    written.retain(|year| year.changes);
    let mut symbols: Vec<&str> = written.iter().map(|written| written.key.0.as_str()).collect();
    symbols.extend(divided.iter().map(String::as_str));
    symbols.dedup();
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols]).await?;
    Ok((written, divided))
}

/// Year to merge: its key, its new bars and its stored bars.
type YearMerge = (BarsKey, Vec<Bars>, StoredYear);

enum StoredYear {
    Nothing,
    Read(PackedBars),
    /// The facts of the symbol are cached, and contain the bars of this year.
    Cached(Arc<SymbolFacts>),
}

/// Loads the stored bars of some years from the cache or from Postgres.
async fn load_stored_years(
    transaction: &Transaction<'_>,
    years: impl Iterator<Item = (BarsKey, Vec<Bars>)>,
    cache: &FactCache,
) -> Result<Vec<YearMerge>, ApplyError> {
    let (mut work, mut missing): (Vec<YearMerge>, Vec<BarsKey>) = Default::default();
    for (key, parts) in years {
        let facts = cache.get(&key.0);
        let held = facts.map(|facts| facts.year(&key.1, key.2).map(PackedYears::columns));
        let stored = match (held, facts) {
            (Some(Some(PackedColumns::All(_))), Some(facts)) => StoredYear::Cached(Arc::clone(facts)),
            (Some(Some(PackedColumns::Closes { .. })) | None, _) => {
                missing.push(key.clone());
                StoredYear::Nothing
            }
            // The cache has all stored years of a cached symbol. This year is not among them, so it is not stored.
            (Some(_), _) => StoredYear::Nothing,
        };
        work.push((key, parts, stored));
    }
    if missing.is_empty() {
        return Ok(work);
    }
    let mut read = load_existing(transaction, &missing).await?;
    for (key, _, stored) in &mut work {
        if let Some(packed) = read.remove(key) {
            *stored = StoredYear::Read(packed);
        }
    }
    Ok(work)
}

/// Merges new bars into the stored years in parallel. Returns the years that changed.
async fn merge_years(work: Vec<YearMerge>) -> Result<MergedYears, ApplyError> {
    let merge_all = || {
        let merged = work.into_par_iter().filter_map(|(key, parts, stored)| {
            let merged =
                merge_year(key, parts, &stored).and_then(|merged| merged.map(encode_year).transpose());
            merged.transpose()
        });
        Ok(merged.collect::<Result<Vec<_>, ApplyError>>()?.into_iter().collect())
    };
    tokio::task::spawn_blocking(merge_all).await.map_err(ApplyError::Ended)?
}

fn bars_by_year(batches: &[&RecordBatch]) -> HashMap<BarsKey, Vec<Bars>> {
    let pieces: Vec<(BarsKey, Bars)> = tokio::task::block_in_place(|| {
        batches
            .par_iter()
            .flat_map_iter(|batch| match &batch.body {
                Body::Prices(series) => series.iter().map(|s| (batch.source.clone(), s)).collect(),
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
    let mut years: HashMap<BarsKey, Vec<Bars>> = HashMap::new();
    for (key, bars) in pieces {
        years.entry(key).or_default().push(bars);
    }
    years
}

/// Merges the new bars of one year into its stored bars; `None` if nothing changes.
fn merge_year(
    key: BarsKey,
    mut parts: Vec<Bars>,
    stored: &StoredYear,
) -> Result<Option<AppliedBars>, ApplyError> {
    let stored = match stored {
        StoredYear::Nothing => None,
        StoredYear::Read(packed) => Some(packed),
        StoredYear::Cached(facts) => facts.year(&key.1, key.2).and_then(|years| match years.columns() {
            PackedColumns::All(packed) => Some(packed.as_ref()),
            PackedColumns::Closes { .. } => None,
        }),
    };
    let failed = |source: PackedBarsError| ApplyError::Bars { symbol: key.0.clone(), source };
    if let Some(stored) = stored {
        // Put the stored bars first. Most new bars have later days, and parts in the order of days are merged faster.
        parts.insert(0, stored.unpack().map_err(failed)?);
    }
    let cannot = |error: BarsError| failed(error.into());
    let (bars, replaced) = Bars::merge_keeping_superseded(parts).map_err(cannot)?;
    let superseded = SupersededBars::of_merge(replaced, &bars).map_err(cannot)?;
    let mut packed = PackedBars::pack(&bars).map_err(failed)?;
    let changes = stored != Some(&packed);
    if !changes && superseded.is_empty() {
        return Ok(None);
    }
    packed.shrink_to_fit();
    let (last_day, digest) = (bars.last_live_day(), packed.digest());
    Ok(Some(AppliedBars { key, replaces: stored.is_some(), changes, last_day, digest, packed, superseded }))
}
