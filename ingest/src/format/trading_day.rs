//! Trading day of one security in a vendor's file: price, dividend and split, all of one date.
//!
//! Reader of daily rows that are raw, or adjusted for all splits up to a basis day.
//!
//! The basis day of a file of one symbol is the day of the newest row. The projector chooses the basis day of symbols
//! in other files.

use std::io::Read;

use chrono::NaiveDate;
use market::bars::BarVersion;
use market::day::{date_of, day_number};
use market::decimal::parse_decimal;
use market::event::{Action, Dividend, DividendType, EventRow, ShareBasis, Split};
use market::symbol::Symbol;
use rust_decimal::Decimal;
use telemetry::counted;

use super::canonical::parse_ratio;
use super::file_format::FeedReadError;
use super::file_head::normalize_column_name;
use super::file_records::{HeaderedTable, NONE, PriceColumns, VendorRow};
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::{RowError, is_absent_value, parse_session_date};
use crate::price::bar_parser::PriceCells;
use crate::source::csv_reader::CsvRecord;

/// Trading day of a security in a vendor's file: price, dividend and split.
pub(super) struct TradingDay<'a> {
    pub(super) symbol: &'a Symbol,
    pub(super) date: NaiveDate,
    /// Price cells; `None` in a file without prices.
    pub(super) prices: Option<PriceCells<'a>>,
    /// Total cash per share on this day, including capital gains; `None` without a payment.
    pub(super) dividend: Option<Decimal>,
    pub(super) capital_gain: Option<Decimal>,
    /// True if the file has a dividend column.
    pub(super) has_dividends: bool,
    /// Cell of the close that is adjusted for splits and dividends; empty if the file has none.
    pub(super) adjusted_close: &'a [u8],
    /// Old and new shares of a split on this day; `None` on a day without a split.
    pub(super) split: Option<(Decimal, Decimal)>,
    pub(super) line: u64,
    /// Length of the row's source text, in bytes.
    pub(super) bytes: usize,
}

/// Positions of the columns of a trading day in a table.
pub(super) struct DayColumns {
    /// Vendor's names of the columns with the date, the dividend, the capital gain and the split, for messages.
    names: [&'static str; 4],
    positions: [usize; 4],
    pub(super) prices: PriceColumns,
    pub(super) adjusted_close: usize,
}

impl DayColumns {
    pub(super) fn find_in<R: Read>(table: &HeaderedTable<R>, names: [&'static str; 4]) -> Self {
        Self {
            names,
            positions: names.map(|name| table.position_of(&[&normalize_column_name(name)])),
            prices: PriceColumns::find_in(table),
            adjusted_close: table.position_of(&["adjclose"]),
        }
    }

    /// Trading day of a record.
    pub(super) fn day<'a>(
        &self,
        symbol: &'a Symbol,
        record: &CsvRecord<'a>,
        rows: &RowAccumulator,
    ) -> Result<TradingDay<'a>, RowError> {
        let [date, dividend, capital_gain, split] = self.names;
        let cells = self.positions.map(|position| record.field(position));
        Ok(TradingDay {
            symbol,
            date: parse_session_date(date, cells[0].trim_ascii(), rows.zone)?,
            prices: (self.prices.close != NONE).then(|| self.prices.cells(record)),
            dividend: parse_cash_amount(dividend, cells[1])?,
            capital_gain: parse_cash_amount(capital_gain, cells[2])?,
            has_dividends: self.positions[1] != NONE,
            adjusted_close: record.field(self.adjusted_close),
            split: parse_split_shares(split, cells[3])?,
            line: record.line,
            bytes: record.raw.len(),
        })
    }
}

impl<'a> TradingDay<'a> {
    /// Trading day of a row with the columns open, high, low, close and volume. `dividend` and `ratio` are pairs: the
    /// vendor's column name for messages, and the normalized column name.
    pub(super) fn of_row(
        row: &'a VendorRow<'_>,
        symbol: &'a Symbol,
        date: NaiveDate,
        adjusted_close: &str,
        dividend: (&str, &str),
        ratio: (&str, &str),
    ) -> Result<Self, RowError> {
        let [open, high, low, close, volume] =
            ["open", "high", "low", "close", "volume"].map(|name| row.bytes(&[name]));
        Ok(Self {
            symbol,
            date,
            prices: Some(PriceCells { open, high, low, close, volume, ..PriceCells::default() }),
            dividend: parse_cash_amount(dividend.0, row.bytes(&[dividend.1]))?,
            capital_gain: None,
            has_dividends: row.has(&[dividend.1]),
            adjusted_close: row.bytes(&[adjusted_close]),
            split: parse_split_shares(ratio.0, row.bytes(&[ratio.1]))?,
            line: row.line,
            bytes: row.raw.len(),
        })
    }

