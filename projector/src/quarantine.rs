//! `projector quarantine`: quarantined rows and the decisions on them.
//!
//! A decision or its revocation is an event in the log. The running projector then derives the security again.

use std::time::Duration;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, Subcommand};
use event_log::archive::is_storage_full;
use event_log::record_batch::{BatchId, Body, RecordBatch, schema_name};
use event_log::stream::StreamSettings;
use event_log::write_failure::report_write_failure;
use market::event::{Action, DecidedRow, Decision, DecisionVerdict, EventRow, Kind};
use market::history::Observation;
use market::identity::SecurityAddress;
use market::metrics;
use market::metrics::source_preference::MANUAL;
use market::row::{QuarantineReason, Quarantined, TableRow};
use serde::Serialize;
use store::find_rows;
use telemetry::out;
use telemetry::report::{Report, print_result};
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use crate::generation::{Generation, begin_snapshot};
use crate::report;
use crate::review::{SecurityContext, find_symbol};

const LIST: &str = include_str!("../queries/quarantine_list.sql");

pub(crate) async fn run_quarantine(client: &mut Client, command: QuarantineCommand) -> anyhow::Result<()> {
    let (decided, json) = match command {
        QuarantineCommand::List(args) => return print_quarantine(client, &args).await,
        QuarantineCommand::Release(args) => {
            (decide_rows(client, &args, DecisionVerdict::Release).await?, args.json)
        }
        QuarantineCommand::Confirm(args) => {
            (decide_rows(client, &args, DecisionVerdict::Confirm).await?, args.json)
        }
        QuarantineCommand::Revoke(args) => (revoke_decisions(client, &args).await?, args.json),
    };
    let report = |decided: &Vec<_>| {
        let mut report = Report::new("");
        decided.iter().for_each(|one| report.add_fact(describe_report(one)));
        report.add_fact("published; the running projector derives the security again");
        report
    };
    Ok(print_result(&decided, json, report)?)
}

async fn print_quarantine(client: &mut Client, args: &ListQuarantineArgs) -> anyhow::Result<()> {
    let transaction = begin_snapshot(client).await?;
    Generation::load_served(&transaction).await?;
    let mut canonical: Option<String> = None;
    if let Some(symbol) = &args.symbol {
        let found = find_symbol(&transaction, symbol).await?;
        canonical = Some(found.with_context(|| format!("security {symbol} does not exist"))?.to_string());
    }
    let reason = args.reason.map(|reason| reason.as_str());
    let rows: Vec<Quarantined> = find_rows(&transaction, LIST, &[&canonical, &reason]).await?;
    if !args.csv {
        return report::print_quarantine(&rows, &args.output);
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    if rows.is_empty() {
        writer.write_record(Quarantined::COLUMNS)?;
    }
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    out!("{}", String::from_utf8(writer.into_inner()?)?);
    Ok(())
}

const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize)]
struct DecisionReport {
    revoked: bool,
    #[serde(flatten)]
    decision: Decision,
}

async fn decide_rows(
    client: &mut Client,
    args: &DecideArgs,
    verdict: DecisionVerdict,
) -> anyhow::Result<Vec<DecisionReport>> {
    let security = load_security(client, &args.which).await?;
    let held = metrics::quarantined_rows(&security.history, &security.market());
    let held: Vec<(Quarantined, DecidedRow)> =
        held.into_iter().filter(|(_, row)| is_selected(&args.which, row)).collect();
    check_selection(&args.which, held.iter().map(|(row, _)| describe_row(row)).collect())?;
    let mut decided = Vec::new();
    for (quarantined, row) in held {
        let reason: QuarantineReason = quarantined.reason.parse().map_err(anyhow::Error::msg)?;
        if verdict == DecisionVerdict::Release && !reason.is_releasable() {
            let (described, reason) = (describe_row(&quarantined), quarantined.message);
            bail!(
                "cannot release {described}: the row is impossible by itself ({reason}); load a correction"
            );
        }
        let symbol = security.history.symbol.clone();
        let decision = Decision { symbol, verdict, row, reason: reason.to_string(), note: args.note.clone() };
        decided.push(DecisionReport { revoked: false, decision });
    }
    publish_decisions(&args.stream, &decided).await?;
    Ok(decided)
}

