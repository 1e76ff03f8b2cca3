//! Tests of `ingest load --stage`: nothing of a held run is served before its release, and everything of it afterwards.

mod answers;
mod kills;

use anyhow::{Context, Result, ensure};
use harness::{Program, Servers, TestApp, eventually};
use serde_json::{Value, json};

use crate::generations::{PATIENCE, answer};
use crate::metrics::scrape;
use crate::process_kills::{failpoints, killed_at};
use crate::undo::{applied_market, equal_tables, load, tables, wrong_feed};

/// Writes a feed file, and loads it as a held run. Returns the summary.
async fn stage(app: &TestApp, source: &str, name: &str, text: &str) -> Result<Value> {
    let path = app.folder().join(name);
    std::fs::write(&path, text)?;
    let path = path.display().to_string();
    app.ingest(&["load", &path, "--source", source, "--stage", "--json"]).await?.success()?.json()
}

fn run_of(summary: &Value) -> Result<&str> {
    summary["run"].as_str().context("a run")
}

async fn price(app: &TestApp) -> Result<String> {
    app.catch_up().await?;
    app.sql_value("select trim_scale(price)::text from read_g1.quotes where symbol = 'KO'").await
}

/// Rows of the journal, the notices and the versions that clients can ask for.
const PUBLISHED: &str = "select (select count(*) from control.journal) || ' ' || (select count(*) from control.notices) || ' ' \
     || (select count(*) from read_g1.quarantine)";

#[tokio::test]
async fn a_held_run_is_served_nowhere_and_after_its_release_everywhere() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let (before, published) = (tables(&app).await?, app.sql_value::<String>(PUBLISHED).await?);
    let feed = wrong_feed(&app).await?;
    let folder = app.folder().join("held");
    std::fs::create_dir(&folder)?;
    feed.iter().try_for_each(|(file, text)| std::fs::write(folder.join(file), text))?;
    let folder = folder.display().to_string();
    let load = ["load", &folder, "--source", "test", "--observed-at", "2024-04-01T00:00:00Z"];
    let staged = app.ingest(&[&load[..], &["--stage", "--json"]].concat()).await?.json()?;
    let run = run_of(&staged)?;
    assert_eq!(staged["held"], json!(true), "{staged}");
    equal_tables(&tables(&app).await?, &before, "a held run is in no table")?;
    assert_eq!(app.sql_value::<String>(PUBLISHED).await?, published);
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    assert_eq!(api.get("/v1/stocks/NEW", Some(&key)).await?.status, 404);

    // The list of runs has the state. A second load of the files does not release them.
    let listed = app.ingest(&["runs", run, "--json"]).await?.success()?.stdout;
    let listed: Value = serde_json::from_str(listed.lines().last().unwrap_or_default())?;
    assert_eq!((&listed["visibility"], &listed["change"]["reason"]), (&json!("held"), &json!("staged")));
    let again = app.ingest(&load).await?.success()?.stdout;
    for line in ["held: nothing of run", "ingest release", "ingest undo"] {
        assert!(again.contains(line), "{line} in {again}");
    }
    let symbol: String = app.sql_value("select min(symbol) from read_g1.stocks where name like '%'").await?;
    let hidden = app.projector(&["explain", &symbol, "price", "--json"]).await?.success()?.json()?;
    assert_eq!(hidden["hidden_runs"][0]["state"], json!("held"), "{hidden}");

    // Generations that are built while the run is held do not have its rows.
    for origin in ["facts", "log"] {
        let built = answer(&app, &["rebuild", "--from", origin]).await?["generation"].to_string();
        let differences = answer(&app, &["diff", "--whole", "1", &built]).await?;
        assert_eq!(differences["identical"], json!(true), "{origin}: {differences}");
        app.projector(&["drop", &built]).await?.success()?;
    }

    app.ingest(&["release", run]).await?.success()?;
    let plain = TestApp::start().await?;
    applied_market(&plain).await?;
    plain.ingest(&load).await?;
    equal_tables(&tables(&app).await?, &tables(&plain).await?, "a released run")?;
    assert_eq!(api.get("/v1/stocks/NEW", Some(&key)).await?.status, 200);

    // An undone run that is staged again is held.
    app.ingest(&["undo", run]).await?.success()?;
    let staged = app.ingest(&[&load[..], &["--stage", "--json"]].concat()).await?.json()?;
    assert_eq!((&staged["held"], &staged["visible_again"]), (&json!(true), &Value::Null), "{staged}");
    equal_tables(&tables(&app).await?, &before, "staged again")
}

