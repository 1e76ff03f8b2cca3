//! `projector audit`: daily checks of the served market.
//!
//! An audit writes nothing. A finding is a possible problem of the data, with advice for the operator.

mod checks;

use std::path::PathBuf;

use anyhow::Context;
use chrono::NaiveDate;
use clap::Args;
use event_log::sequence::Sequence;
use event_log::stream::StreamSettings;
use serde::{Deserialize, Serialize};
use store::FromRow;
use store::ids::GenerationId;
use telemetry::counted;
use telemetry::report::{Report, ReportTable, subject_line};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::generation::{Generation, begin_snapshot};
use crate::review::load_market;
use checks::{CoveredSecurity, CoveredSource, count_covered};

pub(crate) use checks::{AuditFinding, FindingExample, SourceAgreement, count_agreements, sessions, span};

/// Options of `projector audit`. The daily checks run if neither `--since` nor `--quality` requests another report.
#[derive(Debug, Clone, Args)]
pub(crate) struct AuditArgs {
    /// Report on the effect of a load: compare the figures without the run RUN with the figures with it. `ingest runs`
    /// lists the run ids
    #[arg(long, value_name = "RUN", group = "report")]
    pub since: Option<String>,
    /// Report on the effect that a load would have. FILE has the rows of `ingest load --dry-run`, which passes it
    #[arg(long, value_name = "FILE", group = "report", hide = true)]
    pub candidate: Option<PathBuf>,
    /// Report on the sources: coverage, freshness, agreement with adjusted closes, interpretation of dividend rows (for
    /// example as duplicates), and conflicts between sources
    #[arg(long, group = "report")]
    pub quality: bool,
    /// HTML file for the report, without external resources
    #[arg(long, value_name = "FILE", requires = "report")]
    pub html: Option<PathBuf>,
    /// CSV file for all values that changed since RUN, one value per line
    #[arg(long, value_name = "FILE", requires = "since")]
    pub csv: Option<PathBuf>,
    /// For --since: maximum number of printed differences per topic (with --json, also per table)
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// For --since: maximum time to wait until the served tables contain RUN, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
    pub wait: u64,
    /// For --since: leave out later changes of the rows that RUN contains
    #[arg(long, requires = "since")]
    pub as_loaded: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Connection to the log. `--since` reads the names of the run's rows from the log.
    #[command(flatten)]
    pub stream: StreamSettings,
}

impl AuditArgs {
    /// Options for the effect of one load, without files.
    pub(crate) fn of_gate(wait: u64, stream: StreamSettings) -> Self {
        let (since, candidate, html, csv) = Default::default();
        let (quality, as_loaded, json) = Default::default();
        Self { since, candidate, html, csv, quality, as_loaded, json, limit: 3, wait, stream }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AuditReport {
    pub generation: GenerationId,
    pub sequence: Sequence,
    pub as_of: NaiveDate,
    pub method_version: String,
    /// Number of securities. It equals the number of rows in table `stocks`.
    pub securities: i64,
    /// Findings, the most urgent first. A check that sorts its matches into groups has one finding per group.
    pub findings: Vec<AuditFinding>,
    pub adjusted_closes: Vec<SourceAgreement>,
    /// Rows of each source that no figure uses, because a row of another source is used instead. Sorted by number of
    /// rows, the largest first.
    pub covered: Vec<CoveredSource>,
}

impl AuditReport {
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.count == 0)
    }

