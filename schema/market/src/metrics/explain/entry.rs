//! Explanation of one metric: its value, its formula with values, and the observations behind it.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;
use crate::metrics::calendar::months_before;
use crate::metrics::computed::ComputedMetrics;

/// Derivation of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedMetric {
    /// Name of the field in the metrics row.
    pub metric: String,
    /// Value as served.
    pub value: Option<String>,
    /// Rule number, for example R7.
    pub rule: String,
    /// Formula with its values and its result.
    pub formula: String,
    /// Rounding of the value.
    pub rounding: String,
    /// Unit of the value.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) unit: Unit,
    /// Observations that determine the value.
    pub observations: Vec<ExplainedObservation>,
    /// Number of older observations that are not listed.
    pub older_observations: usize,
}

/// One observation, used or unused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedObservation {
    /// Kind of record: dividend, split, price, fundamentals, security or evidence.
    pub kind: String,
    /// Vendor's id of the record.
    pub id: Option<String>,
    /// Ex-date, session or date of the figures.
    pub date: Option<NaiveDate>,
    /// Amount per share as declared, or the close.
    pub amount: Option<ExactDecimal>,
    /// ISO 4217 currency of the amount.
    pub currency: Option<String>,
    /// Feed of the observation.
    pub source: String,
    /// Vendor's revision of the record.
    pub revision: i64,
    /// Line in the feed's file; for a price, the first line of its batch. 0 if unknown.
    pub line: i64,
    /// Name of the feed's file; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Id of the record batch in the log. The name of the feed's file (`file`) is looked up with it. `None` if unknown.
    #[serde(skip)]
    #[schema(ignore)]
    pub frame: Option<[u8; 16]>,
    /// Status of the observation: used, superseded, cancelled, duplicate, translation, other_source, overridden,
    /// not_yet_known, moved, missing (a payment that adjusted closes imply and no row contains), or the reason code of
    /// its quarantine.
    pub outcome: String,
    /// Status as a sentence.
    pub reason: String,
}

impl ExplainedObservation {
    /// True if both observations have the same kind of record. Evidence is treated as a dividend.
    pub(crate) fn is_about_same(&self, other: &Self) -> bool {
        let topic = |kind: &str| if kind == "evidence" { "dividend".to_owned() } else { kind.to_owned() };
        topic(&self.kind) == topic(&other.kind)
    }
}

/// Unit of a value, from which its rounding follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Unit {
    /// Amount per share, in the currency of the dividends.
    Amount,
    /// Price, in the currency of the prices.
    Price,
    /// List of amounts.
    Amounts,
    Percent,
    Ratio,
    /// Count, date or word, which is not rounded.
    #[default]
    Unrounded,
}

impl Unit {
    fn rounding(self) -> &'static str {
        match self {
            Self::Amount | Self::Price | Self::Amounts => "6 places, half away from zero",
            Self::Percent | Self::Ratio => "4 places, half away from zero",
            Self::Unrounded => "none",
        }
    }
}

impl ExplainedMetric {
    /// Sets the served value, and completes the formula with it.
    pub(crate) fn set_value(&mut self, value: Option<String>, computed: &ComputedMetrics<'_>) {
        if let Some(value) = &value {
            match self.unit {
                Unit::Amount => self.formula += &format!(" = {value} {}", computed.inputs.dividend_currency),
                Unit::Price => self.formula += &format!(" = {value} {}", computed.inputs.currency),
                Unit::Percent => self.formula += &format!(" = {value} %"),
                Unit::Ratio => self.formula += &format!(" = {value}"),
                Unit::Amounts | Unit::Unrounded => {}
            }
        }
        self.value = value;
    }
}

/// Builds the entry of a metric. The value comes from the row.
pub(crate) fn entry(
    metric: &str,
    rule: &str,
    unit: Unit,
    formula: impl Into<String>,
    observations: Vec<ExplainedObservation>,
) -> ExplainedMetric {
    // Two parts of a formula may use the same observation.
    let mut listed: Vec<ExplainedObservation> = Vec::with_capacity(observations.len());
    for observation in observations {
        if !listed.contains(&observation) {
            listed.push(observation);
        }
    }
    ExplainedMetric {
        metric: metric.to_owned(),
        value: None,
        rule: rule.to_owned(),
        formula: formula.into(),
        rounding: unit.rounding().to_owned(),
        unit,
        observations: listed,
        older_observations: 0,
    }
}

/// Formats a value for a formula.
pub(crate) fn number(value: Option<Decimal>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| arithmetic::factor(value).to_string())
}

/// Formats a date for a formula.
pub(crate) fn date(value: Option<NaiveDate>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// Trailing window: first day (exclusive) and last day (inclusive).
pub(crate) fn window(computed: &ComputedMetrics<'_>) -> (NaiveDate, NaiveDate) {
    (months_before(computed.inputs.as_of, 12), computed.inputs.as_of)
}
