//! Price point: the values of one price row and their meaning. [`PriceEncoder`](super::PriceEncoder) writes them.

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

use crate::decimal::ExactDecimal;

/// A price bar of one session, or of a longer period such as a week. Open, high, low, close, volume, vwap and
/// change have the requested adjustment.
#[derive(Debug, Serialize, ToSchema)]
pub struct PricePoint {
    /// Day of the session. For a longer period, the day of its last session.
    pub date: NaiveDate,
    /// First price of the period.
    pub open: Option<ExactDecimal>,
    /// Highest price of the period.
    pub high: Option<ExactDecimal>,
    /// Lowest price of the period.
    pub low: Option<ExactDecimal>,
    /// Last price of the period.
    pub close: ExactDecimal,
    /// Shares traded in the period.
    pub volume: Option<i64>,
    /// Volume-weighted average price of the period.
    pub vwap: Option<ExactDecimal>,
    /// Number of trades in the period.
    pub trade_count: Option<i64>,
    /// Last price of the period as traded.
    pub raw_close: ExactDecimal,
    /// Last price of the period, adjusted for splits and dividends (R11).
    pub adj_close: ExactDecimal,
    /// Multiplier that adjusts raw_close for later splits and for later price-only actions, such as a spin-off
    /// reported as a ratio. Dividends are left out.
    pub split_factor: ExactDecimal,
    /// Multiplier that converts raw_close to adj_close.
    pub total_factor: ExactDecimal,
    /// Cash per share, as declared: the sum of the dividends with an ex-date in the period. Null without such a
    /// dividend.
    pub dividend: Option<ExactDecimal>,
    /// New shares per old share: the product of the ratios of all splits with an ex-date in the period. Null
    /// without a split.
    pub split_ratio: Option<ExactDecimal>,
    /// Change of the close since the last session before the period.
    pub change: Option<ExactDecimal>,
    /// Change of the close since the last session before the period, percent.
    pub change_percent: Option<ExactDecimal>,
}
