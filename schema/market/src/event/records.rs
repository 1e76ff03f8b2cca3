//! Event record structs: security, dividend, split, fundamentals, ETF, holdings and market session.

use chrono::NaiveDate;
use compact_str::CompactString;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::enums::{DividendType, Frequency, ListingStatus, SecurityType, ShareBasis};
use crate::symbol::Symbol;

/// Number of decimal places between a minor and a major currency unit (100 GBX are 1 GBP).
pub const MINOR_UNIT_PLACES: u32 = 2;

/// Former symbol of a security, with the days of its use (`from` and `to` inclusive).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FormerSymbol {
    /// Former symbol.
    pub symbol: Symbol,
    /// First day of use; absent if the beginning is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NaiveDate>,
    /// Last day of use; absent if the end is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<NaiveDate>,
}

/// Declares a record struct. Its optional fields are left out of the JSON if absent.
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
            /// Ticker in canonical spelling.
            symbol: Symbol,
            /// Name of the company or fund.
            name: String,
            /// Security type.
            r#type: SecurityType,
            /// ISO 4217 currency of the security's prices, in the major unit.
            currency: String,
            /// Listing status.
            status: ListingStatus,
            /// Former tickers.
            #[serde(default)]
            former_symbols: Vec<FormerSymbol>,
            /// Stock indexes that contain the security, for example `sp500`.
            #[serde(default)]
            indexes: Vec<String>,
        }
        optional {
            /// Minor unit of the security's prices (`GBX`, `ZAC`, `ILA`). Its bars then need [`MINOR_UNIT_PLACES`] more
            /// decimal places.
            quote_unit: String,
            /// Market identifier code, or the vendor's text.
            exchange: String,
            /// One of the eleven sectors, or the vendor's text.
            sector: String,
            /// Industry in the vendor's words.
            industry: String,
            /// Two-letter code of the domicile, or the vendor's text.
            country: String,
            /// Description of the business.
            description: String,
            /// Web address.
            website: String,
            /// Chief executive.
            ceo: String,
            /// Number of employees.
            employees: i64,
            /// First trading day.
            ipo_date: NaiveDate,
            /// Central Index Key at the SEC.
            cik: String,
            /// Financial Instrument Global Identifier.
            figi: String,
            /// International Securities Identification Number.
            isin: String,
            /// CUSIP number (Committee on Uniform Securities Identification Procedures).
            cusip: String,
            /// Last trading day.
            delisted_on: NaiveDate,
            /// Day of a dividend suspension.
            dividend_suspended_on: NaiveDate,
            /// Years of dividend increases up to `streak_seed_through`, as given by the operator (R14).
            streak_seed_years: i32,
            /// Last year of `streak_seed_years`.
            streak_seed_through: i32,
            /// Ticker of the security that the holders received in a merger.
            successor: Symbol,
            /// Shares of the successor per share of this security.
            merger_ratio: Decimal,
        }
    }
}

record! {
    /// Distribution. `amount` is per share on `amount_basis`. For a `stock` dividend it is the number of new shares per
    /// old share.
    pub struct Dividend {
        required {
            /// Ticker as declared.
            symbol: Symbol,
            /// Cash per share, or new shares per old share of a `stock` dividend.
            amount: Decimal,
            /// ISO 4217 currency of the amount. If the feed has none, this field is empty and the amount is in the unit
            /// of the security's prices.
            currency: CompactString,
            /// Distribution type.
            r#type: DividendType,
            /// Share basis of the amount.
            amount_basis: ShareBasis,
            /// Amounts of sibling payments: payments of the same file with the same ex-date, type and currency.
            #[serde(rename = "beside", default, skip_serializing_if = "Vec::is_empty")]
            sibling_amounts: Vec<Decimal>,
        }
        optional {
            /// First session that trades without the distribution.
            ex_date: NaiveDate,
            /// Record date.
            record_date: NaiveDate,
            /// Payment date.
            payment_date: NaiveDate,
            /// Declaration date.
            declaration_date: NaiveDate,
            /// Payment frequency as tagged by the vendor.
            frequency: Frequency,
            /// Share basis day of a split-adjusted amount. If absent, it is the newest date of the source's data.
            basis_as_of: NaiveDate,
        }
    }
}

record! {
    /// Split: `from` old shares become `to` new shares on `ex_date`.
    pub struct Split {
        required {
            /// Ticker on the ex-date.
            symbol: Symbol,
            /// First session on the new share basis.
            ex_date: NaiveDate,
            /// Old shares.
            from: Decimal,
            /// New shares.
            to: Decimal,
        }
        optional {
            /// Declaration date.
            declaration_date: NaiveDate,
            /// Delivery date of the shares.
            payable_date: NaiveDate,
            /// Split type in the vendor's words; it decides whether the share count changes (R35).
            r#type: String,
        }
    }
}

