//! Explanation of one metric: its value, its formula with numbers, and the observations from which it is computed.
//!
//! Decisions of operators about quarantined rows of a security, as they are listed in the explanation of the security's
//! metrics.

use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::dated_text::{DatedText, LimitToHistory, Undated, dated_text, undated};
use crate::decimal::ExactDecimal;
use crate::event::{Action, DecisionVerdict};
use crate::history::History;
use crate::metrics::arithmetic;
use crate::metrics::calendar::months_before;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::explain::years::{ExplainedYear, remove_years_before};
use crate::metrics::merge::newest_decisions;

/// Explanation of one metric: its value, its formula and the observations from which it is computed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedMetric {
    /// Name of the metric: its field name in `Metrics`, for example `payout_ratio`.
    pub metric: String,
    /// Value of the metric in responses, as text; null if unknown, or if it is a date outside the plan's history.
    pub value: Option<String>,
    /// Number of the rule that defines the metric, for example R7.
    pub rule: String,
    /// Path of this service's page about the rule, for example `/methods/R7`.
    pub rule_page: String,
    /// Formula as text, with the numbers filled in. If the metric is an amount, a price, a percentage or a ratio, the
    /// formula ends with the value, unless the value is null. Days and yearly figures outside the history of the
    /// caller's plan are left out; a note in brackets has their number.
    #[schema(value_type = String)]
    pub formula: DatedText,
    /// Rounding of the value, for example `4 places, half away from zero`; `none` if the value is not rounded.
    pub rounding: String,
    /// Unit of the value. The rounding of the value depends on the unit.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) unit: Unit,
    /// Dividend years from which the value is computed, ascending. Empty if the metric is not computed from years.
    pub years: Vec<ExplainedYear>,
    /// Number of counted years that are not listed: years that an operator entered, and years outside the history of
    /// the caller's plan.
    pub older_years: usize,
    /// Observations from which the value is computed.
    pub observations: Vec<ExplainedObservation>,
    /// Number of observations that are not listed, because they are older than the data that the caller's plan
    /// includes.
    pub older_observations: usize,
}

/// One record of a feed in an explanation. The field `outcome` is `used` if the metrics use the record. With any other
/// value, the metrics do not use the record.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedObservation {
    /// Kind of record: dividend, split, price, fundamentals, security or evidence. Evidence is a payment that only a
    /// feed's adjusted closes show.
    pub kind: String,
    /// Vendor's id of the record; null if the vendor gives none.
    pub id: Option<String>,
    /// Ex-date of a dividend or split, session of a price, or date of company figures; null for a security. For a
    /// dividend without an ex-date, its record date.
    pub date: Option<NaiveDate>,
    /// Amount per share of a dividend, closing price of a price record, or, for evidence, the amount per share that the
    /// adjusted closes imply. Null for other kinds of record, and for a withdrawn price.
    pub amount: Option<ExactDecimal>,
    /// ISO 4217 currency of the amount; null for kinds of record without an amount.
    pub currency: Option<String>,
    /// Name of the feed that reported the record.
    pub source: String,
    /// Vendor's revision of the record.
    pub revision: i64,
    /// Line in the feed's file; 0 if unknown. Prices are stored in batches, so for a price it is the first line of the
    /// batch.
    pub line: i64,
    /// Name of the feed's file; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Id of the record batch in the log. It is used to find `file`. `None` if unknown.
    #[serde(skip)]
    #[schema(ignore)]
    pub frame: Option<[u8; 16]>,
    /// Status of the record: `used`, `superseded` by a newer version, `cancelled` by the feed, `duplicate` of another
    /// record, `translation` (the same payment in another currency), `covered` by a newer record of another source,
    /// `other_source` (the source policy prefers another source), `overridden` by a manual record, `not_yet_known` on
    /// the as-of date, `moved` to another symbol, `missing`, or the reason code of its quarantine.
    ///
    /// `missing`: a feed's adjusted closes show a payment, but the data have no dividend for it.
    pub outcome: String,
    /// Reason for the status, as a sentence. Days outside the history of the caller's plan are left out.
    #[schema(value_type = String)]
    pub reason: DatedText,
}

impl ExplainedObservation {
    /// True if both observations have the same kind of record. Evidence and dividends are treated as one kind.
    pub(crate) fn is_about_same(&self, other: &Self) -> bool {
        let topic = |kind: &str| if kind == "evidence" { "dividend".to_owned() } else { kind.to_owned() };
        topic(&self.kind) == topic(&other.kind)
    }
}

