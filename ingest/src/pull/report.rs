//! Result of one sync run of a connector.

use std::collections::BTreeMap;
use std::fmt::Write;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::load::report::Summary;

/// Requests and reasons named to a person.
const NAMED: usize = 10;

/// What a round of a connector came to.
#[derive(Debug, Default, Serialize)]
pub struct Pulled {
    /// Its name in the manifest.
    pub connector: String,
    /// The feed that the answers are loaded as.
    pub source: String,
    /// No call was made: only what would be asked for is told.
    pub dry_run: bool,
    /// Requests of the round, one a symbol or a session.
    pub requests: usize,
    /// Answers with data.
    pub fetched: usize,
    /// Answers that are as they were.
    pub unchanged: usize,
    /// Days that the vendor does not have, or not yet.
    pub missing: usize,
    /// Requests that got no answer that can be used.
    pub failed: Vec<Failed>,
    /// Requests that were not made.
    pub left: usize,
    /// Why they were not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// When they may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<DateTime<Utc>>,
    /// Calls made, as the budget counts them.
    pub calls: u64,
    /// Runs that loaded the answers.
    pub runs: Vec<String>,
    /// Rows loaded, by kind.
    pub rows: BTreeMap<String, u64>,
    /// Rows of the answers that could not be used.
    pub rejects: u64,
    /// Answers of which nothing was loaded.
    pub refused: Vec<Failed>,
    /// What a round would ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<Planned>,
}

/// A request or an answer that came to nothing.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// The request's bookmark, or the file.
    pub what: String,
    pub reason: String,
}

/// A request that would be made.
#[derive(Debug, Serialize)]
pub struct Planned {
    pub request: String,
    pub url: String,
    pub cost: u64,
}

impl Pulled {
    /// Takes over what a load came to.
    pub(super) fn add(&mut self, summary: &Summary) {
        // Files that are all refused at first sight make no run.
        if summary.run.is_empty() {
            return;
        }
        self.runs.push(summary.run.clone());
        if !summary.already_loaded {
            self.rejects += summary.rejects_total;
            for (kind, rows) in &summary.rows {
                *self.rows.entry(kind.clone()).or_default() += rows;
            }
        }
    }

    /// 0 all fetched and loaded, 1 not all, 2 nothing.
    pub fn exit_code(&self) -> u8 {
        let whole = self.failed.is_empty() && self.refused.is_empty() && self.stopped.is_none();
        let something = self.unchanged + self.missing + self.fetched.saturating_sub(self.refused.len()) > 0
            || !self.rows.is_empty();
        match (whole && self.rejects == 0, something) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let Self { connector, requests, fetched, unchanged, missing, calls, .. } = self;
        if self.dry_run {
            let calls: u64 = self.planned.iter().map(|planned| planned.cost).sum();
            writeln!(
                text,
                "{connector}: would make {requests} requests, at least {calls} calls of the budget"
            )?;
            for planned in &self.planned {
                writeln!(text, "  {}: {}", planned.request, planned.url)?;
            }
            return Ok(());
        }
        writeln!(
            text,
            "{connector}: {requests} requests with {calls} calls: {fetched} answers, {unchanged} unchanged, {missing} not there (yet), {} failed",
            self.failed.len()
        )?;
        write_failed(text, "failed", &self.failed)?;
        write_failed(text, "refused", &self.refused)?;
        if let Some(stopped) = &self.stopped {
            writeln!(text, "  {} requests are left: {stopped}", self.left)?;
        }
        let rows: Vec<String> = self.rows.iter().map(|(kind, rows)| format!("{rows} {kind}")).collect();
        if rows.is_empty() {
            return writeln!(text, "  no new rows");
        }
        writeln!(text, "  rows of source {}: {}; rejected: {}", self.source, rows.join(", "), self.rejects)?;
        writeln!(text, "  runs: {}", self.runs.join(", "))
    }
}

fn write_failed(text: &mut String, word: &str, failed: &[Failed]) -> std::fmt::Result {
    for Failed { what, reason } in failed.iter().take(NAMED) {
        writeln!(text, "  {word} {what}: {reason}")?;
    }
    if failed.len() > NAMED {
        writeln!(text, "  … and {} more {word}", failed.len() - NAMED)?;
    }
    Ok(())
}
