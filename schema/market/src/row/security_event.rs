//! Security events: one dated list of ticker changes, corporate actions and special dividends of a security.

use chrono::NaiveDate;

use super::split::SplitStatus;
use crate::decimal::ExactDecimal;
use crate::{table_row, text_enum};

text_enum! {
    /// Type of a security event.
    pub enum SecurityEventType {
        /// Change of the ticker.
        Rename = "rename",
        /// Merger into a successor.
        Merger = "merger",
        /// End of trading without a known successor.
        Delisting = "delisting",
        /// Change of the share count: split, reverse split or stock dividend.
        Split = "split",
        /// Distribution of a subsidiary's shares, as a ratio or as a value per share.
        SpinOff = "spin_off",
        /// Subscription rights.
        Rights = "rights",
        /// Distribution of shares of another class.
        ClassDistribution = "class_distribution",
        /// Special, supplemental or liquidating dividend.
        SpecialDividend = "special_dividend",
    }
}

table_row! {
    /// An event of a security.
    pub struct SecurityEvent {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// First session after the change. For a delisting or merger, the last trading day.
        "date" date: NaiveDate,
        /// Type of the event.
        "type" r#type: SecurityEventType,
        /// Status on the market's as-of date.
        "status" status: SplitStatus,
        /// Id of the split or dividend record.
        "id" id: Option<String>,
        /// Ticker before a rename.
        "from_symbol" from_symbol: Option<String>,
        /// Ticker after a rename, or ticker of the successor after a merger.
        "to_symbol" to_symbol: Option<String>,
        /// New shares per old share. For a merger, shares of the successor per share.
        "ratio" ratio: Option<ExactDecimal>,
        /// Multiplier of earlier prices.
        "price_factor" price_factor: Option<ExactDecimal>,
        /// Cash or value per share as declared.
        "amount" amount: Option<ExactDecimal>,
        /// ISO 4217 currency of the amount.
        "currency" currency: Option<String>,
    }
}
