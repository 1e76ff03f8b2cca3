//! The events of the log: what a feed row says, after its spelling was normalised and before anything is concluded.
//!
//! A record holds what the vendor sent, on the basis the vendor sent it; conclusions (un-adjusting, quarantine,
//! duplicates) are drawn from facts by `measure`, so that they can change when neighbours arrive.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// The kind of a frame's rows; the last token of its subject and the stem of its schema name.
    pub enum Kind {
        Security = "security", Price = "price", Dividend = "dividend", Split = "split", Fundamentals = "fundamentals",
        Etf = "etf", Holding = "holding", Session = "session", Reject = "reject", Run = "run",
    }
}

text_enum! {
    /// What a row does to its natural key.
    pub enum Action { Put = "put", Retract = "retract" }
}

text_enum! {
    /// Security types.
    pub enum SecurityType {
        Stock = "stock", Etf = "etf", Adr = "adr", Reit = "reit", Mlp = "mlp", Preferred = "preferred",
        ClosedEndFund = "closed_end_fund", Trust = "trust",
    }
}

text_enum! {
    /// Distribution types as declared; [`DividendType::class`](crate::measure) decides what they count for (R3).
    pub enum DividendType {
        Regular = "regular", Special = "special", Supplemental = "supplemental", Irregular = "irregular",
        ReturnOfCapital = "return_of_capital", CapitalGain = "capital_gain", CapitalGainLong = "capital_gain_long",
        CapitalGainShort = "capital_gain_short", Stock = "stock", SpinOff = "spin_off", Liquidation = "liquidation",
        Unknown = "unknown",
    }
}

text_enum! {
    /// How often a payer pays; `none`: no payments, `unknown`: cannot tell.
    pub enum Frequency {
        Weekly = "weekly", Biweekly = "biweekly", SemiMonthly = "semi_monthly", FourWeekly = "four_weekly", Monthly = "monthly",
        Bimonthly = "bimonthly", Quarterly = "quarterly", Triannual = "triannual", SemiAnnual = "semi_annual",
        Annual = "annual", Irregular = "irregular", None = "none", Unknown = "unknown",
    }
}

impl Frequency {
    /// Payments a year; `None` for irregular, none and unknown.
    pub fn payments_per_year(self) -> Option<i32> {
        Some(match self {
            Self::Weekly => 52,
            Self::Biweekly => 26,
            Self::SemiMonthly => 24,
            Self::FourWeekly => 13,
            Self::Monthly => 12,
            Self::Bimonthly => 6,
            Self::Quarterly => 4,
            Self::Triannual => 3,
            Self::SemiAnnual => 2,
            Self::Annual => 1,
            Self::Irregular | Self::None | Self::Unknown => return None,
        })
    }

    /// The class of a number of payments a year; 0 is `irregular`.
    pub fn from_payments_per_year(payments: i64) -> Option<Self> {
        Some(match payments {
            0 => Self::Irregular,
            1 => Self::Annual,
            2 => Self::SemiAnnual,
            3 => Self::Triannual,
            4 => Self::Quarterly,
            6 => Self::Bimonthly,
            12 => Self::Monthly,
            13 => Self::FourWeekly,
            24 => Self::SemiMonthly,
            26 => Self::Biweekly,
            52 => Self::Weekly,
            _ => return None,
        })
    }
}

text_enum! {
    /// The share basis an amount or a price is quoted on: as declared or traded, or adjusted for later splits.
    pub enum Basis { Raw = "raw", SplitAdjusted = "split_adjusted" }
}

text_enum! {
    /// Whether a security still trades.
    pub enum ListingStatus { Active = "active", Delisted = "delisted" }
}

/// Decimal places between a minor currency unit and its major one (100 GBX are 1 GBP).
pub const MINOR_UNIT_PLACES: u32 = 2;

/// One row of the log: provenance and version around a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<T> {
    /// Line (or record number) in the file it came from, from 1.
    pub line: u64,
    /// The vendor's own record id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default)]
    pub revision: i64,
    pub action: Action,
    pub observed_at: DateTime<Utc>,
    /// The vendor's permanent id of the security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_ref: Option<String>,
    pub record: T,
}

