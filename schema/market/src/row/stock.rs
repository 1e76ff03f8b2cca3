//! `stocks`: the list row, the screeners' figures and the parts of the snapshot.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::column::Json;
use super::metrics::{NextDividend, YieldBasis};
use crate::event::{FormerSymbol, Frequency, SecurityType};
use crate::table_row;
use crate::value::Exact;

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
        /// ISO 4217 currency of prices and every other money figure but `annual_dividend`.
        "currency" currency: String,
        /// Whether the security still trades.
        "is_active" is_active: bool,
        /// Last day of trading, when delisted.
        "delisted_on" delisted_on: Option<NaiveDate>,
        /// Latest raw close, carried through splits since.
        "price" price: Option<Exact>,
        /// Session of the latest close.
        "price_date" price_date: Option<NaiveDate>,
        /// Market capitalisation, whole currency units (R24).
        "market_cap" market_cap: Option<i64>,
        /// Whether regular dividends are being paid.
        "pays_dividend" pays_dividend: bool,
        /// Headline dividend yield, percent (R9).
        "dividend_yield" dividend_yield: Option<Exact>,
        /// What the headline yield rests on.
        "yield_basis" yield_basis: Option<YieldBasis>,
        /// Dividends a year per share behind the headline yield, in `dividend_currency`.
        "annual_dividend" annual_dividend: Option<Exact>,
        /// ISO 4217 currency of the dividends; null when none was ever paid. Where it is not `currency` there is no yield.
        "dividend_currency" dividend_currency: Option<String>,
        /// Payment frequency: `none` when nothing was ever paid, `unknown` when it cannot be told.
        "frequency" frequency: Option<Frequency>,
        /// Next ex-dividend date, declared or projected (R19).
        "next_ex_date" next_ex_date: Option<NaiveDate>,
        /// Consecutive years of dividend increases (R14).
        "increase_streak_years" increase_streak_years: Option<i32>,
        /// Rows held back from the figures as contradicted by their neighbours; `metrics` names them.
        "held_rows" held_rows: i32,
        /// When the newest fact behind the row was observed.
        "updated_at" updated_at: DateTime<Utc>,
    }
}

table_row! {
    /// What a screener shows beside the stock row.
    pub struct ScreenerFigures {
        /// Trailing regular yield, percent.
        "yield_ttm" yield_ttm: Option<Exact>,
        /// Indicated yield, percent.
        "yield_forward" yield_forward: Option<Exact>,
        /// Payout ratio, percent.
        "payout_ratio" payout_ratio: Option<Exact>,
        /// Growth of the last complete year, percent.
        "growth_1y" growth_1y: Option<Exact>,
        /// Compound growth a year, percent.
        "growth_3y" growth_3y: Option<Exact>,
        /// Compound growth a year, percent.
        "growth_5y" growth_5y: Option<Exact>,
        /// Compound growth a year, percent.
        "growth_10y" growth_10y: Option<Exact>,
        /// Consecutive years with a regular payment.
        "payment_streak_years" payment_streak_years: Option<i32>,
        /// Price over earnings, a ratio.
        "pe_ratio" pe_ratio: Option<Exact>,
        /// Against the benchmark.
        "beta" beta: Option<Exact>,
        /// Shares of the latest session.
        "volume" volume: Option<i64>,
        /// Dividend Aristocrat (R15).
        "is_dividend_aristocrat" is_dividend_aristocrat: bool,
        /// Dividend King (R15).
        "is_dividend_king" is_dividend_king: bool,
    }
}

table_row! {
    /// What lists filter and sort by beside the stock row: the screener's figures, then those that no list shows.
    pub struct Figures {
        ..screened: ScreenerFigures,
        /// Sessions since the latest close (staleness, R18, R21).
        "price_age_sessions" price_age_sessions: Option<i32>,
        /// Whether the headline yield is above 25 percent and so out of the high-yield screen (R18).
        "yield_suspect" yield_suspect: bool,
        /// Change of the latest session, percent.
        "change_percent" change_percent: Option<Exact>,
        /// Price change since the last close of the previous year, percent, split-adjusted.
        "change_percent_ytd" change_percent_ytd: Option<Exact>,
        /// Index memberships.
        #[schema(value_type = Vec<String>)]
        "indexes" indexes: Json<Vec<String>>,
    }
}

