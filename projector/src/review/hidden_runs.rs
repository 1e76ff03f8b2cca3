//! Runs that are held or excluded, with the metrics of a security that would change if they were visible.

use chrono::{DateTime, Utc};
use market::metrics;
use market::metrics::Explanation;
use market::symbol::Symbol;
use serde::Serialize;
use store::FromRow;
use store::past_facts::{EmptyBatchIndex, FactHistory};
use store::sql_row;
use store::view::View;
use tokio_postgres::Client;

use crate::generation::{Generation, begin_snapshot};
use crate::review::security::SecurityContext;

const LAST_CHANGES: &str = include_str!("../../queries/run_changes_last.sql");
const MAX_RUNS: usize = 20;

sql_row! {
    #[derive(Debug, Serialize)]
    pub struct RunStateChange {
        pub run: String,
        pub state: String,
        pub reason: String,
        pub at: DateTime<Utc>,
        pub operator: String,
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangedMetric {
    pub metric: String,
    /// Value with the run, as text; null if unknown.
    pub value: Option<String>,
}

/// Run with observations of a security that do not count.
#[derive(Debug, Serialize)]
pub(crate) struct HiddenRun {
    #[serde(flatten)]
    pub change: RunStateChange,
    /// Metrics of the explanation that would change if the run were visible.
    pub would_change: Vec<ChangedMetric>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SecurityExplanation {
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Runs that are held or excluded and have observations of the security.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden_runs: Vec<HiddenRun>,
}

/// Finds the hidden runs with observations of the explained security, in the served generation.
pub(crate) async fn find_hidden_runs(
    client: &mut Client,
    explanation: &Explanation,
) -> anyhow::Result<Vec<HiddenRun>> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let symbol: Symbol = explanation.symbol.parse().map_err(anyhow::Error::msg)?;
    let [facts, batches] = FactHistory::statements(&generation.fact_set);
    let statements = [facts.as_str(), &batches];
    let history = FactHistory::load(&transaction, statements, &[symbol.as_str()], &EmptyBatchIndex).await?;
    let mut runs = history.hidden_runs();
    runs.truncate(MAX_RUNS);
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let security = SecurityContext::load(&transaction, &symbol, &generation).await?;
    let market = security.market();
    let mut found = Vec::new();
    for row in transaction.query(LAST_CHANGES, &[&runs]).await? {
        let change = RunStateChange::from_row(&row)?;
        let view = View::newest().with_run(&change.run);
        let facts = history.at(&view, market.policy)?;
        let with_run = match facts.identity(symbol.as_str()) {
            Some(identity) => metrics::explain(&facts.history(identity)?, &market).metrics,
            None => Vec::new(),
        };
        let differing = with_run.into_iter().filter(|with_run| {
            let same = explanation.metrics.iter().find(|metric| metric.metric == with_run.metric);
            same.is_some_and(|metric| metric.value != with_run.value)
        });
        let changed = differing.map(|metric| ChangedMetric { metric: metric.metric, value: metric.value });
        found.push(HiddenRun { change, would_change: changed.collect() });
    }
    Ok(found)
}
