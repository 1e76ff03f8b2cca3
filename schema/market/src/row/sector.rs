//! `sectors`: rows of sector statistics over active stocks (R25).

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
    /// Active listed stocks.
    pub stock_count: i32,
    /// Median headline yield of its payers, percent.
    pub median_yield: Option<ExactDecimal>,
}

table_row! {
    /// A sector and its statistics. Yields and growth in percent; suspect yields and ETFs are excluded.
    pub struct SectorRow {
        /// Name of the sector.
        "sector" sector: String,
        /// Slug for paths: lower case, hyphens.
        "slug" slug: String,
        /// Active listed stocks.
        "stock_count" stock_count: i32,
        /// Number of stocks with a headline yield above zero.
        "payer_count" payer_count: i32,
        /// Active ETFs of the sector.
        "etf_count" etf_count: i32,
        /// Sum of market capitalisations, whole units.
        "market_cap" market_cap: Option<i64>,
        /// Mean headline yield over payers.
        "avg_yield" avg_yield: Option<ExactDecimal>,
        /// Median headline yield over payers.
        "median_yield" median_yield: Option<ExactDecimal>,
        /// Yield weighted by market capitalisation over all members, non-payers at zero.
        "weighted_yield" weighted_yield: Option<ExactDecimal>,
        /// Highest headline yield.
        "max_yield" max_yield: Option<ExactDecimal>,
        /// Median payout ratio.
        "median_payout_ratio" median_payout_ratio: Option<ExactDecimal>,
        /// Median five-year growth.
        "median_growth_5y" median_growth_5y: Option<ExactDecimal>,
        /// Median price over earnings.
        "median_pe" median_pe: Option<ExactDecimal>,
        /// Dividend Aristocrats.
        "aristocrat_count" aristocrat_count: i32,
        /// Dividend Kings.
        "king_count" king_count: i32,
        /// Change of the latest session weighted by market capitalisation, percent.
        "change_percent_1d" change_percent_1d: Option<ExactDecimal>,
        /// Change of the year weighted by market capitalisation, percent.
        "change_percent_ytd" change_percent_ytd: Option<ExactDecimal>,
        /// Declared ex-dates from the as-of date to 30 days later.
        "ex_dates_next_30d" ex_dates_next_30d: i32,
        /// Market date of the statistics.
        "as_of" as_of: NaiveDate,
        /// Industries of the sector.
        #[schema(value_type = Vec<Industry>)]
        "industries" industries: JsonColumn<Vec<Industry>>,
    }
}
