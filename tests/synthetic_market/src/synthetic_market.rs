//! Inputs common to all securities of a generated market: sessions, seed and market return.

use anyhow::{Context, ensure};
use chrono::{Datelike, Months, NaiveDate};

use super::csv_row::date_bytes;
use super::exchange_rates::ExchangeRates;
use super::random::{BELL_DEVIATION, SplitMix64, bell};
use super::session_positions::SessionPositions;

/// Inputs common to all securities of a generated market.
#[derive(Debug)]
pub(super) struct SyntheticMarket {
    pub(super) seed: u64,
    pub(super) symbols: u64,
    pub(super) sessions: SessionPositions,
    /// Return of the market in each session, in millionths. Element `n` belongs to the session at position `n`.
    pub(super) returns: Vec<i64>,
    /// Date of each session as the text of a CSV cell. Element `n` belongs to the session at position `n`.
    pub(super) dates: Vec<[u8; 10]>,
    pub(super) rates: ExchangeRates,
    /// First calendar year that is completely within the history. `last_complete_year` is always the year before the
    /// end of the history, even if the history ends on 31 December.
    pub(super) first_complete_year: i32,
    pub(super) last_complete_year: i32,
    /// True if some securities have well-known tickers.
    pub(super) familiar_tickers: bool,
    /// Percentage of securities with a deliberate data error. Each of them has one error.
    pub(super) fault_percent: u32,
}

/// Standard deviation of the market's daily return, in millionths.
const VOLATILITY: i64 = 9_000;

impl SyntheticMarket {
    /// Creates a market with a history of `years` years, up to the newest session on or before `until`. All tickers are
    /// invented, and the data have no deliberate errors.
    pub(super) fn new(symbols: u64, years: u32, seed: u64, until: NaiveDate) -> anyhow::Result<Self> {
        let start = until
            .checked_sub_months(Months::new(years * 12))
            .and_then(|day| day.succ_opt())
            .filter(|day| day.year() >= 1955 && until.year() <= 2100)
            .context("the history is outside the calendar, which has the years 1955 to 2100")?;
        let sessions = SessionPositions::new(start, until).context("the history has no session")?;
        ensure!(sessions.last - sessions.first >= 60, "the history has too few sessions");
        let mut random = SplitMix64::new(seed, u64::MAX - 1);
        let returns =
            (0..=sessions.last).map(|_| bell(random.next()) * VOLATILITY / BELL_DEVIATION).collect();
        let dates = (0..=sessions.last).map(|position| date_bytes(sessions.day(position))).collect();
        let starts_a_year = start.month() == 1 && start.day() == 1;
        Ok(Self {
            seed,
            symbols,
            returns,
            dates,
            rates: ExchangeRates::new(seed, &sessions),
            first_complete_year: start.year() + i32::from(!starts_a_year),
            last_complete_year: until.year() - 1,
            familiar_tickers: false,
            fault_percent: 0,
            sessions,
        })
    }
}
