//! Tests of `ingest load --gate`: a load that does not meet the expectations of its source is held.

pub(crate) mod daily_market;
mod interruption;
mod other_loads;
mod planted_faults;

use anyhow::{Context, Result, ensure};
use harness::{Program, Signal, TestApp, eventually};
use serde_json::{Value, json};

use crate::generations::PATIENCE;
use crate::log_copies::messages;
use crate::process_kills::{killed_at, stopped};
use daily_market::{DailyMarket, day_file};

/// Waits until the served tables contain the whole log.
async fn caught_up(app: &TestApp) -> Result<()> {
    eventually(PATIENCE, async || {
        let (end, at) =
            (messages(app).await?.len(), app.sql_value::<i64>("select sequence from read_g1.version").await?);
        ensure!(i64::try_from(end)? == at, "the tables are at {at} of {end}");
        Ok(())
    })
    .await
}

/// Load of one file through the gate, with its exit code.
async fn gated(app: &TestApp, path: &str, more: &[&str]) -> Result<(Value, i32)> {
    let arguments = [&["load", path, "--source", "test", "--gate", "--json"][..], more].concat();
    let output = app.ingest(&arguments).await?;
    Ok((output.json().with_context(|| output.stderr.clone())?, output.code))
}

/// Names of the expectations that a verdict does not meet.
fn failed(verdict: &Value) -> Vec<&str> {
    let checks = verdict["checks"].as_array().into_iter().flatten();
    checks
        .filter(|check| check["met"] == json!(false))
        .filter_map(|check| check["expectation"].as_str())
        .collect()
}

async fn newest(app: &TestApp) -> Result<String> {
    app.sql_value("select max(price_date)::text from read_g1.metrics").await
}

