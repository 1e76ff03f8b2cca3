//! What a row says: one struct a kind of record.

use chrono::NaiveDate;
use compact_str::CompactString;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::words::{Basis, DividendType, Frequency, ListingStatus, SecurityType};
use crate::symbol::Symbol;

/// Decimal places between a minor currency unit and its major one (100 GBX are 1 GBP).
pub const MINOR_UNIT_PLACES: u32 = 2;

/// A symbol a security traded under before, with the days it held it (`from` and `to` inclusive).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FormerSymbol {
    /// The symbol it traded under.
    pub symbol: Symbol,
    /// First day; open where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NaiveDate>,
    /// Last day; open where absent.
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
        #[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$rmeta])* pub $rfield: $rtype,)*
            $($(#[$ometa])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $ofield: Option<$otype>,)*
        }
    };
}

record! {
    /// Reference data of one security.
    pub struct Security {
        required {
            /// Its ticker, in entry form.
            symbol: Symbol,
            /// Its name for people.
            name: String,
            /// What kind of security it is.
            r#type: SecurityType,
            /// ISO 4217 currency of its prices, in the major unit.
            currency: String,
            /// Whether it still trades.
            status: ListingStatus,
            /// Tickers it traded under before.
            #[serde(default)]
            former_symbols: Vec<FormerSymbol>,
            /// Indexes it is a member of, for example `sp500`.
            #[serde(default)]
            indexes: Vec<String>,
        }
        optional {
            /// The minor unit (`GBX`, `ZAC`, `ILA`) its prices are quoted in, where `currency` is the major one: its
            /// bars are on a scale [`MINOR_UNIT_PLACES`] larger than they say.
            quote_unit: String,
            /// Market identifier code, or as the vendor says.
            exchange: String,
            /// One of the eleven sectors, or as the vendor says.
            sector: String,
            /// As the vendor says.
            industry: String,
            /// Two-letter code of its domicile, or as the vendor says.
            country: String,
            /// What it does, in a paragraph.
            description: String,
            /// Its web address.
            website: String,
            /// Who leads it.
            ceo: String,
            /// How many work for it.
            employees: i64,
            /// First day it traded.
            ipo_date: NaiveDate,
            /// Central Index Key at the SEC.
            cik: String,
            /// Financial Instrument Global Identifier.
            figi: String,
            /// International Securities Identification Number.
            isin: String,
            /// Committee on Uniform Securities Identification Procedures number.
            cusip: String,
            /// Last day it traded.
            delisted_on: NaiveDate,
            /// Day on which its dividend was suspended.
            dividend_suspended_on: NaiveDate,
            /// Years of increases vouched for (R14).
            streak_seed_years: i32,
            /// The last of those years.
            streak_seed_through: i32,
        }
    }
}

record! {
    /// One distribution. `amount` is per share, on `amount_basis`; a `stock` amount is new shares per old share.
    pub struct Dividend {
        required {
            /// Ticker the payment was declared under.
            symbol: Symbol,
            /// Cash a share, or new shares per old share of a `stock` dividend.
            amount: Decimal,
            /// ISO 4217 currency of the amount.
            currency: CompactString,
            /// What kind of distribution it is.
            r#type: DividendType,
            /// The share basis of the amount.
            amount_basis: Basis,
            /// Amounts of other payments that the same file has for the same ex-date, type and currency.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            beside: Vec<Decimal>,
        }
        optional {
            /// First session that trades without it.
            ex_date: NaiveDate,
            /// Day on which holders are recorded.
            record_date: NaiveDate,
            /// Day on which it is paid.
            payment_date: NaiveDate,
            /// Day on which it was declared.
            declaration_date: NaiveDate,
            /// The vendor's word for its rhythm.
            frequency: Frequency,
            /// The date whose share basis a split-adjusted amount is on; absent: the newest date of the data.
            basis_as_of: NaiveDate,
        }
    }
}

record! {
    /// A change of the share count: `from` old shares become `to` new shares on `ex_date`.
    pub struct Split {
        required {
            /// Ticker on that day.
            symbol: Symbol,
            /// First session on the new basis.
            ex_date: NaiveDate,
            /// Old shares.
            from: Decimal,
            /// New shares they become.
            to: Decimal,
        }
        optional {
            /// Day on which it was declared.
            declaration_date: NaiveDate,
            /// Day on which the shares are delivered.
            payable_date: NaiveDate,
            /// The vendor's word for it.
            r#type: String,
        }
    }
}

