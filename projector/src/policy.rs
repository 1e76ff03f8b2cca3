//! Source policy: ranks that decide which source is preferred. The policy is not part of the log, so it can change
//! without a new load.
//!
//! Invariant: all rows of a generation follow one policy. A change takes effect with the next generation, or at once
//! with `--now`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{bail, ensure};
use chrono::NaiveDate;
use clap::Args;
use market::event::Kind;
use market::history::{PolicyRule, SourcePolicy};
use market::identity::SecurityDirectory;
use market::metrics::METHOD_VERSION;
use market::row::JsonColumn;
use market::symbol::Symbol;
use serde::Serialize;
use store::db::generation_schema;
use store::facts::load_policy;
use store::ids::GenerationId;
use store::view::View;
use telemetry::report::Report;
use telemetry::{counted, list_names};
use tokio_postgres::{Client, Transaction};

use crate::apply::touched_rows::TouchedRows;
use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::review::effect::{MarketComparison, SecurityFigures, TouchedViews};

const SERVED: &str = include_str!("../queries/generation_active.sql");
const SET: &str = include_str!("../queries/policy_set.sql");
const REMOVE: &str = include_str!("../queries/policy_remove.sql");
const HOLD: &str = include_str!("../queries/policy_hold.sql");
const APPLY: &str = include_str!("../queries/policy_apply.sql");
const RECOMPUTE: &str = include_str!("../queries/recompute.sql");
const LOCK: &str = include_str!("../queries/fact_sets_lock.sql");
const SOURCES: &str = include_str!("../queries/sources_of_kind.sql");

/// Maximum number of securities that are listed for a policy change. If more changed, `…` follows them.
const MAX_NAMED_SECURITIES: usize = 12;

#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyRuleArgs {
    /// Kind of rows: security, price, dividend, split, fundamentals, etf or holding
    pub kind: Kind,
    /// Source, as in ingest load --source
    pub source: String,
    /// First day for which the rule applies; default: no limit
    #[arg(long)]
    pub from: Option<NaiveDate>,
    /// Last day for which the rule applies; default: no limit
    #[arg(long)]
    pub to: Option<NaiveDate>,
}

impl PolicyRuleArgs {
    /// Returns a copy of the policy in which this rule has rank `rank`. If `rank` is `None`, removes the rule from the
    /// copy. Returns `None` if the rule to remove does not exist.
    fn change_rule(&self, policy: &SourcePolicy, rank: Option<i32>) -> Option<SourcePolicy> {
        let is_other = |rule: &&PolicyRule| {
            (rule.kind, &rule.source, rule.from, rule.to) != (self.kind, &self.source, self.from, self.to)
        };
        let mut rules: Vec<PolicyRule> = policy.rules.iter().filter(is_other).cloned().collect();
        match rank {
            Some(rank) => {
                let source = self.source.clone();
                rules.push(PolicyRule { kind: self.kind, source, from: self.from, to: self.to, rank });
            }
            None if rules.len() == policy.rules.len() => return None,
            None => {}
        }
        Some(SourcePolicy { rules })
    }
}

/// Arguments that decide when a policy change takes effect.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApplyMode {
    /// Let this change and all pending changes take effect at once: the running projector derives the affected rows
    /// again
    #[arg(long, conflicts_with = "dry_run")]
    pub now: bool,
    /// Print the securities that would change; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct PolicyChange {
    /// Securities whose published rows change, or would change in a dry run.
    pub securities: Vec<Symbol>,
    /// `true` if the change takes effect at once: the running projector derives the affected rows again. `false` if it
    /// takes effect with the next generation, or if this is a dry run.
    pub applied: bool,
    pub dry_run: bool,
}

impl PolicyChange {
    pub(crate) fn report(&self) -> Report {
        let count = self.securities.len();
        let first = list_names(&self.securities, MAX_NAMED_SECURITIES, count);
        let verb = if self.applied { "changes" } else { "would change" };
        let mut report = Report::new("");
        match count {
            0 => tracing::warn!(
                "no published row changes: no security has differing rows from several sources"
            ),
            _ => report.add_fact(format!("{verb} {}: {first}", counted(count, "security"))),
        }
        match (self.applied, self.dry_run) {
            (true, _) => report.add_fact("the projector changes them with its next transaction"),
            (false, false) => report.add_fact(
                "the next generation follows the change (projector rebuild, diff, promote); to apply it at once, use --now",
            ),
            (false, true) => {}
        }
        report
    }
}

/// Fails if the source of a rule has no loaded rows of the rule's kind.
pub(crate) async fn check_source_known(client: &Client, rule: &PolicyRuleArgs) -> anyhow::Result<()> {
    let PolicyRuleArgs { kind, source, .. } = rule;
    let rows = client.query(SOURCES, &[kind]).await?;
    let known: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    match known.as_slice() {
        known if known.contains(source) => Ok(()),
        [] => bail!(
            "cannot rank {source:?}: no rows of kind {kind} were loaded yet; to set the policy before the load, use --unknown-ok"
        ),
        _ => bail!(
            "cannot rank {source:?}: it has no rows of kind {kind}; there are {}; to set the policy before the load, use --unknown-ok",
            known.join(", ")
        ),
    }
}

