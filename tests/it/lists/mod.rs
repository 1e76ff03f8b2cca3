//! Comparison of every list endpoint with a model that filters and sorts all rows of the read tables.

mod bulk;
mod endpoints;
mod model;
mod paging;
mod table;

use anyhow::{Context, Result, ensure};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use reqwest::Url;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::generated::Generated;
use model::{Ask, List, Rule};
use table::{Answer, Cell, Row};

/// Random choices for one request, independent of a list. Each `Index` selects a filter, a row or a sort key of the
/// tested list.
#[derive(Debug, Clone)]
struct Choices {
    filters: Vec<(Index, Index, i8)>,
    sort: Vec<(Index, bool)>,
    pages: usize,
}

fn choices() -> impl Strategy<Value = Choices> {
    let filters = proptest::collection::vec((any::<Index>(), any::<Index>(), -1i8..=1), 0..4);
    let sort = proptest::collection::vec((any::<Index>(), any::<bool>()), 0..3);
    (filters, sort, 1usize..5).prop_map(|(filters, sort, pages)| Choices { filters, sort, pages })
}

impl Choices {
    /// Converts the choices to a valid request of `list`. The filter values come from `rows`, so some rows are likely
    /// to match.
    fn ask(&self, list: &List, rows: &[Row]) -> Ask {
        let mut ask = Ask { parameters: list.always.clone(), sort: vec![] };
        for (filter, value, shift) in
            self.filters.iter().filter(|_| !list.filters.is_empty() && !rows.is_empty())
        {
            let filter = filter.get(list.filters);
            let Some(value) =
                value_of(filter.rule, &value.get(rows)[filter.column], filter.parameter, *shift)
            else {
                continue;
            };
            ask.parameters.retain(|(name, _)| *name != filter.parameter);
            ask.parameters.push((filter.parameter, value));
        }
        for (key, descending) in &self.sort {
            let key = *key.get(list.keys);
            if ask.sort.iter().all(|(known, _)| *known != key) {
                ask.sort.push((key, *descending));
            }
        }
        keep_relations(list, &mut ask);
        ask
    }
}

/// Returns a filter value equal or close to `cell`. Returns `None` if the parameter does not accept the value.
fn value_of(rule: Rule, cell: &Cell, parameter: &str, shift: i8) -> Option<String> {
    match (rule, cell) {
        (Rule::WithProjected, _) => Some((shift > 0).to_string()),
        (_, Cell::Null) => None,
        (Rule::Has, Cell::Nested(members)) => members.contains("sp500").then(|| "SP500".to_owned()),
        (_, Cell::Number(number)) => {
            let percent = parameter.contains("yield") || parameter.contains("payout");
            let near = number + Decimal::new(shift.into(), 4);
            let taken = !percent || (Decimal::ZERO..=Decimal::ONE_THOUSAND).contains(&near);
            let positive = ["price", "volume", "cap", "streak", "amount", "aum", "weight", "ratio"];
            let below = positive.iter().any(|word| parameter.contains(word)) && near.is_sign_negative();
            (taken && !below).then(|| near.to_string())
        }
        (Rule::Is, Cell::Text(text)) if shift > 0 => Some(text.to_uppercase()),
        (Rule::Is, Cell::Text(text)) if shift < 0 => Some(match another(parameter) {
            Some(other) => format!("{text},{other}"),
            None => text.clone(),
        }),
        (_, cell) => Some(cell.written()),
    }
}

/// Returns a second value for a parameter that accepts a comma-separated list.
fn another(parameter: &str) -> Option<&'static str> {
    match parameter {
        "frequency" => Some("monthly"),
        "sector" => Some("Utilities"),
        "asset_type" => Some("a type of no holding"),
        "country" => Some("DE"),
        "exchange" => Some("XLON"),
        _ => None,
    }
}

/// Removes a maximum that is below its minimum, and limits the date range of a calendar.
fn keep_relations(list: &List, ask: &mut Ask) {
    for (low, high) in [("min_", "max_"), ("start_date", "end_date"), ("ex_date_from", "ex_date_to")] {
        let lows: Vec<_> = ask.parameters.iter().filter(|(name, _)| name.starts_with(low)).cloned().collect();
        for (name, least) in lows {
            let other = name.replacen(low, high, 1);
            let number = |text: &str| text.parse::<Decimal>();
            ask.parameters.retain(|(name, most)| {
                let ordered = match (number(&least), number(most)) {
                    (Ok(least), Ok(most)) => least <= most,
                    _ => least <= *most,
                };
                *name != other || ordered
            });
        }
    }
    if list.keys == ["event_date"] {
        // A date range of the calendar has two ends, at most 366 days apart.
        ask.parameters.retain(|(name, _)| *name != "end_date");
        if let Some((_, start)) = ask.parameters.iter().find(|(name, _)| *name == "start_date") {
            let start: chrono::NaiveDate = start.parse().expect("a day");
            let end = start + chrono::Days::new(u64::try_from(ask.parameters.len()).unwrap_or(0) * 90);
            ask.parameters.push(("end_date", end.to_string()));
        }
    }
}

