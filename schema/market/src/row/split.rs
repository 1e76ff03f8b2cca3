//! Table `splits`: one row for each change of the share count, and for each price-only action.

use chrono::{DateTime, NaiveDate, Utc};

use crate::decimal::ExactDecimal;
use crate::{table_row, text_enum};

text_enum! {
    /// Type of a split: a change of the share count, or a price-only action, which changes prices but not the share
    /// count (R35).
    pub enum SplitType {
        /// Split into more shares.
        Forward = "forward",
        /// Reverse split into fewer shares.
        Reverse = "reverse",
        /// Shares of the company paid as a dividend.
        StockDividend = "stock_dividend",
        /// Shares of a subsidiary are distributed; the share count does not change.
        SpinOff = "spin_off",
        /// Subscription rights are distributed; the share count does not change.
        Rights = "rights",
        /// Shares of another class are distributed; the share count does not change.
        ClassDistribution = "class_distribution",
    }
}

impl SplitType {
    /// True if a split of this type changes prices, but not the share count.
    pub fn is_price_only(self) -> bool {
        matches!(self, Self::SpinOff | Self::Rights | Self::ClassDistribution)
    }
}

text_enum! {
    /// Status of a split on the market's as-of date.
    pub enum SplitStatus { Announced = "announced", Effective = "effective", Cancelled = "cancelled" }
}

table_row! {
    /// A split record.
    pub struct SplitRow {
        /// Id of the record. It is unique in the whole service and stays the same when the data are rebuilt.
        "id" id: String,
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Ex-date as declared: first day of trading after the split.
        "ex_date" ex_date: NaiveDate,
        /// Declaration date.
        "declaration_date" declaration_date: Option<NaiveDate>,
        /// Delivery date of the new shares.
        "payable_date" payable_date: Option<NaiveDate>,
        /// Number of old shares. For a price-only action, the denominator of its ratio.
        "from_shares" from_shares: ExactDecimal,
        /// Number of new shares. For a price-only action, the numerator of its ratio.
        "to_shares" to_shares: ExactDecimal,
        /// to_shares / from_shares: 4 for a 4:1 split.
        "ratio" ratio: ExactDecimal,
        /// to_shares:from_shares as text, for example 4:1.
        "text" text: String,
        /// Type of the split. For price-only types, earlier prices are adjusted, but share counts, volumes and amounts
        /// are not.
        "type" r#type: SplitType,
        /// from_shares / to_shares: the multiplier of earlier prices.
        "price_factor" price_factor: ExactDecimal,
        /// Product of the price factors of this split and of all later splits. Only effective splits are included.
        "cumulative_price_factor" cumulative_price_factor: ExactDecimal,
        /// Status of the split.
        "status" status: SplitStatus,
        /// Vendor's revision of the record.
        "revision" revision: i64,
        /// Time at which the feed reported the record.
        "updated_at" updated_at: DateTime<Utc>,
    }
}
