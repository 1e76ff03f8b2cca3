//! Rows whose prices and dividends are adjusted for the splits up to the newest of them, or not at all.
//!
//! A file of one symbol says itself which day that is. In a table of many, whose series end when they may, it is the newest
//! day that the source has of each.

use chrono::NaiveDate;
use market::bars::BarVersion;
use market::day::date_of;
use market::event::{Action, Dividend, DividendType, EventRow, ShareBasis};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::day::{Days, cash, split};
use super::reading::{Options, ReadError};
use crate::batch::accumulator::Collector;
use crate::normalize::Fault;
use crate::price::parse::PriceCells;

/// What happened to a security on a day.
pub(super) struct Day<'a> {
    pub(super) symbol: &'a Symbol,
    pub(super) date: NaiveDate,
    /// None of a file that has no prices.
    pub(super) prices: Option<PriceCells<'a>>,
    /// All that was paid, capital gains included.
    pub(super) dividend: Option<Decimal>,
    pub(super) capital_gain: Option<Decimal>,
    /// Old and new shares.
    pub(super) split: Option<(Decimal, Decimal)>,
    pub(super) line: u64,
    /// Length of the text it was read from.
    pub(super) bytes: usize,
}

/// The rows of a file, of which some is known only when all were read.
pub(super) struct NewestBasis<'a> {
    one_symbol: bool,
    basis: ShareBasis,
    options: &'a Options,
    dividends: Vec<(EventRow<Dividend>, usize)>,
    days: Days,
}

impl<'a> NewestBasis<'a> {
    /// No rows yet.
    pub(super) fn new(one_symbol: bool, basis: ShareBasis, options: &'a Options) -> Self {
        Self { one_symbol, basis, options, dividends: Vec::new(), days: Days::default() }
    }

    /// Adds a day's dividends, split and price. What was paid and split stays when the price is refused, and so does the
    /// day: the file's rows are adjusted for its split too.
    pub(super) fn add(&mut self, day: &Day<'_>, rows: &mut Collector) -> Result<(), Fault> {
        let Self { basis, options, .. } = *self;
        let symbol = day.symbol;
        if day.prices.is_some() {
            rows.not_ahead("date", day.date)?;
            self.days.push(day.date);
        }
        let regular = without_gain(day.dividend, day.capital_gain);
        for (amount, r#type) in
            [(regular, DividendType::Regular), (day.capital_gain, DividendType::CapitalGain)]
        {
            let Some(amount) = amount else { continue };
            let dividend =
                Dividend { r#type, amount_basis: basis, ..cash(symbol, day.date, amount, options) };
            self.dividends.push((rows.origin(day.line).row(dividend), day.bytes));
        }
        if let Some(shares) = day.split {
            rows.split(rows.origin(day.line).row(split(symbol, day.date, shares)), day.bytes);
        }
        if let Some(cells) = &day.prices {
            let basis_day = (basis == ShareBasis::SplitAdjusted).then_some(0);
            let version = BarVersion::new(0, Action::Put, rows.observed_at(), basis_day);
            rows.price(symbol.as_str().as_bytes(), day.date, cells, version, day.line)?;
        }
        Ok(())
    }

    /// Checks that the rows are daily and names the share basis they are on: that of the newest of one symbol.
    pub(super) fn finish(mut self, rows: &mut Collector) -> Result<(), ReadError> {
        let named = self.one_symbol && self.basis == ShareBasis::SplitAdjusted;
        let newest = self.days.check_daily()?.filter(|_| named);
        if let Some(newest) = newest {
            let Some(batch) = rows.whole_prices() else {
                return Err(ReadError::Refused("has more rows than one symbol has days".to_owned()));
            };
            batch.set_basis_day(newest);
        }
        for (mut row, bytes) in self.dividends {
            row.record.basis_as_of = newest.map(date_of);
            rows.dividend(row, bytes);
        }
        Ok(())
    }
}

/// The dividend less the capital gain that is a part of it; a gain larger than the dividend stands beside it.
fn without_gain(dividend: Option<Decimal>, capital_gain: Option<Decimal>) -> Option<Decimal> {
    match (dividend, capital_gain) {
        (Some(dividend), Some(gain)) if gain <= dividend => {
            Some((dividend - gain).normalize()).filter(|rest| !rest.is_zero())
        }
        _ => dividend,
    }
}