#[tokio::test]
async fn a_staged_load_that_is_killed_at_any_step_serves_nothing() -> Result<()> {
    let app = TestApp::start().await?;
    load(&app, "first", &[("prices.csv", "symbol,date,close\nKO,2024-03-14,60\n".to_owned())]).await?;
    let mut runs = Vec::new();
    for (close, step) in (61..).zip(failpoints("ingest.")?) {
        let (name, text) =
            (format!("prices-{close}.csv"), format!("symbol,date,close\nKO,2024-03-14,{close}\n"));
        let path = app.folder().join(&name);
        std::fs::write(&path, &text)?;
        let arguments = ["load", &path.display().to_string(), "--source", "test", "--stage"];
        assert!(killed_at(&app, Program::Ingest, &arguments, &step, 1).await?, "{step} was not reached");
        assert_eq!(price(&app).await?, "60", "killed at {step}");
        let staged = stage(&app, "test", &name, &text).await?;
        assert_eq!((&staged["held"], price(&app).await?.as_str()), (&json!(true), "60"), "after {step}");
        runs.push((run_of(&staged)?.to_owned(), close.to_string()));
    }
    for (run, close) in &runs {
        app.ingest(&["release", run]).await?.success()?;
        assert_eq!(&price(&app).await?, close);
    }
    Ok(())
}

#[tokio::test]
async fn a_later_correction_of_a_held_row_stays_after_the_release() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = |close: u32| format!("symbol,date,close\nKO,2024-03-14,{close}\nPEP,2024-03-14,{close}\n");
    load(&app, "first", &[("prices.csv", prices(60))]).await?;
    let [wrong, other] = [("test", 99), ("other", 98)].map(async |(source, close)| {
        stage(&app, source, &format!("prices-{source}.csv"), &prices(close)).await
    });
    let (wrong, other) = (wrong.await?, other.await?);
    let right = app.folder().join("prices-right.csv");
    std::fs::write(&right, "symbol,date,close\nKO,2024-03-14,61\n")?;
    app.ingest(&["load", &right.display().to_string(), "--source", "test"]).await?.success()?;
    assert_eq!(price(&app).await?, "61");
    // Two operators at the same time: one release of each run is enough.
    let release = ["release", run_of(&wrong)?];
    let released = tokio::try_join!(app.ingest(&release), app.ingest(&release))?;
    assert!(released.0.code == 0 || released.1.code == 0);
    assert_eq!(price(&app).await?, "61");
    let pep = "select trim_scale(price)::text from read_g1.quotes where symbol = 'PEP'";
    assert_eq!(app.sql_value::<String>(pep).await?, "99");

    // A backup has the held run, and a restore has the same tables.
    let folder = app.folder().join("backup").display().to_string();
    app.projector(&["backup", &folder]).await?.success()?;
    let servers = Servers::private().await?;
    let restored = TestApp::builder().servers(&servers).without_migration().start().await?;
    let output = restored.projector(&["restore", &folder, "--json"]).await?.success()?.json()?;
    assert_eq!(output["differing"], json!([]), "{output}");
    assert_eq!(price(&restored).await?, "61");
    restored.ingest(&["release", run_of(&other)?]).await?.success()?;
    app.ingest(&["release", run_of(&other)?]).await?.success()?;
    assert_eq!(price(&restored).await?, price(&app).await?);
    Ok(())
}

#[tokio::test]
async fn held_runs_are_counted_and_make_no_feed_younger() -> Result<()> {
    let app = TestApp::start().await?;
    let row = |day: &str| format!("symbol,date,close\nKO,{day},60\n");
    load(&app, "first", &[("prices.csv", row("2024-03-14"))]).await?;
    let staged = stage(&app, "test", "prices-2.csv", &row("2024-03-15")).await?;
    let address = app.free_address()?;
    let _projector = app.spawn_with(Program::Projector, &["run"], &[("METRICS_LISTEN", &address)]).await?;
    let session = "dds_feed_last_session_timestamp_seconds{kind=\"price\",source=\"test\"}";
    let shows = async |runs: f64, day: &str| {
        let day: chrono::NaiveDate = day.parse()?;
        let midnight = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        eventually(PATIENCE, async || {
            let seen = scrape(&address).await?;
            let (held, newest) = (seen.value("dds_held_runs{source=\"test\"}")?, seen.value(session)?);
            ensure!(held == runs && newest as i64 == midnight, "{held} {newest}");
            Ok(())
        })
        .await
    };
    shows(1.0, "2024-03-14").await?;
    let freshness = async || app.ingest(&["freshness", "--at", "2024-03-15T12:00:00Z", "--json"]).await;
    let found = freshness().await?;
    let (held, feed) = (&found.json()?["held"], &found.json()?["feeds"][0]);
    assert_eq!((found.code, &held[0]["run"]), (1, &staged["run"]), "{}", found.stdout);
    assert_eq!((&held[0]["reason"], &feed["newest"]), (&json!("staged"), &json!("2024-03-14")));
    app.ingest(&["release", run_of(&staged)?]).await?.success()?;
    shows(0.0, "2024-03-15").await?;
    assert_eq!((freshness().await?.code, freshness().await?.json()?["held"].clone()), (0, Value::Null));
    Ok(())
}
