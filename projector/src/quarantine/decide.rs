//! Decisions on quarantined rows: selects rows and publishes a release, confirmation or revocation.

use anyhow::bail;
use event_log::stream::StreamSettings;
use market::event::{Action, DecidedRow, Decision, DecisionVerdict};
use market::history::Observation;
use market::metrics;
use market::row::{QuarantineReason, Quarantined};
use serde::Serialize;
use tokio_postgres::Client;

use super::args::{DecideArgs, RevokeArgs, RowSelector};
use super::publish::publish_decisions;
use crate::generation::{Generation, begin_snapshot};
use crate::review::security::SecurityContext;

/// Decision that was published or revoked.
#[derive(Debug, Serialize)]
pub(super) struct DecisionReport {
    revoked: bool,
    #[serde(flatten)]
    decision: Decision,
}

/// Publishes a decision (release or confirmation) on the selected rows.
pub(super) async fn decide_rows(
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
            bail!(
                "cannot release {}: the row is impossible by itself ({}); load a correction",
                describe_row(&quarantined),
                quarantined.message
            );
        }
        let symbol = security.history.symbol.clone();
        let decision = Decision { symbol, verdict, row, reason: reason.to_string(), note: args.note.clone() };
        decided.push(DecisionReport { revoked: false, decision });
    }
    publish_reports(&args.stream, &decided).await?;
    Ok(decided)
}

/// Publishes revocations of the decisions on the selected rows.
pub(super) async fn revoke_decisions(
    client: &mut Client,
    args: &RevokeArgs,
) -> anyhow::Result<Vec<DecisionReport>> {
    let security = load_security(client, &args.which).await?;
    let standing = metrics::newest_decisions(&security.history);
    let selected = standing
        .into_iter()
        .filter(|(row, newest)| newest.action == Action::Put && is_selected(&args.which, row));
    let selected: Vec<&Observation<Decision>> = selected.map(|(_, newest)| newest).collect();
    if selected.is_empty() {
        bail!(
            "cannot revoke a decision: {} has none for such a row; see projector explain {}",
            args.which.symbol,
            args.which.symbol
        );
    }
    check_selection(&args.which, selected.iter().map(|newest| describe_decision(&newest.record)).collect())?;
    let revocation =
        |newest: &Observation<Decision>| DecisionReport { revoked: true, decision: newest.record.clone() };
    let decided: Vec<DecisionReport> = selected.into_iter().map(revocation).collect();
    publish_reports(&args.stream, &decided).await?;
    Ok(decided)
}

async fn publish_reports(log: &StreamSettings, decided: &[DecisionReport]) -> anyhow::Result<()> {
    let rows = decided
        .iter()
        .map(|one| (if one.revoked { Action::Retract } else { Action::Put }, one.decision.clone()));
    publish_decisions(log, rows.collect()).await
}

pub(super) fn describe_report(decided: &DecisionReport) -> String {
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
    SecurityContext::load(&transaction, &which.symbol, &generation).await
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
