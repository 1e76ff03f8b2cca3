//! Table `sectors`: one row for each sector, with statistics over its active stocks (R25).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JsonColumn;
use crate::decimal::ExactDecimal;
use crate::table_row;

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
        /// Sum of market capitalisations, whole currency units.
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
    }
}