#[tokio::test]
async fn a_load_is_served_if_it_meets_all_expectations_and_held_otherwise() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 40, 2, 6).await?;
    let _projector = app.start_projector().await?;
    let [first, second, third, ..] = market.days.as_slice() else { anyhow::bail!("too few days") };
    let path = day_file(&app, first.0, &first.1)?;
    let (summary, code) = gated(&app, &path, &[]).await?;
    assert_eq!(
        (code, &summary["gate"]["met"], &summary["held"]),
        (0, &json!(true), &Value::Null),
        "{summary}"
    );
    caught_up(&app).await?;
    assert_eq!(newest(&app).await?, first.0.to_string());

    // A dry run has the verdict of the load, and publishes nothing.
    let path = day_file(&app, second.0, &[])?;
    let (tried, code) = gated(&app, &path, &["--dry-run"]).await?;
    assert_eq!(code, 4, "{tried}");
    let tried = app.ingest(&["load", &path, "--source", "test", "--gate", "--dry-run"]).await?;
    assert!(
        tried.stdout.contains("it has no rows") && !tried.stdout.contains("to judge it"),
        "{}",
        tried.stdout
    );
    let wrong: Vec<String> = second.1.iter().take(4).cloned().collect();
    let path = day_file(&app, second.0, &wrong)?;
    let (tried, code) = gated(&app, &path, &["--dry-run"]).await?;
    assert_eq!((code, failed(&tried["gate"])), (4, vec!["coverage"]), "{tried}");
    let (summary, code) = gated(&app, &path, &[]).await?;
    assert_eq!((code, failed(&summary["gate"])), (4, vec!["coverage"]), "{summary}");
    let run = summary["run"].as_str().context("a run")?;
    assert_eq!(newest(&app).await?, first.0.to_string());
    let listed = app.ingest(&["runs", run]).await?.success()?.stdout;
    assert!(listed.contains("held by ingest load --gate (gate: coverage of price: 10"), "{listed}");
    let text = app.ingest(&["load", &path, "--source", "test", "--gate"]).await?;
    let release = format!("→ to serve it: ingest release {run}");
    for line in ["NOT MET coverage of price", "is missing", &release, "→ to discard it: ingest undo"] {
        assert!(text.code == 4 && text.stdout.contains(line), "{line} in {}", text.stdout);
    }
    assert_eq!(text.stdout.matches("is missing").count(), 3, "three examples: {}", text.stdout);

    // A later load of the same securities waits behind the held one.
    let path = day_file(&app, third.0, &third.1)?;
    let (behind, code) = gated(&app, &path, &[]).await?;
    assert_eq!((code, failed(&behind["gate"])), (4, vec!["behind"]), "{behind}");
    // Without this limit, the day is served.
    let refused = app.projector(&["expect", "set", "test", "price", "coverage", "101"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("at most 100"), "{}", refused.stderr);
    app.projector(&["expect", "set", "test", "price", "behind", "off"]).await?.success()?;
    let limits = app.projector(&["expect", "list", "--json"]).await?.success()?.json()?;
    assert_eq!(limits["set"][0]["limit_value"], Value::Null, "{limits}");
    let (summary, code) = gated(&app, &path, &[]).await?;
    assert_eq!((code, &summary["gate"]["met"]), (0, &json!(true)), "{summary}");
    caught_up(&app).await?;
    assert_eq!(newest(&app).await?, third.0.to_string());
    // Each check counts the loads of the last 90 days that its limit would have held.
    let coverage = summary["gate"]["checks"]
        .as_array()
        .and_then(|checks| checks.iter().find(|check| check["expectation"] == json!("coverage")));
    let coverage = coverage.context("a check of the coverage")?;
    assert_eq!(
        [&coverage["earlier_loads"], &coverage["earlier_failures"]],
        [&json!(1), &json!(1)],
        "{summary}"
    );
    app.projector(&["expect", "reset", "test"]).await?.success()?;
    let limits = app.projector(&["expect", "list", "--json"]).await?.success()?.json()?;
    assert_eq!(limits["set"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_load_may_replace_the_rows_of_a_named_source() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 40, 1, 4).await?;
    let _projector = app.start_projector().await?;
    let [first, ..] = market.days.as_slice() else { anyhow::bail!("too few days") };
    let path = day_file(&app, first.0, &first.1)?;
    gated(&app, &path, &[]).await?;
    let copy = async |more: &[&str]| {
        let arguments = [&["load", &path, "--source", "copy", "--gate", "--json"][..], more].concat();
        let output = app.ingest(&arguments).await?;
        anyhow::Ok((output.json().with_context(|| output.stderr.clone())?, output.code))
    };
    let (summary, code) = copy(&["--replaces", "other"]).await?;
    assert_eq!((code, failed(&summary["gate"])), (4, vec!["replaced"]), "{summary}");
    app.ingest(&["undo", summary["run"].as_str().context("a run")?]).await?.success()?;
    let (summary, code) = copy(&["--replaces", "test"]).await?;
    assert_eq!((code, &summary["gate"]["met"]), (0, &json!(true)), "{summary}");
    // The options of a watched folder name sources too.
    app.ingest(&["undo", summary["run"].as_str().context("a run")?]).await?.success()?;
    let folder = app.folder().join("watched");
    std::fs::create_dir(&folder)?;
    std::fs::rename(&path, folder.join("prices.csv"))?;
    let watch = ["watch", "watched", "--source", "copy", "--gate", "--once", "--settle", "0s"];
    app.ingest(&[&watch[..], &["--", "--replaces", "test"]].concat()).await?.success()?;
    Ok(())
}

#[tokio::test]
async fn a_load_is_held_without_a_projector_and_after_a_kill() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 20, 1, 4).await?;
    let [first, second, ..] = market.days.as_slice() else { anyhow::bail!("too few days") };
    let path = day_file(&app, first.0, &first.1)?;
    let (summary, code) = gated(&app, &path, &[]).await?;
    let error = summary["gate"]["error"].as_str().context("an error")?;
    assert!(code == 4 && summary["held"] == json!(true) && error.contains("cannot compare"), "{summary}");
    app.catch_up().await?;
    let run = summary["run"].as_str().context("a run")?;
    let verdict = app.projector(&["gate", run, "--json"]).await?.success()?.json()?;
    assert_eq!(verdict["met"], json!(true), "{verdict}");
    app.ingest(&["release", run]).await?.success()?;
    app.catch_up().await?;
    assert_eq!(newest(&app).await?, first.0.to_string());

    let _projector = app.start_projector().await?;
    let path = day_file(&app, second.0, &second.1)?;
    let arguments = ["load", &path, "--source", "test", "--gate"];
    assert!(killed_at(&app, Program::Ingest, &arguments, "gate.judged", 1).await?);
    caught_up(&app).await?;
    assert_eq!(newest(&app).await?, first.0.to_string());
    let (summary, code) = gated(&app, &path, &[]).await?;
    assert_eq!(
        (code, &summary["already_loaded"], &summary["held"]),
        (0, &json!(true), &Value::Null),
        "{summary}"
    );
    caught_up(&app).await?;
    assert_eq!(newest(&app).await?, second.0.to_string());
    Ok(())
}