record! {
    /// Company figures as of a date. Money in `reported_currency` or the security's; percents in points.
    pub struct Fundamentals {
        required {
            /// Ticker.
            symbol: Symbol,
            /// Day the figures are of.
            as_of: NaiveDate,
        }
        optional {
            /// Diluted earnings a share of twelve months.
            eps_ttm: Decimal,
            /// End of those twelve months.
            eps_as_of: NaiveDate,
            /// Funds from operations a share of twelve months.
            ffo_per_share_ttm: Decimal,
            /// Shares.
            shares_outstanding: Decimal,
            /// Day they were counted.
            shares_as_of: NaiveDate,
            /// Shares that trade freely.
            float_shares: Decimal,
            /// Worth of all shares.
            market_cap: Decimal,
            /// Worth of the shares that trade freely.
            float_market_cap: Decimal,
            /// Value traded a day, on average.
            avg_daily_value: Decimal,
            /// Revenue of twelve months.
            revenue_ttm: Decimal,
            /// Net income of twelve months.
            net_income_ttm: Decimal,
            /// Operating cash flow of twelve months.
            operating_cash_flow_ttm: Decimal,
            /// Capital expenditure of twelve months.
            capital_expenditure_ttm: Decimal,
            /// Free cash flow of twelve months.
            free_cash_flow_ttm: Decimal,
            /// Dividends paid in twelve months.
            dividends_paid_ttm: Decimal,
            /// Book value a share.
            book_value_per_share: Decimal,
            /// Total debt.
            total_debt: Decimal,
            /// Total equity.
            total_equity: Decimal,
            /// Enterprise value.
            enterprise_value: Decimal,
            /// Gross margin, percent.
            gross_margin: Decimal,
            /// Operating margin, percent.
            operating_margin: Decimal,
            /// Net margin, percent.
            net_margin: Decimal,
            /// Return on equity, percent.
            roe: Decimal,
            /// Return on assets, percent.
            roa: Decimal,
            /// Current assets over current liabilities.
            current_ratio: Decimal,
            /// Operating income over interest.
            interest_coverage: Decimal,
            /// Price over expected earnings.
            forward_pe: Decimal,
            /// Price over earnings over their growth.
            peg_ratio: Decimal,
            /// Price over revenue.
            ps_ratio: Decimal,
            /// Enterprise value over earnings before interest, taxes, depreciation and amortisation.
            ev_to_ebitda: Decimal,
            /// Beta as the vendor computes it.
            beta: Decimal,
            /// End of the reported period.
            fiscal_period_end: NaiveDate,
            /// ISO 4217 currency of the money.
            reported_currency: String,
        }
    }
}

record! {
    /// Fund data of an ETF as of a date.
    pub struct Etf {
        required {
            /// Ticker of the fund.
            symbol: Symbol,
            /// Day the data are of.
            as_of: NaiveDate,
        }
        optional {
            /// Who issues it.
            issuer: String,
            /// What it invests in.
            asset_class: String,
            /// The vendor's category.
            category: String,
            /// How it invests.
            strategy: String,
            /// The index it follows.
            index_name: String,
            /// Where it is domiciled.
            domicile: String,
            /// Its first day.
            inception_date: NaiveDate,
            /// Yearly cost, percent.
            expense_ratio: Decimal,
            /// Assets under management.
            aum: Decimal,
            /// Net asset value a share.
            nav: Decimal,
            /// Day of the net asset value.
            nav_date: NaiveDate,
            /// SEC yield of thirty days, percent.
            sec_yield_30d: Decimal,
            /// Whether it is leveraged.
            is_leveraged: bool,
            /// Whether it gains when its index falls.
            is_inverse: bool,
            /// How many times the daily return it aims at.
            leverage_factor: Decimal,
            /// The fund of the same index without leverage.
            related_symbol: Symbol,
            /// Turnover a year, percent.
            turnover: Decimal,
        }
    }
}

record! {
    /// One position of an ETF; `weight` in percent.
    pub struct Holding {
        required {
            /// Name of the position.
            name: String,
            /// Part of the fund, percent.
            weight: Decimal,
        }
        optional {
            /// Ticker of the position.
            symbol: Symbol,
            /// What kind of asset it is.
            asset_type: String,
            /// Shares held.
            shares: Decimal,
            /// Worth of the position.
            market_value: Decimal,
            /// ISO 4217 currency of that worth.
            currency: String,
            /// International Securities Identification Number.
            isin: String,
            /// CUSIP number.
            cusip: String,
            /// Financial Instrument Global Identifier.
            figi: String,
            /// One of the eleven sectors, or as the vendor says.
            sector: String,
            /// Two-letter code, or as the vendor says.
            country: String,
        }
    }
}

/// All positions of one ETF on one date: a whole, replaced whole.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct HoldingSnapshot {
    /// The fund.
    pub symbol: Symbol,
    /// Day of the snapshot.
    pub as_of: NaiveDate,
    /// Its positions, as the vendor orders them.
    pub holdings: Vec<Holding>,
}

record! {
    /// A market session without prices of its own; moves the market's as-of date.
    pub struct Session {
        required {
            /// The session.
            date: NaiveDate,
        }
        optional {
            /// Why it is told.
            note: String,
        }
    }
}
