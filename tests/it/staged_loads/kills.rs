//! Tests of kills while a run is held, released or undone, and of generations that are built meanwhile.

use anyhow::{Result, ensure};
use harness::{Program, TestApp};
use serde_json::{Value, json};

use super::run_of;
use crate::generations::answer;
use crate::process_kills::{Market, failpoints, killed_at};
use crate::undo::{equal_tables, tables};

const RUN: [&str; 2] = ["run", "--until-caught-up"];

/// Market of two sources. The piece of the first source is visible. Returns the tables without the other piece, and with
/// it.
async fn market() -> Result<(TestApp, Market, [Vec<String>; 2])> {
    let market = Market::new(5, 2);
    let (app, plain) =
        (TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "1").start().await?, TestApp::start().await?);
    for app in [&app, &plain] {
        app.ingest(&market.load(app, 0)?.each_ref().map(String::as_str)).await?.success()?;
    }
    let before = tables(&app).await?;
    load(&plain, &market, &[]).await?;
    let after = tables(&plain).await?;
    ensure!(before != after, "the second piece changes the market");
    Ok((app, market, [before, after]))
}

/// Loads the second piece, and a later session, which changes the market date. All securities are then derived again.
async fn load(app: &TestApp, market: &Market, options: &[&str]) -> Result<Value> {
    let later = app.folder().join("prices-later.csv");
    std::fs::write(&later, "symbol,date,close,observed_at\nK001,2024-06-14,60,2024-06-14T22:00:00Z\n")?;
    let (arguments, later) = (market.load(app, 1)?, later.display().to_string());
    let arguments = [&arguments.each_ref().map(String::as_str)[..], &[&later, "--json"], options].concat();
    app.ingest(&arguments).await?.success()?.json()
}

/// Loads the second piece as a held run. Returns the run.
async fn stage(app: &TestApp, market: &Market) -> Result<String> {
    let staged = load(app, market, &["--stage"]).await?;
    assert_eq!(staged["held"], json!(true), "{staged}");
    Ok(run_of(&staged)?.to_owned())
}

#[tokio::test]
async fn a_projector_killed_at_any_step_serves_what_the_states_say() -> Result<()> {
    let (app, market, [before, after]) = market().await?;
    for step in failpoints("projector.")? {
        let mut reached = 0;
        let mut killed = async |expected: &[String], state: &str| {
            reached += u32::from(killed_at(&app, Program::Projector, &RUN, &step, 1).await?);
            equal_tables(&tables(&app).await?, expected, &format!("{state}, killed at {step}"))
        };
        let run = stage(&app, &market).await?;
        killed(&before, "held").await?;
        app.ingest(&["release", &run]).await?.success()?;
        killed(&after, "released").await?;
        app.ingest(&["undo", &run]).await?.success()?;
        killed(&before, "undone").await?;
        // A bisection needs a row that Postgres refuses, and a held run derives nothing.
        ensure!(reached > 1 || step == "projector.bisecting", "{step} was reached {reached} times");
    }
    Ok(())
}

/// A release is one message: a kill leaves it published or not.
#[tokio::test]
async fn a_release_that_is_killed_took_place_or_not() -> Result<()> {
    let (app, market, [before, after]) = market().await?;
    let run = stage(&app, &market).await?;
    equal_tables(&tables(&app).await?, &before, "held")?;
    assert!(killed_at(&app, Program::Ingest, &["release", &run], "ingest.sent", 1).await?);
    let found = tables(&app).await?;
    assert!(found == before || found == after);
    assert_eq!(app.ingest(&["release", &run]).await?.code, if found == after { 2 } else { 0 });
    equal_tables(&tables(&app).await?, &after, "the release was repeated")
}

#[tokio::test]
async fn a_generation_that_is_built_during_changes_of_state_follows_them() -> Result<()> {
    let (app, market, [before, after]) = market().await?;
    let run = stage(&app, &market).await?;
    app.catch_up().await?;
    for (generation, (step, command, expected)) in
        (2..).zip([("rebuild.prepared", "release", &after), ("rebuild.committed", "undo", &before)])
    {
        assert!(killed_at(&app, Program::Projector, &["rebuild"], step, 1).await?, "{step}");
        app.ingest(&[command, &run]).await?.success()?;
        equal_tables(&tables(&app).await?, expected, command)?;
        answer(&app, &["rebuild"]).await?;
        let differences = answer(&app, &["diff", "--whole", "1", &generation.to_string()]).await?;
        assert_eq!(differences["identical"], json!(true), "{command} at {step}: {differences}");
    }
    // Both generations follow the next changes.
    for command in ["release", "undo"] {
        app.ingest(&[command, &run]).await?.success()?;
        app.catch_up().await?;
        for generation in ["2", "3"] {
            let differences = answer(&app, &["diff", "--whole", "1", generation]).await?;
            assert_eq!(differences["identical"], json!(true), "{command}: {differences}");
        }
    }
    equal_tables(&tables(&app).await?, &before, "undone")
}
