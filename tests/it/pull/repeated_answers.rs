//! Repeated answers of a vendor: an earlier file content, the same page for all page numbers, and scheduled pulls.

use std::time::Duration;

use anyhow::{Result, ensure};
use axum::response::{IntoResponse, Response};
use harness::{Program, Signal, TestApp, eventually};
use serde_json::json;

use super::vendor::Vendor;
use super::{BY_DAY, manifest, pull, runs};

const PATIENCE: Duration = Duration::from_secs(120);
const FILE: &str = "name = \"prices\"\npath = \"/prices.csv\"\nending = \"csv\"\n";

fn closing(close: &str) -> Response {
    format!("symbol,date,close\nKO,2024-03-14,{close}\n").into_response()
}

/// A vendor's file changes and then changes back. Fails if the last change is not loaded because the same content was
/// loaded before.
#[tokio::test]
async fn a_file_that_becomes_what_it_was_is_a_correction_too() -> Result<()> {
    // With `{since}` in its query, the URL of the file can change between rounds.
    for query in ["", "query = { from = \"{since}\" }\n"] {
        let app = TestApp::start().await?;
        // The vendor sends no `ETag` and no `Last-Modified`, so only the content shows a change.
        let vendor =
            Vendor::start(|_, before| closing(["60", "61", "61", "60", "60"][before.min(4)])).await?;
        let path = manifest(&app, &vendor, "", &format!("{FILE}{query}"))?;
        for (expected, fetched) in [("60", 1), ("61", 1), ("61", 0), ("60", 1), ("60", 0)] {
            let (code, pulled) = pull(&app, &[&path]).await?;
            assert_eq!((code, &pulled["fetched"]), (0, &json!(fetched)), "{query}{pulled}");
            app.catch_up().await?;
            let price: String =
                app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
            assert!(price.starts_with(expected), "{query}{price} instead of {expected}");
        }
        let verified = app.ingest(&["verify", "--check-only"]).await?;
        assert_eq!(verified.code, 0, "{}", verified.stdout);
    }
    Ok(())
}

/// A vendor's files change, are missing for one round, and then have their first content again. They must be loaded
/// again, because the last loaded content differs.
#[tokio::test]
async fn a_day_that_was_gone_for_a_while_is_compared_with_what_was_loaded_last() -> Result<()> {
    let app = TestApp::start().await?;
    // Each round requests the files of five days.
    let vendor = Vendor::start(|asked, before| {
        let date = asked.path.trim_start_matches('/').trim_end_matches(".csv");
        let close = ["60", "61", "", "60", "60"][(before / 5).min(4)];
        if close.is_empty() {
            return axum::http::StatusCode::NOT_FOUND.into_response();
        }
        format!("symbol,date,close\nKO,{date},{close}\n").into_response()
    })
    .await?;
    let path = manifest(&app, &vendor, "", BY_DAY)?;
    for rows in [json!({ "price": 5 }), json!({ "price": 5 }), json!({}), json!({ "price": 5 }), json!({})] {
        let pulled = pull(&app, &[&path, "--since", "2024-03-11"]).await?.1;
        assert_eq!(pulled["rows"], rows, "{pulled}");
    }
    Ok(())
}

#[tokio::test]
async fn numbered_pages_end_with_one_that_holds_no_record() -> Result<()> {
    let row = r#"{"ticker":"KO","ex_dividend_date":"2024-03-14","cash_amount":0.485}"#;
    let list = "name = \"dividends\"\npath = \"/list\"\npaging = { number = \"page\" }\n";
    for (ending, first, last, kind) in [
        (
            "csv",
            "symbol,ex_date,amount\nKO,2024-03-14,0.485\n".to_owned(),
            "symbol,ex_date,amount\n",
            "canonical",
        ),
        ("json", format!(r#"{{"results":[{row}],"page":1}}"#), r#"{"results":[],"page":2}"#, "massive"),
    ] {
        let app = TestApp::start().await?;
        let vendor =
            Vendor::start(
                move |_, before| {
                    if before == 0 { first.clone().into_response() } else { last.into_response() }
                },
            )
            .await?;
        let options = format!("options = [\"--format\", \"{kind}\"]\n");
        let path = manifest(&app, &vendor, &options, &format!("{list}ending = \"{ending}\"\n"))?;
        let (code, pulled) = pull(&app, &[&path]).await?;
        let figures = (code, &pulled["rows"], vendor.asked().len());
        assert_eq!(figures, (0, &json!({ "dividend": 1 }), 2), "{ending}: {pulled}");
    }
    // A vendor that ignores page numbers returns the first page each time.
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, _| closing("60")).await?;
    let path = manifest(&app, &vendor, "", &format!("{FILE}paging = {{ number = \"page\" }}\n"))?;
    let (code, pulled) = pull(&app, &[&path]).await?;
    let told = pulled["failed"][0]["reason"].as_str().unwrap_or_default();
    assert!(code == 2 && told.contains("page 2 equals page 1") && vendor.asked().len() == 2, "{pulled}");
    Ok(())
}

#[tokio::test]
async fn a_schedule_is_kept_until_it_is_told_to_stop() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, before| closing(&format!("{}", 60 + before))).await?;
    let path = manifest(&app, &vendor, "schedule = \"* * * * * *\"\n", FILE)?;
    let arguments = ["pull", &path, "--json", "--today", "2024-03-15"];
    let mut pulling = app.spawn(Program::Ingest, &arguments).await?;
    eventually(PATIENCE, async || {
        ensure!(vendor.asked().len() >= 2, "asked {} times", vendor.asked().len());
        let loads = runs(&app, &[]).await?;
        let completed = loads.iter().filter(|run| run["state"] == "completed").count();
        ensure!(completed >= 2, "{completed} loads");
        Ok(())
    })
    .await?;
    pulling.stop(Signal::TERM, PATIENCE).await?;
    assert!(pulling.log().contains("next sync run scheduled"), "{}", pulling.log());
    Ok(())
}
