//! Rules of the source policy, each with its state.

use market::history::{PolicyRule, SourcePolicy};
use market::row::JsonColumn;
use serde::Serialize;
use store::db::generation_schema;
use store::facts::load_policy;
use store::ids::GenerationId;
use tokio_postgres::Client;

const SERVED: &str = "select generation from active";

/// State of a rule: its effect on the served tables now and on the next generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleState {
    /// The served tables and the next generation follow the rule.
    Served,
    /// The served tables do not follow the rule yet. The next generation will follow it.
    Waits,
    /// The rule was removed. The served tables follow it until the next generation is served.
    Ends,
}

/// Rule of the live policy, or of the served tables' policy, with its state.
#[derive(Debug, Serialize)]
pub struct ListedRule {
    /// Source, kind, date range and rank.
    #[serde(flatten)]
    pub rule: PolicyRule,
    /// State of the rule.
    pub standing: RuleState,
}

/// Lists the rules of the live policy and of the served tables.
pub async fn list_rules(client: &Client) -> anyhow::Result<Vec<ListedRule>> {
    let live = load_policy(client).await?;
    let generation: GenerationId = client.query_one(SERVED, &[]).await?.try_get("generation")?;
    // The table `version` has the policy by which the served rows were derived.
    let query = format!("select policy from {}.version", generation_schema(generation));
    let JsonColumn(served): JsonColumn<SourcePolicy> =
        client.query_one(&query, &[]).await?.try_get("policy")?;
    let of_live = live.rules.iter().map(|rule| match served.rules.contains(rule) {
        true => ListedRule { rule: rule.clone(), standing: RuleState::Served },
        false => ListedRule { rule: rule.clone(), standing: RuleState::Waits },
    });
    let ending = served.rules.iter().filter(|rule| !live.rules.contains(rule));
    let ending = ending.map(|rule| ListedRule { rule: rule.clone(), standing: RuleState::Ends });
    Ok(of_live.chain(ending).collect())
}