async fn revoke_decisions(client: &mut Client, args: &DecideArgs) -> anyhow::Result<Vec<DecisionReport>> {
    let security = load_security(client, &args.which).await?;
    let standing = metrics::newest_decisions(&security.history);
    let selected = standing
        .into_iter()
        .filter(|(row, newest)| newest.action == Action::Put && is_selected(&args.which, row));
    let selected: Vec<&Observation<Decision>> = selected.map(|(_, newest)| newest).collect();
    if selected.is_empty() {
        let symbol = &args.which.symbol;
        bail!("cannot revoke a decision: {symbol} has none for such a row; see projector explain {symbol}");
    }
    check_selection(&args.which, selected.iter().map(|newest| describe_decision(&newest.record)).collect())?;
    let decisions =
        selected.into_iter().map(|newest| Decision { note: args.note.clone(), ..newest.record.clone() });
    let decided: Vec<_> = decisions.map(|decision| DecisionReport { revoked: true, decision }).collect();
    publish_decisions(&args.stream, &decided).await?;
    Ok(decided)
}

/// Publishes decisions as one record batch. Their observation time is the current time. NATS acknowledges the batch
/// after it is on disk.
async fn publish_decisions(log: &StreamSettings, decided: &[DecisionReport]) -> anyhow::Result<()> {
    let context = log.connect("projector-quarantine").await?;
    // If the stream is missing, fail instead of creating it. Decisions in a new stream would refer to rows that are
    // lost.
    log.open_existing(&context).await?;
    let (headers, body) = encode_decisions(decided, Utc::now())?.encode()?;
    let published = context.publish_with_headers(log.subject(Kind::Decision), headers, body);
    let acknowledged = tokio::time::timeout(PUBLISH_TIMEOUT, async { published.await?.await });
    let acknowledged = acknowledged.await.context(
        "cannot publish the decision: NATS did not acknowledge it; if `projector status` reads the log, the disk of NATS may be full",
    )?;
    if let Err(error) = acknowledged {
        let is_full = is_storage_full(&error);
        let error = anyhow::Error::new(error).context(match is_full {
            true => "cannot publish the decision: no space for the log; free disk space for NATS, then restart NATS",
            false => "cannot publish the decision",
        });
        if is_full {
            report_write_failure(log, &format!("{error:#}")).await;
        }
        return Err(error);
    }
    Ok(())
}

fn encode_decisions(decided: &[DecisionReport], now: DateTime<Utc>) -> anyhow::Result<RecordBatch> {
    // Times in the log have microsecond precision.
    let observed_at = DateTime::from_timestamp_micros(now.timestamp_micros())
        .context("cannot use the system time: it is out of range")?;
    let rows = decided.iter().zip(1..).map(|(report, line)| EventRow {
        line,
        id: None,
        revision: 0,
        action: if report.revoked { Action::Retract } else { Action::Put },
        observed_at,
        security_ref: None,
        record: report.decision.clone(),
    });
    let rows: Vec<EventRow<Decision>> = rows.collect();
    let encoded = serde_json::to_string(&rows)?;
    let id = BatchId::from_provenance(MANUAL, &encoded, 0, &schema_name(Kind::Decision));
    Ok(RecordBatch {
        id,
        source: MANUAL.to_owned(),
        run: format!("quarantine-{id}"),
        chunk: 0,
        file: "projector quarantine".to_owned(),
        line: 1,
        body: Body::Decisions(rows),
    })
}

fn describe_report(decided: &DecisionReport) -> String {
    let verb = match (decided.revoked, decided.decision.verdict) {
        (true, _) => "revoked",
        (false, DecisionVerdict::Release) => "released",
        (false, DecisionVerdict::Confirm) => "confirmed as wrong",
    };
    format!("{verb}: {}", describe_decision(&decided.decision))
}

