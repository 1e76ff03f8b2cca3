//! Evidence in a price file: dividend columns, changes of the ratio `adjusted close / close`, the unit of the prices, and
//! conflicting closes of one day.
//!
//! The ratio is constant between ex-dates. Consecutive rows with the same ratio form a run. The step from one run to
//! the next gives an ex-date and an adjustment factor (R38, R40).

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};
use market::event::{DividendEvidence, ShareBasis};
use market::metrics::currency::Currency;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use crate::price::conflicting_prices::ConflictingPrice;

/// Relative tolerance of the ratio of a row, in addition to rounding. It covers closes that were stored as
/// single-precision floats.
const BOUNDS_TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 5);
/// Minimum relative change of the ratio from one run of rows to the next. Smaller changes are not evidence.
const MIN_STEP: Decimal = Decimal::from_parts(1, 0, 0, false, 4);
/// Number of fraction digits of the adjustment factor between two runs of rows.
const STEP_DIGITS: u32 = 6;
/// Minimum number of rows of a symbol for the check of [`MIN_ROWS_PER_RUN`].
const MIN_ROWS_FOR_RUN_CHECK: u32 = 20;
/// Minimum average number of consecutive rows with the same ratio. Below this number, the ratio is too irregular to be
/// evidence of dividends.
const MIN_ROWS_PER_RUN: u32 = 3;

/// Adjusted closes and dividend columns of a file, by symbol.
#[derive(Debug, Default)]
pub(crate) struct PriceEvidence {
    symbols: BTreeMap<Symbol, SymbolEvidence>,
    /// Closes that differ from the first close of their day.
    pub(crate) conflicts: Vec<ConflictingPrice>,
}

#[derive(Debug, Default)]
struct SymbolEvidence {
    /// Source line of the symbol's first row with evidence.
    line: u64,
    /// First and last year for which the file has a dividend column.
    dividend_years: Option<(i32, i32)>,
    /// Runs of rows with the same ratio, in file order.
    runs: Vec<RatioRun>,
    basis: Option<ShareBasis>,
    /// Currency or minor unit of the prices, if the load or the file names one.
    price_unit: Option<String>,
    rows: u32,
    /// True if the dates are neither in ascending nor in descending order.
    unordered: bool,
}

/// Consecutive rows with the same ratio `adjusted close / close`.
#[derive(Debug, Clone, Copy)]
struct RatioRun {
    first: NaiveDate,
    last: NaiveDate,
    rows: u32,
    bounds: Bounds,
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    lower: Decimal,
    upper: Decimal,
}

impl PriceEvidence {
    /// Records that the file has a dividend column in the year of a row. The row itself may have no dividend.
    pub(crate) fn add_dividend_column(&mut self, symbol: &Symbol, date: NaiveDate, line: u64) {
        let evidence = self.entry_for(symbol, line);
        let year = date.year();
        let (first, last) = evidence.dividend_years.unwrap_or((year, year));
        evidence.dividend_years = Some((first.min(year), last.max(year)));
    }

    /// Records the close and the adjusted close of a day. The row is ignored if one of the cells is not a positive
    /// number.
    pub(crate) fn add_adjusted_close(
        &mut self,
        symbol: &Symbol,
        date: NaiveDate,
        (close, adjusted): (&[u8], &[u8]),
        basis: ShareBasis,
        line: u64,
    ) {
        let Some(bounds) = Bounds::of_cells(close, adjusted) else { return };
        let evidence = self.entry_for(symbol, line);
        evidence.basis = Some(basis);
        evidence.rows += 1;
        evidence.add_row(date, bounds);
    }

    /// Records the currency of a symbol's prices. Prices are in US dollars by default, so dollars need no record.
    pub(crate) fn add_price_currency(&mut self, symbol: &Symbol, currency: &Currency) {
        if *currency != Currency::dollar() {
            self.entry_for(symbol, 1).price_unit = Some(currency.unit().to_owned());
        }
    }

    fn entry_for(&mut self, symbol: &Symbol, line: u64) -> &mut SymbolEvidence {
        let first = || SymbolEvidence { line, ..SymbolEvidence::default() };
        self.symbols.entry(symbol.clone()).or_insert_with(first)
    }

    /// Evidence records of the whole file, in symbol order, then its conflicting closes. Each comes with a source line: of
    /// the conflicting row, or of the symbol's first row with evidence.
    pub(crate) fn into_records(self) -> Vec<(u64, DividendEvidence)> {
        let mut records = Vec::new();
        for (symbol, evidence) in self.symbols {
            let line = evidence.line;
            records.extend(evidence.into_records(&symbol).into_iter().map(|record| (line, record)));
        }
        records.extend(self.conflicts.into_iter().map(|conflict| {
            let (date, close) = (Some(conflict.date), Some(conflict.other));
            let record =
                DividendEvidence { conflict_date: date, conflict_close: close, ..empty(conflict.symbol) };
            (conflict.other_line, record)
        }));
        records
    }
}

