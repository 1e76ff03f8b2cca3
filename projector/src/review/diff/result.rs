//! What a comparison found.

use std::collections::BTreeMap;

use serde::Serialize;

use super::accumulator::TableDiff;
use super::generation_reader::ComparedGeneration;
use super::ranking::TopicSummary;

/// What two generations differ in.
#[derive(Debug, Serialize)]
pub struct GenerationDiff {
    /// The generation to start from.
    pub a: ComparedGeneration,
    /// The generation it is compared with.
    pub b: ComparedGeneration,
    /// Why they can differ at all.
    pub reasons: Vec<String>,
    /// What matters: the greatest differences of each topic.
    #[serde(rename = "summary")]
    pub ranked: Vec<TopicSummary>,
    /// What differs in each compared table.
    pub tables: Vec<TableDiff>,
    /// Days of differing prices, by year.
    pub price_days: BTreeMap<i32, u64>,
    /// Whether no row of the compared tables differs.
    pub identical: bool,
    /// Whether all was compared, so that a promotion may follow.
    pub reviewed: bool,
}

impl GenerationDiff {
    /// With so many rows of each table and topic.
    pub(super) fn truncated(mut self, limit: usize) -> Self {
        self.ranked.iter_mut().for_each(|ranked| ranked.first.truncate(limit));
        self.tables.iter_mut().for_each(|table| table.rows.truncate(limit));
        self
    }
}

/// Why two generations can differ.
pub(super) fn find_reasons(a: &ComparedGeneration, b: &ComparedGeneration) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut note = |differ: bool, text: String| {
        if differ {
            reasons.push(text);
        }
    };
    note(
        a.method_version != b.method_version,
        format!("rules: version {} against {}", a.method_version, b.method_version),
    );
    let [policy_a, policy_b] = [a, b].map(|side| serde_json::json!(side.policy));
    note(a.policy != b.policy, format!("source policy: {policy_a} against {policy_b}"));
    note(a.as_of != b.as_of, format!("market date: {:?} against {:?}", a.as_of, b.as_of));
    note(a.fact_set != b.fact_set, format!("facts: {} against {}", a.fact_set, b.fact_set));
    note(a.sequence != b.sequence, format!("log: applied to {} against {}", a.sequence, b.sequence));
    reasons
}
