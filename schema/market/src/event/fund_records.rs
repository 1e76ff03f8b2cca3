//! Event record structs of funds: ETF and holdings.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::records::record;
use crate::symbol::Symbol;

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
            /// Category of the fund in the vendor's words.
            category: String,
            /// Investment strategy.
            strategy: String,
            /// Name of the tracked index.
            index_name: String,
            /// Country of the fund's domicile.
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
            /// 30-day yield as defined by the SEC, percent.
            sec_yield_30d: Decimal,
            /// True for a leveraged fund.
            is_leveraged: bool,
            /// True for an inverse fund.
            is_inverse: bool,
            /// Target multiple of the index's daily return, for example 2.
            leverage_factor: Decimal,
            /// Ticker of a related security. For a single-stock fund, this is the underlying stock. For other funds, it
            /// is an unleveraged fund on the same index.
            related_symbol: Symbol,
            /// Portfolio turnover, percent a year.
            turnover: Decimal,
        }
    }
}

record! {
    /// Holding of an ETF. `weight` is in percent.
    pub struct Holding {
        required {
            /// Name of the security or asset.
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
            /// One of the eleven sectors of the Global Industry Classification Standard. If the vendor's sector is not
            /// recognized, the vendor's text is stored.
            sector: String,
            /// Two-letter country code. If the code is unknown, the vendor's name of the country.
            country: String,
        }
    }
}

/// All holdings of one ETF at one date. A later snapshot of the same date replaces all holdings of the earlier one.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct HoldingSnapshot {
    /// Ticker of the fund.
    pub symbol: Symbol,
    /// Date of the snapshot.
    pub as_of: NaiveDate,
    /// Holdings in the vendor's order.
    pub holdings: Vec<Holding>,
}
