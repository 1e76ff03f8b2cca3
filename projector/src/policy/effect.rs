//! Effect of a policy change: finds the securities that would get other published rows.
//!
//! Usually, these have several sources. A change of identities or of benchmark returns can affect other securities too.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use chrono::NaiveDate;
use market::event::Kind;
use market::history::{History, PolicyRule, SourcePolicy};
use market::identity::{Identity, SecurityDirectory};
use market::metrics;
use market::metrics::fund::{FundRows, fund};
use market::metrics::{DerivationContext, DerivedRows, MonthlyReturns, Rules};
use market::symbol::Symbol;
use store::facts::{load_known_symbols, load_securities};
use store::history::load_histories;
use tokio_postgres::{Client, Transaction};

use crate::generation::{Generation, begin_snapshot, load_last_inputs};
use crate::progress::ProgressReport;
use crate::review::security::visit_histories;

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
    // Without a session nothing is published yet.
    let Some(as_of) = as_of else { return Ok(Vec::new()) };
    let rules = &generation.rules;
    PolicyComparison { before: &before, after, rules, as_of }
        .find_changed(&transaction, &generation.benchmark)
        .await
}

/// Policies before and after the change. They are compared by derivations with the same rules for metrics and the same
/// market date.
struct PolicyComparison<'a> {
    before: &'a SourcePolicy,
    after: &'a SourcePolicy,
    rules: &'a Rules,
    as_of: NaiveDate,
}

impl PolicyComparison<'_> {
    async fn find_changed(
        &self,
        transaction: &Transaction<'_>,
        benchmark: &Symbol,
    ) -> anyhow::Result<Vec<Symbol>> {
        let kinds = self.differing_kinds();
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let (records, known) = (load_securities(transaction).await?, load_known_symbols(transaction).await?);
        let [directory, other] =
            [self.before, self.after].map(|policy| SecurityDirectory::resolve(&records, &known, policy));
        let is_other = |symbol: &&Symbol| directory.identities.get(*symbol) != other.identities.get(*symbol);
        let all: BTreeSet<&Symbol> = directory.identities.keys().chain(other.identities.keys()).collect();
        let mut changed: BTreeSet<Symbol> = all.into_iter().filter(is_other).cloned().collect();
        let months = self.load_month_ends(transaction, directory.identities.get(benchmark)).await?;
        let candidates = match months[0] == months[1] {
            true => self.find_contested(transaction, &directory, &kinds).await?,
            // A change of the benchmark's returns can change the beta of every security.
            false => directory.identities.keys().cloned().collect(),
        };
        let left = candidates.iter().filter(|symbol| !changed.contains(*symbol));
        let left: Vec<Identity> =
            left.filter_map(|symbol| directory.identities.get(symbol)).cloned().collect();
        let mut progress =
            ProgressReport::new("looked at", "securities of several sources", left.len() as u64);
        let (as_of, rules) = (self.as_of, self.rules);
        let market = |policy, benchmark| DerivationContext { as_of, newest: as_of, benchmark, policy, rules };
        let before = market(self.before, months[0].as_ref());
        let after = market(self.after, months[1].as_ref());
        let differs = |history: &_| Ok(derive(history, &before) != derive(history, &after));
        visit_histories(transaction, &left, differs, |history, differs| {
            changed.extend(differs.then(|| history.symbol.clone()));
            progress.add(1);
        })
        .await?;
        progress.finish();
        Ok(changed.into_iter().collect())
    }

    fn differing_kinds(&self) -> Vec<Kind> {
        let rules = |policy: &SourcePolicy, kind: Kind| -> Vec<PolicyRule> {
            let mut rules: Vec<PolicyRule> =
                policy.rules.iter().filter(|rule| rule.kind == kind).cloned().collect();
            rules.sort_by(|a, b| (&a.source, a.from, a.to, a.rank).cmp(&(&b.source, b.from, b.to, b.rank)));
            rules
        };
        Kind::ALL
            .iter()
            .copied()
            .filter(|kind| rules(self.before, *kind) != rules(self.after, *kind))
            .collect()
    }

    /// Securities that have several sources for at least one of the given kinds.
    async fn find_contested(
        &self,
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

    async fn load_month_ends(
        &self,
        transaction: &Transaction<'_>,
        benchmark: Option<&Identity>,
    ) -> anyhow::Result<[Option<MonthlyReturns>; 2]> {
        let Some(benchmark) = benchmark else { return Ok([None, None]) };
        let histories = load_histories(transaction, &[benchmark]).await?;
        let history = histories.first().context("the benchmark has no history")?;
        let months = |policy| metrics::benchmark(history, self.as_of, policy, self.rules);
        Ok([self.before, self.after].map(|policy| Some(months(policy))))
    }
}

fn derive(history: &History, market: &DerivationContext<'_>) -> (DerivedRows, Option<FundRows>) {
    let derived = metrics::derive(history, market);
    let fund = fund(history, market, &derived.stock, &derived.metrics);
    (derived, fund)
}
