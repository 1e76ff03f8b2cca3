//! `--why` of rows that are of one day: what became of that day's observations on either side.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::measure::{ExplainedObservation, Explanation};
use market::symbol::Symbol;
use tokio_postgres::Client;

use super::cell::Cell;
use super::difference::Difference;
use super::tables::PRICES;
use super::tally::TableDiff;
use super::why::named;
use crate::review::explain::{Asked, explain};

/// Tables of which each row is made of one day's observations, and the kind of these.
const KINDS: [(&str, &str); 3] = [(PRICES, "price"), ("dividends", "dividend"), ("splits", "split")];

/// Says of the first rows of such tables why they differ. `client` is in no transaction.
pub(super) async fn say_why(
    client: &mut Client,
    generations: [i32; 2],
    tables: &mut [TableDiff],
    limit: usize,
) -> anyhow::Result<()> {
    for table in tables {
        let Some((name, kind)) = KINDS.iter().find(|(name, _)| *name == table.table) else { continue };
        for row in table.rows.iter_mut().take(limit) {
            let Some(day) = day_of(row) else { continue };
            let symbol = Symbol::parse(&row.owner())?;
            let session = (*name == PRICES).then_some(day);
            let mut outcomes: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
            let mut unexplained = Vec::new();
            for (side, generation) in generations.into_iter().enumerate() {
                let asked = Asked { generation: Some(generation), session, metric: None };
                match explain(client, &symbol, &asked).await {
                    Ok(told) => of_day(&told, kind, day).for_each(|seen| {
                        outcomes.entry(key(seen)).or_default()[side] = Some(seen.outcome.clone());
                    }),
                    // A generation of other rules is explained by the program that built it.
                    Err(error) => unexplained.push(format!("{generation}: {error:#}")),
                }
            }
            // One side alone shows no difference.
            row.why = match unexplained.is_empty() {
                true => outcomes.iter().filter_map(|(seen, both)| line(seen, both, generations)).collect(),
                false => unexplained,
            };
        }
    }
    Ok(())
}

fn day_of(row: &Difference) -> Option<NaiveDate> {
    row.key.iter().find_map(|(_, cell)| match cell {
        Cell::Day(day) => Some(*day),
        _ => None,
    })
}

fn of_day<'a>(
    told: &'a Explanation,
    kind: &'a str,
    day: NaiveDate,
) -> impl Iterator<Item = &'a ExplainedObservation> {
    let used = told.metrics.iter().flat_map(|metric| &metric.observations);
    used.chain(&told.unused).filter(move |seen| seen.kind == kind && seen.date == Some(day))
}

/// An observation as both sides name it, whatever became of it.
fn key(seen: &ExplainedObservation) -> String {
    named(&ExplainedObservation { outcome: "used".to_owned(), ..seen.clone() })
}

/// `price 2024-06-27 52 USD from left: used in 2, other_source in 1`.
fn line(seen: &str, outcomes: &[Option<String>; 2], generations: [i32; 2]) -> Option<String> {
    let [a, b] = outcomes.each_ref().map(|outcome| outcome.as_deref().unwrap_or("unknown"));
    (a != b).then(|| format!("{seen}: {a} in {}, {b} in {}", generations[0], generations[1]))
}
