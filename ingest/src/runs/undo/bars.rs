//! Undo of price bars. The bars of the run are compared with the bars of all other runs of the source.

use std::collections::{BTreeMap, HashSet};

use event_log::record_batch::{Body, RecordBatch, SymbolSeries};
use market::bars::{Bar, BarVersion, Bars, BarsError, MISSING, VersionDictionary};
use market::day::date_of;
use market::event::Kind;
use market::symbol::Symbol;

use super::changes::{EncodedBatches, UndoChange, UndoChanges};
use super::scope::UndoScope;
use crate::load::error::LoadError;

/// Target number of bars per part. Parts limit the memory; a hash assigns each symbol to a part. The log is read twice
/// for each part.
const MAX_BARS_PER_PART: u64 = 1_500_000;
/// Maximum number of bars per record batch. A batch stores each distinct version (revision, observation time and share
/// basis) once. The limit keeps a batch small even if all bars have distinct versions.
const MAX_BARS_PER_BATCH: usize = 3_000;

/// Computes the bars to publish in order to undo the run, and adds them to `batches`. Returns the counts of changes.
/// `bars` is the number of bars that the run published.
pub(super) async fn compute_changes(
    scope: &UndoScope<'_>,
    bars: u64,
    batches: &mut EncodedBatches,
) -> Result<UndoChanges, LoadError> {
    let mut changes = UndoChanges::default();
    let parts = bars.div_ceil(MAX_BARS_PER_PART);
    for part in 0..parts {
        let mut table = BarTable { part, parts, ..BarTable::default() };
        for own in [true, false] {
            let add = |batch: RecordBatch| {
                let Body::Prices(series) = &batch.body else { return };
                series.iter().for_each(|series| table.add(series, own));
            };
            scope.each_batch(Kind::Price, own, add).await?;
        }
        for series in table.undo(&mut changes)? {
            batches.push(Body::Prices(vec![series]))?;
        }
    }
    Ok(changes)
}

/// Bars of one symbol. `own` has the bars of the run, `other` the bars of other runs on the same days.
#[derive(Debug, Default)]
struct SymbolBars {
    own: Vec<Bars>,
    days: HashSet<i32>,
    other: Vec<Bars>,
}

/// Bars of the symbols that belong to one part (see [`MAX_BARS_PER_PART`]).
#[derive(Debug, Default)]
struct BarTable {
    part: u64,
    parts: u64,
    by_symbol: BTreeMap<Symbol, SymbolBars>,
}

impl BarTable {
    /// Adds bars of the run, or of another run. Bars of another run on days without a bar of the run are ignored.
    fn add(&mut self, series: &SymbolSeries, own: bool) {
        let bars = &series.bars;
        if !own {
            let Some(symbol_bars) = self.by_symbol.get_mut(&series.symbol) else { return };
            let same_days = (0..bars.len()).filter(|index| symbol_bars.days.contains(&bars.day[*index]));
            for index in same_days.collect::<Vec<_>>().chunk_by(|a, b| a + 1 == *b) {
                if let (Some(first), Some(last)) = (index.first(), index.last()) {
                    symbol_bars.other.push(bars.slice(*first..last + 1));
                }
            }
        } else if part_of(&series.symbol, self.parts) == self.part {
            let symbol_bars = self.by_symbol.entry(series.symbol.clone()).or_default();
            symbol_bars.days.extend(&bars.day);
            symbol_bars.own.push(bars.clone());
        }
    }

    /// Bars to publish in order to undo the run, as series of at most [`MAX_BARS_PER_BATCH`] bars.
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

/// Bars to publish in order to undo the run's bars of one symbol. `own` has the bars of the run, `other` the bars of
/// other runs. Both must be sorted by day and have the same decimal scale.
fn undo_symbol(
    symbol: &Symbol,
    own: &Bars,
    other: &Bars,
    changes: &mut UndoChanges,
) -> Vec<(Bar, BarVersion)> {
    let mut undone = Vec::new();
    for index in 0..own.len() {
        let (bar, version) = (own.bar(index), own.version_of(index));
        let other = other.day.binary_search(&bar.day).ok().map(|index| {
            let version = other.version_of(index);
            ((other.bar(index), version), version.rank())
        });
        let is_equal =
            |(before, earlier): &(Bar, &BarVersion)| bar == *before && version.basis_day == earlier.basis_day;
        let key = || format!("{symbol}|{}", date_of(bar.day));
        match changes.count_key(key, version.rank(), other, is_equal) {
            Some(UndoChange::Restore((before, earlier))) => {
                let (revision, observed_at) = (version.revision, version.observed_at + 1);
                undone.push((before, BarVersion { revision, observed_at, ..earlier.clone() }));
            }
            Some(UndoChange::Retract) => {
                undone.push((retracted_bar(bar.day), BarVersion { retracted: true, ..version.clone() }));
            }
            None => {}
        }
    }
    undone
}

/// Placeholder bar for a retraction. Its close is 0, and all other values are missing. Closes are encoded as
/// differences, so a series of zeros needs almost no space.
fn retracted_bar(day: i32) -> Bar {
    let none = MISSING;
    Bar { day, open: none, high: none, low: none, close: 0, volume: none, vwap: none, trade_count: none }
}

fn columns(bars: &[(Bar, BarVersion)], scale: u32) -> Result<Bars, BarsError> {
    let (mut columns, mut dictionary) = (Bars { scale, ..Bars::default() }, VersionDictionary::default());
    for (bar, version) in bars {
        // Clear the source line and the batch id. They belong to the batch from which the version was copied.
        let version = BarVersion { line: 0, frame: [0; 16], ..version.clone() };
        let index = dictionary.index(&mut columns.versions, &version)?;
        columns.push(*bar, index);
    }
    Ok(columns)
}
