//! `--why`: what makes a figure differ, told by the explanations of both sides.

use market::measure::{ExplainedMetric, ExplainedObservation, Explanation};
use market::symbol::Symbol;
use tokio_postgres::Client;

use super::ranking::{Ranked, Topic};
use crate::review::explain::{Asked, explain};

/// Observations named of each side.
const NAMED: usize = 3;

/// Says of each finding why it is there. `client` is in no transaction.
pub(super) async fn say_why(
    client: &mut Client,
    generations: [i32; 2],
    ranked: &mut [Ranked],
) -> anyhow::Result<()> {
    let findings = ranked.iter_mut().filter(|ranked| ranked.topic != Topic::Securities);
    for finding in findings.flat_map(|ranked| &mut ranked.first) {
        let symbol = Symbol::parse(&finding.symbol)?;
        let mut sides = Vec::new();
        for generation in generations {
            let asked = Asked { generation: Some(generation), ..Asked::default() };
            match explain(client, &symbol, &asked).await {
                Ok(explanation) => sides.push((generation, explanation)),
                // A generation of other rules is explained by the program that built it.
                Err(error) => finding.why.push(format!("{generation}: {error:#}")),
            }
        }
        if let [a, b] = sides.as_slice() {
            finding.why.extend(reasons(&finding.figure, a, b));
        }
    }
    Ok(())
}

/// A generation's number and what it tells of the security.
type Told = (i32, Explanation);

fn reasons(figure: &str, a: &Told, b: &Told) -> Vec<String> {
    let (Some(in_a), Some(in_b)) = (metric(&a.1, figure), metric(&b.1, figure)) else { return Vec::new() };
    let mut reasons = Vec::new();
    for ((generation, _), own, others, other) in [(a, in_a, in_b, &b.1), (b, in_b, in_a, &a.1)] {
        let only = own.observations.iter().filter(|seen| !is_among(seen, &others.observations));
        for seen in only.take(NAMED) {
            let fate = other.unused.iter().find(|unused| is_same(seen, unused));
            let fate = fate.map(|unused| format!("; on the other side: {}", unused.reason));
            reasons.push(format!("only in {generation}: {}{}", named(seen), fate.unwrap_or_default()));
        }
    }
    if in_a.formula != in_b.formula {
        reasons.extend(
            [(a.0, in_a), (b.0, in_b)].map(|(id, told)| format!("{id}, {}: {}", told.rule, told.formula)),
        );
    }
    if reasons.is_empty() {
        reasons.push(
            "the observations and the formula are the same: the tables were derived otherwise".to_owned(),
        );
    }
    reasons
}

fn metric<'a>(explanation: &'a Explanation, figure: &str) -> Option<&'a ExplainedMetric> {
    explanation.metrics.iter().find(|told| told.metric == figure)
}

/// Whether another one says the same, be it from another source: then it moves nothing.
fn is_among(seen: &ExplainedObservation, others: &[ExplainedObservation]) -> bool {
    let says =
        |o: &ExplainedObservation| (o.kind.clone(), o.date, o.amount, o.currency.clone(), o.outcome.clone());
    others.iter().any(|other| says(seen) == says(other))
}

fn is_same(a: &ExplainedObservation, b: &ExplainedObservation) -> bool {
    let of = |o: &ExplainedObservation| (o.kind.clone(), o.date, o.id.clone(), o.source.clone(), o.revision);
    of(a) == of(b)
}

/// `dividend 2024-06-14 0.5 USD from a (id d4)`.
pub(super) fn named(seen: &ExplainedObservation) -> String {
    let words = [
        Some(seen.kind.clone()),
        seen.date.map(|date| date.to_string()),
        seen.amount.map(|amount| amount.to_string()),
        seen.currency.clone(),
        Some(format!("from {}", seen.source)),
        seen.id.as_ref().map(|id| format!("(id {id})")),
        (seen.outcome != "used").then(|| format!("[{}]", seen.outcome)),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
