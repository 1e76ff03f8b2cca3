//! `projector rebuild`: builds a new generation. The served generation stays in use until `projector promote`.
//!
//! Every chunk is committed, so an interrupted rebuild can resume. Securities whose facts change during the rebuild are
//! derived again at the end.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Instant;

use anyhow::bail;
use event_log::sequence::Sequence;
use market::metrics::{METHOD_VERSION, Rules};
use market::row::JsonColumn;
use market::symbol::Symbol;
use store::db::{self, create_fact_set, create_generation, generation_schema};
use store::ids::GenerationId;
use telemetry::{Shutdown, failpoint};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use crate::apply::run_records::find_run;
use crate::daemon::batch_writer::ANALYZE;
use crate::daemon::run::{UNTIL, apply_log};
use crate::derive::touched::Deriver;
use crate::error::DeriveError;
use crate::facts::FactCache;
use crate::generation::{Generation, load_generation_row};
use crate::generations::rebuild_args::{FactSource, RebuildArgs, RequestedInputs, check_disk_space};
use crate::generations::{LOCK_TIMEOUT, lock_timeout_error};
use crate::progress::ProgressReport;
use crate::review::TABLES;
use crate::settings::{LIVE_FACTS, ProjectorSettings};
use crate::write::journal::Journal;

const PENDING: &str = include_str!("../../queries/generation_building.sql");
const SERVED: &str = include_str!("../../queries/generation_active.sql");
const ORIGIN: &str = include_str!("../../queries/generation_origin.sql");
const DESCRIBE: &str = include_str!("../../queries/generation_describe.sql");
const PROGRESS: &str = include_str!("../../queries/generation_progress.sql");
const EXCLUDE_RUNS: &str = include_str!("../../queries/run_changes_exclude.sql");
/// Runs of the live facts.
const KNOWN_RUNS: &str = "select distinct run from facts.runs where run = any ($1)";
const FINISH: &str = include_str!("../../queries/generation_finish.sql");
const LOCK: &str = include_str!("../../queries/fact_set_lock.sql");
const CLEAR_DIRTY: &str = include_str!("../../queries/dirty_clear.sql");
/// Selects the next generation number. The number of a dropped generation is not used again.
const NEXT_ID: &str = "select nextval('generation_numbers')::integer";

/// Builds a generation, or resumes an interrupted build, and returns its number.
pub async fn rebuild_generation(
    settings: &ProjectorSettings,
    args: &RebuildArgs,
    shutdown: Shutdown,
) -> anyhow::Result<GenerationId> {
    let started = Instant::now();
    let mut client = db::connect_migrated(&settings.rebuild_config(LIVE_FACTS)?).await?;
    check_table_names(&args.only)?;
    let mut args = args.clone();
    for run in &mut args.without {
        *run = find_run(&client, run).await?;
    }
    let args = &args;
    let requested = RequestedInputs::resolve(settings, &mut client, args).await?;
    let id = match client.query_opt(PENDING, &[&METHOD_VERSION]).await? {
        Some(row) => {
            let id = row.try_get("id")?;
            if let Some(setting) = find_conflicting_setting(&client, args, &requested, id).await? {
                bail!(
                    "cannot resume generation {id}: it is being built with another {setting}; omit the setting to resume, or run \
                     projector drop {id} first"
                );
            }
            tracing::info!(generation = id.0, "resuming an interrupted rebuild");
            id
        }
        None => {
            if !args.without_room {
                let second_fact_set = requested.applies_log(args).then_some(LIVE_FACTS);
                check_disk_space(&client, &settings.rebuild_config(LIVE_FACTS)?, second_fact_set).await?;
            }
            create_building(&mut client, args, requested).await?
        }
    };
    let generation = Generation::from_row(&load_generation_row(&client, id).await?)?;
    if generation.fact_set != LIVE_FACTS {
        apply_log(settings, &generation.fact_set, shutdown.clone()).await?;
        // Update the planner statistics. Without new statistics, Postgres would not use the indexes of the newly filled
        // tables.
        let facts = db::connect_migrated(&settings.rebuild_config(&generation.fact_set)?).await?;
        facts.batch_execute(ANALYZE).await?;
    }
    let securities =
        derive_securities(settings, &mut client, &generation, args.commit_every, &shutdown).await?;
    if shutdown.is_requested() {
        bail!("interrupted; run the same command again to resume generation {id}");
    }
    finish_rebuild(&mut client, &generation).await?;
    tracing::info!(generation = id.0, securities, elapsed = ?started.elapsed(), "rebuilt");
    Ok(id)
}

