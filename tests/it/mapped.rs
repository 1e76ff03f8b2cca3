//! `ingest load --map`: tables of other layouts from a folder to the log, once, also after a kill.

use anyhow::{Context, Result, ensure};
use harness::{Program, TestApp, fixture};
use serde_json::{Value, json};

use crate::kills::killed_at;

/// Loads the fixture's folder under a map; the exit code and the summary.
async fn load(app: &TestApp, map: &str, more: &[&str]) -> Result<(i32, Value)> {
    let folder = fixture("feeds/mapped/daily");
    let arguments = ["load", &folder, "--map", map, "--source", "broker", "--today", "2024-03-15", "--json"];
    let output = app.ingest(&[&arguments[..], more].concat()).await?;
    Ok((output.code, output.json().with_context(|| output.stderr.clone())?))
}

#[tokio::test]
async fn a_folder_of_headerless_files_reaches_the_log_exactly() -> Result<()> {
    let app = TestApp::start().await?;
    let map = fixture("feeds/mapped/broker.toml");
    let (code, tried) = load(&app, &map, &["--dry-run"]).await?;
    ensure!((code, &tried["symbols"]["first"]) == (0, &json!(["KO", "META"])), "{tried}");
    let (code, loaded) = load(&app, &map, &[]).await?;
    ensure!((code, &loaded["rows"]) == (0, &json!({ "price": 3 })), "{loaded}");
    ensure!(loaded["files"][0]["format"] == "map", "{loaded}");
    app.catch_up().await?;
    let closes = app.ingest(&["show", "2"]).await?.success()?.json()?;
    ensure!(closes["rows"][0]["close"] == "60.01005", "{closes}");
    let (_, again) = load(&app, &map, &[]).await?;
    ensure!(again["already_loaded"] == true, "{again}");
    // Other comments are the same map; another scale gives other rows, which are another input.
    let text = std::fs::read_to_string(&map)?;
    let (commented, scaled) = (app.folder().join("commented.toml"), app.folder().join("scaled.toml"));
    std::fs::write(&commented, format!("# mine\n{text}"))?;
    std::fs::write(&scaled, text.replace("0.0001", "0.001"))?;
    let (_, same) = load(&app, &commented.display().to_string(), &[]).await?;
    ensure!(same["already_loaded"] == true, "{same}");
    let (_, other) = load(&app, &scaled.display().to_string(), &[]).await?;
    ensure!(other["already_loaded"] == false && other["rows_total"] == 3, "{other}");
    Ok(())
}

#[tokio::test]
async fn a_killed_load_is_resumed_under_its_map() -> Result<()> {
    let app = TestApp::start().await?;
    let (folder, map) = (fixture("feeds/mapped/daily"), fixture("feeds/mapped/broker.toml"));
    let arguments = ["load", &folder, "--map", &map, "--source", "broker", "--today", "2024-03-15"];
    for step in ["ingest.begun", "ingest.sent", "ingest.acknowledged", "ingest.drained"] {
        ensure!(killed_at(&app, Program::Ingest, &arguments, step, 1).await?, "{step}");
    }
    let resumed = app.ingest(&["resume", "--json"]).await?.success()?.json()?;
    ensure!(resumed["rows_total"] == 3, "{resumed}");
    let (_, again) = load(&app, &map, &[]).await?;
    ensure!(again["already_loaded"] == true, "{again}");
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_a_map_is_told_with_its_line() -> Result<()> {
    let app = TestApp::start().await?;
    let map = app.folder().join("wrong.toml");
    std::fs::write(&map, "kind = \"price\"\n[columns]\ndate = 1\ncolse = 2\n")?;
    let map = map.display().to_string();
    let output = app.ingest(&["load", "x.csv", "--map", &map, "--source", "broker"]).await?;
    ensure!(output.code == 2, "{}", output.stderr);
    ensure!(output.stderr.contains("line 4: columns.colse is no column of a price"), "{}", output.stderr);
    let proposed = app.ingest(&["map", &fixture("feeds/mapped/daily/table_ko.csv")]).await?.success()?;
    for part in ["header = 0", "format = \"DD.MM.YYYY\"", "decimal = \",\"", "thousands = \".\""] {
        ensure!(proposed.stdout.contains(part), "{part} in {}", proposed.stdout);
    }
    Ok(())
}
