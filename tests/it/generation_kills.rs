//! Tests that kill `rebuild`, `promote` and `rollback` at every step, or rebuild while new rows are loaded. The API
//! must always serve one whole generation, and a killed command must complete when it is repeated.

use std::sync::Arc;

use anyhow::{Result, ensure};
use harness::{Program, TestApp, eventually};
use serde_json::json;

use crate::generations::{PATIENCE, Readers, answer, load, policy, two_sources};
use crate::log_copies::messages;
use crate::process_kills::{Market, failpoints, killed_at};
use crate::reference_projection::ReferenceProjection;

const LATE: &str = "symbol,date,close,revision,action,observed_at
K002,2024-05-01,51.25,9,put,2024-06-30T00:00:00Z
K004,2024-05-02,,9,retract,2024-06-30T00:00:00Z
K106,2024-05-01,51.25,9,put,2024-06-30T00:00:00Z
K108,2024-05-02,,9,retract,2024-06-30T00:00:00Z
";

async fn served(app: &TestApp) -> Result<i32> {
    app.sql_value("select generation from control.active").await
}

#[tokio::test]
async fn an_interrupted_rebuild_refuses_other_settings() -> Result<()> {
    let app = two_sources().await?;
    let policy = policy(app.folder(), "right")?;
    let rebuild = ["rebuild", "--as-of", "2024-05-01"];
    ensure!(
        killed_at(&app, Program::Projector, &rebuild, "rebuild.prepared", 1).await?,
        "it was not reached"
    );
    let others: [(&[&str], &str); 6] = [
        (&["--as-of", "2024-05-02"], "--as-of"),
        (&["--policy", &policy], "--policy"),
        (&["--only", "metrics"], "--only"),
        (&["--rule", "streak.tolerance=1"], "--rule"),
        (&["--from", "log"], "--from"),
        (&["--until-seq", "3"], "--until-seq"),
    ];
    for (asked, named) in others {
        let refused = app.projector(&[&["rebuild"], asked].concat()).await?;
        ensure!(refused.code != 0 && refused.stderr.contains(named), "{asked:?}: {}", refused.stderr);
        ensure!(refused.stderr.contains("projector drop 2"), "{}", refused.stderr);
    }
    let built = answer(&app, &rebuild).await?;
    ensure!(built["generation"] == 2, "{built}");
    Ok(())
}

#[tokio::test]
async fn rebuild_promote_and_rollback_killed_at_every_step_fail_no_request() -> Result<()> {
    let app = two_sources().await?;
    let policy = policy(app.folder(), "right")?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let readers = Readers::start(&app).await?;
    let rebuild = ["rebuild", "--policy", &policy];
    for (generation, step) in (2..).zip(failpoints("rebuild.")?) {
        ensure!(killed_at(&app, Program::Projector, &rebuild, &step, 1).await?, "{step} was not reached");
        ensure!(served(&app).await? == 1, "killed at {step}");
        // After `rebuild.finished` the generation is complete, so the next command would begin another one.
        if step != "rebuild.finished" {
            let built = answer(&app, &rebuild).await?;
            ensure!(built["generation"] == generation, "{built} after {step}");
        }
        let differences = answer(&app, &["diff", "--whole", "1", &generation.to_string()]).await?;
        ensure!(differences["tables"].to_string().contains("[20,10]"), "{step}: {differences}");
    }
    for step in failpoints("switch.")? {
        for (command, to) in [(&["promote", "2", "--accept-diff"][..], 2), (&["rollback"], 1)] {
            ensure!(killed_at(&app, Program::Projector, command, &step, 1).await?, "{step} was not reached");
            let before = 3 - to;
            // The served generation changes when the switch is committed, not earlier.
            ensure!(served(&app).await? == if step == "switch.committed" { to } else { before }, "{step}");
            if served(&app).await? == before {
                app.projector(command).await?.success()?;
            }
            ensure!(served(&app).await? == to, "{step}");
            readers.are_served(&format!("g{to}.")).await?;
        }
    }
    readers.stop().await?;
    Ok(())
}

/// Waits until the whole log is applied to a generation. Fails if the tables of the generation then differ from the
/// reference projection.
async fn follows(app: &TestApp, generation: i32) -> Result<()> {
    eventually(PATIENCE, async || {
        let version = format!("select sequence from read_g{generation}.version");
        let (end, at) = (messages(app).await?.len(), app.sql_value::<i64>(&version).await?);
        ensure!(i64::try_from(end)? == at, "generation {generation} is at {at} of {end}");
        Ok(())
    })
    .await?;
    ReferenceProjection::check(app, generation).await?;
    Ok(())
}

#[tokio::test]
async fn a_rebuild_raced_by_live_writes_is_the_live_generation_and_what_the_log_says() -> Result<()> {
    let app = Arc::new(TestApp::start().await?);
    let market = Arc::new(Market::new(3, 8));
    market.load_all(&app, 0..2).await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    follows(&app, 1).await?;
    // The rebuild is killed twice, so that new rows certainly arrive during it. First a newer market date arrives,
    // which restarts the rebuild. Then corrections and retractions arrive for symbols before and after the rebuild's
    // current position.
    let rebuild = ["rebuild", "--commit-every", "30"];
    ensure!(killed_at(&app, Program::Projector, &rebuild, "rebuild.prepared", 1).await?);
    market.load_all(&app, 2..4).await?;
    follows(&app, 1).await?;
    ensure!(killed_at(&app, Program::Projector, &rebuild, "rebuild.committed", 2).await?);
    load(&app, "prices.csv", "left", LATE).await?;
    follows(&app, 1).await?;
    let writes = tokio::spawn({
        let (app, market) = (Arc::clone(&app), Arc::clone(&market));
        async move { market.load_all(&app, 4..6).await }
    });
    ensure!(answer(&app, &rebuild).await?["generation"] == 2);
    answer(&app, &["rebuild", "--from", "log", "--commit-every", "30"]).await?;
    writes.await??;
    market.load_all(&app, 6..8).await?;
    for generation in [1, 2, 3] {
        follows(&app, generation).await?;
        let differences = answer(&app, &["diff", "--whole", "1", &generation.to_string()]).await?;
        ensure!(differences["identical"] == json!(true), "{differences}");
    }
    answer(&app, &["promote", "2"]).await?;
    ensure!(served(&app).await? == 2);
    follows(&app, 2).await
}
