//! Two closes of one symbol and day in one file (R29): the load names them and the column that distinguishes them, the first
//! one is used, and the security has a flag.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::TestApp;
use serde_json::json;

const PRICES: &str =
    "symbol,date,close\nDUX,2019-01-01,203\nDUX,2019-01-01,1002\nDUX,2019-01-02,204\nDUX,2019-01-02,204.5\n";
const CORRECTED: &str = "symbol,date,close\nDUX,2019-01-01,203.5\n";
const SESSIONS: &str = "date\n2019-01-02\n";

#[tokio::test]
async fn the_first_of_two_closes_is_used_and_flagged() -> Result<()> {
    let app = TestApp::start().await?;
    let file = app.folder().join("prices.csv");
    std::fs::write(&file, PRICES)?;
    let file = file.to_str().context("a path")?;
    let tried = app.ingest(&["load", file, "--source", "x", "--dry-run"]).await?.success()?;
    let expected = "other closes of a day than its first row: 1 row, not used (flag conflicting_duplicate)\n  \
        DUX 2019-01-01: 203 in line 2, 1002 in line 3\n";
    assert!(tried.stdout.contains(expected), "{}", tried.stdout);
    let loaded = app.ingest(&["load", file, "--source", "x"]).await?.success()?;
    assert!(loaded.stdout.contains(expected), "{}", loaded.stdout);
    app.feed("sessions.csv", SESSIONS).source("x").apply().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let closes = || async {
        let path = "/v1/prices/DUX?start_date=2019-01-01&sort=date.asc&decimals=string";
        let rows = api.get(path, Some(&key)).await?.json()?["data"].clone();
        let rows = rows.as_array().context("rows")?;
        let close = |row: &serde_json::Value| row["close"].to_string().replace('"', "");
        Ok::<Vec<String>, anyhow::Error>(rows.iter().map(close).collect())
    };
    let has_flag = || async {
        let metrics = api.get("/v1/stocks/DUX/metrics", Some(&key)).await?.json()?["data"].clone();
        let flags = metrics["flags"].as_array().context("flags")?.clone();
        Ok::<bool, anyhow::Error>(flags.contains(&json!("conflicting_duplicate")))
    };
    // A difference of at most 0.5 % is no conflict; the later row of the file is used.
    assert_eq!(closes().await?, ["203", "204.5"]);
    assert!(has_flag().await?);
    let explained = app.projector(&["explain", "DUX"]).await?.success()?.stdout;
    assert!(explained.contains("R29: its file has another close of the day before it"), "{explained}");
    // A later row of the source for the day resolves the conflict.
    app.feed("prices-corrected.csv", CORRECTED).source("x").apply().await?;
    harness::eventually(Duration::from_secs(60), async || {
        let closes = closes().await?;
        ensure!(closes == ["203.5", "204.5"], "{closes:?}");
        ensure!(!has_flag().await?, "the flag is still there");
        Ok(())
    })
    .await
}
