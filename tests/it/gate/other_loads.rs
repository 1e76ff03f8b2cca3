//! Tests of the gate with other loads before, after and at the same time as the judged one.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use harness::{Program, TestApp};
use serde_json::{Value, json};

use super::daily_market::{DailyMarket, PRICES, cell, day_file, file};
use super::{caught_up, failed};
use crate::process_kills::killed_at;

/// Loads a file of a source through the gate. Returns the summary and the exit code.
async fn gated(app: &TestApp, source: &str, name: &str, text: String) -> Result<(Value, i32)> {
    let path = app.folder().join(name);
    std::fs::write(&path, text)?;
    let path = path.display().to_string();
    let output = app.ingest(&["load", &path, "--source", source, "--gate", "--json"]).await?;
    Ok((output.json().with_context(|| output.stderr.clone())?, output.code))
}

fn earnings(symbols: impl IntoIterator<Item = impl AsRef<str>>, eps: usize) -> String {
    let rows = symbols.into_iter().map(|symbol| format!("{},2024-06-03,{eps}\n", symbol.as_ref()));
    format!("symbol,as_of,eps_ttm\n{}", rows.collect::<String>())
}

#[tokio::test]
async fn two_sources_are_judged_at_the_same_time() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 20, 1, 6).await?;
    let _projector = app.start_projector().await?;
    for (index, (day, rows)) in market.days.iter().enumerate() {
        let prices = file(PRICES, rows);
        let prices = gated(&app, "test", "prices.csv", prices);
        let other = gated(&app, "other", "fundamentals.csv", earnings(market.history.keys(), index));
        let ((prices, code), (other, other_code)) = tokio::try_join!(prices, other)?;
        assert_eq!((code, other_code), (0, 0), "{day}: {prices} {other}");
    }
    caught_up(&app).await
}

/// A projector commits the facts of a large load before it derives the served tables.
#[tokio::test]
async fn a_comparison_does_not_wait_for_the_tables_of_a_later_load() -> Result<()> {
    let app = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "1").start().await?;
    let market = DailyMarket::load(&app, 140, 1, 2).await?;
    let (day, rows) = market.days.first().context("a day")?;
    let path = day_file(&app, *day, rows)?;
    let staged = app.ingest(&["load", &path, "--source", "test", "--stage", "--json"]).await?.success()?;
    let staged = staged.json()?;
    app.catch_up().await?;
    app.feed("fundamentals.csv", earnings(market.history.keys(), 3)).source("other").load().await?;
    let run = ["run", "--until-caught-up"];
    assert!(killed_at(&app, Program::Projector, &run, "projector.facts_committed", 1).await?);
    let run = staged["run"].as_str().context("a run")?;
    let verdict = app.projector(&["gate", run, "--json"]).await?.success()?.json()?;
    assert_eq!(verdict["met"], json!(true), "{verdict}");
    Ok(())
}

#[tokio::test]
async fn a_load_waits_only_behind_an_earlier_held_load_of_the_same_securities() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 20, 1, 4).await?;
    let _projector = app.start_projector().await?;
    let (_, rows) = market.days.first().context("a day")?;
    // Three of twenty securities do not suffice.
    let [held, free] = [&rows[..3], &rows[3..6]]
        .map(|rows| rows.iter().map(|row| cell(row, 0).to_owned()).collect::<Vec<_>>());
    let short = file(PRICES, &rows[..3]);
    let (first, code) = gated(&app, "test", "prices.csv", short).await?;
    assert_eq!((code, failed(&first["gate"])), (4, vec!["coverage"]), "{first}");
    let run = first["run"].as_str().context("a run")?;

    let (other, code) = gated(&app, "test", "fundamentals-1.csv", earnings(&free, 1)).await?;
    assert_eq!(code, 0, "other securities: {other}");
    let (other, code) = gated(&app, "other", "fundamentals-2.csv", earnings(&held, 2)).await?;
    assert_eq!(code, 0, "another source: {other}");
    let both = held.iter().take(2).chain(&free);
    let (behind, code) = gated(&app, "test", "fundamentals-3.csv", earnings(both, 3)).await?;
    assert_eq!((code, failed(&behind["gate"])), (4, vec!["behind"]), "{behind}");
    let checks = behind["gate"]["checks"].as_array().into_iter().flatten();
    let check = checks.into_iter().find(|check| check["expectation"] == "behind").context("a check")?;
    let examples: BTreeSet<String> =
        held.iter().take(2).map(|symbol| format!("{symbol}: run {run} is held")).collect();
    assert_eq!((&check["value"], &check["first"]), (&json!(2), &json!(examples)), "{check}");

    // The earlier load does not wait behind the later one. After its release, the later one can be served.
    let verdict = app.projector(&["gate", run, "--json"]).await?.json()?;
    assert_eq!(failed(&verdict), ["coverage"], "{verdict}");
    app.ingest(&["release", run]).await?.success()?;
    caught_up(&app).await?;
    let behind = behind["run"].as_str().context("a run")?;
    let verdict = app.projector(&["gate", behind, "--json"]).await?.success()?.json()?;
    assert_eq!(verdict["met"], json!(true), "{verdict}");
    // The values of the first comparison stay, because later loads are counted against them.
    let first = "select value::bigint from control.measured_loads";
    let first = format!("{first} where run = '{behind}' and source = 'test' and expectation = 'behind'");
    assert_eq!(app.sql_value::<i64>(&first).await?, 2);
    Ok(())
}
