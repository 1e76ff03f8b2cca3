//! One metric, explained: its value, its formula with the values in it, and the observations it rests on.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::measure::arithmetic;
use crate::measure::measured::Measured;
use crate::measure::yields::months_before;
use crate::value::Exact;

/// How one metric was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedMetric {
    /// Name of the field in the metrics row.
    pub metric: String,
    /// The value as served.
    pub value: Option<String>,
    /// The rule it follows, for example R7.
    pub rule: String,
    /// The formula with its values.
    pub formula: String,
    /// How the value was rounded.
    pub rounding: String,
    /// The observations it rests on.
    pub observations: Vec<ExplainedObservation>,
    /// How many more of them are older than what is listed.
    pub older_observations: usize,
}

/// One observation, used or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedObservation {
    /// dividend, split, price, fundamentals or security.
    pub kind: String,
    /// Vendor's id of the record.
    pub id: Option<String>,
    /// Ex-date, session or date of the figures.
    pub date: Option<NaiveDate>,
    /// Per share as declared, or the close.
    pub amount: Option<Exact>,
    /// ISO 4217 currency of the amount.
    pub currency: Option<String>,
    /// Feed the observation came from.
    pub source: String,
    /// Vendor's revision of the record.
    pub revision: i64,
    /// Line in the feed's file; 0 where it is not kept.
    pub line: i64,
    /// Why it counts or does not: used, superseded, cancelled, duplicate, other_source, overridden, not_yet_known, moved,
    /// or the reason code it is quarantined with.
    pub outcome: String,
    /// The outcome as a sentence.
    pub reason: String,
}

/// How a value was rounded.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    Amount,
    Percent,
    /// A count, a date, a word.
    Exact,
}

impl Rounding {
    fn as_str(self) -> &'static str {
        match self {
            Self::Amount => "6 places, half away from zero",
            Self::Percent => "4 places, half away from zero",
            Self::Exact => "none",
        }
    }
}

/// Explains a metric; its value is filled in from the row.
pub(super) fn entry(
    metric: &str,
    rule: &str,
    rounding: Rounding,
    formula: impl Into<String>,
    observations: Vec<ExplainedObservation>,
) -> ExplainedMetric {
    ExplainedMetric {
        metric: metric.to_owned(),
        value: None,
        rule: rule.to_owned(),
        formula: formula.into(),
        rounding: rounding.as_str().to_owned(),
        observations,
        older_observations: 0,
    }
}

/// A value in a formula.
pub(super) fn number(value: Option<Decimal>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| arithmetic::factor(value).to_string())
}

/// A date in a formula.
pub(super) fn date(value: Option<NaiveDate>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// The trailing window: after the first, through the second.
pub(super) fn window(measured: &Measured<'_>) -> (NaiveDate, NaiveDate) {
    (months_before(measured.basis.as_of, 12), measured.basis.as_of)
}
