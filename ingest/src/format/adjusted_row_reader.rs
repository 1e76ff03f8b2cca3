//! Reader of daily rows that are raw, or adjusted for all splits up to a basis day.
//!
//! The basis day of a file of one symbol is the day of the newest row. The projector chooses the basis day of symbols
//! in other files.

use market::bars::BarVersion;
use market::day::date_of;
use market::event::{Action, Dividend, DividendType, EventRow, ShareBasis};
use rust_decimal::Decimal;

use super::file_format::{FeedReadError, ReaderOptions};
use super::trading_day::{SeriesDates, TradingDay, plain_split, regular_dividend};
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::RowError;

/// Reader of daily rows. It adds the dividends to the batch at the end of the file, when the basis day is known.
pub(super) struct AdjustedRowReader<'a> {
    one_symbol: bool,
    basis: ShareBasis,
    options: &'a ReaderOptions,
    dividends: Vec<(EventRow<Dividend>, usize)>,
    days: SeriesDates,
}

impl<'a> AdjustedRowReader<'a> {
    pub(super) fn new(one_symbol: bool, basis: ShareBasis, options: &'a ReaderOptions) -> Self {
        Self { one_symbol, basis, options, dividends: Vec::new(), days: SeriesDates::default() }
    }

    /// Adds the split and the price of a day, and collects its dividends for [`Self::finish`]. Fails for a price in the
    /// future. Announced splits and dividends may be in the future.
    pub(super) fn add(&mut self, day: &TradingDay<'_>, rows: &mut RowAccumulator) -> Result<(), RowError> {
        let Self { basis, options, .. } = *self;
        let symbol = day.symbol;
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
            let dividend = Dividend {
                r#type,
                amount_basis: basis,
                ..regular_dividend(symbol, day.date, amount, options)
            };
            self.dividends.push((rows.default_provenance(day.line).into_row(dividend), day.bytes));
        }
        if let Some(shares) = day.split {
            rows.add_split(
                rows.default_provenance(day.line).into_row(plain_split(symbol, day.date, shares)),
                day.bytes,
            );
        }
        // After an invalid price, the split and the dividends stay: other rows may be adjusted for this split.
        if let Some(cells) = &day.prices {
            let basis_day = (basis == ShareBasis::SplitAdjusted).then_some(0);
            let version = BarVersion::new(0, Action::Put, rows.observed_at(), basis_day);
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
            rows.add_dividend(row, bytes);
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
