//! `ingest pull` from a local vendor server. No data is lost or doubled, the vendor's request limits are respected, and
//! no credential is printed.

use std::path::Path;

use anyhow::{Context, Result};
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use harness::{Output, Program, TestApp};
use serde_json::{Value, json};

use crate::log_copies::messages;

mod hostile_answers;
mod repeated_answers;
pub(crate) mod store;
pub(crate) mod vendor;

use store::Store;
use vendor::{Asked, Vendor};

const SECRET: &str = "s3cret-of-the-test";
const TODAY: &str = "2024-03-15";

/// Writes a pull manifest (the configuration of `ingest pull`) with one request to the vendor. Returns the path of the
/// manifest.
fn manifest(app: &TestApp, vendor: &Vendor, more: &str, request: &str) -> Result<String> {
    let path = app.folder().join("vendor.toml");
    let text = format!(
        "name = \"vendor\"\nbase_url = \"{}\"\nsince = \"2024-03-11\"\n{more}\n[[request]]\n{request}\n",
        vendor.address
    );
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

const BY_HEADER: &str =
    "[credential]\nkind = \"header\"\nvariable = \"VENDOR_KEY\"\nheader = \"X-Api-Key\"\n";
const BY_SYMBOL: &str =
    "name = \"prices\"\npath = \"/{symbol}/prices\"\nquery = { startDate = \"{since}\" }\nending = \"csv\"\n";
const BY_DAY: &str = "name = \"prices\"\npath = \"/{date}.csv\"\nending = \"csv\"\nlook_back = 2\n";
const TIINGO: &str = "options = [\"--format\", \"tiingo\"]\n";

async fn pull_with(app: &TestApp, arguments: &[&str], env: &[(&str, &str)]) -> Result<Output> {
    let arguments = [&["pull", "--once", "--json", "--today", TODAY], arguments].concat();
    app.run(Program::Ingest, &arguments, &[&[("VENDOR_KEY", SECRET)], env].concat()).await
}

/// Pulls once and returns the exit code and the report. Fails if the output contains the credential.
async fn pull(app: &TestApp, arguments: &[&str]) -> Result<(i32, Value)> {
    let output = pull_with(app, arguments, &[]).await?;
    let report = output.json().with_context(|| output.stderr.clone())?;
    assert!(!format!("{}{}", output.stdout, output.stderr).contains(SECRET), "the credential is told");
    Ok((output.code, report))
}

async fn runs(app: &TestApp, more: &[&str]) -> Result<Vec<Value>> {
    let output = app.ingest(&[&["runs", "--json"], more].concat()).await?.success()?;
    output.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns a price file of one day in the format of the vendor Tiingo.
fn day(close: &str) -> Response {
    let header =
        "date,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor";
    format!("{header}\n2024-03-14,{close},{close},{close},{close},100,1,1,1,1,1,0.0,1.0\n").into_response()
}

/// Returns a price file of the requested day with an entity tag. Returns the status 304 if the client already has the
/// file with this tag.
fn dated(asked: &Asked, close: &str) -> Response {
    let etag = format!("\"{close}\"");
    if asked.header("if-none-match") == etag {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let date = asked.path.trim_start_matches('/').trim_end_matches(".csv");
    ([(header::ETAG, etag)], format!("symbol,date,close\nKO,{date},{close}\n")).into_response()
}

#[tokio::test]
async fn symbols_are_fetched_from_where_the_log_says() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, _| day("60")).await?;
    let manifest = manifest(&app, &vendor, &format!("{TIINGO}{BY_HEADER}"), BY_SYMBOL)?;
    let tried = pull(&app, &[&manifest, "--symbols", "KO,BRK.B", "--dry-run"]).await?.1;
    assert_eq!((tried["planned"].as_array().map(Vec::len), vendor.asked().len()), (Some(2), 0), "{tried}");
    let (code, pulled) = pull(&app, &[&manifest, "--symbols", "KO,BRK.B"]).await?;
    assert_eq!((code, &pulled["rows"]), (0, &json!({ "price": 2 })), "{pulled}");
    let first = vendor.asked();
    assert_eq!((first[0].path.as_str(), first[0].query.as_str()), ("/KO/prices", "startDate=2024-03-11"));
    assert_eq!(first[0].header("x-api-key"), SECRET);
    // A pull on another machine has another folder, but it reads the bookmarks from the same log.
    let (code, again) = pull(&app, &[&manifest, "--symbols", "KO,BRK.B", "--folder", "elsewhere"]).await?;
    assert_eq!((code, &again["rows"]), (0, &json!({})), "{again}");
    // With the gate and without a projector, the rows of a new symbol are held.
    let (code, gated) = pull(&app, &[&manifest, "--symbols", "PEP", "--gate"]).await?;
    assert_eq!((code, &gated["held"]), (1, &gated["runs"]), "{gated}");
    assert_eq!(vendor.asked()[2].query, "startDate=2024-03-10", "five days before the bookmark");
    // A pull also records its progress in the log. These records are listed only with `--all`, because they are not
    // loads.
    assert_eq!(runs(&app, &[]).await?.len(), 4);
    let noted = runs(&app, &["--all"]).await?;
    assert!(noted.iter().any(|run| run["pull"]["bookmarks"]["prices/KO"]["through"] == TODAY), "{noted:?}");
    Ok(())
}

#[tokio::test]
async fn killed_at_every_step_a_pull_loses_and_doubles_nothing() -> Result<()> {
    let (killed, whole) = (TestApp::start().await?, TestApp::start().await?);
    let vendor = Vendor::start(|asked, _| dated(asked, "60")).await?;
    let budget = "budget = [{ calls = 100, per = \"day\" }]\n";
    let rows = async |app: &TestApp| -> Result<u64> {
        let all = messages(app).await?;
        let prices = all.iter().filter(|(kind, ..)| kind == "price");
        prices
            .map(|(_, headers, _)| Ok(headers.get("Dds-Rows").context("rows")?.as_str().parse::<u64>()?))
            .sum()
    };
    let path = manifest(&whole, &vendor, budget, BY_DAY)?;
    assert_eq!(pull(&whole, &[&path]).await?.0, 0);
    let path = manifest(&killed, &vendor, budget, BY_DAY)?;
    for step in [
        "pull.charged",
        "pull.fetched",
        "ingest.begun",
        "ingest.sent",
        "ingest.acknowledged",
        "ingest.drained",
        "ingest.completed",
        "pull.loaded",
        "pull.noted",
    ] {
        let died = pull_with(&killed, &[&path], &[("FAILPOINT", &format!("{step}:1:KILL"))]).await?;
        assert_eq!(died.code, 137, "{step}: {}", died.stderr);
    }
    let asked = vendor.asked().len();
    assert_eq!(pull(&killed, &[&path]).await?.0, 0);
    assert!(
        vendor.asked()[asked..].iter().filter(|asked| asked.header("if-none-match").is_empty()).count() <= 4
    );
    assert_eq!((rows(&killed).await?, rows(&whole).await?), (5, 5), "a row of each day, once");
    let mut served = Vec::new();
    for app in [&killed, &whole] {
        app.catch_up().await?;
        let prices = "select encode(days, 'hex') || ' ' || encode(close, 'hex') from read_g1.prices";
        served.push(app.sql_value::<String>(prices).await?);
    }
    assert_eq!(served[0], served[1]);
    let verified = killed.ingest(&["verify", "--check-only"]).await?;
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    Ok(())
}

#[tokio::test]
async fn a_budget_holds_over_restarts_and_kills() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, _| day("60")).await?;
    let path =
        manifest(&app, &vendor, &format!("{TIINGO}budget = [{{ calls = 3, per = \"day\" }}]\n"), BY_SYMBOL)?;
    let symbols = ["--symbols", "A,B,C,D,E"];
    let died =
        pull_with(&app, &[&[path.as_str()][..], &symbols].concat(), &[("FAILPOINT", "pull.charged:1:KILL")])
            .await?;
    assert_eq!((died.code, vendor.asked().len()), (137, 0));
    let (code, pulled) = pull(&app, &[&[path.as_str()][..], &symbols].concat()).await?;
    assert_eq!((code, &pulled["fetched"], &pulled["left"]), (1, &json!(2), &json!(3)), "{pulled}");
    assert!(pulled["stopped"].as_str().is_some_and(|said| said.contains("3 a day")), "{pulled}");
    let (code, pulled) =
        pull(&app, &[&[path.as_str()][..], &symbols, &["--folder", "elsewhere"]].concat()).await?;
    assert_eq!((code, &pulled["left"]), (2, &json!(5)), "{pulled}");
    assert_eq!(vendor.asked().len(), 2, "one call was charged and not made, and none is beyond the budget");
    Ok(())
}

