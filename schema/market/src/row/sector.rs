//! `sectors`: statistics of one sector's active stocks (R25).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Json;
use crate::table_row;
use crate::value::Exact;

/// One industry of a sector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Industry {
    /// Industry name.
    pub industry: String,
    /// Active listed stocks.
    pub stock_count: i32,
    /// Median headline yield of its payers, percent.
    pub median_yield: Option<Exact>,
}

table_row! {
    /// A sector and its statistics. Yields and growth in percent; suspects and ETFs are left out.
    pub struct SectorRow {
        /// Name of the sector.
        "sector" sector: String,
        /// The name for paths: lower case, hyphens.
        "slug" slug: String,
        /// Active listed stocks.
        "stock_count" stock_count: i32,
        /// Those with a headline yield above zero.
        "payer_count" payer_count: i32,
        /// Active ETFs of the sector.
        "etf_count" etf_count: i32,
        /// Sum of market capitalisations, whole units.
        "market_cap" market_cap: Option<i64>,
        /// Mean headline yield over payers.
        "avg_yield" avg_yield: Option<Exact>,
        /// Median headline yield over payers.
        "median_yield" median_yield: Option<Exact>,
        /// Yield weighted by market capitalisation over all members, non-payers at zero.
        "weighted_yield" weighted_yield: Option<Exact>,
        /// Highest headline yield.
        "max_yield" max_yield: Option<Exact>,
        /// Median payout ratio.
        "median_payout_ratio" median_payout_ratio: Option<Exact>,
        /// Median five-year growth.
        "median_growth_5y" median_growth_5y: Option<Exact>,
        /// Median price over earnings.
        "median_pe" median_pe: Option<Exact>,
        /// Dividend Aristocrats.
        "aristocrat_count" aristocrat_count: i32,
        /// Dividend Kings.
        "king_count" king_count: i32,
        /// Change of the latest session weighted by market capitalisation, percent.
        "change_percent_1d" change_percent_1d: Option<Exact>,
        /// Change of the year weighted by market capitalisation, percent.
        "change_percent_ytd" change_percent_ytd: Option<Exact>,
        /// Declared ex-dates from the as-of date to 30 days later.
        "ex_dates_next_30d" ex_dates_next_30d: i32,
        /// Market date of the statistics.
        "as_of" as_of: NaiveDate,
        /// Industries of the sector.
        #[schema(value_type = Vec<Industry>)]
        "industries" industries: Json<Vec<Industry>>,
    }
}
