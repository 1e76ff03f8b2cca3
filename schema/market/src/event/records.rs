//! Event record structs: security, dividend, split, fundamentals and market session.
//!
//! Exchange rate of one day.

use chrono::{Datelike, NaiveDate};
use compact_str::CompactString;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::enums::{DividendType, Frequency, ListingStatus, SecurityType, ShareBasis};
use crate::symbol::Symbol;

/// Number of decimal places between a minor and a major currency unit: 100 GBX (pence) are 1 GBP.
pub const MINOR_UNIT_PLACES: u32 = 2;

/// Declares a record struct and its method `fill_absent`. If an optional field is absent, the JSON of the record leaves
/// it out.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident {
        required { $($(#[$rmeta:meta])* $rfield:ident: $rtype:ty),* $(,)? }
        optional { $($(#[$ometa:meta])* $ofield:ident: $otype:ty),* $(,)? }
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$rmeta])* pub $rfield: $rtype,)*
            $($(#[$ometa])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $ofield: Option<$otype>,)*
        }

        impl $name {
            /// Copies optional fields from another record. Fields that already have a value are not changed.
            pub fn fill_absent(&mut self, other: &Self) {
                $(if self.$ofield.is_none() {
                    self.$ofield.clone_from(&other.$ofield);
                })*
            }
        }
    };
}

pub(super) use record;

record! {
    /// Former symbol of a security, with the first and last day of its use.
    pub struct FormerSymbol {
        required {
            /// Former symbol.
            symbol: Symbol,
        }
        optional {
            /// First day of use; absent if the beginning is unknown.
            from: NaiveDate,
            /// Last day of use; absent if the end is unknown.
            to: NaiveDate,
        }
    }
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
            /// ISO 4217 code of the currency of the security's prices, for example `GBP`. Minor units such as `GBX` are
            /// not used here.
            currency: String,
            /// Listing status of the security: active or delisted.
            status: ListingStatus,
            /// Former tickers with the days of their use.
            #[serde(default)]
            former_symbols: Vec<FormerSymbol>,
            /// Stock indexes that contain the security, for example `sp500`.
            #[serde(default)]
            indexes: Vec<String>,
        }
        optional {
            /// Minor unit of the feed's prices (`GBX`, `ZAC` or `ILA`): a hundredth of the major unit. Absent for
            /// prices in the major unit.
            quote_unit: String,
            /// Market identifier code of the exchange. If the code is unknown, the vendor's name of the exchange.
            exchange: String,
            /// One of the eleven sectors of the Global Industry Classification Standard. If the vendor's sector is not
            /// recognized, the vendor's text is stored.
            sector: String,
            /// Industry in the vendor's words.
            industry: String,
            /// Two-letter country code of the domicile. If the code is unknown, the vendor's name of the country.
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
            /// Day on which the company suspended its dividend.
            dividend_suspended_on: NaiveDate,
            /// Number of consecutive years with a dividend increase, up to and including the year
            /// `streak_seed_through`. The operator enters this number if the loaded data begins too late to show these
            /// years (R14).
            streak_seed_years: i32,
            /// Last year that is counted in `streak_seed_years`.
            streak_seed_through: i32,
            /// Ticker of the security that the holders of this security received in a merger.
            successor: Symbol,
            /// Number of shares of the successor per share of this security.
            merger_ratio: Decimal,
        }
    }
}

record! {
    /// Distribution of cash or shares to the holders of a security.
    pub struct Dividend {
        required {
            /// Ticker under which the distribution was declared.
            symbol: Symbol,
            /// Cash per share, on the share basis `amount_basis`. For a `stock` dividend, number of new shares per old
            /// share.
            amount: Decimal,
            /// ISO 4217 currency of the amount. Empty if the feed gives no currency. The amount is then in the currency
            /// and unit of the security's prices.
            currency: CompactString,
            /// Distribution type.
            r#type: DividendType,
            /// Share basis of the amount: raw, or adjusted for later splits.
            amount_basis: ShareBasis,
            /// Amounts of sibling payments. A sibling is a different payment in an earlier row of the same file. Both
            /// payments have the same security, ex-date, type and currency.
            #[serde(rename = "beside", default, skip_serializing_if = "Vec::is_empty")]
            sibling_amounts: Vec<Decimal>,
        }
        optional {
            /// First session on which a buyer does not receive the distribution.
            ex_date: NaiveDate,
            /// Record date.
            record_date: NaiveDate,
            /// Payment date.
            payment_date: NaiveDate,
            /// Declaration date.
            declaration_date: NaiveDate,
            /// Payment frequency as given by the vendor.
            frequency: Frequency,
            /// Date of the share basis: a split-adjusted amount is adjusted for all splits up to this date. If absent,
            /// the newest day of the source's data is used.
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
            /// First session with prices on the new share basis.
            ex_date: NaiveDate,
            /// Number of old shares, for example 1 in a 4:1 split.
            from: Decimal,
            /// Number of new shares, for example 4 in a 4:1 split.
            to: Decimal,
        }
        optional {
            /// Declaration date.
            declaration_date: NaiveDate,
            /// Delivery date of the shares.
            payable_date: NaiveDate,
            /// Split type in the vendor's words. Most types change the share count and the prices. Some types, such as
            /// a spin-off, change only the prices (R35).
            r#type: String,
        }
    }
}