#[tokio::test]
async fn a_vendor_that_is_asked_too_much_is_asked_later() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|asked, before| match before {
        0 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], "slow down").into_response(),
        1 => format!(
            r#"{{"Information":"our standard rate limit for your API key {} is 25 requests per day"}}"#,
            asked.header("x-api-key")
        )
        .into_response(),
        _ => day("60"),
    })
    .await?;
    let path = manifest(&app, &vendor, &format!("{TIINGO}{BY_HEADER}"), BY_SYMBOL)?;
    let begun = std::time::Instant::now();
    let (code, pulled) = pull(&app, &[&path, "--symbols", "KO"]).await?;
    assert_eq!((code, &pulled["rows"], &pulled["calls"]), (0, &json!({ "price": 1 }), &json!(3)), "{pulled}");
    assert!(begun.elapsed().as_secs() >= 3, "a second for the header, two for the notice");
    // If a vendor asks to wait until tomorrow, no further request is sent. The vendor's message contains the key, but
    // the report masks the key.
    let vendor = Vendor::start(|asked, _| {
        let body = format!("key {} has used up its day", asked.header("x-api-key"));
        (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "86400")], body).into_response()
    })
    .await?;
    let path = manifest(&app, &vendor, &format!("{TIINGO}{BY_HEADER}"), BY_SYMBOL)?;
    let (code, pulled) = pull(&app, &[&path, "--symbols", "KO,PEP"]).await?;
    assert_eq!((code, &pulled["left"], vendor.asked().len()), (2, &json!(2), 1), "{pulled}");
    assert!(pulled["stopped"].as_str().is_some_and(|said| said.contains("key *** has")), "{pulled}");
    for (_, _, payload) in messages(&app).await? {
        assert!(!String::from_utf8_lossy(&payload).contains(SECRET));
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_the_vendor_replaced_is_a_correction() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|asked, before| {
        // The vendor does not have the file of the last day yet. After the second round, it replaces the file of the
        // day before.
        match (asked.path.as_str(), before) {
            ("/2024-03-15.csv", _) => StatusCode::NOT_FOUND.into_response(),
            ("/2024-03-14.csv", 7..) => dated(asked, "61"),
            _ => dated(asked, "60"),
        }
    })
    .await?;
    let path = manifest(&app, &vendor, "", BY_DAY)?;
    let figures = |pulled: &Value| {
        ["fetched", "unchanged", "missing"].map(|figure| pulled[figure].as_u64().unwrap_or_default())
    };
    let (code, first) = pull(&app, &[&path]).await?;
    assert_eq!((code, figures(&first)), (0, [4, 0, 1]), "{first}");
    let (code, second) = pull(&app, &[&path]).await?;
    assert_eq!((code, figures(&second)), (0, [0, 1, 1]), "{second}");
    let (code, third) = pull(&app, &[&path]).await?;
    assert_eq!((code, figures(&third)), (0, [1, 0, 1]), "{third}");
    app.catch_up().await?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(price.starts_with("61"), "{price}");
    Ok(())
}

