//! Tests of the caches in a running projector. The projector must notice when another process changes the facts, or the
//! rows of a generation.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Program, TestApp, eventually};

use crate::generations::answer;
use crate::log_copies::messages;

const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a running projector has applied the whole log to the tables of a generation.
pub(crate) async fn settled(app: &TestApp, generation: u32) -> Result<()> {
    let end = i64::try_from(messages(app).await?.len())?;
    let sequence = format!("select sequence from read_g{generation}.version");
    let dirty = format!("select count(*) from control.dirty where generation = {generation}");
    eventually(PATIENCE, async || {
        let (served, dirty): (i64, i64) = (app.sql_value(&sequence).await?, app.sql_value(&dirty).await?);
        ensure!(served == end && dirty == 0, "served to {served} of {end}, {dirty} symbols dirty");
        Ok(())
    })
    .await
}

/// Fails if the tables of a generation differ from those of a fresh rebuild.
async fn as_rebuilt(app: &TestApp, generation: u32) -> Result<()> {
    let fresh = answer(app, &["rebuild"]).await?["generation"].to_string();
    let diff = answer(app, &["diff", "--whole", &generation.to_string(), &fresh]).await?;
    ensure!(diff["identical"] == true, "{diff}");
    Ok(())
}

fn prices(symbols: &[&str], day: u32) -> String {
    let rows = symbols.iter().map(|symbol| format!("{symbol},2024-06-{day:02},{day}\n"));
    format!("symbol,date,close\n{}", rows.collect::<String>())
}

/// Fails if a running projector still uses its cached facts after `dead-letters retry` has stored new ones.
#[tokio::test]
async fn facts_that_a_retry_wrote_are_known_to_a_running_projector() -> Result<()> {
    let app = TestApp::start().await?;
    let refuses = "alter table facts.records add constraint refuses check (symbol <> 'BAD')";
    app.sql(refuses, &[]).await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    app.feed("prices-1.csv", prices(&["BAD", "FINE"], 3)).load().await?;
    settled(&app, 1).await?;
    app.feed("dividends.csv", "symbol,ex_date,amount\nBAD,2024-06-03,2\nFINE,2024-06-03,3\n").load().await?;
    settled(&app, 1).await?;
    app.sql("alter table facts.records drop constraint refuses", &[]).await?;
    let retried = app.projector(&["dead-letters", "retry"]).await?.success()?;
    ensure!(retried.stdout.contains("1 of 1"), "{}", retried.stdout);
    app.feed("prices-2.csv", prices(&["BAD", "FINE"], 4)).load().await?;
    settled(&app, 1).await?;
    let served: i64 = app.sql_value("select count(*) from read_g1.dividends where symbol = 'BAD'").await?;
    ensure!(served == 1, "{served} dividends of BAD are served");
    as_rebuilt(&app, 1).await
}

#[tokio::test]
async fn rows_that_a_promotion_wrote_are_known_to_a_running_projector() -> Result<()> {
    let app = TestApp::start().await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    for (source, close) in [("left", 10), ("right", 20)] {
        let price = format!("symbol,date,close\nAAA,2024-06-03,{close}\n");
        app.feed(&format!("prices-{source}.csv"), price).source(source).load().await?;
    }
    answer(&app, &["rebuild"]).await?;
    // The projector also writes generation 2, so the rows of generation 2 are in its cache.
    app.feed("prices-2.csv", prices(&["BBB"], 4)).load().await?;
    settled(&app, 2).await?;
    let of_left = "select price = 10 from read_g2.quotes where symbol = 'AAA'";
    let first: bool = app.sql_value(of_left).await?;
    let other = if first { "right" } else { "left" };

    app.projector(&["pause"]).await?.success()?;
    app.projector(&["policy", "set", "price", other, "--rank", "1", "--now"]).await?.success()?;
    app.projector(&["promote", "2", "--accept-diff"]).await?.success()?;
    ensure!(app.sql_value::<bool>(of_left).await? != first, "the promotion derived nothing");
    app.projector(&["policy", "remove", "price", other, "--now"]).await?.success()?;
    app.projector(&["resume"]).await?.success()?;
    settled(&app, 2).await?;
    ensure!(app.sql_value::<bool>(of_left).await? == first, "what the promotion wrote is still served");
    as_rebuilt(&app, 2).await
}
