//! `--why`: explanations of differences. A differing figure is explained in both generations, and the two explanations
//! are compared.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::identity::SecurityAddress;
use market::metrics::{ExplainedMetric, ExplainedObservation, Explanation};
use store::db::error_chain;
use store::ids::GenerationId;
use tokio_postgres::Client;

use crate::review::compare::{CellValue, DiffTopic, Differences, PRICES, RowDifference, SECTORS};
use crate::review::explain::{ExplainRequest, explain_security};

const MAX_OBSERVATIONS: usize = 3;
/// Maximum number of terms in a formula that is printed completely. A longer formula is shortened.
const MAX_TERMS: usize = 8;
const TERM_END: &str = ", ";
/// Tables in which each row is derived from the observations of one day, with the kind of these observations.
const KINDS: [(&str, &str); 3] = [(PRICES, "price"), ("dividends", "dividend"), ("splits", "split")];

/// Explains differences between two generations. Begins its own transactions, so the client must not be in one.
pub(super) struct DiffExplainer<'a> {
    pub(super) client: &'a mut Client,
    pub(super) generations: [GenerationId; 2],
}

type ExplainedGeneration = (GenerationId, Explanation);

impl DiffExplainer<'_> {
    /// Adds an explanation to the first `limit` differences of each topic and of each table.
    pub(super) async fn explain(&mut self, found: &mut Differences, limit: usize) -> anyhow::Result<()> {
        for ranked in &mut found.ranked {
            ranked.first.truncate(limit);
            for finding in &mut ranked.first {
                finding.why = if ranked.topic == DiffTopic::Securities {
                    let lacking = self.generations[usize::from(finding.a != CellValue::Null)];
                    vec![format!("{lacking}: no row has this symbol")]
                } else {
                    self.explain_figures(&finding.symbol, &[&finding.figure]).await?
                };
            }
        }
        for row in found.tables.iter_mut().flat_map(|table| table.rows.iter_mut().take(limit)) {
            row.why = self.explain_row(row).await?;
        }
        Ok(())
    }

    async fn explain_row(&mut self, row: &RowDifference) -> anyhow::Result<Vec<String>> {
        if row.table == SECTORS {
            return Ok(vec!["it summarizes securities that differ".to_owned()]);
        }
        let day = row.key.iter().find_map(|(_, cell)| match cell {
            CellValue::Date(day) => Some(*day),
            _ => None,
        });
        let kind = KINDS.iter().find(|(table, _)| *table == row.table).map(|(_, kind)| *kind);
        if let (Some(kind), Some(day)) = (kind, day) {
            let session = (row.table == PRICES).then_some(day);
            return Ok(match self.explain_sides(&row.owner(), session).await? {
                Ok(sides) => compare_outcomes(&sides, kind, day),
                Err(unexplained) => unexplained,
            });
        }
        let columns: Vec<&str> = row.columns.iter().map(|changed| changed.column.as_str()).collect();
        if columns == ["updated_at"] {
            return Ok(vec!["only the time of the change differs".to_owned()]);
        }
        self.explain_figures(&row.owner(), &columns).await
    }

    /// Explains the first of some figures whose formula or observations differ between the generations.
    async fn explain_figures(&mut self, symbol: &str, figures: &[&str]) -> anyhow::Result<Vec<String>> {
        let sides = match self.explain_sides(symbol, None).await? {
            Ok(sides) => sides,
            Err(unexplained) => return Ok(unexplained),
        };
        let mut is_explained = false;
        for figure in figures {
            let reasons = compare_figure(figure, &sides);
            is_explained |= reasons.is_some();
            if let Some(reasons) = reasons.filter(|reasons| !reasons.is_empty()) {
                return Ok(reasons);
            }
        }
        Ok(vec![match is_explained {
            true => {
                "observations and formula are identical; other inputs of the derivation differ".to_owned()
            }
            false => "it follows from reference data, prices, dividends or rules that differ".to_owned(),
        }])
    }

    /// Explains a security in both generations: the price of a session, or all metrics. The error has the reason for
    /// each generation that cannot be explained.
    async fn explain_sides(
        &mut self,
        symbol: &str,
        session: Option<NaiveDate>,
    ) -> anyhow::Result<Result<[ExplainedGeneration; 2], Vec<String>>> {
        let symbol = SecurityAddress::parse(symbol)?;
        let (mut sides, mut unexplained) = (Vec::new(), Vec::new());
        for generation in self.generations {
            let request =
                ExplainRequest { generation: Some(generation), session, ..ExplainRequest::default() };
            match explain_security(self.client, &symbol, &request).await {
                Ok(explanation) => sides.push((generation, explanation)),
                // A generation with another rule version can only be explained by the program version that built it.
                Err(error) => unexplained.push(format!("{generation}: {}", error_chain(error.as_ref()))),
            }
        }
        Ok(<[ExplainedGeneration; 2]>::try_from(sides).map_err(|_| unexplained))
    }
}

