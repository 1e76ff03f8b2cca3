//! Review decision about a quarantined row.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::enums::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// Decision about a quarantined row.
    pub enum DecisionVerdict as "Verdict" {
        /// The row is correct and is used in the figures.
        Release = "release",
        /// The row is wrong. It stays quarantined, even if its neighbours change.
        Confirm = "confirm",
    }
}

/// Decision about one row with its current content. If the vendor corrects the row, the decision no longer applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Canonical ticker of the security at the time of the decision.
    pub symbol: Symbol,
    /// Verdict: release or confirmation.
    pub verdict: DecisionVerdict,
    /// Key of the row.
    #[serde(flatten)]
    pub row: DecidedRow,
    /// Reason code of the quarantine.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
}

/// Key by which a decision identifies a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecidedRow {
    /// Kind: price, dividend or split.
    pub kind: Kind,
    /// Feed of the row.
    pub source: String,
    /// Vendor's id of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_id: Option<String>,
    /// Session of a price. For other rows, the ex-date, or the record date if no ex-date is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// Value of the row: amount per share, close, or number of new shares of a split.
    pub value: Decimal,
}
