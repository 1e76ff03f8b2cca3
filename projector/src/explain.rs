//! `projector explain SYMBOL METRIC`: the observations behind a figure, who won and why, the formula with its values.
//!
//! Told from the facts by the program's own rules, for the market date, policy and rule parameters the generation was derived with.

use anyhow::{Context, bail};
use market::history::SourcePolicy;
use market::identity::Identity;
use market::measure::{self, Explanation, METHOD_VERSION, Market};
use market::row::Json;
use market::symbol::Symbol;
use store::history::load_histories;
use tokio_postgres::{Client, Transaction};

use crate::generation::Generation;

const ACTIVE: &str = "select generation from active";
const BY_ID: &str = include_str!("../queries/generation_by_id.sql");
const DERIVED_WITH: &str = include_str!("../queries/version_derived.sql");
const IDENTITY: &str = include_str!("../queries/identity_of_symbol.sql");

/// Explains a metric of a security, or all of them, in a generation (by default the served one).
pub async fn explain(
    client: &mut Client,
    symbol: &Symbol,
    metric: Option<&str>,
    generation: Option<i32>,
) -> anyhow::Result<Explanation> {
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let id = match generation {
        Some(id) => id,
        None => transaction.query_one(ACTIVE, &[]).await?.try_get("generation")?,
    };
    let row = transaction.query_opt(BY_ID, &[&id]).await?;
    let row = row.with_context(|| format!("there is no generation {id}; see: projector list"))?;
    let version: String = row.try_get("method_version")?;
    if version != METHOD_VERSION {
        bail!(
            "generation {id} has rules {version}, this program {METHOD_VERSION}: only a program of its rules can explain it"
        );
    }
    let generation = Generation::from_row(&row)?;
    generation.enter(&transaction).await?;
    let mut explanation = explained(&transaction, symbol, &generation).await?;
    if let Some(metric) = metric {
        select(&mut explanation, metric)?;
    }
    Ok(explanation)
}

async fn explained(
    transaction: &Transaction<'_>,
    symbol: &Symbol,
    generation: &Generation,
) -> anyhow::Result<Explanation> {
    let row = transaction.query_one(DERIVED_WITH, &[]).await?;
    let (as_of, policy): (Option<_>, Json<SourcePolicy>) = (row.try_get("as_of")?, row.try_get("policy")?);
    let as_of = as_of.context("nothing is derived yet: the log has no session")?;
    let own = identity(transaction, symbol).await?;
    let own = own.with_context(|| format!("no security has the symbol {symbol}"))?;
    let benchmark = identity(transaction, &generation.benchmark).await?;
    let wanted: Vec<&Identity> = [Some(&own), benchmark.as_ref()].into_iter().flatten().collect();
    let histories = load_histories(transaction, &wanted).await?;
    let history = histories.first().context("the security has no history")?;
    let rules = &generation.rules;
    let benchmark = histories.get(1).map(|history| measure::benchmark(history, as_of, &policy.0, rules));
    Ok(measure::explain(
        history,
        &Market { as_of, newest: as_of, benchmark: benchmark.as_ref(), policy: &policy.0, rules },
    ))
}

async fn identity(transaction: &Transaction<'_>, symbol: &Symbol) -> anyhow::Result<Option<Identity>> {
    let row = transaction.query_opt(IDENTITY, &[&symbol.as_str()]).await?;
    Ok(row.map(|row| row.try_get::<_, Json<Identity>>("identity")).transpose()?.map(|identity| identity.0))
}

/// Leaves only this metric.
fn select(explanation: &mut Explanation, metric: &str) -> anyhow::Result<()> {
    if !explanation.metrics.iter().any(|explained| explained.metric == metric) {
        let known: Vec<&str> =
            explanation.metrics.iter().map(|explained| explained.metric.as_str()).collect();
        bail!("there is no metric {metric}; there are {}", known.join(", "));
    }
    explanation.metrics.retain(|explained| explained.metric == metric);
    Ok(())
}
