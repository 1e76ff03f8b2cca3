//! Price batch: groups price rows by symbol, and cuts them into record batches.
//!
//! A price batch is far larger than a record batch, so each symbol has a long series. Equal rows give equal record
//! batches.

use std::collections::{HashMap, HashSet};

use event_log::record_batch::{SymbolSeries, TARGET_BYTES};
use market::bars::{Bar, BarVersion, Bars, MISSING};
use market::symbol::Symbol;

use crate::price::bar_parser::{LARGE_PRICE_PLACES, POW10};

/// Maximum number of rows in a price batch. It limits the memory to about 32 MiB.
pub(crate) const BATCH_ROWS: usize = 512 * 1024;
/// Maximum number of different row versions in a price batch, because a version index has 16 bits.
const BATCH_VERSIONS: usize = 60_000;
/// Estimated overhead of a series in a record batch, in bytes.
const SERIES_BYTES: usize = 80;
const VERSION_BYTES: usize = 40;

/// Index of a symbol in the symbol table of a file.
pub(crate) type SymbolId = u32;

/// Price row. Prices are `value / 10^scale`; [`MISSING`] marks absent values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScaledPriceRow {
    pub symbol: SymbolId,
    pub day: i32,
    pub version: u16,
    pub scale: u8,
    pub line: u64,
    pub open: i64,
    pub high: i64,
    pub low: i64,
    pub close: i64,
    pub volume: i64,
}

/// Price fields of few feeds. `vwap` (volume-weighted average price) has the scale of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RareFields {
    pub vwap: i64,
    pub trade_count: i64,
}

/// Price rows of one file, in file order.
#[derive(Debug, Default)]
pub(crate) struct PriceBatch {
    pub(super) rows: Vec<ScaledPriceRow>,
    /// Rare fields of each row, in row order; empty if no row has such fields.
    pub(super) extras: Vec<RareFields>,
    pub(super) versions: Vec<BarVersion>,
    known: HashMap<(i64, i64, bool, Option<i32>), u16>,
}

impl PriceBatch {
    /// True if the batch must be cut into record batches before the next row.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.versions.len() >= BATCH_VERSIONS
    }

    /// Removes the rows, but keeps their memory. Allocation takes longer than sorting the rows.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.extras.clear();
        self.versions.clear();
        self.known.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// First and last day of the rows, as day numbers; `None` for an empty batch.
    pub(crate) fn day_range(&self) -> [Option<i32>; 2] {
        let days = || self.rows.iter().map(|row| row.day);
        [days().min(), days().max()]
    }

    /// Ids of the symbols with at least one row that is not a retraction. `None` means all symbols of the batch.
    pub(crate) fn priced_symbols(&self) -> Option<HashSet<SymbolId>> {
        let retracted = |row: &&ScaledPriceRow| self.versions[usize::from(row.version)].retracted;
        let any = self.versions.iter().any(|version| version.retracted);
        any.then(|| self.rows.iter().filter(|row| !retracted(row)).map(|row| row.symbol).collect())
    }

    /// Adds a row with its version.
    pub(crate) fn push(&mut self, row: ScaledPriceRow, extra: Option<RareFields>, version: BarVersion) {
        let version = self.version(version);
        if let Some(extra) = extra {
            self.extras.resize(self.rows.len(), RareFields { vwap: MISSING, trade_count: MISSING });
            self.extras.push(extra);
        } else if !self.extras.is_empty() {
            self.extras.push(RareFields { vwap: MISSING, trade_count: MISSING });
        }
        self.rows.push(ScaledPriceRow { version, ..row });
    }

    fn version(&mut self, version: BarVersion) -> u16 {
        // The version of the previous row is tried first, because adjacent rows usually have the same version.
        if let Some(row) = self.rows.last().filter(|row| self.versions[usize::from(row.version)] == version) {
            return row.version;
        }
        let key = (version.revision, version.observed_at, version.retracted, version.basis_day);
        debug_assert!(self.versions.len() <= BATCH_VERSIONS, "a full batch is cut before another row");
        #[expect(clippy::cast_possible_truncation, reason = "a batch has no more than BATCH_VERSIONS")]
        let next = self.versions.len() as u16;
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            self.versions.push(version);
        }
        index
    }

    /// Sets the day to which the split-adjusted prices are adjusted, as a day number. In some formats, this day is
    /// known only at the end of the file.
    pub(crate) fn set_basis_day(&mut self, day: i32) {
        for version in self.versions.iter_mut().filter(|version| version.basis_day.is_some()) {
            version.basis_day = Some(day);
        }
    }

    /// Cuts all rows into record batches, sorted by symbol. The rows of one symbol stay in file order. `symbol_names`
    /// contains the symbol of each [`SymbolId`].
    pub(crate) fn cut_into_record_batches(&self, symbol_names: &[Symbol]) -> SeriesBatches {
        let mut counts = vec![0u32; symbol_names.len()];
        self.rows.iter().for_each(|row| counts[row.symbol as usize] += 1);
        let mut present: Vec<SymbolId> =
            (0..).take(symbol_names.len()).filter(|id| counts[*id as usize] > 0).collect();
        present.sort_unstable_by(|a, b| symbol_names[*a as usize].cmp(&symbol_names[*b as usize]));
        let mut starts = vec![0u32; symbol_names.len()];
        let mut sum = 0;
        for id in &present {
            starts[*id as usize] = sum;
            sum += counts[*id as usize];
        }
        let mut order = vec![0u32; self.rows.len()];
        for (index, row) in (0u32..).zip(&self.rows) {
            let slot = &mut starts[row.symbol as usize];
            order[*slot as usize] = index;
            *slot += 1;
        }
        let mut cut = SeriesBatches::default();
        let mut rest = order.as_slice();
        for id in present {
            let (group, others) = rest.split_at(counts[id as usize] as usize);
            rest = others;
            let bar_bytes = self.bar_bytes(group);
            for part in group.chunks((TARGET_BYTES - SERIES_BYTES) / bar_bytes) {
                cut.add(self, &symbol_names[id as usize], part, SERIES_BYTES + part.len() * bar_bytes);
            }
        }
        cut
    }

    /// Estimated encoded size of a bar, in bytes. The real size is less than four times the estimate.
    fn bar_bytes(&self, group: &[u32]) -> usize {
        let finest = group.iter().map(|index| self.rows[*index as usize].scale).max().unwrap_or(0);
        let price = 1 + usize::from(finest.max(2)).div_ceil(2);
        let extra = if self.extras.is_empty() { 0 } else { price + 3 };
        let version = if self.versions.len() > 64 { VERSION_BYTES } else { 0 };
        5 + 4 * price + extra + version
    }
}

