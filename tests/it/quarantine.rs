//! Operators' decisions on quarantined rows: release, confirm and revoke. The decisions are events in the log, so they
//! survive rebuilds and copies of the log.

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::{Value, json};

use crate::generations::answer;

const TODAY: &str = "2024-12-31";

/// Starts an app with the security HELD. Its last dividend and one of its closes are a hundred times too large.
async fn held() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    let paid = |id: &str, day: &str, amount: &str| json!({ "kind": "dividend", "symbol": "HELD", "id": id, "ex_date": day, "amount": amount, "frequency": "quarterly" });
    let close =
        |day: &str, close: &str| json!({ "kind": "price", "symbol": "HELD", "date": day, "close": close });
    let mut records: Vec<Value> =
        ["2023-12-07", "2024-03-07", "2024-06-06", "2024-09-05"].map(|day| paid(day, day, "0.05")).into();
    records.push(paid("pence", "2024-12-05", "5"));
    records.extend([
        close("2024-12-04", "10"),
        close("2024-12-27", "10"),
        close("2024-12-30", "1001"),
        close("2024-12-31", "10.2"),
    ]);
    load(&app, "first", &records).await?;
    Ok(app)
}

async fn load(app: &TestApp, name: &str, records: &[Value]) -> Result<()> {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    app.feed(&format!("{name}.ndjson"), text).source("vendor").today(TODAY).apply().await
}

