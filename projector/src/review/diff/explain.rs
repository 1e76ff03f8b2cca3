//! `--why`: explanations of differences. A differing figure is explained in both generations, and the two explanations
//! are compared.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::metrics::{ExplainedMetric, ExplainedObservation, Explanation};
use market::symbol::Symbol;
use store::db::error_chain;
use store::ids::GenerationId;
use tokio_postgres::Client;

use super::accumulator::TableDiff;
use super::cell::CellValue;
use super::difference::RowDifference;
use super::ranking::{DiffTopic, TopicSummary};
use super::tables::{PRICES, SECTORS};
use crate::review::explain::{ExplainRequest, explain_security};

/// Maximum number of observations that are listed per generation.
const MAX_OBSERVATIONS: usize = 3;
/// Maximum number of terms in a formula that is printed completely. A longer formula is shortened.
const MAX_TERMS: usize = 8;
/// Explanation of a differing figure if its observations and formula are equal in both generations.
const SAME_INPUTS: &str = "observations and formula are identical; other inputs of the derivation differ";
/// Explanation of a differing row if none of its differing columns has an explanation.
const FOLLOWS: &str = "it follows from reference data, prices, dividends or rules that differ";
/// Explanation of a differing price, dividend or split if both generations use the same observations.
const SAME_OBSERVATIONS: &str = "both use the same observations; factors, currencies or rules differ";
/// Separator between the terms of a formula.
const TERM_END: &str = ", ";

/// Adds an explanation to each difference of the summary. Begins its own transactions, so `client` must not be in one.
pub(super) async fn explain_findings(
    client: &mut Client,
    generations: [GenerationId; 2],
    ranked: &mut [TopicSummary],
) -> anyhow::Result<()> {
    for ranked in ranked {
        for finding in &mut ranked.first {
            if ranked.topic == DiffTopic::Securities {
                let lacking = if finding.a == CellValue::Null { generations[0] } else { generations[1] };
                finding.why.push(format!("{lacking}: no row has this symbol"));
                continue;
            }
            finding.why.extend(match explain_sides(client, generations, &finding.symbol, None).await? {
                Ok([a, b]) => find_reasons(&finding.figure, &a, &b),
                Err(unexplained) => unexplained,
            });
        }
    }
    Ok(())
}

/// Number of a generation, and the explanation of one security in it.
type ExplainedGeneration = (GenerationId, Explanation);
/// Explanations of one security in both generations. The error has the reason for each generation that cannot be
/// explained.
type ExplainedSides = Result<[ExplainedGeneration; 2], Vec<String>>;

/// Explains a security in both generations. If `session` has a day, explains the price of this day. If `session` is
/// `None`, explains all metrics.
async fn explain_sides(
    client: &mut Client,
    generations: [GenerationId; 2],
    symbol: &str,
    session: Option<NaiveDate>,
) -> anyhow::Result<ExplainedSides> {
    let symbol = Symbol::parse(symbol)?;
    let (mut sides, mut unexplained) = (Vec::new(), Vec::new());
    for generation in generations {
        let request = ExplainRequest { generation: Some(generation), session, ..ExplainRequest::default() };
        match explain_security(client, &symbol, &request).await {
            Ok(explanation) => sides.push((generation, explanation)),
            // A generation with another rule version can only be explained by the program version that built it.
            Err(error) => unexplained.push(format!("{generation}: {}", error_chain(error.as_ref()))),
        }
    }
    Ok(<[ExplainedGeneration; 2]>::try_from(sides).map_err(|_| unexplained))
}

fn find_reasons(figure: &str, a: &ExplainedGeneration, b: &ExplainedGeneration) -> Vec<String> {
    let (Some(in_a), Some(in_b)) = (find_metric(&a.1, figure), find_metric(&b.1, figure)) else {
        return vec![format!("no rule explains {figure} by itself; it follows from the differing rows")];
    };
    let mut reasons = Vec::new();
    for ((generation, _), own, others, other) in [(a, in_a, in_b, &b.1), (b, in_b, in_a, &a.1)] {
        let only = own.observations.iter().filter(|seen| !is_among(seen, &others.observations));
        for seen in only.take(MAX_OBSERVATIONS) {
            let fate = other.unused.iter().find(|unused| is_same(seen, unused));
            let fate = fate.map(|unused| format!("; on the other side: {}", unused.reason));
            let (seen, fate) = (describe_observation(seen), fate.unwrap_or_default());
            reasons.push(format!("only in {generation}: {seen}{fate}"));
        }
    }
    if in_a.formula != in_b.formula {
        reasons.extend([(a.0, in_a, in_b), (b.0, in_b, in_a)].map(|(id, own, other)| {
            format!(
                "{id}, {}: {}",
                own.rule,
                mark_difference(&own.formula.to_string(), &other.formula.to_string())
            )
        }));
    }
    if reasons.is_empty() {
        reasons.push(SAME_INPUTS.to_owned());
    }
    reasons
}