/// Price batch cut into record batches.
#[derive(Debug, Default)]
pub(crate) struct SeriesBatches {
    pub batches: Vec<SeriesBatch>,
    /// Number of rounded prices. If a series has a very large price, all its prices have at most eight decimal places.
    pub rounded: u64,
}

/// Price series that together form one record batch.
#[derive(Debug, Default)]
pub(crate) struct SeriesBatch {
    pub series: Vec<SymbolSeries>,
    /// Smallest line number of the rows of this batch in the file.
    pub line: u64,
    bytes: usize,
}

impl SeriesBatches {
    /// Adds the rows with the indexes in `order` as one series. If the series does not fit into the last record batch,
    /// a new batch is created.
    fn add(&mut self, batch: &PriceBatch, symbol: &Symbol, order: &[u32], bytes: usize) {
        let (bars, rounded) = series(batch, order);
        self.rounded += rounded;
        let line = order.first().map_or(0, |index| batch.rows[*index as usize].line);
        if self.batches.last().is_none_or(|last| last.bytes + bytes > TARGET_BYTES) {
            self.batches.push(SeriesBatch { line, ..SeriesBatch::default() });
        }
        if let Some(last) = self.batches.last_mut() {
            last.line = last.line.min(line);
            last.bytes += bytes;
            last.series.push(SymbolSeries { symbol: symbol.clone(), bars });
        }
    }
}

/// Columns of the rows with the indexes in `order`, and the number of rounded prices.
fn series(batch: &PriceBatch, order: &[u32]) -> (Bars, u64) {
    let rows = || order.iter().map(|index| &batch.rows[*index as usize]);
    let finest = rows().map(|row| row.scale).max().unwrap_or(0);
    let scale = if fits(batch, order, finest) { finest } else { finest.min(LARGE_SCALE) };
    let mut bars = Bars { scale: u32::from(scale), ..Bars::default() };
    reserve(&mut bars, order.len());
    let mut versions: HashMap<u16, u16> = HashMap::new();
    let (mut last, mut rounded, mut close) = (None, 0, 0);
    for index in order {
        let row = &batch.rows[*index as usize];
        let version = match last {
            Some((batch_version, version)) if batch_version == row.version => version,
            _ => *versions.entry(row.version).or_insert_with(|| {
                #[expect(clippy::cast_possible_truncation, reason = "its versions are some of the batch's")]
                let next = bars.versions.len() as u16;
                bars.versions.push(batch.versions[usize::from(row.version)].clone());
                next
            }),
        };
        last = Some((row.version, version));
        let mut at = |value: i64| rescale(value, row.scale, scale, &mut rounded);
        // A retracted bar has no close. The close of the previous bar is encoded instead, because a difference of zero
        // takes no space.
        close = if row.close == MISSING { close } else { at(row.close) };
        let extra = batch.extras.get(*index as usize);
        let bar = Bar {
            day: row.day,
            open: at(row.open),
            high: at(row.high),
            low: at(row.low),
            close,
            volume: row.volume,
            vwap: extra.map_or(MISSING, |extra| at(extra.vwap)),
            trade_count: extra.map_or(MISSING, |extra| extra.trade_count),
        };
        bars.push(bar, version);
    }
    (bars, rounded)
}

