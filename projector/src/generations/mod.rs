//! Generations: rebuild, and selection of the served generation: promote, roll back, drop, pause, list.
//!
//! One row in the database names the served generation. A promotion brings the new generation up to date and changes
//! this row, in one transaction. `pg_notify` then informs the API.

pub mod rebuild;
pub mod rebuild_args;

use std::collections::BTreeMap;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use event_log::sequence::Sequence;
use market::metrics::{METHOD_VERSION, Rules};
use market::row::{JsonColumn, NoticeCause};
use serde::Serialize;
use store::analysts::{self, analyst_schema};
use store::db::generation_schema;
use store::ids::GenerationId;
use telemetry::failpoint;
use telemetry::report::Report;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row, Transaction};

use crate::derive::touched::Deriver;
use crate::generation::{Generation, load_generation_row, load_last_inputs};
use crate::write::journal::{JOURNALED_TABLES, Journal, RenamedSymbols};
use crate::write::notices::write_notices;
use crate::write::{JOURNALED_VALUES, PreparedStatements, read_tables};

const LOCK: &str = include_str!("../../queries/fact_set_lock.sql");
/// Locks the rows of all fact sets. Must run before the row that names the served generation is locked. The projector
/// daemon also locks the row of its fact set first. Another order could cause a deadlock.
const STOP_WRITERS: &str = include_str!("../../queries/fact_sets_lock.sql");
const ACTIVE: &str = "select generation, previous from active for update";
const FLIP: &str = "update active set generation = $1, previous = $2";
const LAST_SERVED: &str = "select max(at) from versions where generation = $1";
const NOTE: &str = include_str!("../../queries/generation_note.sql");
const REVIEW: &str = "select from reviews where generation = $1 and against = $2";
const NOTIFY: &str = "select pg_notify('projection', $1)";
const LIST: &str = include_str!("../../queries/generations_list.sql");
const DROP_GENERATION: &str = "delete from generations where id = $1";
const UNUSED_FACTS: &str = include_str!("../../queries/fact_set_unused.sql");
const PAUSE: &str = include_str!("../../queries/pause.sql");

/// Maximum length of a note, in characters.
const NOTE_CHARACTERS: usize = 500;

/// Arguments of `projector promote`.
#[derive(Debug, Clone, Args)]
pub struct PromoteArgs {
    /// Generation to serve
    pub generation: GenerationId,
    /// Promote without a review of the differences
    #[arg(long)]
    pub accept_diff: bool,
    /// Accept rule parameters that differ from the defaults (projector rebuild --rule)
    #[arg(long)]
    pub accept_rules: bool,
    /// Reason for the promotion, one line. The note is public: /openapi.json shows it while the generation is served.
    /// `projector list` always shows it
    #[arg(long, value_name = "TEXT", value_parser = parse_note)]
    pub note: Option<String>,
}

fn parse_note(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) || text.chars().count() > NOTE_CHARACTERS {
        return Err(format!("a note is one line of at most {NOTE_CHARACTERS} characters"));
    }
    Ok(text.to_owned())
}

/// Result of a promotion or rollback.
#[derive(Debug, Serialize)]
pub struct Switchover {
    /// Generation that is now served.
    pub served: GenerationId,
    /// Generation that was served before.
    pub before: GenerationId,
    /// Sequence of the last log message that the served tables include.
    pub sequence: Sequence,
}

impl Switchover {
    pub(crate) fn report(&self) -> Report {
        let Self { served, before, sequence } = self;
        Report::new(format!("generation {served} is served at sequence {sequence}; before: {before}"))
    }
}

/// Serves a generation. First checks that an operator has reviewed the differences between this generation and the
/// served one. Then derives this generation up to the checkpoint of its facts.
pub async fn promote_generation(client: &mut Client, args: &PromoteArgs) -> anyhow::Result<Switchover> {
    let id = args.generation;
    let transaction = client.transaction().await?;
    transaction.query(STOP_WRITERS, &[]).await?;
    let row = load_generation_row(&transaction, id).await?;
    let (state, version): (String, String) = (row.try_get("state")?, row.try_get("method_version")?);
    if state == "building" {
        bail!("cannot promote generation {id}: it is still being built; finish it with projector rebuild");
    }
    let active: GenerationId = transaction.query_one(ACTIVE, &[]).await?.try_get("generation")?;
    if active == id {
        bail!("cannot promote generation {id}: it is already served");
    }
    if !args.accept_diff && transaction.query_opt(REVIEW, &[&id, &active]).await?.is_none() {
        bail!(
            "cannot promote generation {id}: its differences were not reviewed; run projector diff {active} {id}, or use --accept-diff"
        );
    }
    let generation = Generation::from_row(&row)?;
    check_rules_accepted(&generation, args.accept_rules)?;
    let checkpoint: Sequence =
        transaction.query_one(LOCK, &[&generation.fact_set]).await?.try_get("checkpoint")?;
    if state == "tailing" {
        if version != METHOD_VERSION {
            bail!(
                "cannot promote generation {id}: it has rules {version}, this program {METHOD_VERSION}; use the version that built it"
            );
        }
        generation.set_local_search_path(&transaction).await?;
        Deriver::derive_dirty(&transaction, &generation, checkpoint).await?;
    }
    transaction.execute("select set_config('search_path', 'control', true)", &[]).await?;
    // A note belongs to one promotion. A promotion without a note therefore removes the note of the previous promotion.
    transaction.execute(NOTE, &[&id, &args.note]).await?;
    switch_served(&transaction, id, active).await?;
    transaction.commit().await?;
    failpoint!("switch.committed");
    Ok(Switchover { served: id, before: active, sequence: checkpoint })
}