async fn load_security(client: &mut Client, which: &RowSelector) -> anyhow::Result<SecurityContext> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    SecurityContext::find(&transaction, &which.symbol, &generation).await
}

fn is_selected(which: &RowSelector, row: &DecidedRow) -> bool {
    which.kind.is_none_or(|kind| kind == row.kind)
        && which.date.is_none_or(|date| Some(date) == row.date)
        && which.source.as_ref().is_none_or(|source| *source == row.source)
        && which.id.as_ref().is_none_or(|id| Some(id) == row.row_id.as_ref())
}

/// Fails if no row was found. Without `--all`, also fails if several rows were found.
fn check_selection(which: &RowSelector, found: Vec<String>) -> anyhow::Result<()> {
    match found.as_slice() {
        [] => bail!(
            "cannot decide: {0} has no such quarantined row; see projector quarantine list --symbol {0}",
            which.symbol
        ),
        [_] => Ok(()),
        _ if which.all => Ok(()),
        several => bail!(
            "{} rows match; select one with --kind, --date, --source or --id, or all with --all:\n  {}",
            several.len(),
            several.join("\n  ")
        ),
    }
}

fn describe_row(row: &Quarantined) -> String {
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    format!("{} {} {date} of {}{id}: {}", row.symbol, row.kind, row.source, row.reason)
}

fn describe_decision(decision: &Decision) -> String {
    let row = &decision.row;
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.row_id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    let (symbol, value) = (&decision.symbol, row.value.normalize());
    format!(
        "{symbol} {} {date} {value} of {}{id} ({}): {}",
        row.kind, row.source, decision.reason, decision.note
    )
}

/// Subcommand of `projector quarantine`.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List the quarantined rows, which no metric uses
    List(ListQuarantineArgs),
    /// Release a quarantined row, so that metrics use it from now on
    ///
    /// A row can be released only if its values are possible, for example if it conflicts with other rows or with a
    /// price. For a row with impossible values, load a correction. If the vendor later corrects a released row, the
    /// corrected row is checked again, because the release does not apply to it.
    Release(DecideArgs),
    /// Confirm that a quarantined row is wrong; the row then stays quarantined, even if other rows of the security
    /// change
    Confirm(DecideArgs),
    /// Revoke a decision; afterwards the row is quarantined only if the rules require it
    Revoke(DecideArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListQuarantineArgs {
    /// Symbol or identifier of the security; default: all securities
    #[arg(long)]
    pub symbol: Option<SecurityAddress>,
    /// Reason for the quarantine, for example amount_outlier; default: all reasons
    #[arg(long)]
    pub reason: Option<QuarantineReason>,
    /// Print CSV with all rows
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Limit and format of the list.
    #[command(flatten)]
    pub output: ListArgs,
}

/// Filter that selects quarantined rows of one security.
#[derive(Debug, Args)]
pub(crate) struct RowSelector {
    /// Symbol or identifier of the security
    pub symbol: SecurityAddress,
    /// Kind: price, dividend or split
    #[arg(long)]
    pub kind: Option<Kind>,
    /// Date of the row: the ex-date of a dividend or split, or the session of a price
    #[arg(long)]
    pub date: Option<NaiveDate>,
    /// Source of the row
    #[arg(long)]
    pub source: Option<String>,
    /// Vendor's id of the row
    #[arg(long)]
    pub id: Option<String>,
    /// Select all matching rows; without this flag, exactly one row must match
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    pub which: RowSelector,
    /// Reason for the decision or its revocation. It is stored in the log, and clients see it in explanations
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub note: String,
    #[command(flatten)]
    pub stream: StreamSettings,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses a note: one line of 1 to 1000 bytes without control characters.
fn parse_note(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 1000 || text.contains(char::is_control) {
        return Err("a note is one line of 1 to 1000 bytes".to_owned());
    }
    Ok(text.to_owned())
}