#[expect(clippy::cast_possible_truncation, reason = "eight fits")]
const LARGE_SCALE: u8 = LARGE_PRICE_PLACES as u8;

fn reserve(bars: &mut Bars, rows: usize) {
    bars.day.reserve_exact(rows);
    bars.version.reserve_exact(rows);
    bars.close.reserve_exact(rows);
    for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.volume] {
        column.reserve(rows);
    }
}

/// True if every price of the rows fits an `i64` at `scale`. At scales of at most 8, every price fits.
fn fits(batch: &PriceBatch, order: &[u32], scale: u8) -> bool {
    scale <= LARGE_SCALE
        || order.iter().all(|index| {
            let row = &batch.rows[*index as usize];
            let factor = POW10[usize::from(scale - row.scale)];
            let vwap = batch.extras.get(*index as usize).map_or(MISSING, |extra| extra.vwap);
            [row.open, row.high, row.low, row.close, vwap]
                .iter()
                .all(|v| *v == MISSING || v.checked_mul(factor).is_some())
        })
}

fn rescale(value: i64, from: u8, to: u8, rounded: &mut u64) -> i64 {
    if value == MISSING || from == to {
        return value;
    }
    if from < to {
        return value * POW10[usize::from(to - from)];
    }
    let divisor = POW10[usize::from(from - to)];
    let (quotient, rest) = (value / divisor, value % divisor);
    *rounded += u64::from(rest != 0);
    if rest.abs() * 2 >= divisor { quotient + rest.signum() } else { quotient }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use market::event::Action;

    use super::*;

    fn symbols(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::parse(name).unwrap()).collect()
    }

    fn row(symbol: SymbolId, day: i32, close: i64, scale: u8, line: u64) -> ScaledPriceRow {
        ScaledPriceRow {
            symbol,
            day,
            version: 0,
            scale,
            line,
            open: MISSING,
            high: MISSING,
            low: MISSING,
            close,
            volume: 1,
        }
    }

    fn version(revision: i64) -> BarVersion {
        BarVersion::new(revision, Action::Put, DateTime::UNIX_EPOCH, None)
    }

    #[test]
    fn rows_are_grouped_by_name_in_file_order() {
        let mut batch = PriceBatch::default();
        batch.push(row(0, 1, 15, 1, 2), None, version(0));
        batch.push(row(1, 1, 7, 0, 3), None, version(0));
        batch.push(row(0, 2, 200, 2, 4), None, version(1));
        let cut = batch.cut_into_record_batches(&symbols(&["KO", "AAPL"]));
        assert_eq!(cut.batches.len(), 1);
        let [first, second] = cut.batches[0].series.as_slice() else { panic!("two series") };
        assert_eq!((first.symbol.as_str(), second.symbol.as_str()), ("AAPL", "KO"));
        assert_eq!((second.bars.scale, &second.bars.close), (2, &vec![150, 200]));
        assert_eq!((&second.bars.version, second.bars.versions.len()), (&vec![0, 1], 2));
        assert_eq!(cut.batches[0].line, 2);
    }

    #[test]
    fn a_symbol_alone_too_large_for_a_batch_is_spread_in_order() {
        let mut batch = PriceBatch::default();
        (0..50_000).for_each(|n| batch.push(row(0, n, 1, 0, 2 + n.unsigned_abs() as u64), None, version(0)));
        let batches = batch.cut_into_record_batches(&symbols(&["A"])).batches;
        assert!(batches.len() > 1);
        assert!(batches.windows(2).all(|pair| pair[0].line < pair[1].line));
    }

    #[test]
    fn huge_prices_cost_their_neighbours_only_the_last_digits() {
        let mut batch = PriceBatch::default();
        batch.push(row(0, 1, 5_000_000_000, 0, 2), None, version(0));
        batch.push(row(0, 2, 12_345_678_915, 10, 3), None, version(0));
        let cut = batch.cut_into_record_batches(&symbols(&["DRYS"]));
        let bars = &cut.batches[0].series[0].bars;
        assert_eq!(
            (bars.scale, &bars.close, cut.rounded),
            (8, &vec![500_000_000_000_000_000, 123_456_789], 1)
        );
    }

    #[test]
    fn average_and_trades_may_begin_late() {
        let mut batch = PriceBatch::default();
        batch.push(row(0, 1, 1, 0, 2), None, version(0));
        batch.push(row(0, 2, 1, 0, 3), Some(RareFields { vwap: 1, trade_count: 9 }), version(0));
        let batches = batch.cut_into_record_batches(&symbols(&["A"])).batches;
        assert_eq!(batches[0].series[0].bars.trade_count, vec![MISSING, 9].into());
        assert!(batches[0].series[0].bars.has_equal_lengths());
    }
}
