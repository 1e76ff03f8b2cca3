//! Which held rows a person means, and what becomes of them.

use anyhow::bail;
use event_log::stream::StreamSettings;
use market::event::{Action, DecidedRow, Decision, Verdict};
use market::history::Observation;
use market::measure;
use market::row::{HoldReason, Quarantined};
use serde::Serialize;
use tokio_postgres::{Client, IsolationLevel};

use super::args::{DecideArgs, RevokeArgs, Which};
use super::publish::publish;
use crate::generation::Generation;
use crate::review::security::Security;

const ACTIVE: &str = include_str!("../../queries/generation_active.sql");

/// What was decided, or taken back.
#[derive(Debug, Serialize)]
pub(super) struct Decided {
    revoked: bool,
    #[serde(flatten)]
    decision: Decision,
}

/// Publishes a verdict on the held rows that are meant.
pub(super) async fn decide(
    client: &mut Client,
    args: &DecideArgs,
    verdict: Verdict,
) -> anyhow::Result<Vec<Decided>> {
    let security = load(client, &args.which).await?;
    let held = measure::held(&security.history, &security.market());
    let held: Vec<(Quarantined, DecidedRow)> =
        held.into_iter().filter(|(_, row)| is_meant(&args.which, row)).collect();
    check_count(&args.which, held.iter().map(|(row, _)| told(row)).collect())?;
    let mut decided = Vec::new();
    for (quarantined, row) in held {
        let reason: HoldReason = quarantined.reason.parse().map_err(anyhow::Error::msg)?;
        if verdict == Verdict::Release && !reason.can_be_released() {
            bail!(
                "{} cannot be released: it shows by itself that it cannot be ({}); load a correction of it",
                told(&quarantined),
                quarantined.message
            );
        }
        let symbol = security.history.symbol.clone();
        let decision = Decision { symbol, verdict, row, reason: reason.to_string(), note: args.note.clone() };
        decided.push(Decided { revoked: false, decision });
    }
    send(&args.stream, &decided).await?;
    Ok(decided)
}

/// Takes back the decisions that are meant.
pub(super) async fn revoke(client: &mut Client, args: &RevokeArgs) -> anyhow::Result<Vec<Decided>> {
    let security = load(client, &args.which).await?;
    let standing = measure::decisions(&security.history);
    let meant = standing
        .into_iter()
        .filter(|(row, newest)| newest.action == Action::Put && is_meant(&args.which, row));
    let meant: Vec<&Observation<Decision>> = meant.map(|(_, newest)| newest).collect();
    if meant.is_empty() {
        bail!(
            "nothing was decided about such a row of {}; see: projector explain {}",
            args.which.symbol,
            args.which.symbol
        );
    }
    check_count(&args.which, meant.iter().map(|newest| named(&newest.record)).collect())?;
    let taken_back =
        |newest: &Observation<Decision>| Decided { revoked: true, decision: newest.record.clone() };
    let decided: Vec<Decided> = meant.into_iter().map(taken_back).collect();
    send(&args.stream, &decided).await?;
    Ok(decided)
}

async fn send(log: &StreamSettings, decided: &[Decided]) -> anyhow::Result<()> {
    let rows = decided
        .iter()
        .map(|one| (if one.revoked { Action::Retract } else { Action::Put }, one.decision.clone()));
    publish(log, rows.collect()).await
}

/// What was done, as a sentence.
pub(super) fn sentence(decided: &Decided) -> String {
    let verb = match (decided.revoked, decided.decision.verdict) {
        (true, _) => "taken back",
        (false, Verdict::Release) => "released",
        (false, Verdict::Confirm) => "confirmed as wrong",
    };
    format!("{verb}: {}", named(&decided.decision))
}

async fn load(client: &mut Client, which: &Which) -> anyhow::Result<Security> {
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let generation = Generation::from_row(&transaction.query_one(ACTIVE, &[]).await?)?;
    generation.enter(&transaction).await?;
    Security::load(&transaction, &which.symbol, &generation).await
}

fn is_meant(which: &Which, row: &DecidedRow) -> bool {
    which.kind.is_none_or(|kind| kind == row.kind)
        && which.date.is_none_or(|date| Some(date) == row.date)
        && which.source.as_ref().is_none_or(|source| *source == row.source)
        && which.id.as_ref().is_none_or(|id| Some(id) == row.row_id.as_ref())
}

/// One row is meant, unless a person says that all are.
fn check_count(which: &Which, found: Vec<String>) -> anyhow::Result<()> {
    match found.as_slice() {
        [] => bail!("no such row of {0} is held; see: projector quarantine list --symbol {0}", which.symbol),
        [_] => Ok(()),
        _ if which.all => Ok(()),
        several => bail!(
            "{} rows match; say which by --kind, --date, --source or --id, or --all:\n  {}",
            several.len(),
            several.join("\n  ")
        ),
    }
}

fn told(row: &Quarantined) -> String {
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    format!("{} {} {date} of {}{id}: {}", row.symbol, row.kind, row.source, row.reason)
}

fn named(decision: &Decision) -> String {
    let row = &decision.row;
    let date = row.date.map(|date| date.to_string()).unwrap_or_default();
    let id = row.row_id.as_ref().map(|id| format!(", id {id}")).unwrap_or_default();
    let (symbol, value) = (&decision.symbol, row.value.normalize());
    format!(
        "{symbol} {} {date} {value} of {}{id} ({}): {}",
        row.kind, row.source, decision.reason, decision.note
    )
}
