//! Effect of a policy change: finds the securities that would get other published rows.
//!
//! Usually, these have several sources. A change of identities or of benchmark returns can affect other securities too.

use std::collections::{BTreeMap, BTreeSet};

use market::event::Kind;
use market::history::{PolicyRule, SourcePolicy};
use market::identity::SecurityDirectory;
use market::symbol::Symbol;
use store::view::View;
use tokio_postgres::{Client, Transaction};

use crate::apply::touched_rows::TouchedRows;
use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::review::effect::{MarketComparison, SecurityFigures, TouchedViews};

const RECORDS: &str = include_str!("../../queries/records_sources.sql");
const BARS: &str = include_str!("../../queries/bars_sources.sql");

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
    candidates.retain(|symbol| !changed.contains(symbol));
    let is_changed = |[before, after]: [Option<_>; 2]| {
        Ok(match (before, after) {
            (Some(before), Some(after)) => !SecurityFigures::has_same_rows(&before, &after),
            (before, after) => before.is_some() != after.is_some(),
        })
    };
    let progress = ["looked at", "securities of several sources"];
    comparison
        .visit(candidates, progress, is_changed, |symbol, is_changed| {
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