record! {
    /// DividendEvidence of a price file about the dividends of a security (R38, R40). A record contains one of two facts: the
    /// years with a dividend column, or an adjustment factor implied by the adjusted closes.
    pub struct DividendEvidence {
        required {
            /// Ticker of the prices.
            symbol: Symbol,
        }
        optional {
            /// First day of the years in which the file has a dividend column.
            dividends_from: NaiveDate,
            /// Last day of the years in which the file has a dividend column.
            dividends_to: NaiveDate,
            /// First session on which closes are no longer adjusted by the implied factor.
            ex_date: NaiveDate,
            /// Last session of the file on which closes are adjusted by the implied factor.
            previous: NaiveDate,
            /// Implied factor: adjusted close / close on `previous`, divided by adjusted close / close on `ex_date`.
            factor: Decimal,
            /// Share basis of the closes. A factor implied by raw closes includes the splits of its day.
            basis: ShareBasis,
        }
    }
}

record! {
    /// Company figures at one date. Money is in `reported_currency`, or else in the security's currency. A percentage
    /// of 4.5 % is the number 4.5.
    pub struct Fundamentals {
        required {
            /// Ticker.
            symbol: Symbol,
            /// Date of the figures.
            as_of: NaiveDate,
        }
        optional {
            /// Diluted earnings per share of twelve months.
            eps_ttm: Decimal,
            /// End of the twelve months of `eps_ttm`.
            eps_as_of: NaiveDate,
            /// Funds from operations per share of twelve months.
            ffo_per_share_ttm: Decimal,
            /// Shares outstanding.
            shares_outstanding: Decimal,
            /// Date of the share count.
            shares_as_of: NaiveDate,
            /// Freely traded shares.
            float_shares: Decimal,
            /// Market capitalisation.
            market_cap: Decimal,
            /// Market value of the freely traded shares.
            float_market_cap: Decimal,
            /// Mean traded value per day.
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
            /// Book value per share.
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
            /// P/E ratio over the growth of earnings (PEG).
            peg_ratio: Decimal,
            /// Price over revenue.
            ps_ratio: Decimal,
            /// Enterprise value over earnings before interest, taxes, depreciation and amortisation.
            ev_to_ebitda: Decimal,
            /// Beta as given by the vendor.
            beta: Decimal,
            /// End of the reported period.
            fiscal_period_end: NaiveDate,
            /// ISO 4217 currency of the money figures.
            reported_currency: String,
        }
    }
}

record! {
    /// Reference data of an ETF at one date.
    pub struct Etf {
        required {
            /// Ticker of the fund.
            symbol: Symbol,
            /// Date of the data.
            as_of: NaiveDate,
        }
        optional {
            /// Issuer.
            issuer: String,
            /// Asset class.
            asset_class: String,
            /// The vendor's category.
            category: String,
            /// Investment strategy.
            strategy: String,
            /// Tracked index.
            index_name: String,
            /// Domicile.
            domicile: String,
            /// Inception date.
            inception_date: NaiveDate,
            /// Expense ratio, percent a year.
            expense_ratio: Decimal,
            /// Assets under management.
            aum: Decimal,
            /// Net asset value per share.
            nav: Decimal,
            /// Date of the net asset value.
            nav_date: NaiveDate,
            /// SEC yield of thirty days, percent.
            sec_yield_30d: Decimal,
            /// True for leveraged funds.
            is_leveraged: bool,
            /// True for inverse funds.
            is_inverse: bool,
            /// Multiple of the index's daily return that the fund aims at.
            leverage_factor: Decimal,
            /// Underlying security of a single-stock fund, or unleveraged fund of the same index.
            related_symbol: Symbol,
            /// Turnover a year, percent.
            turnover: Decimal,
        }
    }
}

record! {
    /// Holding of an ETF. `weight` is in percent.
    pub struct Holding {
        required {
            /// Name of the holding.
            name: String,
            /// Weight in the fund, percent.
            weight: Decimal,
        }
        optional {
            /// Ticker of the holding.
            symbol: Symbol,
            /// Asset type of the holding.
            asset_type: String,
            /// Number of shares.
            shares: Decimal,
            /// Market value of the holding.
            market_value: Decimal,
            /// ISO 4217 currency of the market value.
            currency: String,
            /// International Securities Identification Number.
            isin: String,
            /// CUSIP number.
            cusip: String,
            /// Financial Instrument Global Identifier.
            figi: String,
            /// One of the eleven sectors, or the vendor's text.
            sector: String,
            /// Two-letter code, or the vendor's text.
            country: String,
        }
    }
}

/// All holdings of one ETF at one date. A later snapshot with the same date replaces all its holdings.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct HoldingSnapshot {
    /// Ticker of the fund.
    pub symbol: Symbol,
    /// Date of the snapshot.
    pub as_of: NaiveDate,
    /// Holdings in the vendor's order.
    pub holdings: Vec<Holding>,
}

record! {
    /// Market session without prices. It only advances the as-of date of the market.
    pub struct MarketSession {
        required {
            /// Date of the session.
            date: NaiveDate,
        }
        optional {
            /// Reason for the record.
            note: String,
        }
    }
}