/// Fails if rule parameters of a generation differ from the defaults and `accepted` is false.
fn check_rules_accepted(generation: &Generation, accepted: bool) -> anyhow::Result<()> {
    let deviations = generation.rules.deviations();
    let texts: Vec<String> = deviations
        .iter()
        .map(|one| format!("{} {} (by default {})", one.name, one.value, one.default))
        .collect();
    ensure!(
        accepted || texts.is_empty(),
        "cannot promote generation {}: its rules deviate: {}; to serve it, use --accept-rules and give the reason with --note",
        generation.id,
        texts.join(", ")
    );
    Ok(())
}

async fn switch_served(
    transaction: &Transaction<'_>,
    to: GenerationId,
    from: GenerationId,
) -> anyhow::Result<()> {
    let search_path = format!("{}, control", generation_schema(to));
    transaction.execute("select set_config('search_path', $1, true)", &[&search_path]).await?;
    transaction.execute(FLIP, &[&to, &from]).await?;
    analysts::point_analysts(transaction).await?;
    let (journal, statements) = (Journal::open(transaction, to).await?, PreparedStatements::new(transaction));
    for table in JOURNALED_TABLES.into_iter().chain(JOURNALED_VALUES) {
        let symbols = read_tables::find_differing(transaction, from, table).await?;
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        journal.record_promotion(&statements, from, table, &symbols).await?;
    }
    let renamed = RenamedSymbols::since_generation(transaction, from).await?;
    journal.record_renamed(&statements, &renamed).await?;
    let (after, before) =
        (load_generation_row(transaction, to).await?, load_generation_row(transaction, from).await?);
    let cause =
        if rules_of(&after)? == rules_of(&before)? { NoticeCause::Promotion } else { NoticeCause::Rule };
    // A generation of another program may have rules that this program does not know.
    let rules = Generation::from_row(&after).map_or(Rules::DEFAULT, |generation| generation.rules);
    let (as_of, _) = load_last_inputs(transaction).await?;
    let data_since = transaction.query_one(LAST_SERVED, &[&from]).await?.try_get(0)?;
    write_notices(transaction, &journal, [as_of; 2], &rules, (cause, data_since)).await?;
    journal.promote_version(transaction).await?;
    transaction.execute(NOTIFY, &[&format!("{to}.0")]).await?;
    failpoint!("switch.flipped");
    Ok(())
}

/// Version of the rules of a generation, and its rule parameters.
fn rules_of(row: &Row) -> Result<(String, BTreeMap<String, String>), tokio_postgres::Error> {
    let JsonColumn(parameters) = row.try_get("rules")?;
    Ok((row.try_get("method_version")?, parameters))
}

/// Serves the previous generation again. Fails if its tables are behind the log, unless `stale_ok` is true.
pub async fn rollback_generation(client: &mut Client, stale_ok: bool) -> anyhow::Result<Switchover> {
    let transaction = client.transaction().await?;
    transaction.query(STOP_WRITERS, &[]).await?;
    let row = transaction.query_one(ACTIVE, &[]).await?;
    let (active, previous): (GenerationId, Option<GenerationId>) =
        (row.try_get("generation")?, row.try_get("previous")?);
    let Some(previous) = previous else { bail!("cannot roll back: no generation was served before") };
    let row = load_generation_row(&transaction, previous).await?;
    let fact_set: String = row.try_get("fact_set")?;
    let checkpoint: Sequence = transaction.query_one(LOCK, &[&fact_set]).await?.try_get("checkpoint")?;
    let query = format!("select sequence from {}.version", generation_schema(previous));
    let sequence: Sequence = transaction.query_one(&query, &[]).await?.try_get(0)?;
    let lag = checkpoint.to_i64() - sequence.to_i64();
    if lag > 0 && !stale_ok {
        bail!(
            "cannot roll back to generation {previous}: it lags {lag} events (applied to {sequence} of {checkpoint}); to serve it anyway, use --stale-ok"
        );
    }
    switch_served(&transaction, previous, active).await?;
    transaction.commit().await?;
    failpoint!("switch.committed");
    Ok(Switchover { served: previous, before: active, sequence })
}

