//! Table `stocks`: one row for each security, with headline figures, figures for lists, and the parts of the response
//! of `/v1/stocks/{symbol}`.
//!
//! Table `sectors`: one row for each sector, with statistics over its active stocks (R25).

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::metrics::{NextDividend, YieldBasis};
use crate::column::JsonColumn;
use crate::dated_text::LimitToHistory;
use crate::decimal::ExactDecimal;
use crate::event::{FormerSymbol, Frequency, SecurityType};
use crate::table_row;

table_row! {
    /// A stock, ETF or other listed security with its headline figures.
    pub struct StockRow {
        /// Canonical ticker, for example BRK.B.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code of the primary listing.
        "exchange" exchange: Option<String>,
        /// Security type.
        "type" r#type: SecurityType,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Industry name.
        "industry" industry: Option<String>,
        /// Country of domicile.
        "country" country: Option<String>,
        /// ISO 4217 currency of prices and of all money figures except `annual_dividend` and `reporting_market_cap`.
        "currency" currency: String,
        /// True if the security still trades on the as-of date.
        "is_active" is_active: bool,
        /// Last trading day of a delisted security.
        "delisted_on" delisted_on: Option<NaiveDate>,
        /// Latest close, adjusted for splits after its session, but not for dividends.
        "price" price: Option<ExactDecimal>,
        /// Session of the latest close.
        "price_date" price_date: Option<NaiveDate>,
        /// Market capitalisation, whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Market capitalisation in whole units of the reporting currency (US dollars unless the operator chose
        /// another one), at the rate of the day of the price. Null without a rate. Lists are filtered and sorted by it.
        "reporting_market_cap" reporting_market_cap: Option<i64>,
        /// True if the security trades and its dividend status is active; null if the dividends are unknown (R38).
        "pays_dividend" pays_dividend: Option<bool>,
        /// Headline dividend yield, percent (R9).
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
        /// Basis of the headline yield: forward or trailing dividends.
        "yield_basis" yield_basis: Option<YieldBasis>,
        /// Annual dividend per share from which the headline yield is computed, in `dividend_currency`: the forward
        /// dividend, or else the trailing dividend.
        "annual_dividend" annual_dividend: Option<ExactDecimal>,
        /// ISO 4217 currency of the dividends; null for non-payers. If it differs from `currency`, yields use exchange
        /// rates, and are null without a rate (R42).
        "dividend_currency" dividend_currency: Option<String>,
        /// Payment frequency. `none` is for non-payers, `unknown` for a frequency that cannot be determined.
        "frequency" frequency: Option<Frequency>,
        /// Next ex-dividend date, declared or projected (R19).
        "next_ex_date" next_ex_date: Option<NaiveDate>,
        /// Consecutive years of dividend increases (R14).
        "increase_streak_years" increase_streak_years: Option<i32>,
        /// Number of quarantined rows, which no figure uses. The field `quarantined` of the metrics lists these rows.
        "held_rows" held_rows: i32,
        /// Time at which a feed reported the newest data used for the row.
        "updated_at" updated_at: DateTime<Utc>,
    }
}

table_row! {
    /// Figures that a screener row has in addition to the stock row.
    pub struct ScreenerFigures {
        /// Trailing yield of regular dividends, percent.
        "yield_ttm" yield_ttm: Option<ExactDecimal>,
        /// Forward yield, percent.
        "yield_forward" yield_forward: Option<ExactDecimal>,
        /// Payout ratio: dividends over earnings, percent.
        "payout_ratio" payout_ratio: Option<ExactDecimal>,
        /// Dividend growth of the last complete year over the previous year, percent.
        "growth_1y" growth_1y: Option<ExactDecimal>,
        /// Compound growth over 3 years, percent a year.
        "growth_3y" growth_3y: Option<ExactDecimal>,
        /// Compound growth over 5 years, percent a year.
        "growth_5y" growth_5y: Option<ExactDecimal>,
        /// Compound growth over 10 years, percent a year.
        "growth_10y" growth_10y: Option<ExactDecimal>,
        /// Consecutive years with a regular payment.
        "payment_streak_years" payment_streak_years: Option<i32>,
        /// Price over earnings per share, a ratio.
        "pe_ratio" pe_ratio: Option<ExactDecimal>,
        /// Beta against the benchmark, a ratio.
        "beta" beta: Option<ExactDecimal>,
        /// Shares traded in the latest session.
        "volume" volume: Option<i64>,
        /// True for a Dividend Aristocrat (R15).
        "is_dividend_aristocrat" is_dividend_aristocrat: bool,
        /// True for a Dividend King (R15).
        "is_dividend_king" is_dividend_king: bool,
    }
}

