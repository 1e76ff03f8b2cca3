//! Review decision about a quarantined row.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::enums::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// Decision of an operator about a quarantined row.
    pub enum DecisionVerdict as "Verdict" {
        /// The row is correct and is used in the figures.
        Release = "release",
        /// The row is wrong. It stays quarantined, even if its neighbouring rows change.
        Confirm = "confirm",
    }
}

/// Review decision about one row. The decision applies only while the row still has the key in `row`. If the vendor
/// corrects the date or the value, the decision no longer applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Canonical ticker of the security at the time of the decision.
    pub symbol: Symbol,
    /// Verdict: release the row, or confirm that it is wrong.
    pub verdict: DecisionVerdict,
    /// Key of the row that the decision is about.
    #[serde(flatten)]
    pub row: DecidedRow,
    /// Code of the reason for the quarantine, for example `amount_outlier`.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
}

/// Key of a row in decisions: kind, feed, vendor's id, date and value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecidedRow {
    /// Kind: price, dividend or split.
    pub kind: Kind,
    /// Name of the feed that reported the row.
    pub source: String,
    /// Vendor's id of the row; `None` if the vendor gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_id: Option<String>,
    /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// Value of the row: close of a price, amount per share of a dividend, or number of new shares of a split.
    pub value: Decimal,
}