fn cut_off() -> Response {
    let broken =
        futures::stream::iter([Ok("symbol,date,close\nKO,2024-03-1"), Err(std::io::Error::other("gone"))]);
    Body::from_stream(broken).into_response()
}

#[tokio::test]
async fn answers_that_are_cut_off_late_or_too_large_are_not_data() -> Result<()> {
    let app = TestApp::start().await?;
    let request = "name = \"prices\"\npath = \"/prices.csv\"\nending = \"csv\"\n";
    let whole = "symbol,date,close\nKO,2024-03-14,60\n";
    let vendor =
        Vendor::start(move |_, before| if before == 0 { cut_off() } else { whole.into_response() }).await?;
    let path = manifest(&app, &vendor, "", request)?;
    pull(&app, &[&path, "--max-bytes", "10"]).await?;
    let (code, pulled) = pull(&app, &[&path, "--max-bytes", "10"]).await?;
    assert!(
        code == 2 && pulled["failed"][0]["reason"].as_str().is_some_and(|said| said.contains("--max-bytes")),
        "{pulled}"
    );
    let silent = Vendor::start(|_, _| {
        Body::from_stream(futures::stream::pending::<Result<&str, std::io::Error>>()).into_response()
    })
    .await?;
    let path = manifest(&app, &silent, "", request)?;
    let (code, pulled) = pull(&app, &[&path, "--timeout", "1s", "--patience", "0s"]).await?;
    assert!(
        code == 2 && pulled["failed"][0]["reason"].as_str().is_some_and(|said| said.contains("timed out")),
        "{pulled}"
    );
    assert_eq!(runs(&app, &[]).await?.len(), 0, "nothing was loaded");
    // If every answer for one symbol is cut off, the answers for other symbols are still loaded.
    let vendor =
        Vendor::start(|asked, _| if asked.path == "/KO/prices" { cut_off() } else { day("60") }).await?;
    let path = manifest(&app, &vendor, "", BY_SYMBOL)?;
    let (code, pulled) = pull(&app, &[&path, "--symbols", "KO,PEP", "--patience", "0s"]).await?;
    assert_eq!((code, &pulled["rows"]), (1, &json!({ "price": 1 })), "{pulled}");
    assert!(pulled["failed"][0]["what"] == "prices/KO" && pulled["refused"] == json!([]), "{pulled}");
    // A cut-off answer is requested again.
    let vendor =
        Vendor::start(move |_, before| if before == 0 { cut_off() } else { whole.into_response() }).await?;
    let path = manifest(&app, &vendor, "", request)?;
    let (code, pulled) = pull(&app, &[&path]).await?;
    assert_eq!((code, &pulled["rows"], vendor.asked().len()), (0, &json!({ "price": 1 }), 2), "{pulled}");
    Ok(())
}