table_row! {
    /// Figures for filtering and sorting of lists. The figures in [`ScreenerFigures`] are also part of the rows of a
    /// screener response. The other figures of this struct are not part of any list response.
    pub struct StockFigures {
        ..screened: ScreenerFigures,
        /// Age of the latest close: number of sessions after it, up to the as-of date (R18, R21).
        "price_age_sessions" price_age_sessions: Option<i32>,
        /// True if the headline yield is above 25 percent. The high-yield screen excludes such a security (R18).
        "yield_suspect" yield_suspect: bool,
        /// Price change in the latest session, percent.
        "change_percent" change_percent: Option<ExactDecimal>,
        /// Price change since the last close of the previous year, split-adjusted, percent.
        "change_percent_ytd" change_percent_ytd: Option<ExactDecimal>,
        /// Stock indexes that contain the security.
        #[schema(value_type = Vec<String>)]
        "indexes" indexes: JsonColumn<Vec<String>>,
    }
}

table_row! {
    /// Row of the table `stocks`. It consists of the headline figures ([`StockRow`]), the figures for lists
    /// ([`StockFigures`]), and the parts of the snapshot, which is the response of `/v1/stocks/{symbol}`.
    pub struct Stock {
        ..listed: StockRow,
        ..figures: StockFigures,
        /// Identifiers of the security.
        #[schema(value_type = Identifiers)]
        "identifiers" identifiers: JsonColumn<Identifiers>,
        /// Company profile.
        #[schema(value_type = Company)]
        "company" company: JsonColumn<Company>,
        /// Price figures of the latest session.
        #[schema(value_type = Pricing)]
        "pricing" pricing: JsonColumn<Pricing>,
        /// Dividend figures.
        #[schema(value_type = StockDividends)]
        "dividends" dividends: JsonColumn<StockDividends>,
        /// First and last days of the security's prices and dividends.
        #[schema(value_type = Coverage)]
        "coverage" coverage: JsonColumn<Coverage>,
    }
}

/// Identifiers of a security.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Identifiers {
    /// Central Index Key at the SEC.
    pub cik: Option<String>,
    /// Financial Instrument Global Identifier.
    pub figi: Option<String>,
    /// International Securities Identification Number.
    pub isin: Option<String>,
    /// CUSIP number.
    pub cusip: Option<String>,
    /// Former symbols with the days of their use.
    #[schema(value_type = Vec<Object>)]
    pub former_symbols: Vec<FormerSymbol>,
}

table_row! {
    /// Listing of a security on a market.
    #[derive(serde::Deserialize)]
    pub struct Listing {
        /// Canonical ticker of the listing.
        "symbol" symbol: String,
        /// Market identifier code of the listing.
        "exchange" exchange: Option<String>,
        /// ISO 4217 currency of its prices.
        "currency" currency: String,
    }
}

impl std::fmt::Display for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { symbol, exchange, currency } = self;
        write!(
            f,
            "{symbol} ({}{currency})",
            exchange.as_ref().map(|at| format!("{at}, ")).unwrap_or_default()
        )
    }
}

