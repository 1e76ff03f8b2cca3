//! `etfs` and `holdings`: fund data and positions.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Json, StockRow};
use crate::table_row;
use crate::value::Exact;

/// Weight of one sector in a fund.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SectorWeight {
    /// Sector name.
    pub sector: String,
    /// Percent.
    pub weight: Exact,
}

/// Weight of one country in a fund.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CountryWeight {
    /// Country name.
    pub country: String,
    /// Percent.
    pub weight: Exact,
}

table_row! {
    /// ETF details: the stock row, then fund data. Percents in points.
    pub struct EtfRow {
        ..listed: StockRow,
        /// Issuer of the fund.
        "issuer" issuer: Option<String>,
        /// Asset class.
        "asset_class" asset_class: Option<String>,
        /// Category.
        "category" category: Option<String>,
        /// Strategy.
        "strategy" strategy: Option<String>,
        /// Index it follows.
        "index_name" index_name: Option<String>,
        /// Domicile.
        "domicile" domicile: Option<String>,
        /// First day of the fund.
        "inception_date" inception_date: Option<NaiveDate>,
        /// Percent a year.
        "expense_ratio" expense_ratio: Option<Exact>,
        /// Assets under management, the row's currency.
        "aum" aum: Option<Exact>,
        /// Net asset value per share.
        "nav" nav: Option<Exact>,
        /// Day of the net asset value.
        "nav_date" nav_date: Option<NaiveDate>,
        /// Close over net asset value of the same day, less one, percent.
        "premium_discount" premium_discount: Option<Exact>,
        /// Regular distributions of 12 months over price, percent.
        "distribution_yield_ttm" distribution_yield_ttm: Option<Exact>,
        /// SEC 30-day yield, percent.
        "sec_yield_30d" sec_yield_30d: Option<Exact>,
        /// Whether it is leveraged.
        "is_leveraged" is_leveraged: Option<bool>,
        /// Whether it is inverse.
        "is_inverse" is_inverse: Option<bool>,
        /// Leverage factor.
        "leverage_factor" leverage_factor: Option<Exact>,
        /// The security a single-stock fund follows.
        "related_symbol" related_symbol: Option<String>,
        /// Positions in the newest snapshot.
        "holdings_count" holdings_count: Option<i32>,
        /// Day of the newest snapshot.
        "holdings_as_of" holdings_as_of: Option<NaiveDate>,
        /// Weight of the ten largest positions, percent.
        "top_10_weight" top_10_weight: Option<Exact>,
        /// Percent a year.
        "turnover" turnover: Option<Exact>,
        /// Weights by sector, largest first.
        #[schema(value_type = Vec<SectorWeight>)]
        "sector_weights" sector_weights: Json<Vec<SectorWeight>>,
        /// Weights by country, largest first.
        #[schema(value_type = Vec<CountryWeight>)]
        "country_weights" country_weights: Json<Vec<CountryWeight>>,
    }
}

table_row! {
    /// The table row of `holdings`: one position of one snapshot.
    pub struct HoldingRow {
        /// The fund's canonical ticker.
        "etf_symbol" etf_symbol: String,
        /// Rank by weight within the snapshot, from 1.
        "rank" rank: i32,
        /// Canonical ticker of the position, when it has one.
        "symbol" symbol: Option<String>,
        /// Name of the position.
        "name" name: String,
        /// Kind of asset.
        "asset_type" asset_type: Option<String>,
        /// Percent of the fund.
        "weight" weight: Exact,
        /// Shares held.
        "shares" shares: Option<Exact>,
        /// Market value held.
        "market_value" market_value: Option<Exact>,
        /// ISO 4217.
        "currency" currency: Option<String>,
        /// ISIN.
        "isin" isin: Option<String>,
        /// CUSIP.
        "cusip" cusip: Option<String>,
        /// FIGI.
        "figi" figi: Option<String>,
        /// Sector name.
        "sector" sector: Option<String>,
        /// Country.
        "country" country: Option<String>,
        /// Day of the snapshot.
        "as_of" as_of: NaiveDate,
    }
}
