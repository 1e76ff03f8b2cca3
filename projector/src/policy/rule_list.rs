//! The lines of the policy, and which of them the served tables follow.

use market::history::{PolicyRule, SourcePolicy};
use market::row::Json;
use serde::Serialize;
use store::db::generation_schema;
use store::facts::load_policy;
use tokio_postgres::Client;

const SERVED: &str = "select generation from active";

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleState {
    /// The served tables follow it.
    Served,
    /// It waits for the next generation.
    Waits,
    /// It was taken away; the served tables follow it until the next generation.
    Ends,
}

/// A line of the policy.
#[derive(Debug, Serialize)]
pub struct ListedRule {
    /// The source, what it is ranked for, and its rank.
    #[serde(flatten)]
    pub rule: PolicyRule,
    /// Whether the served tables follow it.
    pub standing: RuleState,
}

/// The policy.
pub async fn list_rules(client: &Client) -> anyhow::Result<Vec<ListedRule>> {
    let live = load_policy(client).await?;
    let generation: i32 = client.query_one(SERVED, &[]).await?.try_get("generation")?;
    // The tables say what they were derived with: the bookkeeping says only what is derived next.
    let query = format!("select policy from {}.version", generation_schema(generation));
    let Json(served): Json<SourcePolicy> = client.query_one(&query, &[]).await?.try_get("policy")?;
    let of_live = live.rules.iter().map(|rule| match served.rules.contains(rule) {
        true => ListedRule { rule: rule.clone(), standing: RuleState::Served },
        false => ListedRule { rule: rule.clone(), standing: RuleState::Waits },
    });
    let ending = served.rules.iter().filter(|rule| !live.rules.contains(rule));
    let ending = ending.map(|rule| ListedRule { rule: rule.clone(), standing: RuleState::Ends });
    Ok(of_live.chain(ending).collect())
}