/// Company profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Company {
    /// Description of the business.
    pub description: Option<String>,
    /// Chief executive.
    pub ceo: Option<String>,
    /// Number of employees.
    pub employees: Option<i64>,
    /// Website.
    pub website: Option<String>,
    /// Day of the initial public offering.
    pub ipo_date: Option<NaiveDate>,
}

/// Prices in the snapshot of a security. They equal the price fields of its quote, in the currency of its stock row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Pricing {
    /// Latest close in the row's currency, adjusted for splits after its session, but not for dividends.
    pub price: Option<ExactDecimal>,
    /// Open of the latest session.
    pub open: Option<ExactDecimal>,
    /// High of the latest session.
    pub day_high: Option<ExactDecimal>,
    /// Low of the latest session.
    pub day_low: Option<ExactDecimal>,
    /// Close of the previous session, adjusted for splits after it.
    pub previous_close: Option<ExactDecimal>,
    /// Change of the price since the previous session: price - previous_close.
    pub change: Option<ExactDecimal>,
    /// Change of the price since the previous session, percent: change / previous_close.
    pub change_percent: Option<ExactDecimal>,
    /// Shares traded in the latest session.
    pub volume: Option<i64>,
    /// Mean volume of the newest 30 sessions, shares.
    pub avg_volume_30d: Option<i64>,
    /// Mean split-adjusted close of the newest 50 sessions; null with fewer sessions.
    pub sma_50: Option<ExactDecimal>,
    /// Mean split-adjusted close of the newest 200 sessions; null with fewer sessions.
    pub sma_200: Option<ExactDecimal>,
    /// Highest split-adjusted intraday price of the last 12 months (R22).
    pub year_high: Option<ExactDecimal>,
    /// Session of `year_high`.
    pub year_high_date: Option<NaiveDate>,
    /// Lowest split-adjusted intraday price of the last 12 months (R22).
    pub year_low: Option<ExactDecimal>,
    /// Session of `year_low`.
    pub year_low_date: Option<NaiveDate>,
    /// Session of the latest close.
    pub price_date: Option<NaiveDate>,
}

/// The newest cash distribution, regular or special, with an ex-date on or before the as-of date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastDividend {
    /// First day on which a buyer of the share did not receive the distribution.
    pub ex_date: NaiveDate,
    /// Payment date; null if unknown.
    pub payment_date: Option<NaiveDate>,
    /// Amount per share as declared.
    pub amount: ExactDecimal,
    /// Type of the distribution, as declared.
    #[serde(rename = "type")]
    pub r#type: crate::event::DividendType,
}

/// Dividend figures in the snapshot of a security.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct StockDividends {
    /// Trailing yield, percent.
    pub yield_ttm: Option<ExactDecimal>,
    /// Forward yield, percent.
    pub yield_forward: Option<ExactDecimal>,
    /// Annual dividend per share from which the headline yield is computed, in `currency`: the forward dividend, or
    /// else the trailing dividend.
    pub annual_amount: Option<ExactDecimal>,
    /// ISO 4217 currency of the amounts; null for non-payers.
    pub currency: Option<String>,
    /// Payment frequency (R5).
    pub frequency: Option<Frequency>,
    /// Payout ratio: dividends over earnings, percent.
    pub payout_ratio: Option<ExactDecimal>,
    /// Five-year growth, percent a year.
    pub growth_5y: Option<ExactDecimal>,
    /// The next ex-dividend date (R19).
    pub next: Option<NextDividend>,
    /// The newest cash distribution, regular or special, with an ex-date on or before the as-of date. Null if there is
    /// none, and if its ex-date is before the history of the caller's subscription tier.
    pub last: Option<LastDividend>,
}

impl LimitToHistory for StockDividends {
    /// Removes the last dividend if its ex-date is before `first`.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.last = self.last.filter(|last| last.ex_date >= first);
        self
    }
}