/// Lists the observations that only one generation uses for a figure, and its formulas if they differ. `None` if a
/// generation has no explanation of the figure.
fn compare_figure(figure: &str, [a, b]: &[ExplainedGeneration; 2]) -> Option<Vec<String>> {
    let metric = |explained: &'_ Explanation| -> Option<ExplainedMetric> {
        explained.metrics.iter().find(|explained| explained.metric == figure).cloned()
    };
    let (in_a, in_b) = (metric(&a.1)?, metric(&b.1)?);
    let sides = [(a.0, &in_a, &in_b, &b.1), (b.0, &in_b, &in_a, &a.1)];
    let mut reasons = Vec::new();
    for (generation, own, others, other) in sides {
        let only = own.observations.iter().filter(|seen| !is_among(seen, &others.observations));
        for seen in only.take(MAX_OBSERVATIONS) {
            let fate = other.unused.iter().find(|unused| is_same(seen, unused));
            let fate = fate.map(|unused| format!("; on the other side: {}", unused.reason));
            let (seen, fate) = (describe_observation(seen), fate.unwrap_or_default());
            reasons.push(format!("only in {generation}: {seen}{fate}"));
        }
    }
    if in_a.formula != in_b.formula {
        for (generation, own, others, _) in sides {
            let formula = mark_difference(&own.formula.to_string(), &others.formula.to_string());
            reasons.push(format!("{generation}, {}: {formula}", own.rule));
        }
    }
    Some(reasons)
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

/// True if `others` contains the observation. The source may differ: an observation in both generations explains no
/// difference.
fn is_among(seen: &ExplainedObservation, others: &[ExplainedObservation]) -> bool {
    others.iter().any(|other| {
        (&seen.kind, seen.date, seen.amount, &seen.currency, &seen.outcome)
            == (&other.kind, other.date, other.amount, &other.currency, &other.outcome)
    })
}

fn is_same(a: &ExplainedObservation, b: &ExplainedObservation) -> bool {
    (&a.kind, a.date, &a.id, &a.source, a.revision) == (&b.kind, b.date, &b.id, &b.source, b.revision)
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

/// Lists the observations of a day that have different outcomes in the two generations.
fn compare_outcomes(sides: &[ExplainedGeneration; 2], kind: &str, day: NaiveDate) -> Vec<String> {
    let mut outcomes: BTreeMap<String, [&str; 2]> = BTreeMap::new();
    for (side, (_, explained)) in sides.iter().enumerate() {
        let used = explained.metrics.iter().flat_map(|metric| &metric.observations);
        let all = used.chain(&explained.unused);
        for seen in all.filter(|seen| seen.kind == kind && seen.date == Some(day)) {
            // Match the observations of both generations by their text. The outcome may differ and must not be in the
            // text. The text omits only the outcome `used`, so all observations get this outcome.
            let used = ExplainedObservation { outcome: "used".to_owned(), ..seen.clone() };
            outcomes.entry(describe_observation(&used)).or_insert(["unknown"; 2])[side] = &seen.outcome;
        }
    }
    outcomes.retain(|_, [a, b]| a != b);
    if outcomes.is_empty() {
        return vec!["both use the same observations; factors, currencies or rules differ".to_owned()];
    }
    let [a, b] = [sides[0].0, sides[1].0];
    outcomes.into_iter().map(|(seen, [of_a, of_b])| format!("{seen}: {of_a} in {a}, {of_b} in {b}")).collect()
}
