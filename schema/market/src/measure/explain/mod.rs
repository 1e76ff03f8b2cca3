//! Why a figure is what it is: formula with its values, the observations behind it, and those that lost.
//!
//! Told from the same computation that makes the rows; nothing is calculated a second time.

mod decisions;
mod development;
mod entry;
mod judged;
mod observations;
mod paid;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::market::Market;
use super::measured::{Measured, measure};
use super::payout::PayoutGap;
use crate::bars::day_number;
use crate::history::History;
use crate::row::{Metrics, Quarantined, TableRow};

pub use decisions::ExplainedDecision;
pub use entry::{ExplainedMetric, ExplainedObservation};

/// The story of one security's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// Canonical ticker.
    pub symbol: String,
    /// Market date the metrics are for.
    pub as_of: NaiveDate,
    /// Version of the rules, with the parameters that are not their defaults.
    pub method_version: String,
    /// Where the frequency came from: `inferred` or `vendor`; null without regular dividends.
    pub frequency_source: Option<String>,
    /// Why a payout ratio is there or not: `ok`, `not_applicable`, `negative_earnings`, `currency_mismatch`, `missing`.
    pub payout_status: String,
    /// What dividends are measured against: `eps` or `ffo`; null for funds.
    pub payout_basis: Option<String>,
    /// Flags: what to know before trusting a figure.
    pub flags: Vec<String>,
    /// One entry per metric, in the order of the metrics row.
    pub metrics: Vec<ExplainedMetric>,
    /// Observations that do not count, each with the reason.
    pub unused: Vec<ExplainedObservation>,
    /// How many more of them are older than what is listed.
    pub older_unused: usize,
    /// Rows held back from the figures, with the reason.
    pub quarantined: Vec<Quarantined>,
    /// What people decided about held rows.
    pub decisions: Vec<ExplainedDecision>,
}

impl Explanation {
    /// Counts observations before a day instead of listing them, and leaves held rows before it out.
    pub fn since(mut self, first: NaiveDate) -> Self {
        for metric in &mut self.metrics {
            metric.older_observations = leave_out(&mut metric.observations, first);
        }
        self.older_unused = leave_out(&mut self.unused, first);
        self.quarantined.retain(|row| row.date.is_none_or(|date| date >= first));
        self
    }
}

fn leave_out(observations: &mut Vec<ExplainedObservation>, first: NaiveDate) -> usize {
    let all = observations.len();
    observations.retain(|seen| seen.date.is_none_or(|date| date >= first));
    all - observations.len()
}

/// Explains every metric of a security.
pub fn explain(history: &History, market: &Market<'_>) -> Explanation {
    let measured = measure(history, market);
    let quarantined = super::rows::quarantined(&measured);
    let metrics = super::rows::metrics(&measured, &quarantined);
    let is_fund = measured.basis.security_type == crate::event::SecurityType::Etf;
    Explanation {
        symbol: history.symbol.to_string(),
        as_of: measured.basis.as_of,
        method_version: market.rules.method_version(),
        frequency_source: measured.basis.rhythm.source.map(|source| source.as_str().to_owned()),
        payout_status: measured.payouts.ratio.err().map_or("ok", PayoutGap::as_str).to_owned(),
        payout_basis: (!is_fund).then(|| measured.payouts.basis.as_str().to_owned()),
        flags: metrics.flags.0.clone(),
        metrics: explained(&measured, &metrics),
        unused: observations::unused(&measured),
        older_unused: 0,
        quarantined,
        decisions: decisions::explained(history),
    }
}

/// Explains the close of one session: which source counts, and what the others say.
pub fn explain_session(history: &History, market: &Market<'_>, session: NaiveDate) -> ExplainedMetric {
    let measured = measure(history, market);
    let told = observations::of_day(&measured, day_number(session));
    let counted = told.first().filter(|first| first.outcome == "used");
    let formula = match counted {
        Some(counted) => format!("raw close of {session}, which {} is believed for", counted.source),
        None => format!("no bar of {session} counts"),
    };
    let value = counted.and_then(|counted| counted.amount).map(|close| close.to_string());
    ExplainedMetric { value, ..entry::entry("price", "R32", entry::Rounding::Amount, formula, told) }
}

/// Explains every metric, in the order of the row.
fn explained(measured: &Measured<'_>, metrics: &Metrics) -> Vec<ExplainedMetric> {
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
