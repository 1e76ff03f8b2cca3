//! Stored prices: the bars of record batches are merged into one packed row per symbol, source and year.
//!
//! Years are divided: table `bars` has the bars that count now, table `superseded_bars` has all others. Of several bars
//! of one day, only the newest counts. Bars of held or excluded runs do not count.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use codec::bars::{PackedBars, PackedBarsError};
use event_log::record_batch::{BatchId, Body, RecordBatch};
use market::bars::{Bars, BarsError, SupersededBars};
use rayon::prelude::*;
use store::past_facts::BarsKey;
use store::symbol_facts::{PackedColumns, PackedYears, SymbolFacts};
use store::view::{self, BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::stored_years::{
    MergedYears, YEARS_PER_BATCH, encode_year, load_existing, store_spellings, take_superseded, write_years,
};
use crate::facts::{AppliedBars, ChangedFacts, FactCache};

const MARK_DIRTY: &str = include_str!("../../queries/symbols_mark_dirty.sql");
/// Maximum number of divided years in memory: those of a day of a whole market, about 60 MB.
const MAX_DIVIDED: usize = 30_000;

/// Merges the bars of record batches into the rows of table `bars`, and marks changed symbols dirty. The bars of batches
/// in `hidden` do not count. Returns the changed rows.
pub async fn apply_prices(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[&RecordBatch],
    hidden: &HashSet<BatchId>,
    states: &RunStates,
    cache: &FactCache,
) -> Result<ChangedFacts, ApplyError> {
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
        let (next, ()) = futures::try_join!(merge_years(work, |_| true), write_years(transaction, &merged))?;
        written.append(&mut merged.years);
        merged = next;
    }
    write_years(transaction, &merged).await?;
    written.append(&mut merged.years);
    store_spellings(transaction, &written).await?;
    written.retain(|year| year.changes);
    let mut changed = ChangedFacts { years: written, symbols: Vec::new() };
    changed.extend(divided);
    transaction.execute(MARK_DIRTY, &[&fact_set, &changed.all_symbols()]).await?;
    Ok(changed)
}

/// Divides years of bars by the states of the runs. `years` has the new bars of each year. Returns the first rows of table
/// `bars` that changed, at most [`MAX_DIVIDED`], and the symbols of all others.
pub(crate) async fn divide_years(
    transaction: &Transaction<'_>,
    years: HashMap<BarsKey, Vec<Bars>>,
    states: &RunStates,
) -> Result<ChangedFacts, ApplyError> {
    let mut years: Vec<(BarsKey, Vec<Bars>)> = years.into_iter().collect();
    years.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (mut years, mut changed) = (years.into_iter(), ChangedFacts::default());
    while years.len() > 0 {
        let chunk = years.by_ref().take(YEARS_PER_BATCH).collect();
        for year in divide_chunk(transaction, chunk, states).await? {
            match changed.years.len() < MAX_DIVIDED {
                true => changed.years.push(year),
                false => changed.symbols.push(year.key.0),
            }
        }
    }
    changed.symbols.dedup();
    Ok(changed)
}

async fn divide_chunk(
    transaction: &Transaction<'_>,
    years: Vec<(BarsKey, Vec<Bars>)>,
    states: &RunStates,
) -> Result<Vec<AppliedBars>, ApplyError> {
    let keys: Vec<BarsKey> = years.iter().map(|(key, _)| key.clone()).collect();
    let mut work = load_stored_years(transaction, years.into_iter(), &FactCache::disabled()).await?;
    let mut superseded = take_superseded(transaction, &keys).await?;
    let mut batches = BTreeSet::new();
    for (key, parts, stored) in &mut work {
        let failed = |source| ApplyError::Bars { symbol: key.0.clone(), source };
        let counted =
            stored.packed(key).map(PackedBars::unpack).transpose().map_err(failed)?.unwrap_or_default();
        let others = superseded.remove(key).unwrap_or_default();
        parts.extend(SupersededBars::complete(&others, &counted).map_err(|error| failed(error.into()))?);
        let all = parts.iter().chain([&counted]);
        batches.extend(all.flat_map(|bars| &bars.versions).map(|version| version.frame));
    }
    let batches: Vec<&[u8]> = batches.iter().map(view::BatchId::as_slice).collect();
    let (owners, states) = (BatchOwners::load(transaction, &batches).await?, states.clone());
    let is_visible =
        move |batch: &view::BatchId| states.is_empty() || owners.is_visible(batch, &states, &View::newest());
    let merged = merge_years(work, is_visible).await?;
    write_years(transaction, &merged).await?;
    store_spellings(transaction, &merged.years).await?;
    Ok(merged.years.into_iter().filter(|year| year.changes).collect())
}

