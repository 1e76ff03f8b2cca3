//! Metrics of a past day, with their explanation. They are derived from the facts when they are requested.
//!
//! Invariant: all reads see one snapshot, so that the response has one version.

use chrono::NaiveDate;
use market::history::{History, SourcePolicy};
use market::identity::Identity;
use market::metrics;
use market::metrics::{DerivationContext, Explanation, Rules};
use market::row::{JsonColumn, Metrics};
use store::feed_files::name_files;
use store::history::load_histories;
use tokio_postgres::Row;

use crate::concurrency::cpu_pool::run_low_priority;
use crate::error::ApiError;
use crate::parameters::PathSymbol;
use crate::read::lookup;
use crate::read::{DataVersion, ServedGeneration};

const IDENTITY: &str = include_str!("../../../queries/past/identity.sql");
const SEARCH_PATH: &str = include_str!("../../../queries/past/search_path.sql");

/// Inputs of the derivation for a past day.
struct PastFacts {
    version: DataVersion,
    fact_set: String,
    policy: SourcePolicy,
    rules: Rules,
    own: History,
    benchmark: Option<History>,
}

/// Metrics of a day.
pub(super) struct PastMetrics {
    pub(super) version: DataVersion,
    pub(super) metrics: Metrics,
    pub(super) explanation: Option<Explanation>,
    /// Schema of the facts.
    pub(super) fact_set: String,
}

/// Derives the metrics of a day and, if `explain`, their explanation.
pub(super) async fn derive_past_metrics(
    generation: &ServedGeneration,
    symbol: &PathSymbol,
    as_of: NaiveDate,
    explain: bool,
) -> Result<PastMetrics, ApiError> {
    let facts = read(generation, symbol).await?;
    let (version, fact_set) = (facts.version, facts.fact_set.clone());
    let (metrics, explanation) = run_low_priority(move || derive(&facts, as_of, explain)).await?;
    Ok(PastMetrics { version, metrics, explanation, fact_set })
}

/// Adds the names of the feed files to the observations. It uses a new connection, because the derivation runs without
/// one. A later snapshot is safe, because record batches are never changed or removed.
pub(super) async fn name_feed_files(
    generation: &ServedGeneration,
    fact_set: &str,
    explanation: &mut Explanation,
) -> Result<(), ApiError> {
    let mut client = generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    transaction.query_one(SEARCH_PATH, &[&fact_set]).await?;
    Ok(name_files(&*transaction, explanation).await?)
}

fn derive(facts: &PastFacts, as_of: NaiveDate, explain: bool) -> (Metrics, Option<Explanation>) {
    let (policy, rules) = (&facts.policy, &facts.rules);
    let benchmark = facts.benchmark.as_ref().map(|history| metrics::benchmark(history, as_of, policy, rules));
    let newest = facts.version.as_of.unwrap_or(as_of);
    let market = DerivationContext { as_of, newest, benchmark: benchmark.as_ref(), policy, rules };
    let explanation = explain.then(|| metrics::explain(&facts.own, &market));
    (metrics::derive(&facts.own, &market).metrics, explanation)
}

async fn read(generation: &ServedGeneration, symbol: &PathSymbol) -> Result<PastFacts, ApiError> {
    let mut client = generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let statement = transaction.prepare_cached(IDENTITY).await?;
    let row = transaction.query_opt(&statement, &[&symbol.candidates()]).await?;
    let row = row.ok_or_else(|| lookup::missing_version_error(generation))?;
    let own = identity(&row, "identity")?.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
    let benchmark = identity(&row, "benchmark_identity")?;
    let fact_set: String = row.try_get("fact_set")?;
    transaction.query_one(SEARCH_PATH, &[&fact_set]).await?;
    let wanted: Vec<&Identity> = [Some(&own), benchmark.as_ref()].into_iter().flatten().collect();
    let histories = load_histories(&*transaction, &wanted).await;
    let mut histories = histories.map_err(|error| ApiError::Internal(error.into()))?.into_iter();
    let (JsonColumn(policy), JsonColumn(rules)) = (row.try_get("policy")?, row.try_get("rules")?);
    Ok(PastFacts {
        version: DataVersion::from_row(&row)?,
        fact_set,
        policy,
        rules,
        own: histories.next().ok_or_else(|| lookup::unknown_symbol_error(symbol))?,
        benchmark: histories.next(),
    })
}

fn identity(row: &Row, column: &str) -> Result<Option<Identity>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<JsonColumn<Identity>>>(column)?.map(|identity| identity.0))
}
