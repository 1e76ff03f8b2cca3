//! `splits`: every change of the share count.

use chrono::{DateTime, NaiveDate, Utc};

use crate::value::Exact;
use crate::{table_row, text_enum};

text_enum! {
    /// Direction of a split.
    pub enum SplitType { Forward = "forward", Reverse = "reverse", StockDividend = "stock_dividend" }
}
text_enum! {
    /// Where a split stands at the market's as-of date.
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
        /// Day of the announcement.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Day the new shares are delivered.
        "payable_date" payable_date: Option<NaiveDate>,
        /// Old shares.
        "from_shares" from_shares: Exact,
        /// New shares.
        "to_shares" to_shares: Exact,
        /// to / from: 4 for 4:1.
        "ratio" ratio: Exact,
        /// to:from as text, for example 4:1.
        "text" text: String,
        /// Direction.
        "type" r#type: SplitType,
        /// from / to: multiply into earlier prices.
        "price_factor" price_factor: Exact,
        /// The same with all later effective splits.
        "cumulative_price_factor" cumulative_price_factor: Exact,
        /// Where it stands.
        "status" status: SplitStatus,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// When the record was observed.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
