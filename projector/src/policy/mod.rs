//! The source policy: which source wins. It is outside the log, so it changes without loading anything again.
//!
//! Invariant: all rows of a generation follow one policy. A change waits for the next generation, unless it is asked for
//! now: then every generation that follows the log is derived again, each whole in one transaction.

mod effect;
mod rule_args;
mod rule_list;

use anyhow::{bail, ensure};
use clap::Args;
use market::event::Kind;
use market::history::SourcePolicy;
use market::measure::METHOD_VERSION;
use market::row::Json;
use market::symbol::Symbol;
use serde::Serialize;
use store::facts::load_policy;
use tokio_postgres::{Client, Transaction};

use effect::find_changed_securities;

pub use rule_args::PolicyRuleArgs;
pub use rule_list::{ListedRule, RuleState, list_rules};

const SERVED: &str = include_str!("../../queries/generation_active.sql");
const SET: &str = include_str!("../../queries/policy_set.sql");
const REMOVE: &str = include_str!("../../queries/policy_remove.sql");
const HOLD: &str = include_str!("../../queries/policy_hold.sql");
const APPLY: &str = include_str!("../../queries/policy_apply.sql");
const RECOMPUTE: &str = include_str!("../../queries/recompute.sql");
const LOCK: &str = include_str!("../../queries/fact_sets_lock.sql");
const SOURCES: &str = include_str!("../../queries/sources_of_kind.sql");

/// When a change of the policy takes effect.
#[derive(Debug, Clone, Args)]
pub struct ApplyMode {
    /// Change the served tables too, with whatever changes wait: the projector derives all of them in one transaction
    #[arg(long, conflicts_with = "dry_run")]
    pub now: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a change of the policy comes to.
#[derive(Debug, Serialize)]
pub struct PolicyChange {
    /// Securities of which served rows change, or would.
    pub securities: Vec<Symbol>,
    /// Whether the served tables follow it: otherwise it waits for the next generation.
    pub applied: bool,
    /// Whether the policy was left as it was.
    pub dry_run: bool,
}

/// Sets a source's rank: the lower wins. `unknown_ok` takes a source that nothing was loaded of.
pub async fn set_rank(
    client: &mut Client,
    line: &PolicyRuleArgs,
    rank: i32,
    unknown_ok: bool,
    mode: &ApplyMode,
) -> anyhow::Result<PolicyChange> {
    if !unknown_ok {
        check_source_known(client, line.kind, &line.source).await?;
    }
    change_policy(client, line, Some(rank), mode).await
}

/// Removes a line.
pub async fn remove_rule(
    client: &mut Client,
    line: &PolicyRuleArgs,
    mode: &ApplyMode,
) -> anyhow::Result<PolicyChange> {
    change_policy(client, line, None, mode).await
}

async fn check_source_known(client: &Client, kind: Kind, source: &str) -> anyhow::Result<()> {
    let rows = client.query(SOURCES, &[&kind]).await?;
    let known: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    if known.iter().any(|known| known == source) {
        return Ok(());
    }
    match known.as_slice() {
        [] => bail!("no rows of kind {kind} were loaded yet; --unknown-ok sets a policy before the load"),
        _ => bail!(
            "no source {source:?} has rows of kind {kind}; there are {}; --unknown-ok sets a policy before the load",
            known.join(", ")
        ),
    }
}

async fn change_policy(
    client: &mut Client,
    line: &PolicyRuleArgs,
    rank: Option<i32>,
    mode: &ApplyMode,
) -> anyhow::Result<PolicyChange> {
    let Some(after) = line.change_rule(&load_policy(client).await?, rank) else {
        bail!("there is no such line in the policy; see: projector policy list")
    };
    let securities = find_changed_securities(client, &after).await?;
    if !mode.dry_run {
        write_change(client, line, rank, mode.now).await?;
    }
    Ok(PolicyChange { securities, applied: mode.now, dry_run: mode.dry_run })
}

async fn write_change(
    client: &mut Client,
    line: &PolicyRuleArgs,
    rank: Option<i32>,
    now: bool,
) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.query(LOCK, &[]).await?;
    if now {
        check_served_follows(&transaction).await?;
    }
    let before: SourcePolicy = load_policy(&transaction).await?;
    let PolicyRuleArgs { kind, source, from, to } = line;
    match rank {
        Some(rank) => transaction.execute(SET, &[kind, source, from, to, &rank]).await?,
        None => transaction.execute(REMOVE, &[kind, source, from, to]).await?,
    };
    if now {
        transaction.execute(APPLY, &[]).await?;
        transaction.execute(RECOMPUTE, &[]).await?;
    } else {
        transaction.execute(HOLD, &[&Json(&before)]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Refuses what could not take effect: not every generation follows the live policy.
async fn check_served_follows(transaction: &Transaction<'_>) -> anyhow::Result<()> {
    let row = transaction.query_one(SERVED, &[]).await?;
    let (id, version): (i32, String) = (row.try_get("id")?, row.try_get("method_version")?);
    let otherwise = "without --now the change waits for the next one: projector rebuild, diff, promote";
    let own: Option<Json<SourcePolicy>> = row.try_get("policy")?;
    ensure!(own.is_none(), "generation {id}, which is served, has a policy of its own; {otherwise}");
    ensure!(
        row.try_get::<_, &str>("state")? == "tailing",
        "generation {id}, which is served, is frozen; {otherwise}"
    );
    ensure!(
        version == METHOD_VERSION,
        "generation {id}, which is served, has rules {version}, this program {METHOD_VERSION}; {otherwise}"
    );
    Ok(())
}