/// Shortens a formula of more than [`MAX_TERMS`] terms. The first term remains, and also each term that is missing in
/// the formula `other`. One `…` replaces each sequence of other terms.
fn mark_difference(formula: &str, other: &str) -> String {
    let terms: Vec<&str> = formula.split(TERM_END).collect();
    if terms.len() <= MAX_TERMS {
        return formula.to_owned();
    }
    let others: Vec<&str> = other.split(TERM_END).collect();
    let mut shown: Vec<&str> = terms[..1].to_vec();
    for term in &terms[1..] {
        match others.contains(term) {
            false => shown.push(term),
            true if shown.last() != Some(&"…") => shown.push("…"),
            true => {}
        }
    }
    shown.join(TERM_END)
}

fn find_metric<'a>(explanation: &'a Explanation, figure: &str) -> Option<&'a ExplainedMetric> {
    explanation.metrics.iter().find(|explained| explained.metric == figure)
}

/// True if `others` contains the observation `seen`. Compares only kind, date, amount, currency and outcome; the source
/// may differ. An observation in both generations explains no difference.
fn is_among(seen: &ExplainedObservation, others: &[ExplainedObservation]) -> bool {
    let says =
        |o: &ExplainedObservation| (o.kind.clone(), o.date, o.amount, o.currency.clone(), o.outcome.clone());
    others.iter().any(|other| says(seen) == says(other))
}

fn is_same(a: &ExplainedObservation, b: &ExplainedObservation) -> bool {
    let of = |o: &ExplainedObservation| (o.kind.clone(), o.date, o.id.clone(), o.source.clone(), o.revision);
    of(a) == of(b)
}

/// Formats an observation, for example `dividend 2024-06-14 0.5 USD from a (id d4)`.
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

/// Tables in which each row is derived from the observations of one day. Each table name is paired with the kind of
/// these observations.
const KINDS: [(&str, &str); 3] = [(PRICES, "price"), ("dividends", "dividend"), ("splits", "split")];

/// Adds explanations to the first `limit` differing rows of each table. Begins its own transactions, so `client` must
/// not be in one.
pub(super) async fn explain_rows(
    client: &mut Client,
    generations: [GenerationId; 2],
    tables: &mut [TableDiff],
    limit: usize,
) -> anyhow::Result<()> {
    for table in tables {
        let Some((name, kind)) = KINDS.iter().find(|(name, _)| *name == table.table) else {
            if table.table == SECTORS {
                let reason = "it summarizes securities that differ";
                table.rows.iter_mut().for_each(|row| row.why.push(reason.to_owned()));
            } else {
                explain_derived_rows(client, generations, &mut table.rows, limit).await?;
            }
            continue;
        };
        for row in table.rows.iter_mut().take(limit) {
            let Some(day) = row_day(row) else { continue };
            let session = (*name == PRICES).then_some(day);
            // A difference can be explained only with the explanations of both generations. If one is missing, print
            // the reason.
            row.why = match explain_sides(client, generations, &row.owner(), session).await? {
                Ok(sides) => compare_outcomes(&sides, kind, day),
                Err(unexplained) => unexplained,
            };
            if row.why.is_empty() {
                row.why.push(SAME_OBSERVATIONS.to_owned());
            }
        }
    }
    Ok(())
}

/// Explains the first `limit` rows of a table. Only one differing column of each row is explained.
async fn explain_derived_rows(
    client: &mut Client,
    generations: [GenerationId; 2],
    rows: &mut [RowDifference],
    limit: usize,
) -> anyhow::Result<()> {
    for row in rows.iter_mut().take(limit) {
        let is_time = row.columns.iter().all(|changed| changed.column == "updated_at");
        if is_time && !row.columns.is_empty() {
            row.why.push("only the time of the change differs".to_owned());
            continue;
        }
        row.why = match explain_sides(client, generations, &row.owner(), None).await? {
            Err(unexplained) => unexplained,
            Ok([a, b]) => {
                let is_explained = |column: &&str| find_metric(&a.1, column).is_some();
                let figures = row.columns.iter().map(|changed| &*changed.column).filter(is_explained);
                // Use the first figure whose formula or observations differ between the generations.
                let mut reasons = figures.map(|figure| find_reasons(figure, &a, &b));
                let first = reasons.next();
                let differing =
                    first.iter().cloned().chain(reasons).find(|reasons| *reasons != [SAME_INPUTS]);
                differing.or(first).unwrap_or_else(|| vec![FOLLOWS.to_owned()])
            }
        };
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

/// Lists the observations of a day that have different outcomes in the two generations.
fn compare_outcomes(sides: &[ExplainedGeneration; 2], kind: &str, day: NaiveDate) -> Vec<String> {
    let mut outcomes: BTreeMap<String, [&str; 2]> = BTreeMap::new();
    for (side, (_, explained)) in sides.iter().enumerate() {
        for seen in observations_of_day(explained, kind, day) {
            // Match the observations of both generations by their text. The outcome may differ and must not be in the
            // text. The text omits only the outcome `used`, so all observations get this outcome.
            let used = ExplainedObservation { outcome: "used".to_owned(), ..seen.clone() };
            outcomes.entry(describe_observation(&used)).or_insert(["unknown"; 2])[side] = &seen.outcome;
        }
    }
    let differing = outcomes.into_iter().filter(|(_, [a, b])| a != b);
    differing.map(|(seen, [a, b])| format!("{seen}: {a} in {}, {b} in {}", sides[0].0, sides[1].0)).collect()
}
