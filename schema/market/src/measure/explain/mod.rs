//! Why a figure is what it is: formula with its values, the observations behind it, and those that lost.
//!
//! Told from the same computation that makes the rows; nothing is calculated a second time.

mod development;
mod formulas;
mod judged;
mod observations;
mod paid;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::measured::measure;
use super::payout::PayoutGap;
use super::{METHOD_VERSION, Market};
use crate::history::History;
use crate::row::Quarantined;
use crate::value::Exact;

/// The story of one security's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// Canonical ticker.
    pub symbol: String,
    /// Market date the metrics are for.
    pub as_of: NaiveDate,
    /// Version of the rules.
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
}

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
        method_version: METHOD_VERSION.to_owned(),
        frequency_source: measured.basis.rhythm.source.map(|source| source.as_str().to_owned()),
        payout_status: measured.payouts.ratio.err().map_or("ok", PayoutGap::as_str).to_owned(),
        payout_basis: (!is_fund).then(|| measured.payouts.basis.as_str().to_owned()),
        flags: metrics.flags.0.clone(),
        metrics: formulas::explained(&measured, &metrics),
        unused: observations::unused(&measured),
        older_unused: 0,
        quarantined,
    }
}
