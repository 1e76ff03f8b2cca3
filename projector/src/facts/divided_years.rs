//! Years of prices that are divided: into the bars that count now, and all others. Table `bars` has the former, table
//! `superseded_bars` has the latter.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use codec::bars::{PackedBars, PackedBarsError};
use market::bars::{Bars, BarsError, SupersededBars};
use rayon::prelude::*;
use store::view::{BatchId, BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::fact_cache::{AppliedBars, BarsKey};
use crate::facts::stored_years::take_superseded;
use crate::facts::stored_years::{
    MergedYears, YEARS_PER_BATCH, encode_year, load_existing, store_spellings, write_years,
};

/// Divides years of bars by the states of the runs. `years` has the new bars of each year. Returns the symbols of the
/// rows in table `bars` that changed.
pub(crate) async fn divide_years(
    transaction: &Transaction<'_>,
    years: HashMap<BarsKey, Vec<Bars>>,
    states: &RunStates,
) -> Result<Vec<String>, ApplyError> {
    let mut years: Vec<(BarsKey, Vec<Bars>)> = years.into_iter().collect();
    years.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (mut years, mut changed) = (years.into_iter(), Vec::new());
    while years.len() > 0 {
        let chunk = years.by_ref().take(YEARS_PER_BATCH).collect();
        changed.extend(divide_chunk(transaction, chunk, states).await?);
    }
    changed.dedup();
    Ok(changed)
}

async fn divide_chunk(
    transaction: &Transaction<'_>,
    mut years: Vec<(BarsKey, Vec<Bars>)>,
    states: &RunStates,
) -> Result<Vec<String>, ApplyError> {
    let keys: Vec<BarsKey> = years.iter().map(|(key, _)| key.clone()).collect();
    let mut stored = load_existing(transaction, &keys).await?;
    let mut superseded = take_superseded(transaction, &keys).await?;
    let (mut work, mut batches) = (Vec::with_capacity(years.len()), BTreeSet::new());
    for (key, parts) in &mut years {
        let stored = stored.remove(key);
        let failed = |source| ApplyError::Bars { symbol: key.0.clone(), source };
        let counted =
            stored.as_ref().map(PackedBars::unpack).transpose().map_err(failed)?.unwrap_or_default();
        let others = superseded.remove(key).unwrap_or_default();
        parts.extend(SupersededBars::complete(&others, &counted).map_err(|error| failed(error.into()))?);
        parts.insert(0, counted);
        batches.extend(parts.iter().flat_map(|bars| &bars.versions).map(|version| version.frame));
        work.push((std::mem::take(key), std::mem::take(parts), stored));
    }
    let batches: Vec<&[u8]> = batches.iter().map(BatchId::as_slice).collect();
    let owners = BatchOwners::load(transaction, &batches).await?;
    let newest = View::newest();
    let is_visible = |batch: &BatchId| states.is_empty() || owners.is_visible(batch, states, &newest);
    let divided: Vec<(AppliedBars, Option<Bytes>)> = tokio::task::block_in_place(|| {
        work.into_par_iter()
            .map(|(key, parts, stored)| encode_year(divide_year(key, parts, stored, is_visible)?))
            .collect::<Result<_, _>>()
    })?;
    let merged = MergedYears::from_iter(divided);
    write_years(transaction, &merged).await?;
    store_spellings(transaction, &merged.years).await?;
    let changed = merged.years.into_iter().filter(|year| year.changes);
    Ok(changed.map(|year| year.key.0).collect())
}

fn divide_year(
    key: BarsKey,
    parts: Vec<Bars>,
    stored: Option<PackedBars>,
    is_visible: impl Fn(&BatchId) -> bool,
) -> Result<AppliedBars, ApplyError> {
    let failed = |source: PackedBarsError| ApplyError::Bars { symbol: key.0.clone(), source };
    let cannot = |error: BarsError| failed(error.into());
    let (mut visible, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        let counts: Vec<bool> = part.versions.iter().map(|version| is_visible(&version.frame)).collect();
        let counts = |index: usize| counts[usize::from(part.version[index])];
        visible.push(part.filter(counts));
        others.push(part.filter(|index| !counts(index)));
    }
    for bars in [&mut visible, &mut others] {
        bars.retain(|bars| !bars.is_empty());
    }
    let others = others.into_iter().map(|bars| Bars::merge_all(vec![bars]));
    let mut others = others.collect::<Result<Vec<Bars>, _>>().map_err(cannot)?;
    let (bars, superseded) = Bars::merge_keeping_superseded(visible).map_err(cannot)?;
    others.extend(superseded);
    let superseded = SupersededBars::of_merge(others, &bars).map_err(cannot)?;
    let mut packed = match bars.is_empty() {
        true => PackedBars::default(),
        false => PackedBars::pack(&bars).map_err(failed)?,
    };
    packed.shrink_to_fit();
    let (last_day, digest) = (bars.last_live_day(), packed.digest());
    let changes = stored.as_ref().map_or(!bars.is_empty(), |stored| *stored != packed);
    Ok(AppliedBars { key, replaces: stored.is_some(), changes, last_day, digest, packed, superseded })
}