/// The ingest process stops between the verdict and the change of the run's state. An operator decides in this time.
async fn decide_during_the_verdict(command: &str) -> Result<(TestApp, Value, i32, String)> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 20, 1, 4).await?;
    let [first, ..] = market.days.as_slice() else { anyhow::bail!("too few days") };
    let _projector = app.start_projector().await?;
    // A sound file meets the expectations, and a tenth of it does not.
    let rows = if command == "undo" { &first.1[..] } else { &first.1[..2] };
    let path = day_file(&app, first.0, rows)?;
    let arguments = ["load", &path, "--source", "test", "--gate"];
    let mut ingest =
        app.spawn_with(Program::Ingest, &arguments, &[("FAILPOINT", "gate.judged:1:STOP")]).await?;
    stopped(&ingest).await?;
    let held = app.ingest(&["freshness", "--json"]).await?.json()?["held"][0]["run"].clone();
    let run = held.as_str().context("a held run")?;
    app.ingest(&[command, run]).await?.success()?;
    ingest.signal(Signal::CONT)?;
    let code = ingest.wait(PATIENCE).await?.code().context("an exit code")?;
    let run = listed_run(&app, run).await?;
    caught_up(&app).await?;
    Ok((app, run, code, ingest.log()))
}

/// Last manifest of a run, with the state of the run.
async fn listed_run(app: &TestApp, run: &str) -> Result<Value> {
    let runs = app.ingest(&["runs", run, "--json"]).await?.success()?;
    Ok(serde_json::from_str(runs.stdout.lines().last().context("a run")?)?)
}

#[tokio::test]
async fn a_verdict_does_not_replace_what_an_operator_decided() -> Result<()> {
    let (app, run, code, log) = decide_during_the_verdict("undo").await?;
    assert_eq!((&run["visibility"], code), (&json!("excluded"), 4), "{run}");
    assert!(
        log.contains("undone during the comparison: nothing of run") && log.contains("ingest release"),
        "{log}"
    );
    let before = newest(&app).await?;
    let (app, run, code, _) = decide_during_the_verdict("release").await?;
    assert_eq!((&run["visibility"], code), (&json!("visible"), 0), "{run}");
    assert!(newest(&app).await? > before);
    Ok(())
}

#[tokio::test]
async fn a_watched_file_is_held_with_a_report() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 20, 1, 4).await?;
    let [first, second, ..] = market.days.as_slice() else { anyhow::bail!("too few days") };
    let _projector = app.start_projector().await?;
    let (_, code) = gated(&app, &day_file(&app, first.0, &first.1)?, &[]).await?;
    assert_eq!(code, 0);
    let folder = app.folder().join("watched");
    std::fs::create_dir(&folder)?;
    let path = day_file(&app, second.0, &second.1[..2])?;
    std::fs::rename(&path, folder.join("prices-2.csv"))?;
    let watched = folder.display().to_string();
    // Files that are refused leave no held run.
    std::fs::write(folder.join("prices-3.csv"), "symbol,date,close\nKO,someday,1\n")?;
    let arguments = ["watch", &watched, "--source", "test", "--once", "--settle", "0s"];
    let output = app.run(Program::Ingest, &arguments, &[("INGEST_GATE", "1")]).await?;
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(folder.join("refused/prices-3.csv").exists());
    let held = app.ingest(&["freshness", "--json"]).await?.json()?["held"].clone();
    assert_eq!(held.as_array().map(Vec::len), Some(1), "{held}");
    let report = std::fs::read_to_string(folder.join("done/prices-2.csv.reason.txt"))?;
    assert!(report.contains("NOT MET coverage") && report.contains("ingest release"), "{report}");
    caught_up(&app).await?;
    assert_eq!(newest(&app).await?, first.0.to_string());
    Ok(())
}
