//! Explanation of each metric: its formula with the numbers filled in, and the observations that were used or left out.
//!
//! The formulas use the same computed metrics as the served rows. An explanation therefore contains the same figures as
//! the rows.

mod development;
mod entry;
mod judged;
mod observations;
mod paid;
mod years;

use chrono::NaiveDate;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::calendar::months_before;
use super::computed::{ComputedMetrics, compute};
use super::context::DerivationContext;
use super::dividends::safety::NoPayoutReason;
use crate::dated_text::{LimitToHistory, dated_text, undated};
use crate::day::day_number;
use crate::history::History;
use crate::row::{Metrics, Quarantined, TableRow};

use entry::limit_observations;
pub use entry::{ExplainedDecision, ExplainedMetric, ExplainedObservation};
pub use years::{ExplainedYear, YearStatus};

/// Explanation of one security's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Explanation {
    /// Canonical ticker of the security.
    pub symbol: String,
    /// Market date of the metrics.
    pub as_of: NaiveDate,
    /// Version of the rules, followed by the parameters that differ from their defaults.
    pub method_version: String,
    /// Origin of the payment frequency: `inferred` from the ex-dates, or stated by the `vendor`; null if the frequency
    /// is unknown or there are no regular dividends.
    pub frequency_source: Option<String>,
    /// Reason for a missing payout ratio: `not_applicable` (a fund), `negative_earnings` (0 or less),
    /// `currency_mismatch` (earnings and dividends in different currencies) or `missing` (earnings or dividends
    /// unknown). `ok` if the ratio exists.
    pub payout_status: String,
    /// Denominator of the payout ratio: `eps` (earnings per share) or `ffo` (funds from operations per share); null for
    /// funds.
    pub payout_basis: Option<String>,
    /// Warnings about the data behind the figures.
    pub flags: Vec<String>,
    /// Explanation of each metric, in the order of the fields of `Metrics`.
    pub metrics: Vec<ExplainedMetric>,
    /// Dividends and splits that no metric uses, each with the reason. Also listed: payments that no row reports, but
    /// that a feed's adjusted closes show.
    pub unused: Vec<ExplainedObservation>,
    /// Number of unused observations that are not listed, because they are too old or not related to the requested
    /// metrics.
    pub older_unused: usize,
    /// Quarantined rows, which no figure uses, each with the reason.
    pub quarantined: Vec<Quarantined>,
    /// Decisions of operators about quarantined rows: the newest decision about each row.
    pub decisions: Vec<ExplainedDecision>,
}

impl Explanation {
    /// Keeps only the wanted metrics, and the unused observations that could have changed them. Adds the number of
    /// removed observations to `older_unused`.
    pub fn limit_to_metrics(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.metrics.retain(|one| is_wanted(&one.metric));
        let used: Vec<&ExplainedObservation> =
            self.metrics.iter().flat_map(|one| &one.observations).collect();
        let all = self.unused.len();
        if used.is_empty() {
            // If the metrics use no observation, unused observations of the last year may show the reason.
            let year_ago = months_before(self.as_of, 12);
            self.unused.retain(|unused| unused.date.is_none_or(|date| date > year_ago));
        } else {
            // Observations older than all used ones of the same kind cannot change the metrics.
            self.unused.retain(|unused| {
                used.iter().any(|used| {
                    used.is_about_same(unused) && (unused.date.is_none() || used.date <= unused.date)
                })
            });
        }
        self.older_unused += all - self.unused.len();
    }

    /// Name of the metric with the spelling closest to `text`. It is a suggestion for a mistyped name. `None` if the
    /// explanation has no metrics.
    pub fn nearest_metric(&self, text: &str) -> Option<&str> {
        let names = self.metrics.iter().map(|metric| metric.metric.as_str());
        names.min_by_key(|name| strsim::damerau_levenshtein(text, name))
    }

    /// Limits the explanation to the days from `first` on. `metrics` are the explained metrics with the same limit; the
    /// explanation gets their values, flags and quarantined rows.
    #[must_use]
    pub fn limit_to_days_from(mut self, first: NaiveDate, metrics: &Metrics) -> Self {
        let values = values_by_name(metrics);
        let limit = |metric: ExplainedMetric| {
            let value = value_text(&values, &metric.metric);
            ExplainedMetric { value, ..metric.limit_to_days_from(first) }
        };
        self.metrics = self.metrics.into_iter().map(limit).collect();
        let (unused, older) = limit_observations(self.unused, first);
        self.unused = unused;
        self.older_unused += older;
        self.flags = metrics.flags.0.clone();
        self.quarantined = metrics.quarantined.0.clone();
        self.decisions = self.decisions.limit_to_days_from(first);
        self
    }
}

/// Explains all metrics of a security, with their formulas and observations.
pub fn explain(history: &History, context: &DerivationContext<'_>) -> Explanation {
    let computed = compute(history, context);
    let quarantined = super::rows::quarantined(&computed);
    let metrics = super::rows::metrics(&computed, &quarantined);
    let is_fund = computed.inputs.security_type == crate::event::SecurityType::Etf;
    Explanation {
        symbol: history.symbol.to_string(),
        as_of: computed.inputs.as_of,
        method_version: context.rules.method_version(),
        frequency_source: computed.inputs.rhythm.source.map(|source| source.to_string()),
        payout_status: computed.payouts.ratio.err().map_or("ok", NoPayoutReason::as_str).to_owned(),
        payout_basis: (!is_fund).then(|| computed.payouts.basis.to_string()),
        flags: metrics.flags.0.clone(),
        metrics: explained(&computed, &metrics),
        unused: observations::unused(&computed),
        older_unused: 0,
        quarantined,
        decisions: entry::explain_decisions(history),
    }
}

/// Explains the close of one session: its source, and the closes of the other sources.
pub fn explain_session(
    history: &History,
    context: &DerivationContext<'_>,
    session: NaiveDate,
) -> ExplainedMetric {
    let computed = compute(history, context);
    let observations = observations::of_day(&computed, day_number(session));
    let counted = observations.first().filter(|first| first.outcome == "used");
    let formula = match counted {
        Some(counted) => {
            let choice = match observations.len() {
                1 => "the only source of the day",
                _ => observations::bar_choice(&computed, &counted.source, session),
            };
            let source = undated(&counted.source);
            dated_text!("raw close of {} from {} ({})", session, source, choice)
        }
        None => dated_text!("null: no bar of {} counts", session),
    };
    let value = counted.and_then(|counted| counted.amount).map(|close| close.to_string());
    let mut explained = entry::entry("price", "R32", entry::Unit::Price, formula, observations);
    explained.set_value(value, &computed);
    explained
}

fn explained(computed: &ComputedMetrics<'_>, metrics: &Metrics) -> Vec<ExplainedMetric> {
    let values = values_by_name(metrics);
    let mut explained = [
        paid::explain_income(computed),
        development::explain_development(computed),
        judged::explain_payout_and_risk(computed),
    ]
    .concat();
    for entry in &mut explained {
        entry.set_value(value_text(&values, &entry.metric), computed);
    }
    let place = |name: &str| Metrics::COLUMNS.iter().position(|column| *column == name);
    explained.sort_by_key(|entry| place(&entry.metric));
    explained
}

/// Values of the metrics as in responses, by field name.
fn values_by_name(metrics: &Metrics) -> Value {
    serde_json::to_value(metrics).unwrap_or_default()
}

fn value_text(values: &Value, metric: &str) -> Option<String> {
    let value = values.get(metric).filter(|value| !value.is_null())?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
