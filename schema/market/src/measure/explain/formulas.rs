//! One entry per metric: its formula with the values in it.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::{ExplainedMetric, ExplainedObservation, development, judged, paid};
use crate::measure::arithmetic;
use crate::measure::measured::Measured;
use crate::measure::yields::months_before;
use crate::row::{Metrics, TableRow};

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

/// Explains every metric, in the order of the row.
pub(super) fn explained(measured: &Measured<'_>, metrics: &Metrics) -> Vec<ExplainedMetric> {
    let served = serde_json::to_value(metrics).unwrap_or_default();
    let mut explained =
        [paid::explained(measured), development::explained(measured), judged::explained(measured)].concat();
    for entry in &mut explained {
        entry.value = served.get(&entry.metric).filter(|value| !value.is_null()).map(plain);
    }
    let place = |name: &str| Metrics::COLUMNS.iter().position(|column| *column == name);
    explained.sort_by_key(|entry| place(&entry.metric));
    explained
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

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