/// First and last days of the security's prices and dividends. Days before the history of the caller's subscription
/// tier are null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Coverage {
    /// First session with a price.
    pub prices_from: Option<NaiveDate>,
    /// Last session with a price.
    pub prices_to: Option<NaiveDate>,
    /// First known ex-date.
    pub dividends_from: Option<NaiveDate>,
    /// Last known ex-date. Declared future ex-dates are included.
    pub dividends_to: Option<NaiveDate>,
}

impl LimitToHistory for Coverage {
    /// Replaces days before `first` by null.
    fn limit_to_days_from(self, first: NaiveDate) -> Self {
        let included = |day: Option<NaiveDate>| day.filter(|day| *day >= first);
        Self {
            prices_from: included(self.prices_from),
            prices_to: included(self.prices_to),
            dividends_from: included(self.dividends_from),
            dividends_to: included(self.dividends_to),
        }
    }
}

/// One industry of a sector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Industry {
    /// Industry name.
    pub industry: String,
    /// Number of active stocks of the industry. Stocks with a suspect yield are not counted.
    pub stock_count: i32,
    /// Median headline yield of the payers of the industry, percent.
    pub median_yield: Option<ExactDecimal>,
}

table_row! {
    /// A sector and its statistics. Yields and growth are in percent. Stocks with a suspect yield (above 25 %) are left
    /// out. ETFs are counted in `etf_count`, and are left out of all other statistics.
    pub struct SectorRow {
        /// Name of the sector.
        "sector" sector: String,
        /// Slug for URL paths: lower case, with hyphens.
        "slug" slug: String,
        /// Number of active stocks. Stocks with a suspect yield are not counted.
        "stock_count" stock_count: i32,
        /// Number of dividend payers: stocks that pay dividends at present and have a headline yield above zero.
        "payer_count" payer_count: i32,
        /// Number of active ETFs of the sector.
        "etf_count" etf_count: i32,
        /// Sum of market capitalisations, whole units of `currency`.
        "market_cap" market_cap: Option<i64>,
        /// Mean headline yield of the dividend payers, percent.
        "avg_yield" avg_yield: Option<ExactDecimal>,
        /// Median headline yield of the dividend payers, percent.
        "median_yield" median_yield: Option<ExactDecimal>,
        /// Mean headline yield of all stocks, weighted by market capitalisation, percent. Non-payers count with a yield
        /// of 0.
        "weighted_yield" weighted_yield: Option<ExactDecimal>,
        /// Highest headline yield, percent.
        "max_yield" max_yield: Option<ExactDecimal>,
        /// Median payout ratio, percent.
        "median_payout_ratio" median_payout_ratio: Option<ExactDecimal>,
        /// Median five-year dividend growth, percent a year.
        "median_growth_5y" median_growth_5y: Option<ExactDecimal>,
        /// Median of price over earnings, a ratio.
        "median_pe" median_pe: Option<ExactDecimal>,
        /// Number of Dividend Aristocrats.
        "aristocrat_count" aristocrat_count: i32,
        /// Number of Dividend Kings.
        "king_count" king_count: i32,
        /// Mean price change in the latest session, weighted by market capitalisation, percent.
        "change_percent_1d" change_percent_1d: Option<ExactDecimal>,
        /// Mean price change since the last session of the previous year, weighted by market capitalisation, percent.
        "change_percent_ytd" change_percent_ytd: Option<ExactDecimal>,
        /// Number of stocks with a declared next ex-date on the as-of date or in the 30 days after it.
        "ex_dates_next_30d" ex_dates_next_30d: i32,
        /// Market date of the statistics.
        "as_of" as_of: NaiveDate,
        /// Statistics of the industries of the sector.
        #[schema(value_type = Vec<Industry>)]
        "industries" industries: JsonColumn<Vec<Industry>>,
        /// Reporting currency, an ISO 4217 code. Market capitalisations are converted to it before they are added or
        /// used as weights.
        "currency" currency: String,
        /// Number of stocks whose market capitalisation has no exchange rate to `currency`. They are left out of
        /// `market_cap` and of all weighted figures.
        "unconverted_count" unconverted_count: i32,
    }
}