impl SymbolEvidence {
    fn add_row(&mut self, date: NaiveDate, bounds: Bounds) {
        let is_descending = self.is_descending();
        if let Some(run) = self.runs.last_mut() {
            let is_next = match is_descending {
                Some(true) => date < run.last,
                Some(false) => date > run.last,
                None => date != run.last,
            };
            if !is_next {
                self.unordered = true;
                return;
            }
            if let Some(bounds) = run.bounds.intersection(bounds) {
                (run.last, run.rows, run.bounds) = (date, run.rows + 1, bounds);
                return;
            }
        }
        self.runs.push(RatioRun { first: date, last: date, rows: 1, bounds });
    }

    /// True if the dates are descending, false if ascending. `None` until the ratio changes for the first time.
    fn is_descending(&self) -> Option<bool> {
        let (first, last) = (self.runs.first()?.first, self.runs.last()?.last);
        (first != last).then_some(last < first)
    }

    fn into_records(mut self, symbol: &Symbol) -> Vec<DividendEvidence> {
        let record = empty(symbol.clone());
        let mut records = Vec::new();
        if let Some((first, last)) = self.dividend_years {
            records.push(DividendEvidence {
                dividends_from: NaiveDate::from_ymd_opt(first, 1, 1),
                dividends_to: NaiveDate::from_ymd_opt(last, 12, 31),
                ..record.clone()
            });
        }
        if self.price_unit.is_some() {
            records.push(DividendEvidence { price_unit: self.price_unit.take(), ..record.clone() });
        }
        if self.is_descending() == Some(true) {
            self.runs.reverse();
            self.runs.iter_mut().for_each(|run| std::mem::swap(&mut run.first, &mut run.last));
        }
        let runs = without_outliers(&self.runs);
        // More than `u32::MAX` runs are counted as `u32::MAX`, which is too many runs for any number of rows.
        let too_many_runs =
            u32::try_from(runs.len()).unwrap_or(u32::MAX).saturating_mul(MIN_ROWS_PER_RUN) > self.rows;
        if self.unordered || (too_many_runs && self.rows >= MIN_ROWS_FOR_RUN_CHECK) {
            return records;
        }
        for (before, after) in runs.iter().zip(runs.iter().skip(1)) {
            if let Some(factor) = step_factor(before, after) {
                records.push(DividendEvidence {
                    ex_date: Some(after.first),
                    previous: Some(before.last),
                    factor: Some(factor),
                    basis: self.basis,
                    ..record.clone()
                });
            }
        }
        records
    }
}

/// Record without a value.
fn empty(symbol: Symbol) -> DividendEvidence {
    DividendEvidence {
        symbol,
        dividends_from: None,
        dividends_to: None,
        ex_date: None,
        previous: None,
        factor: None,
        basis: None,
        price_unit: None,
        conflict_date: None,
        conflict_close: None,
    }
}

/// Removes each outlier, and joins the runs around it. An outlier is one row between two runs with the same ratio.
fn without_outliers(runs: &[RatioRun]) -> Vec<RatioRun> {
    let mut joined: Vec<RatioRun> = Vec::with_capacity(runs.len());
    for run in runs {
        if let [.., before, outlier] = joined.as_mut_slice()
            && outlier.rows == 1
            && let Some(bounds) = before.bounds.intersection(run.bounds)
        {
            (before.last, before.rows, before.bounds) = (run.last, before.rows + run.rows, bounds);
            joined.pop();
            continue;
        }
        joined.push(*run);
    }
    joined
}

/// Adjustment factor from one run to the next: the ratio of `before` divided by the ratio of `after`. `None` if the
/// factor is too close to 1.
fn step_factor(before: &RatioRun, after: &RatioRun) -> Option<Decimal> {
    let factor = before.bounds.middle()?.checked_div(after.bounds.middle()?)?.round_dp(STEP_DIGITS);
    let is_step = (factor - Decimal::ONE).abs() >= MIN_STEP && factor > Decimal::ZERO;
    is_step.then_some(factor)
}

impl Bounds {
    fn of_cells(close: &[u8], adjusted: &[u8]) -> Option<Self> {
        let [close, adjusted] = [close, adjusted].map(|cell| {
            let text = std::str::from_utf8(cell.trim_ascii()).ok()?;
            market::decimal::parse_decimal(text).ok().map(|parsed| parsed.value)
        });
        let (close, adjusted) = (close.filter(|value| *value > Decimal::ZERO)?, adjusted?);
        let (close_half, adjusted_half) = (half_unit(close), half_unit(adjusted));
        let lower = (adjusted - adjusted_half).checked_div(close + close_half)?;
        let upper = (adjusted + adjusted_half).checked_div(close - close_half)?;
        Some(Self {
            lower: lower.checked_mul(Decimal::ONE - BOUNDS_TOLERANCE)?,
            upper: upper.checked_mul(Decimal::ONE + BOUNDS_TOLERANCE)?,
        })
        .filter(|bounds| bounds.lower > Decimal::ZERO)
    }