/// Unit of a metric's value. The rounding of the value depends on the unit.
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
    /// A count, a date or a word. These values are not rounded.
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
    /// Adds the years from which the metric is computed, and the number of counted years that are not listed.
    #[must_use]
    pub(crate) fn with_years(self, (years, older_years): (Vec<ExplainedYear>, usize)) -> Self {
        Self { years, older_years, ..self }
    }

    /// Sets the value as it appears in responses. An amount, a price, a percentage or a ratio is also appended to the
    /// formula.
    pub(crate) fn set_value(&mut self, value: Option<String>, computed: &ComputedMetrics<'_>) {
        if let Some(value) = &value {
            let unit = match self.unit {
                Unit::Amount => Some(format!(" {}", computed.inputs.dividend_currency)),
                Unit::Price => Some(format!(" {}", computed.inputs.currency)),
                Unit::Percent => Some(" %".to_owned()),
                Unit::Ratio => Some(String::new()),
                Unit::Amounts | Unit::Unrounded => None,
            };
            if let Some(unit) = unit {
                let formula = std::mem::take(&mut self.formula);
                self.formula = dated_text!("{} = {}{}", formula, undated(value), undated(unit));
            }
        }
        self.value = value;
    }
}

impl LimitToHistory for ExplainedMetric {
    /// Counts the observations from before `first` instead of listing them. The value stays unchanged.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.formula = self.formula.limit_to_days_from(first);
        let (observations, older) = limit_observations(self.observations, first);
        self.observations = observations;
        self.older_observations += older;
        self.older_years += remove_years_before(&mut self.years, first);
        self
    }
}

/// Observations from `first` on, and the number of the others. The reasons of the remaining observations are limited
/// too.
pub(crate) fn limit_observations(
    observations: Vec<ExplainedObservation>,
    first: NaiveDate,
) -> (Vec<ExplainedObservation>, usize) {
    let all = observations.len();
    let recent = observations.into_iter().filter(|seen| seen.date.is_none_or(|date| date >= first));
    let limited =
        recent.map(|seen| ExplainedObservation { reason: seen.reason.limit_to_days_from(first), ..seen });
    let limited: Vec<ExplainedObservation> = limited.collect();
    let older = all - limited.len();
    (limited, older)
}

/// Builds the explanation of one metric, without its value. [`ExplainedMetric::set_value`] sets the value.
pub(crate) fn entry(
    metric: &str,
    rule: &str,
    unit: Unit,
    formula: impl Into<DatedText>,
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
        rule_page: format!("/methods/{rule}"),
        formula: formula.into(),
        rounding: unit.rounding().to_owned(),
        unit,
        years: Vec::new(),
        older_years: 0,
        observations: listed,
        older_observations: 0,
    }
}

/// Converts a number for a formula; `None` becomes the text `null`.
pub(crate) fn number(value: Option<Decimal>) -> Undated {
    value.map_or_else(|| undated("null"), |value| undated(arithmetic::factor(value)))
}

/// Start and end of the trailing 12 months. The start day is excluded, and the end day is included.
pub(crate) fn window(computed: &ComputedMetrics<'_>) -> (NaiveDate, NaiveDate) {
    (months_before(computed.inputs.as_of, 12), computed.inputs.as_of)
}

/// Decision of an operator about one quarantined row. The fields that describe the row have the values from the time of
/// the decision.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedDecision {
    /// Verdict: `release` (the row is correct and is used) or `confirm` (the row is wrong and stays quarantined).
    pub verdict: DecisionVerdict,
    /// Kind of the row that the decision is about: price, dividend or split.
    pub kind: String,
    /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
    pub date: Option<NaiveDate>,
    /// Vendor's id of the row; null if the vendor gives none.
    pub id: Option<String>,
    /// Name of the feed that reported the row.
    pub source: String,
    /// Value of the row when the decision was made: amount per share, closing price, or number of new shares of a
    /// split.
    pub value: ExactDecimal,
    /// Code of the reason for the quarantine, for example `amount_outlier`.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
    /// Time of the decision, or of its revocation if `revoked` is true.
    pub decided_at: DateTime<Utc>,
    /// True if the decision was revoked.
    pub revoked: bool,
}

impl LimitToHistory for Vec<ExplainedDecision> {
    /// Removes the decisions about rows from before `first`, and earlier days in the notes.
    fn limit_to_days_from(mut self, first: NaiveDate) -> Self {
        self.retain(|decision| decision.date.is_none_or(|date| date >= first));
        for decision in &mut self {
            decision.note = DatedText::parse(&decision.note).limit_to_days_from(first).to_string();
        }
        self
    }
}

/// Newest decision about each row of a security. Revoked decisions are included.
pub(crate) fn explain_decisions(history: &History) -> Vec<ExplainedDecision> {
    let newest = newest_decisions(&history.decisions);
    let explained = newest.into_values().map(|decision| ExplainedDecision {
        verdict: decision.record.verdict,
        kind: decision.record.row.kind.to_string(),
        date: decision.record.row.date,
        id: decision.record.row.row_id.clone(),
        source: decision.record.row.source.clone(),
        value: decision.record.row.value.into(),
        reason: decision.record.reason.clone(),
        note: decision.record.note.clone(),
        decided_at: decision.observed_at,
        revoked: decision.action == Action::Retract,
    });
    explained.collect()
}