    /// Adds a day with unadjusted values: the price, the dividend and the split. If the price is invalid, nothing is
    /// added.
    pub(super) fn add_raw(&self, rows: &mut RowAccumulator) -> Result<(), RowError> {
        let prices = self.prices.unwrap_or_default();
        let version = BarVersion::new(0, Action::Put, rows.observed_at, None);
        rows.add_price(self.symbol.as_str().as_bytes(), self.date, &prices, version, self.line)?;
        if self.has_dividends {
            rows.evidence.add_dividend_column(self.symbol, self.date, self.line);
        }
        let closes = (prices.close, self.adjusted_close);
        rows.evidence.add_adjusted_close(self.symbol, self.date, closes, ShareBasis::Raw, self.line);
        let provenance = rows.default_provenance(self.line);
        if let Some(amount) = self.dividend {
            let dividend = regular_dividend(self.symbol, self.date, amount);
            rows.add_dividend(provenance.clone().with_record(dividend), "", self.bytes);
        }
        if let Some(shares) = self.split {
            rows.add_split(provenance.with_record(plain_split(self.symbol, self.date, shares)), self.bytes);
        }
        Ok(())
    }
}

/// Regular cash dividend as declared, without a currency.
pub(super) fn regular_dividend(symbol: &Symbol, ex_date: NaiveDate, amount: Decimal) -> Dividend {
    Dividend {
        symbol: symbol.clone(),
        amount,
        currency: "".into(),
        r#type: DividendType::Regular,
        amount_basis: ShareBasis::Raw,
        ex_date: Some(ex_date),
        record_date: None,
        payment_date: None,
        declaration_date: None,
        frequency: None,
        basis_as_of: None,
        sibling_amounts: Vec::new(),
    }
}

/// Split of `from` old shares into `to` new ones.
pub(super) fn plain_split(symbol: &Symbol, ex_date: NaiveDate, (from, to): (Decimal, Decimal)) -> Split {
    let symbol = symbol.clone();
    Split { symbol, ex_date, from, to, declaration_date: None, payable_date: None, r#type: None }
}

/// Parses a paid amount; `None` if it is absent or 0.
pub(super) fn parse_cash_amount(column: &str, cell: &[u8]) -> Result<Option<Decimal>, RowError> {
    let cell = cell.trim_ascii();
    if is_absent_value(cell) {
        return Ok(None);
    }
    let parsed = parse_decimal(&String::from_utf8_lossy(cell))
        .map_err(|error| RowError::invalid_number(column, cell, error))?;
    if parsed.value < Decimal::ZERO {
        return Err(RowError::new(
            "non_positive_amount",
            format_args!("{column} {} is below zero", parsed.value),
        ));
    }
    Ok((parsed.value > Decimal::ZERO).then_some(parsed.value))
}

/// Parses the old and new shares of a split; `None` if the ratio is absent, 0 or 1.
pub(super) fn parse_split_shares(column: &str, cell: &[u8]) -> Result<Option<(Decimal, Decimal)>, RowError> {
    let text = String::from_utf8_lossy(cell.trim_ascii());
    let parsed = parse_decimal(&text).ok().map(|ratio| ratio.value);
    if is_absent_value(text.as_bytes())
        || parsed.is_some_and(|ratio| ratio.is_zero() || ratio == Decimal::ONE)
    {
        return Ok(None);
    }
    if parsed.is_some_and(|ratio| ratio < Decimal::ZERO) {
        return Err(RowError::new("non_positive_ratio", format_args!("{column} {text} is not above zero")));
    }
    let message = format_args!("{column} {text:?} is not a ratio: write new to old, such as 4:1 or 4.0");
    parse_ratio(&text).map(Some).ok_or_else(|| RowError::new("bad_number", message))
}

/// Day numbers of a single-symbol file. The gaps between the days show if the rows are daily, weekly or monthly.
#[derive(Default)]
pub(super) struct SeriesDates(Vec<i32>);

impl SeriesDates {
    pub(super) fn push(&mut self, date: NaiveDate) {
        self.0.push(day_number(date));
    }

    /// Returns the newest day; `None` without rows. Fails if the rows are weekly or monthly. Also fails if more than
    /// half of the rows repeat the day of an earlier row.
    pub(super) fn check_daily(&mut self) -> Result<Option<i32>, FeedReadError> {
        let rows = self.0.len();
        self.0.sort_unstable();
        self.0.dedup();
        if (rows - self.0.len()) * 2 > rows {
            return Err(FeedReadError::Refused(format!(
                "has {} on {}, but one symbol has one row per day: read it under a map that names the symbol column (ingest map FILE)",
                counted(rows, "row"),
                counted(self.0.len(), "day")
            )));
        }
        match coarser_than_daily(&self.0) {
            Some(period) => {
                Err(FeedReadError::Refused(format!("has {period} rows: only daily rows are loaded")))
            }
            None => Ok(self.0.last().copied()),
        }
    }
}

/// `weekly` or `monthly`, if at least 90 % of the gaps between the sorted days have this length; otherwise `None`.
fn coarser_than_daily(days: &[i32]) -> Option<&'static str> {
    let gaps: Vec<i32> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < 4 {
        return None;
    }
    let mostly = |from: i32, to: i32| {
        gaps.iter().filter(|gap| (from..=to).contains(*gap)).count() * 10 >= gaps.len() * 9
    };
    match (mostly(6, 8), mostly(26, 33)) {
        (true, _) => Some("weekly"),
        (_, true) => Some("monthly"),
        _ => None,
    }
}