/// Limits the wait for a table lock to 5 s. While a statement waits for an exclusive lock, it blocks all later readers
/// of the table.
pub(crate) const LOCK_TIMEOUT: &str = "set local lock_timeout = '5s'";

/// Converts the error of a statement. If the statement exceeded [`LOCK_TIMEOUT`], the error text says that a client
/// reads the tables of generation `id`.
pub(crate) fn lock_timeout_error(error: tokio_postgres::Error, id: GenerationId) -> anyhow::Error {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return anyhow!(
            "cannot lock the tables of generation {id}: a client reads them; try again later (pg_stat_activity lists the clients)"
        );
    }
    error.into()
}

/// Removes a generation that is not served, and its facts if no other generation uses them.
pub async fn drop_generation(client: &mut Client, id: GenerationId) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.query(STOP_WRITERS, &[]).await?;
    let row = load_generation_row(&transaction, id).await?;
    let active: GenerationId = transaction.query_one(ACTIVE, &[]).await?.try_get("generation")?;
    if active == id {
        bail!("cannot drop generation {id}: it is served; promote another one first");
    }
    let fact_set: String = row.try_get("fact_set")?;
    let (views, tables) = (analyst_schema(id), generation_schema(id));
    let drop = format!("{LOCK_TIMEOUT}; drop schema {views} cascade; drop schema {tables} cascade");
    transaction.batch_execute(&drop).await.map_err(|error| lock_timeout_error(error, id))?;
    transaction.execute("update active set previous = null where previous = $1", &[&id]).await?;
    transaction.execute(DROP_GENERATION, &[&id]).await?;
    if transaction.query_opt(UNUSED_FACTS, &[&fact_set]).await?.is_some() {
        transaction.execute("delete from dead_letters where fact_set = $1", &[&fact_set]).await?;
        transaction.execute("delete from fact_sets where name = $1", &[&fact_set]).await?;
        transaction.batch_execute(&format!("drop schema {fact_set} cascade")).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Pauses or resumes the application of the log. A paused projector keeps its lease and its buffered messages.
pub async fn set_paused(client: &Client, paused: bool) -> anyhow::Result<()> {
    client.execute(PAUSE, &[&paused]).await?;
    Ok(())
}

/// Generation in the output of `projector list`.
#[derive(Debug, Serialize)]
pub struct GenerationSummary {
    /// Number of the generation.
    pub generation: GenerationId,
    /// `true` if the API serves this generation.
    pub served: bool,
    /// `true` if a rollback would serve this generation.
    pub previous: bool,
    /// State: `building`, `tailing` (follows the log) or `frozen`.
    pub state: String,
    /// Rule version of the generation.
    pub method_version: String,
    /// Schema of the facts from which the generation is derived.
    pub fact_set: String,
    /// Sequence of the last log message that the generation's tables include.
    pub sequence: Sequence,
    /// Number of log messages that the generation's facts contain, but its tables do not.
    pub lag_events: i64,
    /// Market date of the generation's tables (as-of date of the figures); `None` until a security is derived.
    pub as_of: Option<chrono::NaiveDate>,
    /// Rule parameters that differ from their defaults.
    pub rules: BTreeMap<String, String>,
    /// Text that the operator gave as the reason for the generation's last promotion; `None` without a reason.
    pub note: Option<String>,
}

/// Lists all generations.
pub async fn list_generations(client: &Client) -> anyhow::Result<Vec<GenerationSummary>> {
    let mut listed = Vec::new();
    for row in client.query(LIST, &[]).await? {
        let id: GenerationId = row.try_get("id")?;
        let query = format!("select sequence, as_of from {}.version", generation_schema(id));
        let version = client.query_one(&query, &[]).await?;
        let (sequence, checkpoint): (Sequence, Sequence) =
            (version.try_get("sequence")?, row.try_get("checkpoint")?);
        listed.push(GenerationSummary {
            generation: id,
            served: row.try_get("served")?,
            previous: row.try_get("previous")?,
            state: row.try_get("state")?,
            method_version: row.try_get("method_version")?,
            fact_set: row.try_get("fact_set")?,
            sequence,
            lag_events: checkpoint.to_i64() - sequence.to_i64(),
            as_of: version.try_get("as_of")?,
            rules: row.try_get::<_, JsonColumn<_>>("rules")?.0,
            note: row.try_get("note")?,
        });
    }
    Ok(listed)
}
