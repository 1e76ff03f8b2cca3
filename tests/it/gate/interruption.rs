//! Test of a load that is interrupted while the gate compares it.

use anyhow::{Context, Result, ensure};
use harness::{Program, Signal, eventually};
use serde_json::{Value, json};

use super::daily_market::{DailyMarket, day_file};
use super::{caught_up, gated, listed_run};
use crate::generations::PATIENCE;
use crate::lineage::{app_with_catalogue, events, tag};
use crate::process_kills::stopped;

#[tokio::test]
async fn an_interrupted_comparison_leaves_the_load_held() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    let market = DailyMarket::load(&app, 20, 1, 2).await?;
    let mut projector = app.start_projector().await?;
    let (day, rows) = market.days.first().context("a day")?;
    let path = day_file(&app, *day, rows)?;
    // The comparison waits for a projector that has the lease and applies nothing.
    projector.signal(Signal::STOP)?;
    stopped(&projector).await?;
    let mut ingest = app.spawn(Program::Ingest, &["load", &path, "--source", "test", "--gate"]).await?;
    let run = eventually(PATIENCE, async || {
        let held = app.ingest(&["freshness", "--json"]).await?.json()?["held"][0]["run"].clone();
        let run = held.as_str().context("no held run")?.to_owned();
        let listed = listed_run(&app, &run).await?;
        ensure!(listed["state"] == json!("completed"), "{listed}");
        Ok(run)
    })
    .await?;
    assert_eq!(ingest.stop(Signal::TERM, PATIENCE).await?.code(), Some(130), "{}", ingest.log());
    assert_eq!(listed_run(&app, &run).await?["visibility"], json!("held"));
    let sent = events(&catalogue)?;
    let last = sent.last().context("an event")?;
    assert_eq!((&last["eventType"], tag(last, "run")), (&json!("ABORT"), Some(run.as_str())), "{last}");

    projector.signal(Signal::CONT)?;
    caught_up(&app).await?;
    let resumed = app.ingest(&["resume"]).await?.success()?;
    assert!(resumed.stdout.contains("nothing to resume"), "{}", resumed.stdout);
    let verdict = app.projector(&["gate", &run, "--json"]).await?.success()?.json()?;
    assert_eq!(verdict["met"], json!(true), "{verdict}");
    let (summary, code) = gated(&app, &path, &[]).await?;
    assert_eq!((code, &summary["run"], &summary["held"]), (0, &json!(run), &Value::Null), "{summary}");
    Ok(())
}
