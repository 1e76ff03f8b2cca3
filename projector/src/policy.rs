//! The source policy: which source wins. It is outside the log, so it changes without loading anything again.

use chrono::NaiveDate;
use clap::Args;
use market::event::Kind;
use market::history::SourcePolicy;
use store::facts::load_policy;
use tokio_postgres::Client;

const SET: &str = include_str!("../queries/policy_set.sql");
const REMOVE: &str = include_str!("../queries/policy_remove.sql");
const RECOMPUTE: &str = include_str!("../queries/recompute.sql");
const LOCK: &str = include_str!("../queries/fact_sets_lock.sql");

/// One line of the policy.
#[derive(Debug, Clone, Args)]
pub struct PolicyLine {
    /// Kind of rows: security, price, dividend, split, fundamentals, etf or holding
    pub kind: Kind,
    /// Source as given to ingest load --source
    pub source: String,
    /// First day it holds for; default: from the beginning
    #[arg(long)]
    pub from: Option<NaiveDate>,
    /// Last day it holds for; default: without end
    #[arg(long)]
    pub to: Option<NaiveDate>,
}

/// Sets a source's rank (the lower wins) and has every live generation derived again.
pub async fn set(client: &mut Client, line: &PolicyLine, rank: i32) -> anyhow::Result<()> {
    change(client, SET, line, Some(rank)).await
}

/// Removes a line and has every live generation derived again.
pub async fn remove(client: &mut Client, line: &PolicyLine) -> anyhow::Result<()> {
    change(client, REMOVE, line, None).await
}

async fn change(
    client: &mut Client,
    statement: &str,
    line: &PolicyLine,
    rank: Option<i32>,
) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.query(LOCK, &[]).await?;
    let changed = match rank {
        Some(rank) => {
            transaction.execute(statement, &[&line.kind, &line.source, &line.from, &line.to, &rank]).await?
        }
        None => transaction.execute(statement, &[&line.kind, &line.source, &line.from, &line.to]).await?,
    };
    anyhow::ensure!(changed > 0, "there is no such line in the policy; see: projector policy list");
    transaction.execute(RECOMPUTE, &[]).await?;
    transaction.commit().await?;
    Ok(())
}

/// The policy.
pub async fn list(client: &Client) -> anyhow::Result<SourcePolicy> {
    Ok(load_policy(client).await?)
}
