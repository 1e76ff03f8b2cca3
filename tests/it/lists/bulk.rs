//! Answers of the bulk endpoints, compared with the read tables for random lists of symbols.

use anyhow::{Context, Result};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::Value;

use super::symbols;
use super::table::{self, Row};
use crate::generated::Generated;

/// Generates lists of known symbols in several spellings (`brk.b`, `BRK-B`), unknown symbols and repetitions.
fn asked(known: Vec<String>) -> impl Strategy<Value = Vec<String>> {
    let known = proptest::sample::select(known);
    let spelled = (known, 0u8..3).prop_map(|(symbol, spelling)| match spelling {
        0 => symbol.to_lowercase(),
        1 => symbol.replace('.', "-"),
        _ => symbol,
    });
    proptest::collection::vec(
        prop_oneof![4 => spelled, 1 => Just("NOPE1".to_owned()), 1 => Just("n-o".to_owned())],
        1..40,
    )
}

/// Returns one entry for each different symbol in `asked`: its canonical spelling, or `None` if the symbol is unknown.
fn wanted(asked: &[String], known: &[String]) -> Vec<Option<String>> {
    let mut wanted: Vec<(String, Option<String>)> = Vec::new();
    for symbol in asked {
        let plain = symbol.to_uppercase().replace('-', ".");
        if !wanted.iter().any(|(other, _)| *other == plain) {
            let canonical = known.iter().find(|known| **known == plain).cloned();
            wanted.push((plain, canonical));
        }
    }
    wanted.into_iter().map(|(_, canonical)| canonical).collect()
}

async fn compare(
    world: &Generated,
    path: &str,
    asked: &[String],
    rows: &[Row],
    known: &[String],
) -> Result<()> {
    let path = format!("{path}?symbols={}", asked.join(","));
    let body = world.body(&path).await?;
    let wanted = wanted(asked, known);
    let found: Vec<&String> = wanted.iter().flatten().collect();
    let answer = table::answer(&body)?;
    let served: Vec<String> = answer.rows.iter().map(|row| row["symbol"].written()).collect();
    anyhow::ensure!(served.iter().eq(found.iter().copied()), "{path}: served {served:?}, expected {found:?}");
    for row in &answer.rows {
        let of_table =
            rows.iter().find(|known| known["symbol"] == row["symbol"]).context("a row of the table")?;
        let same = row.iter().all(|(name, cell)| of_table.get(name).is_none_or(|known| known == cell));
        anyhow::ensure!(same, "{path}: {row:?} is {of_table:?}");
    }
    let summary = &serde_json::from_slice::<Value>(&body)?["meta"]["summary"];
    let failed = wanted.len() - found.len();
    anyhow::ensure!(
        *summary
            == serde_json::json!({ "requested": wanted.len(), "returned": found.len(), "failed": failed }),
        "{path}: {summary}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_answers_keep_the_order_and_account_for_every_symbol() -> Result<()> {
    let world = Generated::start().await?;
    let known = symbols(&world, "select symbol from read_g1.stocks order by symbol").await?;
    let paths = [
        ("/v1/bulk/quotes", "select * from read_g1.quotes"),
        ("/v1/bulk/metrics", "select * from read_g1.metrics"),
        ("/v1/bulk/dividends", "select symbol from read_g1.stocks"),
    ];
    for (path, sql) in paths {
        let rows = table::table(&world.app, sql).await?;
        let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
        let judged = TestRunner::new(config).run(&asked(known.clone()), |asked| {
            let compared = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(compare(&world, path, &asked, &rows, &known))
            });
            compared.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        });
        judged.with_context(|| path.to_owned())?;
    }
    Ok(())
}

/// A client repeats its request with the returned date range until `has_more` is false. Fails if the client misses a
/// dividend or gets one twice.
#[tokio::test]
async fn bulk_dividends_say_where_to_go_on() -> Result<()> {
    let world = Generated::start().await?;
    let known = symbols(&world, "select symbol from read_g1.stocks order by symbol limit 5").await?;
    for symbol in &known {
        let expected = "select coalesce(string_agg(id, ',' order by id), '') from read_g1.dividends where symbol = $1 and status in ('declared', 'paid')";
        let expected: String = world.app.sql(expected, &[symbol]).await?[0].get(0);
        let (mut ids, mut range, mut calls) = (Vec::new(), String::new(), 0);
        loop {
            let path = format!("/v1/bulk/dividends?per_symbol=7&symbols={symbol}{range}");
            let body: Value = serde_json::from_slice(&world.body(&path).await?)?;
            anyhow::ensure!(
                body["meta"]["count"] == 1 && body["meta"]["missing"] == serde_json::json!([]),
                "{body}"
            );
            let item = &body["data"][0];
            let rows = item["dividends"].as_array().context("dividends")?;
            ids.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
            calls += 1;
            let sheet = world.body(&format!("{path}&format=csv&fields=id,has_more")).await?;
            let lines = String::from_utf8(sheet)?.lines().count();
            anyhow::ensure!(lines == rows.len() + 1, "{path}: {lines} lines of CSV for {} rows", rows.len());
            if item["has_more"] == false {
                anyhow::ensure!(item["end_date"].is_null() && (calls > 1 || rows.len() <= 8), "{item}");
                break;
            }
            let day = |name: &str| item[name].as_str().map(str::to_owned).context("a day to go on with");
            range = format!("&start_date={}&end_date={}", day("start_date")?, day("end_date")?);
        }
        ids.sort();
        anyhow::ensure!(ids.join(",") == expected, "{symbol}: {ids:?}\nexpected {expected}");
    }
    Ok(())
}

#[tokio::test]
async fn bulk_dividends_are_the_newest_days_of_each_symbol() -> Result<()> {
    let world = Generated::start().await?;
    let known = symbols(&world, "select symbol from read_g1.stocks order by symbol limit 20").await?;
    let path = format!("/v1/bulk/dividends?per_symbol=3&symbols={}", known.join(","));
    let body: Value = serde_json::from_slice(&world.body(&path).await?)?;
    let newest =
        "select coalesce(string_agg(ex_date || ' ' || id, ',' order by ex_date desc, type, id), '') from
        (select * from read_g1.dividends where symbol = $1 and status in ('declared', 'paid')
         order by ex_date desc fetch first 3 rows with ties) d";
    for (item, symbol) in body["data"].as_array().into_iter().flatten().zip(&known) {
        let served: Vec<String> = item["dividends"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| {
                format!("{} {}", row["ex_date"].as_str().unwrap_or("?"), row["id"].as_str().unwrap_or("?"))
            })
            .collect();
        let expected: String = world.app.sql(newest, &[symbol]).await?[0].get(0);
        assert_eq!(
            (item["symbol"].as_str(), served.join(",")),
            (Some(symbol.as_str()), expected),
            "{symbol}"
        );
    }
    assert_eq!(body["data"].as_array().map(Vec::len), Some(known.len()));
    Ok(())
}