/// Compares the requested settings with those of the interrupted rebuild. Returns the name of the first setting that
/// differs, or `None` if none differs. Omitted settings are not compared.
async fn find_conflicting_setting(
    client: &Client,
    args: &RebuildArgs,
    requested: &RequestedInputs,
    id: GenerationId,
) -> anyhow::Result<Option<&'static str>> {
    let row = load_generation_row(client, id).await?;
    let generation = Generation::from_row(&row)?;
    let only: Option<Vec<String>> = row.try_get("projections")?;
    let until: Option<Sequence> = client.query_one(UNTIL, &[&generation.fact_set]).await?.try_get(0)?;
    let RequestedInputs { rules, until: asked_until, as_of, policy, .. } = requested;
    let others = [
        ("--from", args.from == FactSource::Log && generation.fact_set == LIVE_FACTS),
        (
            "--without",
            !args.without.is_empty() && excluded_runs(client, &generation).await? != sorted(&args.without),
        ),
        ("end of the log (--until-seq, --until-time)", asked_until.is_some() && *asked_until != until),
        ("--as-of", as_of.is_some() && *as_of != generation.as_of),
        ("--only", !args.only.is_empty() && only.as_ref() != Some(&args.only)),
        ("--policy", policy.is_some() && *policy != generation.policy),
        ("--rule", (!args.rules.is_empty() || args.known_at.is_some()) && *rules != generation.rules),
    ];
    Ok(others.into_iter().find(|(_, differs)| *differs).map(|(setting, _)| setting))
}