    fn intersection(self, other: Self) -> Option<Self> {
        let both = Self { lower: self.lower.max(other.lower), upper: self.upper.min(other.upper) };
        (both.lower <= both.upper).then_some(both)
    }

    fn middle(self) -> Option<Decimal> {
        self.lower.checked_add(self.upper)?.checked_div(Decimal::TWO)
    }
}

/// Maximum rounding error of a number: half a unit of its last fraction digit. At least two fraction digits are
/// assumed, because files omit trailing zeros.
fn half_unit(value: Decimal) -> Decimal {
    Decimal::new(5, (value.scale().max(2) + 1).min(Decimal::MAX_SCALE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol() -> Symbol {
        Symbol::parse("TEST").unwrap()
    }

    /// Steps that are found in rows of the form `date close adjusted-close`. Each step has the form `previous ex-date
    /// factor`.
    fn steps(rows: &[&str]) -> Vec<String> {
        let mut evidence = PriceEvidence::default();
        for (line, row) in (2..).zip(rows) {
            let words: Vec<&str> = row.split(' ').collect();
            let cells = (words[1].as_bytes(), words[2].as_bytes());
            let date = words[0].parse().unwrap();
            evidence.add_adjusted_close(&symbol(), date, cells, ShareBasis::SplitAdjusted, line);
        }
        let text = |record: &DividendEvidence| {
            let (previous, ex_date) = (record.previous.unwrap(), record.ex_date.unwrap());
            format!("{previous} {ex_date} {}", record.factor.unwrap())
        };
        evidence.into_records().iter().map(|(_, record)| text(record)).collect()
    }

    const QUARTER: [&str; 6] = [
        "2024-03-12 60.15 59.68",
        "2024-03-13 60.20 59.73",
        "2024-03-14 59.62 59.62",
        "2024-03-15 59.88 59.88",
        "2024-03-18 59.93 59.93",
        "2024-03-19 60.42 60.42",
    ];

    #[test]
    fn a_step_is_between_two_sessions() {
        let found = steps(&QUARTER);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("2024-03-13 2024-03-14 0.992"), "{found:?}");
        let mut down = QUARTER;
        down.reverse();
        assert_eq!(steps(&down), found);
        // Two rows years apart prove that something was paid between them.
        let far = ["2000-01-03 28.1875 14.549589", "2024-08-08 68.73 68.73"];
        assert_eq!(steps(&far), ["2000-01-03 2024-08-08 0.516172"]);
    }

    #[test]
    fn rounding_is_no_step() {
        assert_eq!(
            steps(&["2024-03-12 60.15 59.68", "2024-03-13 60.20 59.73", "2024-03-14 3.01 2.99"]).len(),
            0
        );
        assert_eq!(steps(&["2024-03-12 0.05 0.02", "2024-03-13 0.07 0.03"]).len(), 0);
        assert_eq!(steps(&["2024-03-12 60.150002 60.15", "2024-03-13 60.2 60.200001"]).len(), 0);
    }

    #[test]
    fn one_wrong_row_is_no_step() {
        let mut rows = QUARTER.to_vec();
        rows[4] = "2024-03-18 5993 59.93";
        assert_eq!(steps(&rows), steps(&QUARTER));
        for row in ["2024-03-18 59.93 ", "2024-03-18 0 0", "2024-03-18 x 1", "2024-03-18 null null"] {
            rows[4] = row;
            assert_eq!(steps(&rows), steps(&QUARTER), "{row}");
        }
    }

    #[test]
    fn rows_in_no_order_and_closes_that_always_step_are_no_evidence() {
        let mut rows = QUARTER.to_vec();
        rows.swap(1, 3);
        assert_eq!(steps(&rows).len(), 0);
        let noise: Vec<String> =
            (1..=28).map(|day| format!("2024-02-{day:02} 100.00 {}.00", 60 + day)).collect();
        assert_eq!(steps(&noise.iter().map(String::as_str).collect::<Vec<_>>()).len(), 0);
    }

    #[test]
    fn a_dividend_column_is_of_whole_years() {
        let mut evidence = PriceEvidence::default();
        for (line, date) in [(7, "2023-05-02"), (8, "2021-12-31"), (9, "2022-01-03")] {
            evidence.add_dividend_column(&symbol(), date.parse().unwrap(), line);
        }
        let [(line, record)] = &evidence.into_records()[..] else { panic!("one record") };
        let years = [record.dividends_from, record.dividends_to].map(|day| day.unwrap().to_string());
        assert_eq!((*line, years.each_ref().map(String::as_str)), (7, ["2021-01-01", "2023-12-31"]));
    }
}