async fn reasons(app: &TestApp) -> Result<Vec<String>> {
    let listed = answer(app, &["quarantine", "list"]).await?;
    let rows = listed.as_array().context("a list")?.iter();
    Ok(rows.map(|row| row["reason"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Returns the dividends of the last twelve months, and the outcome that `projector explain` reports for the wrong
/// close.
async fn served(app: &TestApp) -> Result<(String, String)> {
    let query =
        "select coalesce(trim_scale(dps_ttm)::text, 'null') from read_g1.metrics where symbol = 'HELD'";
    let told = answer(app, &["explain", "HELD", "price", "--date", "2024-12-30"]).await?;
    let outcome = told["metrics"][0]["observations"][0]["outcome"].as_str().unwrap_or_default().to_owned();
    Ok((app.sql_value(query).await?, outcome))
}

#[tokio::test]
async fn a_released_row_counts_until_it_is_revoked_or_corrected() -> Result<()> {
    let app = held().await?;
    assert_eq!(reasons(&app).await?, ["amount_outlier", "price_unit_error"]);
    assert_eq!(served(&app).await?, ("0.15".to_owned(), "price_unit_error".to_owned()));
    let listed =
        app.projector(&["quarantine", "list", "--reason", "amount_outlier", "--csv"]).await?.success()?;
    assert!(
        listed.stdout.starts_with("symbol,kind,date,id,reason") && listed.stdout.contains("pence"),
        "{}",
        listed.stdout
    );

    let both = app.projector(&["quarantine", "release", "held", "--note", "seen"]).await?;
    assert!(both.code == 1 && both.stderr.contains("2 rows match"), "{}", both.stderr);
    let none =
        app.projector(&["quarantine", "release", "HELD", "--date", "2020-01-01", "--note", "seen"]).await?;
    assert!(none.code == 1 && none.stderr.contains("quarantine list --symbol HELD"), "{}", none.stderr);

    let note = "a special, says the company";
    let released =
        answer(&app, &["quarantine", "release", "held", "--kind", "dividend", "--note", note]).await?;
    assert_eq!((&released[0]["verdict"], &released[0]["value"]), (&json!("release"), &json!("5")));
    app.catch_up().await?;
    assert_eq!(served(&app).await?, ("5.15".to_owned(), "price_unit_error".to_owned()));
    assert_eq!(reasons(&app).await?, ["price_unit_error"]);
    let told = answer(&app, &["explain", "HELD", "dps_ttm"]).await?;
    assert_eq!(
        (&told["decisions"][0]["note"], &told["decisions"][0]["revoked"]),
        (&json!(note), &json!(false))
    );
    let text = app.projector(&["explain", "HELD", "dps_ttm"]).await?.success()?.stdout;
    assert!(text.contains(note) && text.contains("quarantined:") && !text.contains('{'), "{text}");

    answer(&app, &["quarantine", "release", "HELD", "--note", "it did trade there"]).await?;
    app.catch_up().await?;
    assert_eq!((served(&app).await?.1.as_str(), reasons(&app).await?), ("used", Vec::new()));

    // A rebuild from the log gives the same rows.
    answer(&app, &["rebuild", "--from", "log"]).await?;
    assert_eq!(answer(&app, &["diff", "--whole", "1", "2"]).await?["identical"], true);

    answer(&app, &["quarantine", "revoke", "HELD", "--kind", "price", "--note", "seen again"]).await?;
    app.catch_up().await?;
    assert_eq!(reasons(&app).await?, ["price_unit_error"]);
    assert_eq!(served(&app).await?.1, "price_unit_error");
    assert_eq!(answer(&app, &["explain", "HELD", "dps_ttm"]).await?["decisions"][0]["revoked"], true);

    // The vendor sends a new version of the dividend. The earlier decision does not apply to this version.
    let wrong = json!({ "kind": "dividend", "symbol": "HELD", "id": "pence", "ex_date": "2024-12-05", "amount": "5.2", "revision": 1, "frequency": "quarterly" });
    load(&app, "wrong", &[wrong]).await?;
    assert_eq!(reasons(&app).await?, ["amount_outlier", "price_unit_error"]);
    Ok(())
}

#[tokio::test]
async fn a_confirmed_row_stays_held_when_its_neighbours_change() -> Result<()> {
    let app = held().await?;
    let confirm = ["quarantine", "confirm", "HELD", "--all", "--note", "pence, not pounds"];
    assert_eq!(answer(&app, &confirm).await?.as_array().map(Vec::len), Some(2));
    app.catch_up().await?;
    assert_eq!(reasons(&app).await?, ["confirmed", "confirmed"]);
    let listed = answer(&app, &["quarantine", "list", "--symbol", "HELD"]).await?;
    assert_eq!(listed[0]["message"], "a person confirmed amount_outlier: pence, not pounds");
    let audit = app.projector(&["audit"]).await?;
    assert!(!audit.stdout.contains("quarantined rows: "), "{}", audit.stdout);
    // Without the decisions, these rows would end the quarantine: a second dividend of the same size supports the first
    // one, and another close at the same level supports the bar.
    load(&app, "borne-out", &[
        json!({ "kind": "dividend", "symbol": "HELD", "id": "next", "ex_date": "2024-12-30", "amount": "5", "frequency": "quarterly" }),
        json!({ "kind": "price", "symbol": "HELD", "date": "2024-12-31", "close": "1002", "revision": 1 }),
    ])
    .await?;
    assert_eq!(reasons(&app).await?.iter().filter(|reason| *reason == "confirmed").count(), 2);
    answer(&app, &["quarantine", "revoke", "HELD", "--all", "--note", "pounds after all"]).await?;
    app.catch_up().await?;
    assert_eq!(reasons(&app).await?.iter().filter(|reason| *reason == "confirmed").count(), 0);
    Ok(())
}

#[tokio::test]
async fn what_is_impossible_cannot_be_released_and_decisions_survive_a_copy_of_the_log() -> Result<()> {
    let app = held().await?;
    let publish =
        app.projector(&["quarantine", "confirm", "HELD", "--kind", "price", "--note", "cents"]).await?;
    publish.success()?;
    let copy = app.folder().join("log");
    app.ingest(&["export", &copy.display().to_string()]).await?.success()?;
    let other = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    other.ingest(&["import", &copy.display().to_string()]).await?.success()?;
    other.catch_up().await?;
    assert_eq!(reasons(&other).await?, ["amount_outlier", "confirmed"]);
    let again = other
        .projector(&["quarantine", "release", "HELD", "--kind", "price", "--note", "no"])
        .await?
        .success()?;
    assert!(again.stdout.contains("released: HELD price 2024-12-30 1001 of vendor"), "{}", again.stdout);
    other.catch_up().await?;
    assert_eq!(reasons(&other).await?, ["amount_outlier"]);
    Ok(())
}
