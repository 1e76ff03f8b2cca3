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
    /// Inputs of the derivations (such as rules, source policy and facts) that differ between the generations. They are
    /// the causes of the differing rows.
    pub reasons: Vec<String>,
    /// Differing rows.
    #[serde(flatten)]
    pub differences: Differences,
    /// `true` if the comparison is complete and counts as a review. A promotion requires a review.
    pub reviewed: bool,
}

/// Finds the inputs of the derivations that differ between the generations. Returns one text per differing input.
pub(super) fn find_reasons(a: &ComparedGeneration, b: &ComparedGeneration) -> Vec<String> {
    let inputs = |generation: &ComparedGeneration| {
        let as_of = generation.as_of.map_or_else(|| "none".to_owned(), |day| day.to_string());
        [
            ("rules: version", generation.method_version.clone()),
            ("source policy:", describe_policy(&generation.policy)),
            ("market date:", as_of),
            ("facts:", generation.fact_set.clone()),
            ("log: applied to", generation.sequence.to_string()),
        ]
    };
    let pairs = inputs(a).into_iter().zip(inputs(b)).filter(|((_, a), (_, b))| a != b);
    pairs.map(|((input, a), (_, b))| format!("{input} {a} against {b}")).collect()
}

/// Formats the rules of a policy, for example `price desk rank 1 from 2020-01-01, dividend other rank 2`. A policy
/// without rules is `none`.
fn describe_policy(policy: &SourcePolicy) -> String {
    let describe = |PolicyRule { kind, source, from, to, rank }: &PolicyRule| {
        let from = from.map(|day| format!(" from {day}")).unwrap_or_default();
        let to = to.map(|day| format!(" to {day}")).unwrap_or_default();
        format!("{kind} {source} rank {rank}{from}{to}")
    };
    let rules: Vec<String> = policy.rules.iter().map(describe).collect();
    if rules.is_empty() { "none".to_owned() } else { rules.join(", ") }
}