/// A symbol a security traded under before, with the days it held it (`from` and `to` inclusive).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSymbol {
    pub symbol: Symbol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NaiveDate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<NaiveDate>,
}

/// Declares a record struct whose optional fields are left out of the JSON when absent.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident {
        required { $($(#[$rmeta:meta])* $rfield:ident: $rtype:ty),* $(,)? }
        optional { $($(#[$ometa:meta])* $ofield:ident: $otype:ty),* $(,)? }
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$rmeta])* pub $rfield: $rtype,)*
            $($(#[$ometa])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $ofield: Option<$otype>,)*
        }
    };
}

record! {
    /// Reference data of one security.
    pub struct Security {
        required { symbol: Symbol, name: String, r#type: SecurityType, currency: String, status: ListingStatus,
            #[serde(default)] former_symbols: Vec<FormerSymbol>, #[serde(default)] indexes: Vec<String> }
        optional {
            /// The minor unit (`GBX`, `ZAC`, `ILA`) its prices are quoted in, where `currency` is the major one: its
            /// bars are on a scale [`MINOR_UNIT_PLACES`] larger than they say.
            quote_unit: String,
            exchange: String, sector: String, industry: String, country: String, description: String,
            website: String, ceo: String, employees: i64, ipo_date: NaiveDate, cik: String, figi: String, isin: String,
            cusip: String, delisted_on: NaiveDate, dividend_suspended_on: NaiveDate, streak_seed_years: i32,
            streak_seed_through: i32 }
    }
}

record! {
    /// One distribution. `amount` is per share, on `amount_basis`; a `stock` amount is new shares per old share.
    pub struct Dividend {
        required { symbol: Symbol, amount: Decimal, currency: String, r#type: DividendType, amount_basis: Basis,
            /// Amounts of other payments that the same file has for the same ex-date, type and currency.
            #[serde(default, skip_serializing_if = "Vec::is_empty")] beside: Vec<Decimal> }
        optional { ex_date: NaiveDate, record_date: NaiveDate, payment_date: NaiveDate, declaration_date: NaiveDate,
            frequency: Frequency,
            /// The date whose share basis a split-adjusted amount is on; absent: the newest date of the data.
            basis_as_of: NaiveDate }
    }
}

record! {
    /// A change of the share count: `from` old shares become `to` new shares on `ex_date`.
    pub struct Split {
        required { symbol: Symbol, ex_date: NaiveDate, from: Decimal, to: Decimal }
        optional { declaration_date: NaiveDate, payable_date: NaiveDate, r#type: String }
    }
}

record! {
    /// Company figures as of a date. Money in `reported_currency` or the security's; percents in points.
    pub struct Fundamentals {
        required { symbol: Symbol, as_of: NaiveDate }
        optional { eps_ttm: Decimal, eps_as_of: NaiveDate, ffo_per_share_ttm: Decimal, shares_outstanding: Decimal,
            shares_as_of: NaiveDate, float_shares: Decimal, market_cap: Decimal, float_market_cap: Decimal,
            avg_daily_value: Decimal, revenue_ttm: Decimal, net_income_ttm: Decimal, operating_cash_flow_ttm: Decimal,
            capital_expenditure_ttm: Decimal, free_cash_flow_ttm: Decimal, dividends_paid_ttm: Decimal,
            book_value_per_share: Decimal, total_debt: Decimal, total_equity: Decimal, enterprise_value: Decimal,
            gross_margin: Decimal, operating_margin: Decimal, net_margin: Decimal, roe: Decimal, roa: Decimal,
            current_ratio: Decimal, interest_coverage: Decimal, forward_pe: Decimal, peg_ratio: Decimal,
            ps_ratio: Decimal, ev_to_ebitda: Decimal, beta: Decimal, fiscal_period_end: NaiveDate,
            reported_currency: String }
    }
}

record! {
    /// Fund data of an ETF as of a date.
    pub struct Etf {
        required { symbol: Symbol, as_of: NaiveDate }
        optional { issuer: String, asset_class: String, category: String, strategy: String, index_name: String,
            domicile: String, inception_date: NaiveDate, expense_ratio: Decimal, aum: Decimal, nav: Decimal,
            nav_date: NaiveDate, sec_yield_30d: Decimal, is_leveraged: bool, is_inverse: bool,
            leverage_factor: Decimal, related_symbol: Symbol, turnover: Decimal }
    }
}

record! {
    /// One position of an ETF; `weight` in percent.
    pub struct Holding {
        required { name: String, weight: Decimal }
        optional { symbol: Symbol, asset_type: String, shares: Decimal, market_value: Decimal, currency: String,
            isin: String, cusip: String, figi: String, sector: String, country: String }
    }
}

/// All positions of one ETF on one date: a whole, replaced whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldingSnapshot {
    pub symbol: Symbol,
    pub as_of: NaiveDate,
    pub holdings: Vec<Holding>,
}

record! {
    /// A market session without prices of its own; moves the market's as-of date.
    pub struct Session {
        required { date: NaiveDate }
        optional { note: String }
    }
}

/// A feed row that could not be used, kept as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    pub file: String,
    pub line: u64,
    /// Stable code, for example `non_positive_amount`.
    pub reason: String,
    /// A sentence a person can act on.
    pub message: String,
    /// The row itself, cut at 4 KiB.
    pub row: String,
}

text_enum! {
    /// Where a run stands; the start is published first, so that an interrupted run can be found and resumed.
    pub enum RunState { Started = "started", Completed = "completed" }
}

/// The manifest of one load: what it was to publish, for verification end to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub run: String,
    pub state: RunState,
    pub source: String,
    pub format: String,
    pub files: Vec<String>,
    /// Digests of the inputs, in the order of `files`; a completed run names only those it loaded.
    #[serde(default)]
    pub inputs: Vec<String>,
    pub observed_at: DateTime<Utc>,
    /// Data frames published, rejects included, the manifest's own two messages not.
    pub chunks: u64,
    pub rows: u64,
    pub rejects: u64,
    /// Amounts and prices whose excess fraction digits were rounded on entry.
    pub rounded: u64,
    /// BLAKE3 over the frame ids in order.
    pub digest: String,
    /// The frames cut from each input, from which their ids follow; only a completed run knows them all.
    #[serde(default)]
    pub frames: Vec<InputFrames>,
    /// Arguments of `ingest` that load the same again, with absolute paths; nothing secret.
    #[serde(default)]
    pub command: Vec<String>,
    /// The symbols of its rows that no run completed before had; absent when there are too many to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_symbols: Option<Vec<Symbol>>,
    /// The newest date of its rows, by kind.
    #[serde(default)]
    pub newest: BTreeMap<Kind, NaiveDate>,
    /// What a pull noted instead of loading anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

impl Run {
    /// A run that begins: nothing is counted yet.
    pub fn begun(run: String, source: String, format: String, observed_at: DateTime<Utc>) -> Self {
        Self {
            run,
            state: RunState::Started,
            source,
            format,
            files: Vec::new(),
            inputs: Vec::new(),
            observed_at,
            chunks: 0,
            rows: 0,
            rejects: 0,
            rounded: 0,
            digest: String::new(),
            frames: Vec::new(),
            command: Vec::new(),
            new_symbols: None,
            newest: BTreeMap::new(),
            pull: None,
        }
    }
}

/// What a pull notes beside the rows it loads: the calls it may make, and how far its requests came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Name of the connector that the budget and the bookmarks are of.
    pub connector: String,
    /// Calls charged to the budget, all of them before they are made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// The moment after which none of these calls is made any more.
    pub until: DateTime<Utc>,
    /// How far requests came whose rows are in the log, by the request's name and its symbol or day.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bookmarks: BTreeMap<String, Bookmark>,
}

/// How far a request came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The day up to which it asked, by New York's calendar.
    pub through: NaiveDate,
    /// When the answer was fetched.
    pub fetched: DateTime<Utc>,
    /// The answer's validators (RFC 9110), by which a replaced file is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How many frames of one kind were cut from one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFrames {
    /// Digest of the input.
    pub input: String,
    pub kind: Kind,
    pub frames: u64,
}
