//! What a person decided about a row that is held back.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::words::Kind;
use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// What a person decided about a held row.
    pub enum Verdict {
        /// The row is right: it counts.
        Release = "release",
        /// The row is wrong: it stays held, also when its neighbours change.
        Confirm = "confirm",
    }
}

/// A decision about one row as it stood: a vendor's correction of the row is another row, of which nothing is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Canonical ticker of the security when it was decided.
    pub symbol: Symbol,
    /// What was decided.
    pub verdict: Verdict,
    /// Which row.
    #[serde(flatten)]
    pub row: DecidedRow,
    /// The reason code it was held with.
    pub reason: String,
    /// Why, in the words of whoever decided.
    pub note: String,
}

/// The row that a decision is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecidedRow {
    /// price, dividend or split.
    pub kind: Kind,
    /// Feed the row came from.
    pub source: String,
    /// Vendor's id of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_id: Option<String>,
    /// Ex-date, else record date, or session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// Amount a share, close, or new shares of a split, as the row says it.
    pub value: Decimal,
}