fn url(list: &List, ask: &Ask, limit: usize, cursor: Option<&str>) -> String {
    let mut url = Url::parse(&format!("http://here{}", list.path)).expect("a path");
    let mut query = url.query_pairs_mut();
    query.extend_pairs(&ask.parameters).append_pair("limit", &limit.to_string());
    if !ask.sort.is_empty() {
        let direction = |descending: bool| if descending { "desc" } else { "asc" };
        let keys = ask.sort.iter().map(|(key, descending)| format!("{key}.{}", direction(*descending)));
        query.append_pair("sort", &keys.collect::<Vec<_>>().join(","));
    }
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
    drop(query);
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

/// Requests the whole list in `pages` pages. Compares each row with the row that the model expects.
async fn compare(world: &Generated, list: &List, rows: &[Row], ask: &Ask, pages: usize) -> Result<()> {
    let expected = list.expected(rows, ask);
    let limit = expected.len().div_ceil(pages).clamp(1, list.most);
    let (mut seen, mut cursor) = (0, None);
    loop {
        let path = url(list, ask, limit, cursor.as_deref());
        let page: Answer = table::answer(&world.body(&path).await?).with_context(|| path.clone())?;
        ensure!(
            page.has_more == page.next_cursor.is_some(),
            "{path}: has_more without a cursor or the reverse"
        );
        for row in &page.rows {
            let wanted = expected.get(seen).with_context(|| format!("{path}: a row too many: {row:?}"))?;
            let differing =
                row.iter().filter(|(name, cell)| wanted.get(*name).is_some_and(|known| known != *cell));
            let differing: Vec<_> = differing.map(|(name, cell)| (name, cell, &wanted[name])).collect();
            ensure!(
                differing.is_empty(),
                "{path}: row {seen} differs (field, served, expected): {differing:?}"
            );
            seen += 1;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            ensure!(seen == expected.len(), "{path}: {seen} rows of {}", expected.len());
            return Ok(());
        }
        ensure!(page.rows.len() == limit, "{path}: a page of {} rows before the end", page.rows.len());
    }
}

async fn symbols(world: &Generated, sql: &str) -> Result<Vec<String>> {
    let rows = world.app.sql(sql, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Currencies of the dividends, each with its newest units for a US dollar, as SQL values.
async fn rates(world: &Generated) -> Result<String> {
    let mut rates = vec!["('USD', 1)".to_owned()];
    let others = "select distinct currency from read_g1.dividends where currency <> 'USD'";
    for currency in symbols(world, others).await? {
        let path = format!("/v1/fx?base=USD&quote={currency}&limit=1&decimals=string");
        let newest: Value = serde_json::from_slice(&world.body(&path).await?)?;
        rates.push(format!("('{currency}', {})", newest["data"][0]["rate"].as_str().context(path)?));
    }
    Ok(rates.join(", "))
}

/// Each random request must return the rows of the model in the order of the model. Rows with equal sort keys must have
/// a defined order too.
#[tokio::test(flavor = "multi_thread")]
async fn every_list_is_what_brute_force_says() -> Result<()> {
    let world = Generated::start().await?;
    let payers = "select symbol from read_g1.dividends group by symbol order by count(distinct type) desc, symbol limit 12";
    let funds = "select distinct etf_symbol from read_g1.holdings order by 1 limit 3";
    let (payers, funds) = (symbols(&world, payers).await?, symbols(&world, funds).await?);
    let lists = endpoints::lists(&payers, &funds, &rates(&world).await?);
    for list in &lists {
        let rows = table::table(&world.app, &list.sql).await?;
        let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
        let judged = TestRunner::new(config).run(&choices(), |choices| {
            let ask = choices.ask(list, &rows);
            let compared = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(compare(&world, list, &rows, &ask, choices.pages))
            });
            compared.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        });
        judged.with_context(|| list.path.clone())?;
    }
    Ok(())
}