#[tokio::test]
async fn a_credential_goes_to_the_vendor_alone() -> Result<()> {
    let app = TestApp::start().await?;
    let store = Vendor::start(|_, _| day("60")).await?;
    let elsewhere = store.address.clone();
    let vendor = Vendor::start(move |asked, _| {
        assert_eq!(asked.header("x-api-key"), SECRET);
        Redirect::temporary(&format!("{elsewhere}/file.csv")).into_response()
    })
    .await?;
    let path = manifest(&app, &vendor, &format!("{TIINGO}{BY_HEADER}"), BY_SYMBOL)?;
    let (code, pulled) = pull(&app, &[&path, "--symbols", "KO"]).await?;
    assert_eq!((code, &pulled["rows"]), (0, &json!({ "price": 1 })), "{pulled}");
    let asked = store.asked();
    assert!(asked.len() == 1 && asked[0].header("x-api-key").is_empty(), "{asked:?}");
    // After a refused credential, no further request is sent.
    let closed = Vendor::start(|_, _| (StatusCode::UNAUTHORIZED, "no such key").into_response()).await?;
    let path = manifest(&app, &closed, &format!("{TIINGO}{BY_HEADER}"), BY_SYMBOL)?;
    let (code, pulled) = pull(&app, &[&path, "--symbols", "KO,PEP"]).await?;
    assert_eq!((code, closed.asked().len()), (2, 1), "{pulled}");
    let without = app.ingest(&["pull", &path, "--symbols", "KO", "--once"]).await?;
    assert!(without.code == 2 && without.stderr.contains("VENDOR_KEY is not set"), "{}", without.stderr);
    Ok(())
}

