//! `projector explain SYMBOL METRIC`: the observations behind a figure, who won and why, the formula with its values.
//!
//! Told from the facts by the program's own rules, for the market date, policy and rule parameters the generation was derived with.

use anyhow::{Context, bail};
use chrono::NaiveDate;
use market::measure::{self, Explanation, METHOD_VERSION};
use market::symbol::Symbol;
use tokio_postgres::Client;

use crate::generation::Generation;
use crate::review::security::SecurityContext;

const ACTIVE: &str = "select generation from active";
const BY_ID: &str = include_str!("../../queries/generation_by_id.sql");

/// What of a security is explained.
#[derive(Debug, Clone, Default)]
pub struct ExplainRequest<'a> {
    /// One metric, or all of them.
    pub metric: Option<&'a str>,
    /// The close of this session instead.
    pub session: Option<NaiveDate>,
    /// In this generation instead of the served one.
    pub generation: Option<i32>,
}

/// Explains figures of a security.
pub async fn explain_security(
    client: &mut Client,
    symbol: &Symbol,
    request: &ExplainRequest<'_>,
) -> anyhow::Result<Explanation> {
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let id = match request.generation {
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
    generation.set_local_search_path(&transaction).await?;
    let security = SecurityContext::load(&transaction, symbol, &generation).await?;
    let market = security.market();
    let mut explanation = measure::explain(&security.history, &market);
    if let Some(session) = request.session {
        explanation.metrics = vec![measure::explain_session(&security.history, &market, session)];
    } else if let Some(metric) = request.metric {
        retain_metric(&mut explanation, metric)?;
    }
    Ok(explanation)
}

/// Leaves only this metric.
fn retain_metric(explanation: &mut Explanation, metric: &str) -> anyhow::Result<()> {
    if !explanation.metrics.iter().any(|explained| explained.metric == metric) {
        let known: Vec<&str> =
            explanation.metrics.iter().map(|explained| explained.metric.as_str()).collect();
        bail!("there is no metric {metric}; there are {}", known.join(", "));
    }
    explanation.metrics.retain(|explained| explained.metric == metric);
    Ok(())
}