/// Year to merge: its key, its new bars and its stored bars.
type YearMerge = (BarsKey, Vec<Bars>, StoredYear);

enum StoredYear {
    Nothing,
    Read(PackedBars),
    /// The facts of the symbol are cached, and contain the bars of this year.
    Cached(Arc<SymbolFacts>),
}

impl StoredYear {
    fn packed(&self, (_, source, year): &BarsKey) -> Option<&PackedBars> {
        match self {
            Self::Nothing => None,
            Self::Read(packed) => Some(packed),
            Self::Cached(facts) => match facts.year(source, *year)?.columns() {
                PackedColumns::All(packed) => Some(packed),
                PackedColumns::Closes { .. } => None,
            },
        }
    }
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

/// Merges new bars into the stored years in parallel. Returns the years that changed. A bar counts if `is_visible`
/// returns true for its record batch.
async fn merge_years(
    work: Vec<YearMerge>,
    is_visible: impl Fn(&view::BatchId) -> bool + Send + Sync + 'static,
) -> Result<MergedYears, ApplyError> {
    let merge_all = move || {
        let merged = work.into_par_iter().filter_map(|(key, parts, stored)| {
            let merged = merge_year(key, parts, &stored, &is_visible);
            merged.and_then(|merged| merged.map(encode_year).transpose()).transpose()
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
    is_visible: impl Fn(&view::BatchId) -> bool,
) -> Result<Option<AppliedBars>, ApplyError> {
    let stored = stored.packed(&key);
    let failed = |source: PackedBarsError| ApplyError::Bars { symbol: key.0.clone(), source };
    let cannot = |error: BarsError| failed(error.into());
    if let Some(stored) = stored {
        // Put the stored bars first. Most new bars have later days, and parts in the order of days are merged faster.
        parts.insert(0, stored.unpack().map_err(failed)?);
    }
    let (mut visible, mut hidden) = (Vec::with_capacity(parts.len()), Vec::new());
    for part in parts {
        let counts: Vec<bool> = part.versions.iter().map(|version| is_visible(&version.frame)).collect();
        if counts.iter().all(|counts| *counts) {
            visible.push(part);
            continue;
        }
        let counts = |index: usize| counts[usize::from(part.version[index])];
        visible.push(part.filter(counts));
        hidden.push(Bars::merge_all(vec![part.filter(|index| !counts(index))]).map_err(cannot)?);
    }
    visible.retain(|bars| !bars.is_empty());
    hidden.retain(|bars| !bars.is_empty());
    let (bars, replaced) = Bars::merge_keeping_superseded(visible).map_err(cannot)?;
    hidden.extend(replaced);
    let superseded = SupersededBars::of_merge(hidden, &bars).map_err(cannot)?;
    let mut packed = match bars.is_empty() {
        true => PackedBars::default(),
        false => PackedBars::pack(&bars).map_err(failed)?,
    };
    let changes = stored.map_or(!bars.is_empty(), |stored| *stored != packed);
    if !changes && superseded.is_empty() {
        return Ok(None);
    }
    packed.shrink_to_fit();
    let (last_day, digest) = (bars.last_live_day(), packed.digest());
    Ok(Some(AppliedBars { key, replaces: stored.is_some(), changes, last_day, digest, packed, superseded }))
}
