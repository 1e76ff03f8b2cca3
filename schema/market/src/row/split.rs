//! `splits`: rows of all changes of the share count.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::{table_row, text_enum};

text_enum! {
    /// Direction of a split.
    pub enum SplitType { Forward = "forward", Reverse = "reverse", StockDividend = "stock_dividend" }
}
text_enum! {
    /// Status of a split on the market's as-of date.
    pub enum SplitStatus { Announced = "announced", Effective = "effective", Cancelled = "cancelled" }
}

table_row! {
    /// A split record.
    pub struct SplitRow {
        /// Id of the record.
        "id" id: String,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First day on the new share basis.
        "ex_date" ex_date: NaiveDate,
        /// Declaration date.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Delivery date of the new shares.
        "payable_date" payable_date: Option<NaiveDate>,
        /// Old shares.
        "from_shares" from_shares: ExactDecimal,
        /// New shares.
        "to_shares" to_shares: ExactDecimal,
        /// to / from: 4 for 4:1.
        "ratio" ratio: ExactDecimal,
        /// to:from as text, for example 4:1.
        "text" text: String,
        /// Direction of the split.
        "type" r#type: SplitType,
        /// from / to: the multiplier of earlier prices.
        "price_factor" price_factor: ExactDecimal,
        /// Price factor of this split and all later effective splits.
        "cumulative_price_factor" cumulative_price_factor: ExactDecimal,
        /// Status of the split.
        "status" status: SplitStatus,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// Observation time of the record.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
