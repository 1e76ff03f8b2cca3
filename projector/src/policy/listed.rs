//! The lines of the policy, and which of them the served tables follow.

use market::history::{PolicyRule, SourcePolicy};
use market::row::Json;
use serde::Serialize;
use store::facts::load_policy;
use tokio_postgres::Client;

const SERVED: &str = include_str!("../../queries/policy_served.sql");

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The served tables follow it.
    Served,
    /// It waits for the next generation.
    Waits,
    /// It was taken away; the served tables follow it until the next generation.
    Ends,
}

/// A line of the policy.
#[derive(Debug, Serialize)]
pub struct Listed {
    #[serde(flatten)]
    pub rule: PolicyRule,
    pub standing: Standing,
}

/// The policy.
pub async fn list(client: &Client) -> anyhow::Result<Vec<Listed>> {
    let live = load_policy(client).await?;
    let row = client.query_one(SERVED, &[]).await?;
    let served: Option<Json<SourcePolicy>> = row.try_get("policy")?;
    let served = served.map_or_else(|| live.clone(), |Json(served)| served);
    let of_live = live.rules.iter().map(|rule| match served.rules.contains(rule) {
        true => Listed { rule: rule.clone(), standing: Standing::Served },
        false => Listed { rule: rule.clone(), standing: Standing::Waits },
    });
    let ending = served.rules.iter().filter(|rule| !live.rules.contains(rule));
    let ending = ending.map(|rule| Listed { rule: rule.clone(), standing: Standing::Ends });
    Ok(of_live.chain(ending).collect())
}