table_row! {
    /// The table row of `stocks`: the stock row, what lists filter and sort by, then the snapshot's parts.
    pub struct Stock {
        ..listed: StockRow,
        ..figures: Figures,
        /// Identifiers of the security.
        #[schema(value_type = Identifiers)]
        "identifiers" identifiers: Json<Identifiers>,
        /// Company profile.
        #[schema(value_type = Company)]
        "company" company: Json<Company>,
        /// Price figures of the latest session.
        #[schema(value_type = Pricing)]
        "pricing" pricing: Json<Pricing>,
        /// Dividend figures.
        #[schema(value_type = StockDividends)]
        "dividends" dividends: Json<StockDividends>,
        /// First and last days of the data held.
        #[schema(value_type = Coverage)]
        "coverage" coverage: Json<Coverage>,
    }
}

/// Identifiers of a security.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Identifiers {
    /// SEC central index key.
    pub cik: Option<String>,
    /// Financial instrument global identifier.
    pub figi: Option<String>,
    /// ISIN.
    pub isin: Option<String>,
    /// CUSIP.
    pub cusip: Option<String>,
    /// Symbols it traded under before, with the days it held them.
    #[schema(value_type = Vec<Object>)]
    pub former_symbols: Vec<FormerSymbol>,
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

/// The quote's price fields inside a snapshot; the row's currency.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Pricing {
    /// Latest raw close, carried through splits since, in the row's currency.
    pub price: Option<Exact>,
    /// Open of the latest session.
    pub open: Option<Exact>,
    /// High of the latest session.
    pub day_high: Option<Exact>,
    /// Low of the latest session.
    pub day_low: Option<Exact>,
    /// Close of the session before, on the latest session's share basis.
    pub previous_close: Option<Exact>,
    /// price - previous_close.
    pub change: Option<Exact>,
    /// Percent.
    pub change_percent: Option<Exact>,
    /// Shares.
    pub volume: Option<i64>,
    /// Shares.
    pub avg_volume_30d: Option<i64>,
    /// Mean split-adjusted close of the newest 50 sessions.
    pub sma_50: Option<Exact>,
    /// Mean split-adjusted close of the newest 200 sessions.
    pub sma_200: Option<Exact>,
    /// Highest split-adjusted intraday price of the last 12 months (R22).
    pub year_high: Option<Exact>,
    /// Its session.
    pub year_high_date: Option<NaiveDate>,
    /// Lowest split-adjusted intraday price of the last 12 months (R22).
    pub year_low: Option<Exact>,
    /// Its session.
    pub year_low_date: Option<NaiveDate>,
    /// Session of the latest close.
    pub price_date: Option<NaiveDate>,
}

/// The newest regular or special distribution that has gone ex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LastDividend {
    /// First day a buyer did not get it.
    pub ex_date: NaiveDate,
    /// Day of payment, when it is known.
    pub payment_date: Option<NaiveDate>,
    /// Per share, as declared.
    pub amount: Exact,
    /// Type as declared.
    #[serde(rename = "type")]
    pub r#type: crate::event::DividendType,
}

/// Dividend figures inside a snapshot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct StockDividends {
    /// Percent.
    pub yield_ttm: Option<Exact>,
    /// Percent.
    pub yield_forward: Option<Exact>,
    /// Per share and year, in `currency`.
    pub annual_amount: Option<Exact>,
    /// ISO 4217 currency of the amounts; null when none was ever paid.
    pub currency: Option<String>,
    /// Payment frequency (R5).
    pub frequency: Option<Frequency>,
    /// Percent.
    pub payout_ratio: Option<Exact>,
    /// Percent a year.
    pub growth_5y: Option<Exact>,
    /// The next ex-dividend date (R19).
    pub next: Option<NextDividend>,
    /// The newest one that has gone ex.
    pub last: Option<LastDividend>,
}

/// First and last days of the data held.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Coverage {
    /// First session with a price.
    pub prices_from: Option<NaiveDate>,
    /// Last session with a price.
    pub prices_to: Option<NaiveDate>,
    /// First ex-date.
    pub dividends_from: Option<NaiveDate>,
    /// Last ex-date, future ones included.
    pub dividends_to: Option<NaiveDate>,
}
