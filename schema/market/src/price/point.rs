//! A price point in exact decimals: what `latest` serves, and what the fast writer is held against.

use crate::bars::{MISSING, date_of};
use crate::measure::adjust::Factor;
use crate::table_row;
use crate::value::{Exact, round};
use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::cumulative::{Basis, CumulativeFactors};
use super::period::Period;
use super::raw::RawBars;

table_row! {
    /// A bar. open, high, low, close, volume, vwap and change are on the requested basis.
    pub struct PricePoint {
        /// Session; the last one of the period.
        "date" date: NaiveDate,
        /// First price of the period.
        "open" open: Option<Exact>,
        /// Highest price.
        "high" high: Option<Exact>,
        /// Lowest price.
        "low" low: Option<Exact>,
        /// Last price.
        "close" close: Exact,
        /// Shares traded.
        "volume" volume: Option<i64>,
        /// Volume-weighted average price.
        "vwap" vwap: Option<Exact>,
        /// Number of trades.
        "trade_count" trade_count: Option<i64>,
        /// Last price as traded.
        "raw_close" raw_close: Exact,
        /// Last price adjusted for splits and dividends (R11).
        "adj_close" adj_close: Exact,
        /// Multiply into a raw price for today's share basis.
        "split_factor" split_factor: Exact,
        /// Multiply into a raw price for adj_close.
        "total_factor" total_factor: Exact,
        /// Cash that went ex in the period, a share, as declared.
        "dividend" dividend: Option<Exact>,
        /// New shares per old share in the period.
        "split_ratio" split_ratio: Option<Exact>,
        /// Change of the close against the session before the period.
        "change" change: Option<Exact>,
        /// The same, percent.
        "change_percent" change_percent: Option<Exact>,
    }
}

/// A security's bars with what adjusts them.
#[derive(Debug)]
pub struct Adjusted<'a> {
    /// Raw bars, by day.
    pub bars: &'a RawBars,
    /// What brings each of them to the newest basis.
    pub cumulative: &'a CumulativeFactors,
    /// The same by ex-date.
    pub factors: &'a [Factor],
    /// The basis that is asked for.
    pub basis: Basis,
}

impl Adjusted<'_> {
    /// A raw value of a session on a basis, unrounded.
    pub fn exact(&self, session: usize, value: i64, basis: Basis) -> Option<Decimal> {
        let raw = (value != MISSING).then(|| Decimal::new(value, u32::from(self.bars.scale[session])))?;
        Some(self.cumulative.at(self.cumulative.position(self.bars.day[session])).exact(raw, basis))
    }

    /// Shares traded in a period, on the requested basis; `None` when unknown or beyond 64 bits.
    pub fn volume(&self, period: &Period) -> Option<i64> {
        sum(period
            .clone()
            .filter(|session| self.bars.volume[*session] != MISSING)
            .map(|session| self.shares(session)))
    }

    /// Trades in a period; `None` when unknown or beyond 64 bits.
    pub fn trade_count(&self, period: &Period) -> Option<i64> {
        sum(period
            .clone()
            .map(|session| self.bars.trade_count[session])
            .filter(|count| *count != MISSING)
            .map(Some))
    }

    /// Shares of a session on the requested basis.
    pub fn shares(&self, session: usize) -> Option<i64> {
        let volume = self.bars.volume[session];
        let step = self.cumulative.at(self.cumulative.position(self.bars.day[session]));
        if volume == MISSING || self.basis == Basis::Raw {
            return (volume != MISSING).then_some(volume);
        }
        step.shares(volume)
    }

    /// The mean of the sessions' average prices by volume; unknown when a session's is.
    pub fn vwap(&self, period: &Period) -> Option<Decimal> {
        if period.len() == 1 {
            return self.exact(period.start, self.bars.vwap[period.start], self.basis);
        }
        let (mut value, mut shares) = (Decimal::ZERO, Decimal::ZERO);
        for session in period.clone() {
            let volume = Decimal::from(self.shares(session)?);
            let price = self.exact(session, self.bars.vwap[session], self.basis)?;
            value = value.checked_add(price.checked_mul(volume)?)?;
            shares = shares.checked_add(volume)?;
        }
        value.checked_div(shares).map(|mean| round(mean, 18))
    }

    /// Events of a period: cash a share, and new shares per old share.
    pub fn events(&self, period: &Period) -> (Option<Decimal>, Option<Decimal>) {
        // An ex-date without a session of its own shows on the next one.
        let after = period.start.checked_sub(1).map_or(self.bars.day[0] - 1, |before| self.bars.day[before]);
        let last = self.bars.day[period.end - 1];
        let during = |factor: &&Factor| {
            let day = crate::bars::day_number(factor.ex_date);
            after < day && day <= last
        };
        // An amount has ten integer digits at most, so no number of ex-dates that fits a period overflows their sum.
        let (mut cash, mut ratio) = (Decimal::ZERO, Decimal::ONE);
        for factor in self.factors.iter().filter(during) {
            cash += factor.dividend;
            ratio = factor.split.inverse().apply(ratio);
        }
        ((!cash.is_zero()).then_some(cash), (ratio != Decimal::ONE).then(|| round(round(ratio, 18), 12)))
    }

    /// The change of the close against the session before, unrounded, and in percent.
    pub fn change(&self, period: &Period) -> Option<(Decimal, Option<Decimal>)> {
        let (last, before) = (period.end - 1, period.start.checked_sub(1)?);
        let close = self.exact(last, self.bars.close[last], self.basis)?;
        let previous = self.exact(before, self.bars.close[before], self.basis)?;
        let change = close.checked_sub(previous)?;
        let percent = change.checked_div(previous).and_then(|ratio| ratio.checked_mul(Decimal::ONE_HUNDRED));
        Some((change, percent.map(|percent| round(percent, 18))))
    }

    /// The point of a period, by decimal arithmetic alone.
    pub fn point(&self, period: &Period) -> PricePoint {
        let last = period.end - 1;
        let price = |session: usize, column: &[i64]| {
            self.exact(session, column[session], self.basis).map(Exact::amount)
        };
        let prices = |column: &'static str| {
            let column = match column {
                "open" => &self.bars.open,
                "high" => &self.bars.high,
                _ => &self.bars.low,
            };
            period.clone().filter_map(|session| price(session, column)).collect::<Vec<_>>()
        };
        let close = |basis| Exact::amount(self.exact(last, self.bars.close[last], basis).unwrap_or_default());
        let step = self.cumulative.at(self.cumulative.position(self.bars.day[last]));
        let (dividend, split_ratio) = self.events(period);
        let change = self.change(period);
        PricePoint {
            date: date_of(self.bars.day[last]),
            open: prices("open").first().copied(),
            high: prices("high").into_iter().max(),
            low: prices("low").into_iter().min(),
            close: close(self.basis),
            volume: self.volume(period),
            vwap: self.vwap(period).map(Exact::amount),
            trade_count: self.trade_count(period),
            raw_close: close(Basis::Raw),
            adj_close: close(Basis::All),
            split_factor: Exact(step.factor(Basis::Split)),
            total_factor: Exact(step.factor(Basis::All)),
            dividend: dividend.map(Exact::amount),
            split_ratio: split_ratio.map(Exact),
            change: change.map(|(change, _)| Exact::amount(change)),
            change_percent: change.and_then(|(_, percent)| percent).map(Exact::percent),
        }
    }
}

/// The sum of what is known; `None` when nothing is, or when it does not fit.
fn sum(mut values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let first = values.next()??;
    values.try_fold(first, |sum, value| sum.checked_add(value?))
}
