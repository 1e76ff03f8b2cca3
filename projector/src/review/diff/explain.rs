//! `--why`: explains differences by comparing the explanations of both generations.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::metrics::{ExplainedMetric, ExplainedObservation, Explanation};
use market::symbol::Symbol;
use store::ids::GenerationId;
use tokio_postgres::Client;

use super::accumulator::TableDiff;
use super::cell::CellValue;
use super::difference::RowDifference;
use super::ranking::{DiffTopic, TopicSummary};
use super::tables::PRICES;
use crate::review::explain::{ExplainRequest, explain_security};

/// Largest number of observations listed per generation.
const MAX_OBSERVATIONS: usize = 3;

/// Adds explanations to the differences of the summary. `client` must not be in a transaction.
pub(super) async fn explain_findings(
    client: &mut Client,
    generations: [GenerationId; 2],
    ranked: &mut [TopicSummary],
) -> anyhow::Result<()> {
    let findings = ranked.iter_mut().filter(|ranked| ranked.topic != DiffTopic::Securities);
    for finding in findings.flat_map(|ranked| &mut ranked.first) {
        let symbol = Symbol::parse(&finding.symbol)?;
        let mut sides = Vec::new();
        for generation in generations {
            let request = ExplainRequest { generation: Some(generation), ..ExplainRequest::default() };
            match explain_security(client, &symbol, &request).await {
                Ok(explanation) => sides.push((generation, explanation)),
                // Only the program that built a generation can explain it if the rule versions differ.
                Err(error) => finding.why.push(format!("{generation}: {error:#}")),
            }
        }
        if let [a, b] = sides.as_slice() {
            finding.why.extend(find_reasons(&finding.figure, a, b));
        }
    }
    Ok(())
}

/// Number of a generation, and the generation's explanation of a security.
type ExplainedGeneration = (GenerationId, Explanation);

fn find_reasons(figure: &str, a: &ExplainedGeneration, b: &ExplainedGeneration) -> Vec<String> {
    let (Some(in_a), Some(in_b)) = (find_metric(&a.1, figure), find_metric(&b.1, figure)) else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    for ((generation, _), own, others, other) in [(a, in_a, in_b, &b.1), (b, in_b, in_a, &a.1)] {
        let only = own.observations.iter().filter(|seen| !is_among(seen, &others.observations));
        for seen in only.take(MAX_OBSERVATIONS) {
            let fate = other.unused.iter().find(|unused| is_same(seen, unused));
            let fate = fate.map(|unused| format!("; on the other side: {}", unused.reason));
            reasons.push(format!(
                "only in {generation}: {}{}",
                describe_observation(seen),
                fate.unwrap_or_default()
            ));
        }
    }
    if in_a.formula != in_b.formula {
        reasons.extend(
            [(a.0, in_a), (b.0, in_b)]
                .map(|(id, explained)| format!("{id}, {}: {}", explained.rule, explained.formula)),
        );
    }
    if reasons.is_empty() {
        reasons
            .push("observations and formula are identical; other inputs of the derivation differ".to_owned());
    }
    reasons
}

fn find_metric<'a>(explanation: &'a Explanation, figure: &str) -> Option<&'a ExplainedMetric> {
    explanation.metrics.iter().find(|explained| explained.metric == figure)
}

/// `true` if `others` has an observation with the same content, from any source. Such an observation cannot explain a
/// difference.
fn is_among(seen: &ExplainedObservation, others: &[ExplainedObservation]) -> bool {
    let says =
        |o: &ExplainedObservation| (o.kind.clone(), o.date, o.amount, o.currency.clone(), o.outcome.clone());
    others.iter().any(|other| says(seen) == says(other))
}

fn is_same(a: &ExplainedObservation, b: &ExplainedObservation) -> bool {
    let of = |o: &ExplainedObservation| (o.kind.clone(), o.date, o.id.clone(), o.source.clone(), o.revision);
    of(a) == of(b)
}

/// Formats an observation: `dividend 2024-06-14 0.5 USD from a (id d4)`.
fn describe_observation(seen: &ExplainedObservation) -> String {
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

/// Tables whose rows come from the observations of one day, with the kind of the observations.
const KINDS: [(&str, &str); 3] = [(PRICES, "price"), ("dividends", "dividend"), ("splits", "split")];

/// Adds explanations to the first `limit` rows of the tables in [`KINDS`]. `client` must not be in a transaction.
pub(super) async fn explain_rows(
    client: &mut Client,
    generations: [GenerationId; 2],
    tables: &mut [TableDiff],
    limit: usize,
) -> anyhow::Result<()> {
    for table in tables {
        let Some((name, kind)) = KINDS.iter().find(|(name, _)| *name == table.table) else { continue };
        for row in table.rows.iter_mut().take(limit) {
            let Some(day) = row_day(row) else { continue };
            let symbol = Symbol::parse(&row.owner())?;
            let session = (*name == PRICES).then_some(day);
            let mut outcomes: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
            let mut unexplained = Vec::new();
            for (side, generation) in generations.into_iter().enumerate() {
                let request = ExplainRequest { generation: Some(generation), session, metric: None };
                match explain_security(client, &symbol, &request).await {
                    Ok(explained) => observations_of_day(&explained, kind, day).for_each(|seen| {
                        outcomes.entry(observation_key(seen)).or_default()[side] = Some(seen.outcome.clone());
                    }),
                    // Only the program that built a generation can explain it if the rule versions differ.
                    Err(error) => unexplained.push(format!("{generation}: {error:#}")),
                }
            }
            // The explanation of one generation alone shows no difference.
            row.why = match unexplained.is_empty() {
                true => outcomes
                    .iter()
                    .filter_map(|(seen, both)| describe_outcomes(seen, both, generations))
                    .collect(),
                false => unexplained,
            };
        }
    }
    Ok(())
}

fn row_day(row: &RowDifference) -> Option<NaiveDate> {
    row.key.iter().find_map(|(_, cell)| match cell {
        CellValue::Date(day) => Some(*day),
        _ => None,
    })
}

fn observations_of_day<'a>(
    explained: &'a Explanation,
    kind: &'a str,
    day: NaiveDate,
) -> impl Iterator<Item = &'a ExplainedObservation> {
    let used = explained.metrics.iter().flat_map(|metric| &metric.observations);
    used.chain(&explained.unused).filter(move |seen| seen.kind == kind && seen.date == Some(day))
}

/// Key that identifies one observation in both generations: its description without "used" or the rejection reason.
fn observation_key(seen: &ExplainedObservation) -> String {
    describe_observation(&ExplainedObservation { outcome: "used".to_owned(), ..seen.clone() })
}

/// Example: `price 2024-06-27 52 USD from tiingo: used in 2, other_source in 1`. The numbers are generations.
fn describe_outcomes(
    seen: &str,
    outcomes: &[Option<String>; 2],
    generations: [GenerationId; 2],
) -> Option<String> {
    let [a, b] = outcomes.each_ref().map(|outcome| outcome.as_deref().unwrap_or("unknown"));
    (a != b).then(|| format!("{seen}: {a} in {}, {b} in {}", generations[0], generations[1]))
}
