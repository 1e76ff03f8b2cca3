//! Result of a comparison.

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
    /// Differing inputs of the two derivations. They are the reasons for differing rows.
    pub reasons: Vec<String>,
    /// Differing rows.
    #[serde(flatten)]
    pub differences: Differences,
    /// `true` if all rows were compared, as a promotion requires.
    pub reviewed: bool,
}

/// Differing inputs of the two derivations.
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