#[tokio::test]
async fn pages_are_followed_and_refused_answers_are_kept_for_people() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|asked, _| {
        let row =
            |date: &str| format!(r#"{{"ticker":"KO","ex_dividend_date":"{date}","cash_amount":0.485}}"#);
        let page = |row: String, next: &str| {
            format!(r#"{{"results":[{row}],"status":"OK","request_id":"x"{next}}}"#)
        };
        let body = match asked.query.as_str() {
            "cursor=2" => page(row("2024-06-14"), ""),
            _ => page(row("2024-03-14"), r#","next_url":"/dividends?cursor=2""#),
        };
        if asked.path == "/page" {
            "<!doctype html><title>Oops</title>".into_response()
        } else {
            body.into_response()
        }
    })
    .await?;
    let request = "name = \"dividends\"\npath = \"/dividends\"\npaging = { next_url = \"/next_url\" }\n";
    let page = "[[request]]\nname = \"page\"\npath = \"/page\"\n";
    let path = manifest(&app, &vendor, "options = [\"--format\", \"massive\"]", &format!("{request}{page}"))?;
    let (code, pulled) = pull(&app, &[&path]).await?;
    assert_eq!((code, &pulled["rows"]), (1, &json!({ "dividend": 2 })), "{pulled}");
    let kept = pulled["refused"][0]["what"].as_str().context("a refused answer")?;
    let reason = std::fs::read_to_string(app.folder().join(format!("{kept}.reason.txt")))?;
    assert!(
        reason.contains("web page") && Path::new(kept).ends_with("vendor/refused/page-page.json"),
        "{kept}: {reason}"
    );
    let noted = runs(&app, &["--all"]).await?;
    let bookmarks = |key: &str| noted.iter().any(|run| run["pull"]["bookmarks"].get(key).is_some());
    assert!(bookmarks("dividends") && !bookmarks("page"), "{noted:?}");
    Ok(())
}

#[tokio::test]
async fn an_object_that_was_replaced_in_a_store_is_a_correction() -> Result<()> {
    let Some(store) = Store::start("flat").await? else { return Ok(()) };
    let app = TestApp::start().await?;
    let path = app.folder().join("store.toml");
    let credential = "[credential]\nkind = \"aws\"\nkey_id = \"STORE_KEY\"\nsecret = \"VENDOR_KEY\"\nregion = \"us-east-1\"\n";
    let request = "[[request]]\nname = \"prices\"\npath = \"/flat/{year}/{date}.csv\"\nending = \"csv\"\nlook_back = 2\n";
    let address = &store.address;
    std::fs::write(
        &path,
        format!("name = \"store\"\nbase_url = \"{address}\"\nsince = \"2024-03-13\"\n{credential}{request}"),
    )?;
    let path = path.display().to_string();
    let put = async |date: &str, close: &str| {
        store.put(&format!("flat/2024/{date}.csv"), &format!("symbol,date,close\nKO,{date},{close}\n")).await
    };
    put("2024-03-13", "58").await?;
    put("2024-03-14", "60").await?;
    let pulled = async || -> Result<Value> {
        let output = pull_with(&app, &[&path], &[("STORE_KEY", "key")]).await?;
        output.json().with_context(|| output.stderr.clone())
    };
    let first = pulled().await?;
    assert_eq!((&first["rows"], &first["missing"]), (&json!({ "price": 2 }), &json!(1)), "{first}");
    assert_eq!(pulled().await?["unchanged"], 1);
    put("2024-03-14", "61").await?;
    let replaced = pulled().await?;
    assert_eq!(
        (&replaced["rows"], &replaced["unchanged"]),
        (&json!({ "price": 1 }), &json!(0)),
        "{replaced}"
    );
    app.catch_up().await?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(price.starts_with("61"), "{price}");
    Ok(())
}
