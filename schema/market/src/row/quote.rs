//! Table `quotes`: one row for each security, with its end-of-day quote.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::{table_row, text_enum};

text_enum! {
    /// Kind of the quote: end of day.
    pub enum QuoteSource { Eod = "eod" }
}

table_row! {
    /// End-of-day quote. Prices, averages and ranges are in `currency`, adjusted for splits, but not for dividends.
    pub struct Quote {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code.
        "exchange" exchange: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// ISO 4217 currency of the prices.
        "currency" currency: String,
        /// Latest close, adjusted for the splits after its session; null without a price.
        "price" price: Option<ExactDecimal>,
        /// Open of the latest session.
        "open" open: Option<ExactDecimal>,
        /// High of the latest session.
        "day_high" day_high: Option<ExactDecimal>,
        /// Low of the latest session.
        "day_low" day_low: Option<ExactDecimal>,
        /// Close of the previous session, adjusted for splits after it.
        "previous_close" previous_close: Option<ExactDecimal>,
        /// Change of the price since the previous session: price - previous_close.
        "change" change: Option<ExactDecimal>,
        /// Change of the price since the previous session, percent: change / previous_close.
        "change_percent" change_percent: Option<ExactDecimal>,
        /// Shares traded in the latest session.
        "volume" volume: Option<i64>,
        /// Mean split-adjusted volume of the newest 30 sessions, shares.
        "avg_volume_30d" avg_volume_30d: Option<i64>,
        /// Mean split-adjusted close of the newest 50 sessions; null with fewer sessions.
        "sma_50" sma_50: Option<ExactDecimal>,
        /// Mean split-adjusted close of the newest 200 sessions; null with fewer sessions.
        "sma_200" sma_200: Option<ExactDecimal>,
        /// Highest split-adjusted intraday price of the last 12 months (R22).
        "year_high" year_high: Option<ExactDecimal>,
        /// Session (trading day) of `year_high`.
        "year_high_date" year_high_date: Option<NaiveDate>,
        /// Lowest split-adjusted intraday price of the last 12 months (R22).
        "year_low" year_low: Option<ExactDecimal>,
        /// Session of `year_low`.
        "year_low_date" year_low_date: Option<NaiveDate>,
        /// Market capitalisation, whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Shares outstanding, adjusted for splits.
        "shares_outstanding" shares_outstanding: Option<i64>,
        /// Price over split-adjusted diluted EPS of twelve months; null if EPS is 0 or less.
        "pe_ratio" pe_ratio: Option<ExactDecimal>,
        /// Diluted earnings per share of twelve months, split-adjusted.
        "eps_ttm" eps_ttm: Option<ExactDecimal>,
        /// Headline dividend yield, percent (R9).
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// Annual dividend per share from which the headline yield is computed, in `dividend_currency`: the forward
        /// dividend, or else the trailing dividend.
        "annual_dividend" annual_dividend: Option<ExactDecimal>,
        /// ISO 4217 currency of the dividends; null for non-payers.
        "dividend_currency" dividend_currency: Option<String>,
        /// Session of the latest close.
        "price_date" price_date: Option<NaiveDate>,
        /// Kind of the quote, always `eod` (end of day). Unlike the `source` of a dividend, this field does not name a
        /// feed.
        "source" source: QuoteSource,
        /// Time at which a feed reported the newest data used for the row.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
