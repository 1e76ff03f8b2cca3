//! Result of one sync run of a connector.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use telemetry::report::Report;
use telemetry::shorten;

use super::connector::Connector;
use crate::load::report::LoadSummary;

/// Maximum number of failed requests, and also of refused files, in the text of a report.
const MAX_NAMED: usize = 10;

/// Maximum length of a reason, in characters.
pub(super) const MAX_REASON_CHARS: usize = 1000;

/// Result of a sync run of a connector.
#[derive(Debug, Default, Serialize)]
pub struct PullReport {
    /// Name of the connector, from its manifest.
    pub connector: String,
    /// Name of the feed whose rows the responses contain.
    pub source: String,
    /// True if no call was made, and only the planned requests are listed.
    pub dry_run: bool,
    /// Number of planned requests, one per symbol or session.
    pub requests: usize,
    /// Number of responses with new or changed data.
    pub fetched: usize,
    /// Number of responses whose content has not changed since the previous pull.
    pub unchanged: usize,
    /// Number of requests for which the vendor has no data, or no data yet.
    pub missing: usize,
    /// Requests that failed or got no usable response.
    pub failed: Vec<FailedItem>,
    /// Number of requests that were planned but not made.
    pub left: usize,
    /// Reason why some planned requests were not made; absent if all were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Earliest time at which the remaining requests can be made; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<DateTime<Utc>>,
    /// Number of calls made, as counted by the call budget. Some requests count as several calls (`cost` in the
    /// manifest).
    pub calls: u64,
    /// Ids of the load runs that loaded the responses.
    pub runs: Vec<String>,
    /// Ids of the load runs that are held: nothing of them is served. Absent without such runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// Number of loaded rows, by kind.
    pub rows: BTreeMap<String, u64>,
    /// Number of rejected rows in the responses.
    pub rejects: u64,
    /// Response files that were refused as a whole.
    pub refused: Vec<FailedItem>,
    /// Requests that would be made. Empty unless this is a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<DryRunRequest>,
}

/// Failed request or refused file, with the reason.
#[derive(Debug, Serialize)]
pub struct FailedItem {
    /// Name of the failed request, for example `eod/KO`, or path of the refused file.
    pub what: String,
    pub reason: String,
}

impl FailedItem {
    /// Creates an item. The reason is shortened, because it may quote the vendor's response.
    pub(super) fn new(what: String, reason: &str) -> Self {
        Self { what, reason: shorten(reason, MAX_REASON_CHARS) }
    }
}

/// Request in the plan of a dry run.
#[derive(Debug, Serialize)]
pub struct DryRunRequest {
    pub request: String,
    pub url: String,
    pub cost: u64,
}

impl PullReport {
    /// Empty report, for the start of a sync run.
    pub(super) fn new(connector: &Connector) -> Self {
        let (connector, source) = (connector.name.clone(), connector.source().to_owned());
        Self { connector, source, ..Self::default() }
    }

    /// Adds the result of loading responses.
    pub(super) fn add_load(&mut self, summary: &LoadSummary) {
        // A load whose files were all refused before reading has no run.
        if summary.run.is_empty() {
            return;
        }
        self.runs.push(summary.run.clone());
        self.held.extend(summary.held.then(|| summary.run.clone()));
        if !summary.already_loaded {
            self.rejects += summary.rejects_total;
            for (kind, rows) in &summary.rows {
                *self.rows.entry(kind.clone()).or_default() += rows;
            }
        }
    }

    /// Exit code: 0 for complete success, 1 for partial success, 2 for no success. A request also succeeds if the
    /// vendor has no data for it.
    pub fn exit_code(&self) -> u8 {
        let whole = self.failed.is_empty() && self.refused.is_empty() && self.stopped.is_none();
        let something = self.unchanged + self.missing + self.fetched.saturating_sub(self.refused.len()) > 0
            || !self.rows.is_empty();
        if whole && self.rejects == 0 && self.held.is_empty() {
            return 0;
        }
        if something { 1 } else { 2 }
    }

    /// Report of the sync run.
    pub fn report(&self) -> Report {
        let Self { connector, requests, fetched, unchanged, missing, calls, .. } = self;
        if self.dry_run {
            let calls: u64 = self.planned.iter().map(|planned| planned.cost).sum();
            let mut report = Report::new(format!(
                "{connector}: would make {requests} requests, at least {calls} calls of the budget"
            ));
            for planned in &self.planned {
                report.add_fact(format!("  {}: {}", planned.request, planned.url));
            }
            return report;
        }
        let failed = self.failed.len();
        let mut report = Report::new(format!(
            "{connector}: {requests} requests with {calls} calls: {fetched} answers, {unchanged} unchanged, {missing} not available (yet), {failed} failed"
        ));
        for (word, failed) in [("failed", &self.failed), ("refused", &self.refused)] {
            for FailedItem { what, reason } in failed.iter().take(MAX_NAMED) {
                report.add_fact(format!("  {word} {what}: {reason}"));
            }
            if failed.len() > MAX_NAMED {
                report.add_fact(format!("  … and {} more {word}", failed.len() - MAX_NAMED));
            }
        }
        if let Some(stopped) = &self.stopped {
            report.add_fact(format!("  {} requests are left: {stopped}", self.left));
        }
        let rows: Vec<String> = self.rows.iter().map(|(kind, rows)| format!("{rows} {kind}")).collect();
        if rows.is_empty() {
            report.add_fact("  no new rows");
            return report;
        }
        let (source, rows, rejects) = (&self.source, rows.join(", "), self.rejects);
        report.add_fact(format!("  rows of source {source}: {rows}; rejected: {rejects}"));
        report.add_fact(format!("  runs: {}", self.runs.join(", ")));
        for run in &self.held {
            report.add_fact(format!("  held: run {run} (projector gate {run}; ingest release {run})"));
        }
        report
    }
}
