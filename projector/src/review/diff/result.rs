//! Result of a comparison.

use market::history::{PolicyRule, SourcePolicy};
use serde::Serialize;

use super::accumulator::Differences;
use super::generation_reader::ComparedGeneration;

/// Differences between two generations.
#[derive(Debug, Serialize)]
pub struct GenerationDiff {
    /// First compared generation.
    pub a: ComparedGeneration,
    /// Second compared generation.
    pub b: ComparedGeneration,
    /// Inputs of the derivations that differ between the generations. They explain the differing rows.
    pub reasons: Vec<String>,
    /// Differing rows.
    #[serde(flatten)]
    pub differences: Differences,
    /// `true` if all tables, securities and days were compared, as a promotion requires.
    pub reviewed: bool,
}

/// Inputs of the derivations that differ between the generations, as texts.
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
    let [policy_a, policy_b] = [a, b].map(|generation| describe_policy(&generation.policy));
    note(a.policy != b.policy, format!("source policy: {policy_a} against {policy_b}"));
    let [as_of_a, as_of_b] =
        [a, b].map(|generation| generation.as_of.map_or_else(|| "none".to_owned(), |day| day.to_string()));
    note(a.as_of != b.as_of, format!("market date: {as_of_a} against {as_of_b}"));
    note(a.fact_set != b.fact_set, format!("facts: {} against {}", a.fact_set, b.fact_set));
    note(a.sequence != b.sequence, format!("log: applied to {} against {}", a.sequence, b.sequence));
    reasons
}

/// Rules of a policy as text, for example `price desk rank 1 from 2020-01-01, dividend other rank 2`. A policy without
/// rules is `none`.
fn describe_policy(policy: &SourcePolicy) -> String {
    let describe = |PolicyRule { kind, source, from, to, rank }: &PolicyRule| {
        let from = from.map(|day| format!(" from {day}")).unwrap_or_default();
        let to = to.map(|day| format!(" to {day}")).unwrap_or_default();
        format!("{kind} {source} rank {rank}{from}{to}")
    };
    let rules: Vec<String> = policy.rules.iter().map(describe).collect();
    if rules.is_empty() { "none".to_owned() } else { rules.join(", ") }
}
