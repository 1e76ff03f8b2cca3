//! Exchange rates of the market: units of each currency for one euro, on every working day of the history.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate};

use super::csv_row::CsvRow;
use super::random::{BELL_DEVIATION, SplitMix64, bell};
use super::session_positions::SessionPositions;
use super::share_changes::scaled;

/// Columns that [`ExchangeRates::write`] writes.
pub(super) const RATE_COLUMNS: &str = "date,base,quote,rate";
/// Base of all rates, as in the reference rates of the European Central Bank.
const BASE: &str = "EUR";
/// Position of the dollar in [`LEVELS`].
const DOLLAR: usize = 0;

/// Currencies, each with its long-term rate in millionths.
const LEVELS: [(&str, i64); 9] = [
    ("USD", 1_087_000),
    ("JPY", 161_000_000),
    ("GBP", 870_000),
    ("CNY", 7_800_000),
    ("AUD", 1_650_000),
    ("CAD", 1_480_000),
    ("CHF", 950_000),
    ("HKD", 8_480_000),
    ("SGD", 1_460_000),
];

/// Standard deviation of the daily change, in millionths of the rate.
const VOLATILITY: i64 = 5_000;
/// Mean reversion: on each day, the rate moves towards its level by 1/`REVERSION` of their difference.
const REVERSION: i64 = 512;
/// Published rates are multiples of this number of millionths, so they have four decimals.
const STEP: i64 = 100;

/// Rates of each working day in millionths, in the order of [`LEVELS`].
#[derive(Debug)]
pub(super) struct ExchangeRates(BTreeMap<NaiveDate, [i64; LEVELS.len()]>);

impl ExchangeRates {
    /// Random walks of all currencies around their levels.
    pub(super) fn new(seed: u64, sessions: &SessionPositions) -> Self {
        let mut random = SplitMix64::new(seed, u64::MAX - 2);
        let mut rates = LEVELS.map(|(_, level)| level);
        let days = sessions.day(sessions.first).iter_days().take_while(|day| *day <= sessions.last_day());
        let mut published = BTreeMap::new();
        for day in days.filter(|day| day.weekday().number_from_monday() < 6) {
            for (rate, (_, level)) in rates.iter_mut().zip(LEVELS) {
                let change = bell(random.next()) * VOLATILITY / BELL_DEVIATION;
                *rate += *rate * change / 1_000_000 + (level - *rate) / REVERSION;
            }
            published.insert(day, rates.map(|rate| rate / STEP * STEP));
        }
        Self(published)
    }

    /// Converts an amount in dollars at the rate of a working day.
    #[inline]
    pub(super) fn convert_dollars(&self, amount: i64, currency: &str, day: NaiveDate) -> i64 {
        if currency == LEVELS[DOLLAR].0 {
            return amount;
        }
        let rates = self.0[&day];
        let place = LEVELS.iter().position(|(known, _)| *known == currency);
        let per_euro = place.map_or(1_000_000, |place| rates[place]);
        scaled(amount, per_euro, rates[DOLLAR])
    }

    /// Appends the rows of all days, and returns their number.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> u64 {
        for (day, rates) in &self.0 {
            for ((currency, _), rate) in LEVELS.iter().zip(rates) {
                CsvRow::new(out).date(*day).text(BASE).text(currency).micros(*rate).end();
            }
        }
        (self.0.len() * LEVELS.len()) as u64
    }
}