record! {
    /// Evidence from a price file about a security's dividends (R38, R40), the unit of its prices (R4) and conflicting
    /// closes (R29). A record has the years of a dividend column, one ex-date derived from adjusted closes, the unit, or
    /// one conflicting close.
    pub struct DividendEvidence {
        required {
            /// Ticker of the security whose prices the file contains.
            symbol: Symbol,
        }
        optional {
            /// First day of the first year for which the price file has rows with a dividend column.
            dividends_from: NaiveDate,
            /// Last day of the last year for which the price file has rows with a dividend column.
            dividends_to: NaiveDate,
            /// Derived ex-date: first session whose adjusted close is not multiplied by `factor`.
            ex_date: NaiveDate,
            /// Last session of the file before `ex_date`. Its adjusted close is multiplied by `factor`.
            previous: NaiveDate,
            /// Derived adjustment factor: (adjusted close / close) on `previous`, divided by (adjusted close / close)
            /// on `ex_date`.
            factor: Decimal,
            /// Share basis of the closes. If the closes are raw, `factor` also includes the effect of splits on
            /// `ex_date`.
            basis: ShareBasis,
            /// Currency or minor unit of the prices, if the load or the file names one, for example `GBX`.
            price_unit: String,
            /// Day on which the file has several closes that differ. The first close is the bar of the day.
            conflict_date: NaiveDate,
            /// Later close of the file on `conflict_date`, in the unit of the file.
            conflict_close: Decimal,
        }
    }
}

record! {
    /// Company figures at one date. Money is in `reported_currency`. If this field is absent, money is in the
    /// security's currency.
    ///
    /// Percentages are in percent: 4.5 means 4.5 %.
    pub struct Fundamentals {
        required {
            /// Ticker of the company.
            symbol: Symbol,
            /// Date of the figures.
            as_of: NaiveDate,
        }
        optional {
            /// Diluted earnings per share over twelve months.
            eps_ttm: Decimal,
            /// Last day of the twelve months of `eps_ttm`.
            eps_as_of: NaiveDate,
            /// Funds from operations per share over twelve months.
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
            /// Mean daily trading volume, in money: shares traded times price.
            avg_daily_value: Decimal,
            /// Revenue over twelve months.
            revenue_ttm: Decimal,
            /// Net income over twelve months.
            net_income_ttm: Decimal,
            /// Operating cash flow over twelve months.
            operating_cash_flow_ttm: Decimal,
            /// Capital expenditure over twelve months.
            capital_expenditure_ttm: Decimal,
            /// Free cash flow over twelve months.
            free_cash_flow_ttm: Decimal,
            /// Dividends paid over twelve months, in money.
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
            /// Current assets divided by current liabilities.
            current_ratio: Decimal,
            /// Operating income divided by interest expense.
            interest_coverage: Decimal,
            /// Price divided by expected earnings per share.
            forward_pe: Decimal,
            /// P/E ratio divided by the growth of earnings in percent (PEG).
            peg_ratio: Decimal,
            /// Price divided by revenue per share.
            ps_ratio: Decimal,
            /// Enterprise value divided by earnings before interest, taxes, depreciation and amortisation.
            ev_to_ebitda: Decimal,
            /// Beta as given by the vendor, a ratio.
            beta: Decimal,
            /// Last day of the reported fiscal period.
            fiscal_period_end: NaiveDate,
            /// ISO 4217 currency of the money figures.
            reported_currency: String,
        }
    }
}

record! {
    /// Record of a market session without price rows. It can only advance the as-of date of the market, to the date of
    /// the session.
    pub struct MarketSession {
        required {
            /// Date of the session.
            date: NaiveDate,
        }
        optional {
            /// Note about the session, for example the reason for adding the record.
            note: String,
        }
    }
}

/// Exchange rate of one day: one unit of `base` costs `rate` units of `quote` (R41).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FxRate {
    /// Key of the facts: the currencies and the calendar year, for example `EURUSD:2024`. A ticker never has a
    /// colon.
    pub symbol: Symbol,
    /// ISO 4217 code of the base currency.
    pub base: CompactString,
    /// ISO 4217 code of the quote currency.
    pub quote: CompactString,
    /// Day of the rate.
    pub date: NaiveDate,
    /// Units of `quote` for one unit of `base`.
    pub rate: Decimal,
}

impl FxRate {
    /// Creates the rate of a day.
    pub fn new(base: &str, quote: &str, date: NaiveDate, rate: Decimal) -> Self {
        let symbol = Symbol::from_stored(&format!("{base}{quote}:{}", date.year()));
        Self { symbol, base: base.into(), quote: quote.into(), date, rate }
    }

    /// Base, quote and year of a key of exchange rates; `None` for another symbol.
    pub fn parse_key(symbol: &str) -> Option<(&str, &str, i32)> {
        let (pair, year) = symbol.split_once(':')?;
        let (base, quote) = pair.split_at_checked(3)?;
        Some((base, quote, year.parse().ok()?))
    }

    /// True if a symbol of stored facts is the key of exchange rates.
    pub fn is_key(symbol: &str) -> bool {
        symbol.contains(':')
    }
}
