//! Tables `etfs` (one row of fund data for each ETF) and `holdings` (the holdings of the funds).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{JsonColumn, StockRow};
use crate::decimal::ExactDecimal;
use crate::table_row;

/// Weight of one sector in a fund.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SectorWeight {
    /// Sector name.
    pub sector: String,
    /// Weight in the fund, percent.
    pub weight: ExactDecimal,
}

/// Weight of one country in a fund.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CountryWeight {
    /// Country name.
    pub country: String,
    /// Weight in the fund, percent.
    pub weight: ExactDecimal,
}

table_row! {
    /// ETF details: the stock row, followed by fund data. Percentages are numbers of percent: 4.5 means 4.5 %.
    pub struct EtfRow {
        ..listed: StockRow,
        /// Issuer of the fund.
        "issuer" issuer: Option<String>,
        /// Asset class.
        "asset_class" asset_class: Option<String>,
        /// Category of the fund in the vendor's words.
        "category" category: Option<String>,
        /// Investment strategy.
        "strategy" strategy: Option<String>,
        /// Name of the tracked index.
        "index_name" index_name: Option<String>,
        /// Country of the fund's domicile.
        "domicile" domicile: Option<String>,
        /// Inception date.
        "inception_date" inception_date: Option<NaiveDate>,
        /// Expense ratio, percent a year.
        "expense_ratio" expense_ratio: Option<ExactDecimal>,
        /// Assets under management, in the row's currency.
        "aum" aum: Option<ExactDecimal>,
        /// Net asset value per share.
        "nav" nav: Option<ExactDecimal>,
        /// Date of the net asset value.
        "nav_date" nav_date: Option<NaiveDate>,
        /// Premium (positive) or discount (negative) of the close to the net asset value of the same day, percent.
        "premium_discount" premium_discount: Option<ExactDecimal>,
        /// Regular distributions of the last 12 months, divided by the price, percent.
        "distribution_yield_ttm" distribution_yield_ttm: Option<ExactDecimal>,
        /// SEC 30-day yield, percent.
        "sec_yield_30d" sec_yield_30d: Option<ExactDecimal>,
        /// True for a leveraged fund.
        "is_leveraged" is_leveraged: Option<bool>,
        /// True for an inverse fund.
        "is_inverse" is_inverse: Option<bool>,
        /// Target multiple of the index's daily return.
        "leverage_factor" leverage_factor: Option<ExactDecimal>,
        /// Ticker of a related security. For a single-stock fund, this is the underlying stock. For other funds, it is
        /// an unleveraged fund on the same index.
        "related_symbol" related_symbol: Option<String>,
        /// Number of holdings in the newest snapshot of the fund's holdings.
        "holdings_count" holdings_count: Option<i32>,
        /// Date of the newest snapshot of the fund's holdings.
        "holdings_as_of" holdings_as_of: Option<NaiveDate>,
        /// Total weight of the ten largest holdings in the fund, percent.
        "top_10_weight" top_10_weight: Option<ExactDecimal>,
        /// Portfolio turnover, percent a year.
        "turnover" turnover: Option<ExactDecimal>,
        /// Weights of the sectors in the fund, largest first.
        #[schema(value_type = Vec<SectorWeight>)]
        "sector_weights" sector_weights: JsonColumn<Vec<SectorWeight>>,
        /// Weights of the countries in the fund, largest first.
        #[schema(value_type = Vec<CountryWeight>)]
        "country_weights" country_weights: JsonColumn<Vec<CountryWeight>>,
    }
}

table_row! {
    /// Table row of `holdings`: one holding in one snapshot of a fund.
    pub struct HoldingRow {
        /// Canonical ticker of the fund.
        "etf_symbol" etf_symbol: String,
        /// Rank of the holding by weight in the snapshot; 1 is the largest holding.
        "rank" rank: i32,
        /// Canonical ticker of the holding; null without a ticker.
        "symbol" symbol: Option<String>,
        /// Name of the holding.
        "name" name: String,
        /// Asset type of the holding.
        "asset_type" asset_type: Option<String>,
        /// Weight in the fund, percent.
        "weight" weight: ExactDecimal,
        /// Number of shares in the fund.
        "shares" shares: Option<ExactDecimal>,
        /// Market value of the holding.
        "market_value" market_value: Option<ExactDecimal>,
        /// ISO 4217 currency of the market value.
        "currency" currency: Option<String>,
        /// International Securities Identification Number.
        "isin" isin: Option<String>,
        /// CUSIP number.
        "cusip" cusip: Option<String>,
        /// Financial Instrument Global Identifier.
        "figi" figi: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Country code; for an unknown country, the vendor's text.
        "country" country: Option<String>,
        /// Date of the snapshot.
        "as_of" as_of: NaiveDate,
    }
}