/// Runs that are excluded from the fact set of a generation for good.
async fn excluded_runs(client: &Client, generation: &Generation) -> anyhow::Result<Vec<String>> {
    let query =
        format!("select run from {}.run_changes where sequence = 0 order by run", generation.fact_set);
    Ok(client.query(&query, &[]).await?.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

fn sorted(runs: &[String]) -> Vec<String> {
    let mut sorted = runs.to_vec();
    sorted.sort_unstable();
    sorted
}

fn check_table_names(only: &[String]) -> anyhow::Result<()> {
    let known = TABLES.map(|table| table.name);
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => bail!("cannot rebuild {name}: no such read table; there are {}", known.join(", ")),
        None => Ok(()),
    }
}

async fn create_building(
    client: &mut Client,
    args: &RebuildArgs,
    requested: RequestedInputs,
) -> anyhow::Result<GenerationId> {
    let from_log = requested.applies_log(args);
    let RequestedInputs { rules, until, as_of, policy, market } = requested;
    warn_of_served_rules(client, &rules).await?;
    let transaction = client.transaction().await?;
    let id: GenerationId = transaction.query_one(NEXT_ID, &[]).await?.try_get(0)?;
    let fact_set = if from_log { format!("facts_g{id}") } else { LIVE_FACTS.to_owned() };
    if from_log {
        create_fact_set(&transaction, &fact_set).await?;
        let query = "update control.fact_sets set until_sequence = $2 where name = $1";
        transaction.execute(query, &[&fact_set, &until]).await?;
        exclude_runs(&transaction, &fact_set, &args.without).await?;
    }
    create_generation(&transaction, id, &fact_set, "building", METHOD_VERSION, &market).await?;
    let only = (!args.only.is_empty()).then_some(&args.only);
    let version = rules.method_version();
    let described: [&(dyn ToSql + Sync); 6] =
        [&id, &as_of, &policy.map(JsonColumn), &only, &JsonColumn(rules), &version];
    transaction.execute(DESCRIBE, &described).await?;
    transaction.commit().await?;
    failpoint!("rebuild.created");
    tracing::info!(generation = id.0, fact_set, rules = version, "building");
    Ok(id)
}

/// Excludes runs from a new fact set. The state at sequence 0 is fixed, so events of the log do not change it.
async fn exclude_runs(transaction: &Transaction<'_>, fact_set: &str, runs: &[String]) -> anyhow::Result<()> {
    let known = transaction.query(KNOWN_RUNS, &[&runs]).await?;
    let known = known.iter().map(|row| row.try_get(0)).collect::<Result<BTreeSet<String>, _>>()?;
    if let Some(unknown) = runs.iter().find(|run| !known.contains(*run)) {
        bail!("cannot leave out run {unknown}: the log has no such run; see ingest runs");
    }
    let exclude = EXCLUDE_RUNS.replace("{facts}", fact_set);
    transaction.execute(&exclude, &[&runs]).await?;
    Ok(())
}

async fn warn_of_served_rules(client: &Client, requested: &Rules) -> anyhow::Result<()> {
    let served = match Generation::from_row(&client.query_one(SERVED, &[]).await?) {
        Ok(served) => served,
        // No error: a rebuild can replace a served generation whose rules this program does not know.
        Err(DeriveError::Rules(error)) => {
            tracing::warn!(%error, "served rules are unknown to this program; a promotion replaces them");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if served.rules != Rules::DEFAULT && served.rules != *requested {
        tracing::warn!(
            served = served.rules.method_version(),
            asked = requested.method_version(),
            "served rules deviate from the defaults, and the new ones differ; use the same --rule to keep them"
        );
    }
    Ok(())
}

/// Derives the securities chunk by chunk, starting after the last symbol that an interrupted rebuild stored.
async fn derive_securities(
    settings: &ProjectorSettings,
    client: &mut Client,
    generation: &Generation,
    commit_every: NonZeroUsize,
    shutdown: &Shutdown,
) -> anyhow::Result<usize> {
    let reader = db::connect_migrated(&settings.rebuild_config(&generation.fact_set)?).await?;
    generation.set_session_search_path(&reader).await?;
    let mut deriver = Deriver::default();
    let transaction = client.transaction().await?;
    let checkpoint: Sequence =
        transaction.query_one(LOCK, &[&generation.fact_set]).await?.try_get("checkpoint")?;
    let reached: Option<String> =
        load_generation_row(&transaction, generation.id).await?.try_get("rebuilt_to")?;
    generation.set_local_search_path(&transaction).await?;
    let (symbols, same) = deriver.prepare(&transaction, generation, checkpoint).await?;
    // If the market date or the policy has changed since the interruption, start again with the first symbol.
    let reached = reached.filter(|_| same);
    if reached.is_none() {
        // All securities will be derived, so symbols that are dirty now need no second derivation.
        transaction.execute(CLEAR_DIRTY, &[&generation.id]).await?;
    }
    transaction.commit().await?;
    failpoint!("rebuild.prepared");
    let left: Vec<Symbol> =
        symbols.into_iter().filter(|s| reached.as_deref().is_none_or(|r| s.as_str() > r)).collect();
    let mut progress = ProgressReport::new("derived", "securities", left.len() as u64);
    for chunk in left.chunks(commit_every.get()) {
        if shutdown.is_requested() {
            break;
        }
        let transaction = client.transaction().await?;
        generation.set_local_search_path(&transaction).await?;
        let journal = Journal::open(&transaction, generation.id).await?;
        let symbols: BTreeSet<Symbol> = chunk.iter().cloned().collect();
        let mut none = FactCache::disabled();
        deriver.derive_symbols(&transaction, &reader, &journal, &mut none, &symbols).await?;
        transaction.execute(PROGRESS, &[&generation.id, &chunk.last().map(Symbol::as_str)]).await?;
        transaction.commit().await?;
        failpoint!("rebuild.committed");
        progress.add(chunk.len() as u64);
    }
    progress.finish();
    Ok(left.len())
}

/// Derives the dirty symbols, copies the tables that were not rebuilt, and sets the final state.
async fn finish_rebuild(client: &mut Client, generation: &Generation) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    let row = transaction.query_one(LOCK, &[&generation.fact_set]).await?;
    let checkpoint: Sequence = row.try_get("checkpoint")?;
    generation.set_local_search_path(&transaction).await?;
    Deriver::derive_dirty(&transaction, generation, checkpoint).await?;
    transaction.batch_execute(LOCK_TIMEOUT).await?;
    let copied = copy_served_tables(&transaction, generation.id).await;
    copied.map_err(|error| lock_timeout_error(error, generation.id))?;
    db::index_generation(&transaction).await?;
    transaction.execute(FINISH, &[&generation.id]).await?;
    failpoint!("rebuild.caught_up");
    transaction.commit().await?;
    failpoint!("rebuild.finished");
    Ok(())
}

/// Copies tables of the served generation into generation `id`. These are the tables that were not selected for the
/// rebuild.
async fn copy_served_tables(
    transaction: &Transaction<'_>,
    id: GenerationId,
) -> Result<(), tokio_postgres::Error> {
    let row = transaction.query_one(ORIGIN, &[&id]).await?;
    let (only, active): (Option<Vec<String>>, GenerationId) =
        (row.try_get("projections")?, row.try_get("active")?);
    let Some(only) = only else { return Ok(()) };
    let (target, origin) = (generation_schema(id), generation_schema(active));
    for table in TABLES.iter().filter(|table| !only.iter().any(|name| name == table.name)) {
        let (target, origin) = (format!("{target}.{}", table.name), format!("{origin}.{}", table.name));
        let copy = format!("truncate {target}; insert into {target} select * from {origin}");
        transaction.batch_execute(&copy).await?;
    }
    // The digests were computed from the derived rows, which the copied rows have now replaced. All digests are
    // therefore removed.
    transaction.batch_execute(&format!("truncate {target}.digests")).await
}
