//! `quotes`: the comprehensive end-of-day quote of one security.

use chrono::{DateTime, NaiveDate, Utc};

use crate::value::Exact;
use crate::{table_row, text_enum};

text_enum! {
    /// What the quote rests on: end-of-day bars.
    pub enum QuoteSource { Eod = "eod" }
}

table_row! {
    /// End-of-day quote. Prices are raw, in `currency`; averages and ranges are split-adjusted.
    pub struct Quote {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code.
        "exchange" exchange: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// ISO 4217.
        "currency" currency: String,
        /// Latest close, carried through splits since; null without any price.
        "price" price: Option<Exact>,
        /// Open of the latest session.
        "open" open: Option<Exact>,
        /// High of the latest session.
        "day_high" day_high: Option<Exact>,
        /// Low of the latest session.
        "day_low" day_low: Option<Exact>,
        /// Close of the session before, on the latest session's share basis.
        "previous_close" previous_close: Option<Exact>,
        /// price - previous_close.
        "change" change: Option<Exact>,
        /// change / previous_close, percent.
        "change_percent" change_percent: Option<Exact>,
        /// Shares traded in the latest session.
        "volume" volume: Option<i64>,
        /// Mean split-adjusted volume of the newest 30 sessions, shares.
        "avg_volume_30d" avg_volume_30d: Option<i64>,
        /// Mean split-adjusted close of the newest 50 sessions; null with fewer.
        "sma_50" sma_50: Option<Exact>,
        /// Mean split-adjusted close of the newest 200 sessions; null with fewer.
        "sma_200" sma_200: Option<Exact>,
        /// Highest split-adjusted intraday price of the last 12 months (R22).
        "year_high" year_high: Option<Exact>,
        /// Its session.
        "year_high_date" year_high_date: Option<NaiveDate>,
        /// Lowest split-adjusted intraday price of the last 12 months (R22).
        "year_low" year_low: Option<Exact>,
        /// Its session.
        "year_low_date" year_low_date: Option<NaiveDate>,
        /// Whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Shares outstanding, brought through splits.
        "shares_outstanding" shares_outstanding: Option<i64>,
        /// Price over split-adjusted diluted EPS of twelve months; null when EPS <= 0.
        "pe_ratio" pe_ratio: Option<Exact>,
        /// Diluted earnings per share of twelve months, split-adjusted.
        "eps_ttm" eps_ttm: Option<Exact>,
        /// Headline dividend yield, percent (R9).
        "dividend_yield" dividend_yield: Option<Exact>,
        /// Dividends a year per share behind the headline yield, in `dividend_currency`.
        "annual_dividend" annual_dividend: Option<Exact>,
        /// ISO 4217 currency of the dividends; null when none was ever paid.
        "dividend_currency" dividend_currency: Option<String>,
        /// Session of the latest close.
        "price_date" price_date: Option<NaiveDate>,
        /// Always eod.
        "source" source: QuoteSource,
        /// When the newest fact behind the row was observed.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
