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
        /// The row is right and enters the figures.
        Release = "release",
        /// The row is wrong and stays quarantined, even if its neighbours change.
        Confirm = "confirm",
    }
}

/// Decision about one row with its current content. A vendor's correction is another row without a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Canonical ticker of the security at the time of the decision.
    pub symbol: Symbol,
    /// The decision.
    pub verdict: DecisionVerdict,
    /// Key of the row.
    #[serde(flatten)]
    pub row: DecidedRow,
    /// Reason code of the quarantine.
    pub reason: String,
    /// Explanation given for the decision.
    pub note: String,
}

/// Key of a row in decisions.
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
    /// Value of the row: amount a share, close, or new shares of a split.
    pub value: Decimal,
}
