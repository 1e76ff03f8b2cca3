//! Source policy: ranks of the sources. The policy is not part of the log, so that it can change without a new load.
//!
//! Invariant: all rows of a generation follow one policy. A change takes effect with the next generation, or at once
//! with `--now`. With `--now`, every generation that follows the log is derived again, each in one transaction.

mod effect;
mod rule_args;
mod rule_list;

use anyhow::{bail, ensure};
use clap::Args;
use market::event::Kind;
use market::history::SourcePolicy;
use market::metrics::METHOD_VERSION;
use market::row::JsonColumn;
use market::symbol::Symbol;
use serde::Serialize;
use store::facts::load_policy;
use store::ids::GenerationId;
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

/// Arguments that decide when a policy change takes effect.
#[derive(Debug, Clone, Args)]
pub struct ApplyMode {
    /// Apply this change and all pending changes to the live policy. The running projector then derives the rows
    #[arg(long, conflicts_with = "dry_run")]
    pub now: bool,
    /// Print the securities that would change; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Result of a policy change.
#[derive(Debug, Serialize)]
pub struct PolicyChange {
    /// Securities whose published rows change, or would change in a dry run.
    pub securities: Vec<Symbol>,
    /// `true` if the change is in the live policy, and the running projector derives the affected rows again; `false`
    /// if it takes effect with the next generation.
    pub applied: bool,
    /// `true` for a dry run, which changes nothing.
    pub dry_run: bool,
}

/// Sets the rank of a source. The lowest rank is preferred. `unknown_ok` accepts a source without loaded rows.
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

/// Removes a rule of the policy.
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
        [] => bail!(
            "cannot rank {source:?}: no rows of kind {kind} were loaded yet; to set the policy before the load, use --unknown-ok"
        ),
        _ => bail!(
            "cannot rank {source:?}: it has no rows of kind {kind}; there are {}; to set the policy before the load, use --unknown-ok",
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
        bail!("cannot remove the rule: it is not in the policy; see projector policy list")
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
        transaction.execute(HOLD, &[&JsonColumn(&before)]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Fails unless the served generation follows the live policy and this program can derive it again.
async fn check_served_follows(transaction: &Transaction<'_>) -> anyhow::Result<()> {
    let row = transaction.query_one(SERVED, &[]).await?;
    let (id, version): (GenerationId, String) = (row.try_get("id")?, row.try_get("method_version")?);
    let otherwise = "without --now the next generation follows the change (projector rebuild, diff, promote)";
    let own: Option<JsonColumn<SourcePolicy>> = row.try_get("policy")?;
    ensure!(
        own.is_none(),
        "cannot apply the change to served generation {id}: it has its own policy; {otherwise}"
    );
    ensure!(
        row.try_get::<_, &str>("state")? == "tailing",
        "cannot apply the change to served generation {id}: it is frozen; {otherwise}"
    );
    ensure!(
        version == METHOD_VERSION,
        "cannot apply the change to served generation {id}: it has rules {version}, this program {METHOD_VERSION}; {otherwise}"
    );
    Ok(())
}