/// Sets the rank of a source, or removes the rule if `rank` is `None`. The source with the lowest rank is preferred.
pub(crate) async fn change_policy(
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

/// Fails if the served generation does not follow the live policy, or if this program cannot derive it again.
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

/// State of a rule: its effect on the served tables now and on the next generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RuleState {
    /// The served tables and the next generation follow the rule.
    Served,
    /// The served tables do not follow the rule yet. The next generation will follow it.
    Waits,
    /// The rule was removed from the live policy, but the served tables were derived with it.
    Ends,
}

/// Rule of the live policy, or of the served tables' policy, with its state.
#[derive(Debug, Serialize)]
pub(crate) struct ListedRule {
    #[serde(flatten)]
    pub rule: PolicyRule,
    pub standing: RuleState,
}

pub(crate) async fn list_rules(client: &Client) -> anyhow::Result<Vec<ListedRule>> {
    let live = load_policy(client).await?;
    let generation: GenerationId = client.query_one(SERVED, &[]).await?.try_get("id")?;
    // The table `version` has the policy by which the served rows were derived.
    let query = format!("select policy from {}.version", generation_schema(generation));
    let JsonColumn(served): JsonColumn<SourcePolicy> =
        client.query_one(&query, &[]).await?.try_get("policy")?;
    let mut listed = Vec::new();
    for rule in live.rules.iter().cloned() {
        let standing = if served.rules.contains(&rule) { RuleState::Served } else { RuleState::Waits };
        listed.push(ListedRule { rule, standing });
    }
    let ending = served.rules.into_iter().filter(|rule| !live.rules.contains(rule));
    listed.extend(ending.map(|rule| ListedRule { rule, standing: RuleState::Ends }));
    Ok(listed)
}

const RECORDS: &str = include_str!("../queries/records_sources.sql");
const BARS: &str = include_str!("../queries/bars_sources.sql");

/// Finds the securities of the served generation that would get other published rows under the policy `after`. The
/// result is sorted by symbol.
pub(super) async fn find_changed_securities(
    client: &mut Client,
    after: &SourcePolicy,
) -> anyhow::Result<Vec<Symbol>> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let (as_of, before) = load_last_inputs(&transaction).await?;
    let kinds = differing_kinds(&before, after);
    // Without a session nothing is published yet.
    if as_of.is_none() || kinds.is_empty() {
        return Ok(Vec::new());
    }
    let (touched, views) = (TouchedRows::default(), [View::newest(), View::newest()]);
    let views = TouchedViews::new(&transaction, &generation.fact_set, &touched, &[], views)?;
    let comparison = MarketComparison::load(&generation, [&before, after], views).await?;
    let mut changed = comparison.find_differing_identities();
    let mut candidates = match comparison.have_different_shared_inputs() {
        // A change of the benchmark's returns can change the beta of every security.
        true => comparison.all_securities(),
        false => find_contested(&transaction, comparison.directories()[0], &kinds).await?,
    };
    candidates.extend(comparison.find_converted().await?);
    candidates.retain(|symbol| !changed.contains(symbol));
    let is_changed = |[before, after]: [Option<_>; 2]| {
        Ok(match (before, after) {
            (Some(before), Some(after)) => !SecurityFigures::has_same_rows(&before, &after),
            (before, after) => before.is_some() != after.is_some(),
        })
    };
    let progress = ["looked at", "securities of several sources"];
    comparison
        .visit((None, candidates), progress, is_changed, |symbol, is_changed| {
            changed.extend(is_changed.then(|| symbol.clone()));
            Ok(())
        })
        .await?;
    Ok(changed.into_iter().collect())
}

fn differing_kinds(before: &SourcePolicy, after: &SourcePolicy) -> Vec<Kind> {
    let rules = |policy: &SourcePolicy, kind: Kind| -> Vec<PolicyRule> {
        let mut rules: Vec<PolicyRule> =
            policy.rules.iter().filter(|rule| rule.kind == kind).cloned().collect();
        rules.sort_by(|a, b| (&a.source, a.from, a.to, a.rank).cmp(&(&b.source, b.from, b.to, b.rank)));
        rules
    };
    Kind::ALL.iter().copied().filter(|kind| rules(before, *kind) != rules(after, *kind)).collect()
}

/// Securities that have several sources for at least one of the given kinds.
async fn find_contested(
    transaction: &Transaction<'_>,
    directory: &SecurityDirectory,
    kinds: &[Kind],
) -> anyhow::Result<BTreeSet<Symbol>> {
    let mut contested = BTreeSet::new();
    for kind in kinds {
        let rows = match kind {
            Kind::Price => transaction.query(BARS, &[]).await?,
            kind => transaction.query(RECORDS, &[kind]).await?,
        };
        let mut sources: BTreeMap<&Symbol, BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            let Ok(symbol) = row.try_get::<_, &str>("symbol")?.parse::<Symbol>() else { continue };
            for owner in directory.owners(&symbol) {
                sources.entry(owner).or_default().insert(row.try_get("source")?);
            }
        }
        contested
            .extend(sources.into_iter().filter(|(_, of)| of.len() > 1).map(|(symbol, _)| symbol.clone()));
    }
    Ok(contested)
}
