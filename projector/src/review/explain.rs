//! `projector explain SYMBOL METRIC`: the observations, the chosen source and the formula of a metric.
//!
//! The metric is computed again from the facts, with the inputs of its generation.

use anyhow::bail;
use chrono::NaiveDate;
use market::metrics;
use market::metrics::{Explanation, METHOD_VERSION};
use market::symbol::Symbol;
use store::feed_files::name_files;
use store::ids::GenerationId;
use tokio_postgres::{Client, Transaction};

use crate::facts::known_at::{KnownAt, find_version};
use crate::generation::{Generation, begin_snapshot, load_generation_row};
use crate::review::security::SecurityContext;

const ACTIVE: &str = "select generation from active";

#[derive(Debug, Clone, Default)]
pub(crate) struct ExplainRequest<'a> {
    pub metric: Option<&'a str>,
    /// Trading day whose close is explained; `None` to explain metrics.
    pub session: Option<NaiveDate>,
    pub generation: Option<GenerationId>,
    /// Instant in the past, or an earlier data version. The explanation then uses the facts, policy and rules of that
    /// time. `None` explains the current figures of the generation.
    pub known_at: Option<KnownAt>,
}

pub(crate) async fn explain_security(
    client: &mut Client,
    symbol: &Symbol,
    request: &ExplainRequest<'_>,
) -> anyhow::Result<Explanation> {
    let known = match request.known_at {
        Some(known_at) => Some(find_version(client, known_at).await?),
        None => None,
    };
    let transaction = begin_snapshot(client).await?;
    let security = match &known {
        Some(version) => SecurityContext::load_known(&transaction, symbol, version).await?,
        None => load_of_generation(&transaction, symbol, request.generation).await?,
    };
    let market = security.market();
    let mut explanation = metrics::explain(&security.history, &market);
    if let Some(session) = request.session {
        explanation.metrics = vec![metrics::explain_session(&security.history, &market, session)];
        explanation.limit_to_metrics(|_| true);
    } else if let Some(metric) = request.metric {
        retain_metric(&mut explanation, metric)?;
    }
    name_files(&transaction, "frames", &mut explanation).await?;
    Ok(explanation)
}

async fn load_of_generation(
    transaction: &Transaction<'_>,
    symbol: &Symbol,
    generation: Option<GenerationId>,
) -> anyhow::Result<SecurityContext> {
    let id = match generation {
        Some(id) => id,
        None => transaction.query_one(ACTIVE, &[]).await?.try_get("generation")?,
    };
    let row = load_generation_row(transaction, id).await?;
    let version: String = row.try_get("method_version")?;
    if version != METHOD_VERSION {
        bail!(
            "cannot explain generation {id}: it has rules {version}, this program {METHOD_VERSION}; use the version that built it"
        );
    }
    let generation = Generation::from_row(&row)?;
    generation.set_local_search_path(transaction).await?;
    SecurityContext::load(transaction, symbol, &generation).await
}

/// Removes all metrics except `metric` from an explanation. Fails if the explanation does not contain `metric`.
fn retain_metric(explanation: &mut Explanation, metric: &str) -> anyhow::Result<()> {
    if !explanation.metrics.iter().any(|explained| explained.metric == metric) {
        let nearest = explanation.nearest_metric(metric).unwrap_or("none");
        bail!(
            "metric {metric} does not exist; the nearest is {nearest}; without a metric, all are explained"
        );
    }
    explanation.limit_to_metrics(|explained| explained == metric);
    Ok(())
}