    pub(crate) fn report(&self) -> Report {
        let Self { generation, sequence, as_of, method_version, .. } = self;
        let securities = counted(self.securities, "security");
        let mut report = Report::new(format!(
            "generation {generation} as of {as_of} at sequence {sequence}, rules {method_version}, {securities}"
        ));
        for finding in self.findings.iter().filter(|finding| finding.count > 0) {
            let topic = finding.topic.as_ref().map(|topic| format!(": {topic}")).unwrap_or_default();
            let count = finding.count.unsigned_abs();
            let mut table = ReportTable::new(format!("{}{topic}", finding.title), &[]).with_count(count);
            for FindingExample { symbol, seen } in &finding.first {
                table.add_row([subject_line(symbol, seen)], []);
            }
            table.add_hidden_count(count.saturating_sub(finding.first.len() as u64), "");
            table.add_note(format!("→ {}", finding.next));
            report.add_table(table);
        }
        let clean = self.findings.iter().filter(|finding| finding.count == 0).map(|finding| finding.title);
        let clean = clean.collect::<Vec<_>>().join("; ");
        if !clean.is_empty() {
            report.add_table(ReportTable::new(format!("no findings: {clean}"), &[]));
        }
        for SourceAgreement { source, ex_dates, agreeing } in &self.adjusted_closes {
            report.add_fact(format!(
                "adjusted closes of {source}: {agreeing} of {ex_dates} ex-dates agree with the price factors"
            ));
        }
        for CoveredSource { kind, source, by, rows, securities, first } in &self.covered {
            let (rows, of) = (counted(rows, "row"), counted(securities, "security"));
            let most = first.iter().map(|CoveredSecurity { symbol, rows }| format!("{symbol} {rows}"));
            let most = most.collect::<Vec<_>>().join(", ");
            report.add_fact(format!("{by} covers {kind} rows of {source}: {rows} of {of}; most: {most}"));
        }
        report
    }
}

/// Check that runs one SQL query, which returns the columns `topic`, `symbol`, `seen` and `total`.
#[derive(Deserialize)]
struct SqlCheck {
    name: &'static str,
    title: &'static str,
    query: &'static str,
    /// Parameter of the query: the data quality flag of the securities to find, for example `payment_gap`. `None` for a
    /// query without a parameter.
    #[serde(borrow)]
    flag: Option<&'static str>,
    next: &'static str,
}

/// JSON list of the checks that run an SQL query, the most urgent first.
const CHECKS: &str = include_str!("checks.json");

macro_rules! queries {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../queries/audit/", $name, ".sql")))),*]
    };
}

const QUERIES: [(&str, &str); 9] = queries![
    "ambiguous_identifiers",
    "currencies",
    "dead_letters",
    "dividend_flags",
    "flags",
    "held_rows",
    "high_forwards",
    "high_yields",
    "stale_prices",
];

pub(crate) async fn audit_served(client: &mut Client) -> anyhow::Result<AuditReport> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let (market, row) = load_market(&transaction, &generation).await?;
    let market = market.context("cannot audit: nothing is derived yet; load prices first")?;
    let checks: Vec<SqlCheck> = serde_json::from_str(CHECKS).context("cannot read the checks")?;
    let mut findings = Vec::new();
    for check in &checks {
        findings.extend(check.run(&transaction).await?);
    }
    findings.push(checks::find_changed_statuses(&transaction, &market).await?);
    findings.push(checks::find_session_gaps(&transaction, &market).await?);
    let adjusted_closes = count_agreements(&transaction, &market).await?;
    let covered = count_covered(&transaction, &market).await?;
    Ok(AuditReport {
        generation: generation.id,
        sequence: row.try_get("sequence")?,
        as_of: market.as_of,
        method_version: row.try_get("method_version")?,
        securities: row.try_get("securities")?,
        findings,
        adjusted_closes,
        covered,
    })
}

impl SqlCheck {
    async fn run(&self, transaction: &Transaction<'_>) -> anyhow::Result<Vec<AuditFinding>> {
        let flag: Vec<&(dyn ToSql + Sync)> =
            self.flag.iter().map(|flag| flag as &(dyn ToSql + Sync)).collect();
        let query = QUERIES.iter().find(|(name, _)| *name == self.query);
        let (_, statement) = query.with_context(|| format!("check {} has no query", self.name))?;
        let rows = transaction.query(*statement, &flag).await?;
        let mut findings: Vec<AuditFinding> = Vec::new();
        for row in &rows {
            let topic: Option<String> = row.try_get("topic")?;
            if findings.last().is_none_or(|finding| finding.topic != topic) {
                findings.push(self.new_finding(topic, row.try_get("total")?));
            }
            if let Some(finding) = findings.last_mut() {
                finding.first.push(FindingExample::from_row(row)?);
            }
        }
        if findings.is_empty() {
            findings.push(self.new_finding(None, 0));
        }
        Ok(findings)
    }

    fn new_finding(&self, topic: Option<String>, count: i64) -> AuditFinding {
        AuditFinding { check: self.name, topic, title: self.title, count, first: Vec::new(), next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_query() {
        let checks: Vec<SqlCheck> = serde_json::from_str(CHECKS).unwrap();
        assert!(checks.iter().all(|check| QUERIES.iter().any(|(name, _)| *name == check.query)));
    }
}
