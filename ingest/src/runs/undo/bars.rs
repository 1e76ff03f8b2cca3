//! Undo of price bars, by comparison of the run's bars with the bars of all other runs of the source.

use std::collections::{BTreeMap, HashSet};

use event_log::record_batch::{Body, RecordBatch, SymbolSeries};
use market::bars::{Bar, BarVersion, Bars, BarsError, MISSING, VersionDictionary};
use market::day::date_of;
use market::event::Kind;
use market::symbol::Symbol;

use super::changes::UndoChanges;
use super::encoded_batches::EncodedBatches;
use super::scope::UndoScope;
use crate::load::error::LoadError;

/// Maximum number of bars in a part of the symbols. One part at a time is compared, which limits memory. The log is
/// read twice for each part.
const MAX_BARS_PER_PART: u64 = 1_500_000;
/// Maximum number of bars per record batch. Each bar may have its own version.
const MAX_BARS_PER_BATCH: usize = 3_000;

/// Computes the bars that undo the run, and adds them to `batches`. Returns the counts of changes. `bars` is the number
/// of bars that the run published.
pub(super) async fn compute_changes(
    scope: &UndoScope<'_>,
    bars: u64,
    batches: &mut EncodedBatches,
) -> Result<UndoChanges, LoadError> {
    let mut changes = UndoChanges::default();
    let parts = bars.div_ceil(MAX_BARS_PER_PART);
    for part in 0..parts {
        let mut table = BarTable { part, parts, ..BarTable::default() };
        scope
            .each_own_batch(Kind::Price, |batch| series(&batch).for_each(|series| table.add_own(series)))
            .await?;
        scope
            .each_batch_of_other_runs(Kind::Price, |batch| {
                series(&batch).for_each(|series| table.add_other(series))
            })
            .await?;
        for series in table.undo(&mut changes)? {
            batches.push(Body::Prices(vec![series]))?;
        }
    }
    Ok(changes)
}

fn series(batch: &RecordBatch) -> impl Iterator<Item = &SymbolSeries> {
    let series = if let Body::Prices(series) = &batch.body { series.as_slice() } else { &[] };
    series.iter()
}

/// Bars of one symbol: the bars of the run, and the bars of other runs on the same days.
#[derive(Debug, Default)]
struct SymbolBars {
    own: Vec<Bars>,
    days: HashSet<i32>,
    other: Vec<Bars>,
}

/// Bars of the symbols that belong to one part. A hash of the symbol decides the part.
#[derive(Debug, Default)]
struct BarTable {
    part: u64,
    parts: u64,
    by_symbol: BTreeMap<Symbol, SymbolBars>,
}

impl BarTable {
    fn add_own(&mut self, series: &SymbolSeries) {
        if part_of(&series.symbol, self.parts) == self.part {
            let symbol_bars = self.by_symbol.entry(series.symbol.clone()).or_default();
            symbol_bars.days.extend(&series.bars.day);
            symbol_bars.own.push(series.bars.clone());
        }
    }

    /// Adds bars of another run. Bars on days without a bar of the undone run are ignored.
    fn add_other(&mut self, series: &SymbolSeries) {
        let Some(symbol_bars) = self.by_symbol.get_mut(&series.symbol) else { return };
        let bars = &series.bars;
        let same_days = (0..bars.len()).filter(|index| symbol_bars.days.contains(&bars.day[*index]));
        for index in same_days.collect::<Vec<_>>().chunk_by(|a, b| a + 1 == *b) {
            if let (Some(first), Some(last)) = (index.first(), index.last()) {
                symbol_bars.other.push(bars.slice(*first..last + 1));
            }
        }
    }

    /// Bars that undo the run, as series of at most [`MAX_BARS_PER_BATCH`] bars.
    fn undo(self, changes: &mut UndoChanges) -> Result<Vec<SymbolSeries>, BarsError> {
        let mut all = Vec::new();
        for (symbol, symbol_bars) in self.by_symbol {
            let mut own = Bars::merge_all(symbol_bars.own)?;
            let mut other = Bars::merge_all(symbol_bars.other)?;
            let scale = own.scale.max(other.scale);
            own.rescale(scale)?;
            other.rescale(scale)?;
            let undone = undo_symbol(&symbol, &own, &other, changes);
            for bars in undone.chunks(MAX_BARS_PER_BATCH) {
                all.push(SymbolSeries { symbol: symbol.clone(), bars: columns(bars, scale)? });
            }
        }
        Ok(all)
    }
}

/// Index of the part to which a symbol belongs.
fn part_of(symbol: &Symbol, parts: u64) -> u64 {
    let hash = blake3::hash(symbol.as_str().as_bytes());
    let first = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
    first % parts.max(1)
}

/// Bars that undo the run's bars of one symbol. `own` (the run's) and `other` (other runs') must be sorted by day and
/// have the same scale.
fn undo_symbol(
    symbol: &Symbol,
    own: &Bars,
    other: &Bars,
    changes: &mut UndoChanges,
) -> Vec<(Bar, BarVersion)> {
    let mut undone = Vec::new();
    for index in 0..own.len() {
        let (bar, version) = (own.bar(index), own.version_of(index));
        let found = other.day.binary_search(&bar.day).ok();
        let earlier = found.map(|index| (other.bar(index), other.version_of(index)));
        let live = earlier.filter(|(_, earlier)| !earlier.retracted);
        let change = match (earlier, live) {
            (Some((_, earlier)), _) if version.rank() < earlier.rank() => {
                changes.corrected_since += 1;
                continue;
            }
            (_, Some((before, earlier)))
                if version.retracted || !is_same_bar(bar, version, before, earlier) =>
            {
                changes.restored += 1;
                (
                    before,
                    BarVersion {
                        revision: version.revision,
                        observed_at: version.observed_at + 1,
                        ..earlier.clone()
                    },
                )
            }
            (_, None) if !version.retracted => {
                changes.retracted += 1;
                (retracted_bar(bar.day), BarVersion { retracted: true, ..version.clone() })
            }
            _ => {
                changes.unchanged += 1;
                continue;
            }
        };
        let what = if change.1.retracted { "retracted" } else { "restored to the earlier version" };
        changes.add_example(|| format!("{symbol}|{}: {what}", date_of(bar.day)));
        undone.push(change);
    }
    undone
}

fn is_same_bar(bar: Bar, version: &BarVersion, before: Bar, before_version: &BarVersion) -> bool {
    bar == before && version.basis_day == before_version.basis_day
}

/// Bar of a retraction, without values. Its close is encoded as a difference of zero, which needs no space.
fn retracted_bar(day: i32) -> Bar {
    let none = MISSING;
    Bar { day, open: none, high: none, low: none, close: 0, volume: none, vwap: none, trade_count: none }
}

fn columns(bars: &[(Bar, BarVersion)], scale: u32) -> Result<Bars, BarsError> {
    let (mut columns, mut dictionary) = (Bars { scale, ..Bars::default() }, VersionDictionary::default());
    for (bar, version) in bars {
        // Source line and batch id belong to the old version. The new version gets its own.
        let version = BarVersion { line: 0, frame: [0; 16], ..version.clone() };
        let index = dictionary.index(&mut columns.versions, &version)?;
        columns.push(*bar, index);
    }
    Ok(columns)
}
