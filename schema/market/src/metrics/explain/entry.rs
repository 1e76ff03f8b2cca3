//! Explanation of one metric: its value, its formula with numbers, and the observations from which it is computed.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;
use crate::metrics::calendar::months_before;
use crate::metrics::computed::ComputedMetrics;

/// Explanation of one metric: its value, its formula and the observations from which it is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedMetric {
    /// Name of the metric, as in the metrics row.
    pub metric: String,
    /// Value of the metric in responses, as text; null if unknown.
    pub value: Option<String>,
    /// Number of the rule that defines the metric, for example R7.
    pub rule: String,
    /// Formula with its values and its result.
    pub formula: String,
    /// Rounding of the value.
    pub rounding: String,
    /// Unit of the value, from which the rounding follows.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) unit: Unit,
    /// Observations from which the value is computed.
    pub observations: Vec<ExplainedObservation>,
    /// Number of older observations that the explanation does not list.
    pub older_observations: usize,
}

/// One observation in an explanation, used or unused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedObservation {
    /// Kind of record: dividend, split, price, fundamentals, security or evidence.
    pub kind: String,
    /// Vendor's id of the record; null without an id.
    pub id: Option<String>,
    /// Ex-date of a dividend or split, session of a price, or date of company figures.
    pub date: Option<NaiveDate>,
    /// Amount per share as declared, or closing price.
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
    /// Id of the record batch in the log, with which `file` is looked up. `None` if unknown.
    #[serde(skip)]
    #[schema(ignore)]
    pub frame: Option<[u8; 16]>,
    /// Status of the observation: used, superseded, cancelled, duplicate, translation, other_source, overridden,
    /// not_yet_known, moved, missing, or the reason code of its quarantine.
    ///
    /// missing: adjusted closes imply the payment, but no row contains it.
    pub outcome: String,
    /// Reason for the status, as a sentence.
    pub reason: String,
}

impl ExplainedObservation {
    /// True if both observations have the same kind of record. Evidence and dividends count as one kind.
    pub(crate) fn is_about_same(&self, other: &Self) -> bool {
        let topic = |kind: &str| if kind == "evidence" { "dividend".to_owned() } else { kind.to_owned() };
        topic(&self.kind) == topic(&other.kind)
    }
}

/// Unit of a metric's value, which decides the rounding.
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
    /// Count, date or word, without rounding.
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
    /// Sets the value as served. An amount, a price, a percentage or a ratio is also appended to the formula.
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

/// Builds the explanation of one metric. The value is taken from the metrics row.
pub(crate) fn entry(
    metric: &str,
    rule: &str,
    unit: Unit,
    formula: impl Into<String>,
    observations: Vec<ExplainedObservation>,
) -> ExplainedMetric {
    // Two parts of a formula may use the same observation, which is then listed once.
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

/// Formats a number for a formula; `None` becomes the text `null`.
pub(crate) fn number(value: Option<Decimal>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| arithmetic::factor(value).to_string())
}

/// Formats a date for a formula; `None` becomes the text `none`.
pub(crate) fn date(value: Option<NaiveDate>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// First and last day of the trailing 12 months: the first day is excluded, the last day included.
pub(crate) fn window(computed: &ComputedMetrics<'_>) -> (NaiveDate, NaiveDate) {
    (months_before(computed.inputs.as_of, 12), computed.inputs.as_of)
}