/// Reader of daily rows. It adds the dividends to the batch at the end of the file, when the basis day is known.
pub(super) struct AdjustedRowReader {
    one_symbol: bool,
    basis: ShareBasis,
    dividends: Vec<(EventRow<Dividend>, usize)>,
    days: SeriesDates,
}

impl AdjustedRowReader {
    pub(super) fn new(one_symbol: bool, basis: ShareBasis) -> Self {
        Self { one_symbol, basis, dividends: Vec::new(), days: SeriesDates::default() }
    }

    /// Adds the split and the price of a day, and collects its dividends for [`Self::finish`]. Fails for a price in the
    /// future. Announced splits and dividends may be in the future.
    pub(super) fn add(&mut self, day: &TradingDay<'_>, rows: &mut RowAccumulator) -> Result<(), RowError> {
        let (basis, symbol) = (self.basis, day.symbol);
        if day.prices.is_some() {
            rows.check_not_future("date", day.date)?;
            self.days.push(day.date);
        }
        if day.has_dividends {
            rows.evidence.add_dividend_column(symbol, day.date, day.line);
        }
        let regular = without_gain(day.dividend, day.capital_gain);
        for (amount, r#type) in
            [(regular, DividendType::Regular), (day.capital_gain, DividendType::CapitalGain)]
        {
            let Some(amount) = amount else { continue };
            let dividend =
                Dividend { r#type, amount_basis: basis, ..regular_dividend(symbol, day.date, amount) };
            self.dividends.push((rows.default_provenance(day.line).with_record(dividend), day.bytes));
        }
        if let Some(shares) = day.split {
            rows.add_split(
                rows.default_provenance(day.line).with_record(plain_split(symbol, day.date, shares)),
                day.bytes,
            );
        }
        // After an invalid price, the split and the dividends stay: other rows may be adjusted for this split.
        if let Some(cells) = &day.prices {
            let basis_day = (basis == ShareBasis::SplitAdjusted).then_some(0);
            let version = BarVersion::new(0, Action::Put, rows.observed_at, basis_day);
            rows.add_price(symbol.as_str().as_bytes(), day.date, cells, version, day.line)?;
            let closes = (cells.close, day.adjusted_close);
            rows.evidence.add_adjusted_close(symbol, day.date, closes, basis, day.line);
        }
        Ok(())
    }

    /// Checks that the rows are daily, and adds the collected dividends. If the file has one symbol and adjusted
    /// values, the newest day becomes the basis day of all rows.
    pub(super) fn finish(mut self, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
        let sets_basis_date = self.one_symbol && self.basis == ShareBasis::SplitAdjusted;
        let newest = self.days.check_daily()?.filter(|_| sets_basis_date);
        if let Some(newest) = newest {
            let Some(batch) = rows.uncut_prices_mut() else {
                return Err(FeedReadError::Refused(
                    "has more rows than a file of one symbol can have".to_owned(),
                ));
            };
            batch.set_basis_day(newest);
        }
        for (mut row, bytes) in self.dividends {
            row.record.basis_as_of = newest.map(date_of);
            rows.add_dividend(row, "", bytes);
        }
        Ok(())
    }
}

/// Dividend minus the capital gain that the vendor includes in it; `None` if nothing is left. A capital gain larger
/// than the dividend is a separate payment, and is not subtracted.
fn without_gain(dividend: Option<Decimal>, capital_gain: Option<Decimal>) -> Option<Decimal> {
    match (dividend, capital_gain) {
        (Some(dividend), Some(gain)) if gain <= dividend => {
            Some((dividend - gain).normalize()).filter(|rest| !rest.is_zero())
        }
        _ => dividend,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_days_are_not_weeks() {
        assert_eq!(coarser_than_daily(&[1, 6, 7, 20, 27, 28]), None);
        assert_eq!(coarser_than_daily(&[1, 8, 15, 22, 29]), Some("weekly"));
        assert_eq!(coarser_than_daily(&[0, 31, 59, 90, 120]), Some("monthly"));
    }
}
