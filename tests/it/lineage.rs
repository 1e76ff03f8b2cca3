//! OpenLineage events of loads, received by a local data catalogue. A catalogue that fails changes no load.

use std::fs;

use anyhow::{Context, Result};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::{Program, TestApp};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gate::daily_market::{DailyMarket, day_file};
use crate::process_kills::killed_at;
use crate::pull::vendor::Vendor;

const KEY: &str = "s3cret-of-the-catalogue";
const WARNING: &str = "cannot send lineage events";
const PRICES: &str = "symbol,date,close\nKO,2024-06-27,63\nKO,2024-06-28,64\nKO,2024-13-28,65\n";

/// App whose loads send their events to a catalogue, and the catalogue.
pub(crate) async fn app_with_catalogue() -> Result<(TestApp, Vendor)> {
    let catalogue = Vendor::start(|_, _| StatusCode::CREATED.into_response()).await?;
    let app = TestApp::builder().env("OPENLINEAGE_URL", format!("{}/base/", catalogue.address));
    Ok((app.env("OPENLINEAGE_API_KEY", KEY).start().await?, catalogue))
}

/// All events. Checks the fields that every event has.
pub(crate) fn events(catalogue: &Vendor) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    for request in catalogue.asked() {
        assert_eq!(request.path, "/base/api/v1/lineage");
        assert_eq!(request.header("authorization"), format!("Bearer {KEY}"));
        let event: Value = serde_json::from_slice(&request.body)?;
        assert_eq!(event["schemaURL"], "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent");
        assert_eq!(event["job"]["namespace"], "dividend-data-service");
        assert!(event["outputs"][0]["namespace"].as_str().context("a namespace")?.starts_with("nats://127."));
        events.push(event);
    }
    Ok(events)
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["eventType"].as_str()).collect()
}

/// Value of a tag of the run.
pub(crate) fn tag<'a>(event: &'a Value, key: &str) -> Option<&'a str> {
    let tags = event["run"]["facets"]["tags"]["tags"].as_array()?;
    tags.iter().find(|tag| tag["key"] == key)?["value"].as_str()
}

/// Assertion about the first input.
fn assertion<'a>(event: &'a Value, name: &str) -> &'a Value {
    let assertions = &event["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"];
    let found = assertions.as_array().into_iter().flatten().find(|one| one["assertion"] == name);
    found.unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_load_sends_its_files_rows_and_rejects() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    let path = app.folder().join("prices.csv");
    fs::write(&path, PRICES)?;
    let load = ["load", "prices.csv", "--source", "desk", "--max-reject-percent", "50", "--json"];
    app.ingest(&[&load[..], &["--dry-run"]].concat()).await?;
    assert_eq!(events(&catalogue)?.len(), 0, "a dry run publishes nothing");
    let output = app.ingest(&load).await?;
    let summary = output.json()?;
    assert_eq!((output.code, output.stderr.contains(WARNING)), (1, false), "{}", output.stderr);
    let sent = events(&catalogue)?;
    assert_eq!(types(&sent), ["START", "COMPLETE"]);
    let [start, complete] = sent.as_slice() else { anyhow::bail!("two events") };
    assert_eq!(start["run"]["runId"], complete["run"]["runId"]);
    assert_eq!((&start["job"]["name"], &start["job"]), (&json!("ingest.load.desk"), &complete["job"]));
    for event in [start, complete] {
        assert_eq!(tag(event, "run"), summary["run"].as_str());
        assert_eq!(
            (&event["inputs"][0]["namespace"], event["inputs"][0]["name"].as_str()),
            (&json!("file"), path.to_str())
        );
    }
    assert_eq!(tag(complete, "state"), Some("visible"));
    let statistics = &complete["inputs"][0]["inputFacets"]["inputStatistics"];
    assert_eq!((&statistics["rowCount"], &statistics["size"]), (&json!(3), &json!(PRICES.len())));
    let rejected = assertion(complete, "rejected_rows");
    assert_eq!((&rejected["success"], &rejected["actual"]), (&json!(false), &json!("1")), "{rejected}");
    assert_eq!(rejected["description"], "bad_date 1");
    assert_eq!(assertion(complete, "refused_files")["success"], json!(true));
    let rows = |event: &Value| event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"].clone();
    assert_eq!((rows(start), rows(complete)), (Value::Null, json!(2)));

    // A repeated load is another attempt, which writes nothing.
    app.ingest(&load).await?;
    let again = events(&catalogue)?;
    assert_eq!(types(&again), ["START", "COMPLETE", "START", "COMPLETE"]);
    assert_ne!(again[3]["run"]["runId"], complete["run"]["runId"]);
    assert_eq!((tag(&again[3], "run"), rows(&again[3])), (summary["run"].as_str(), json!(0)));
    assert_eq!(again[3]["inputs"][0]["name"].as_str(), path.to_str());
    assert_eq!(again[3]["inputs"][0]["inputFacets"], json!({}), "no row was read");
    fs::write(app.folder().join("other.csv"), "a,b\n1,2\n")?;
    app.ingest(&[&load[..], &["other.csv"]].concat()).await?;
    let more = events(&catalogue)?;
    assert_eq!(more[5]["inputs"].as_array().map(Vec::len), Some(2));
    assert_eq!(assertion(&more[5], "refused_files")["success"], json!(false), "{}", more[5]);
    Ok(())
}

#[tokio::test]
async fn a_load_that_publishes_nothing_sends_its_reason() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    fs::write(app.folder().join("prices.csv"), PRICES)?;
    fs::write(app.folder().join("other.csv"), "a,b\n1,2\n")?;
    for (file, rejected) in [("prices.csv", "1"), ("other.csv", "0")] {
        let output = app.ingest(&["load", file, "--source", "desk"]).await?;
        assert_eq!(output.code, 2, "{}", output.stderr);
        let sent = events(&catalogue)?;
        let failed = sent.last().context("an event")?;
        let reason = failed["run"]["facets"]["errorMessage"]["message"].as_str().context("a message")?;
        assert!(
            failed["eventType"] == "FAIL" && output.stdout.contains(reason),
            "{failed} {}",
            output.stdout
        );
        assert_eq!(failed["inputs"][0]["name"].as_str(), app.folder().join(file).to_str());
        assert_eq!(assertion(failed, "rejected_rows")["actual"], rejected, "{failed}");
        assert_eq!(assertion(failed, "refused_files")["description"], reason);
    }
    let away = [("NATS_URL", "nats://user:pass@127.0.0.1:1")];
    let load = ["load", "prices.csv", "--source", "desk", "--no-precheck"];
    let output = app.run(Program::Ingest, &load, &away).await?;
    assert_eq!(output.code, 3, "{}", output.stderr);
    let sent = events(&catalogue)?;
    assert_eq!(types(&sent[4..]), ["START", "FAIL"]);
    let failed = &sent[5];
    let message = failed["run"]["facets"]["errorMessage"]["message"].as_str().context("a message")?;
    assert!(message.contains("cannot reach NATS") && !failed.to_string().contains("pass"), "{failed}");
    assert_eq!(failed["outputs"][0]["namespace"], "nats://127.0.0.1:1");
    assert!(tag(failed, "run").is_some() && tag(failed, "state").is_none(), "{failed}");
    Ok(())
}

#[tokio::test]
async fn a_load_that_waits_is_complete_and_has_the_failed_checks_of_the_gate() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    let market = DailyMarket::load(&app, 40, 2, 2).await?;
    let _projector = app.start_projector().await?;
    let [first, second] = market.days.as_slice() else { anyhow::bail!("two days") };
    let whole = first.1.len();
    for ((day, rows), count, state) in [(first, whole, "visible"), (second, whole / 10, "held")] {
        let path = day_file(&app, *day, &rows[..count])?;
        let output = app.ingest(&["load", &path, "--source", "test", "--gate"]).await?;
        assert_eq!(output.code, if state == "held" { 4 } else { 0 }, "{output:?}");
        let sent = events(&catalogue)?;
        let last = sent.last().context("an event")?;
        assert_eq!((&last["eventType"], tag(last, "state")), (&json!("COMPLETE"), Some(state)), "{last}");
        let changed = assertion(last, "changed");
        assert_eq!((&changed["success"], &changed["expected"]), (&json!(true), &json!("1")), "{last}");
        let coverage = assertion(last, "coverage");
        if state == "held" {
            assert_eq!(
                (&coverage["success"], &coverage["expected"]),
                (&json!(false), &json!("90")),
                "{last}"
            );
            assert_eq!(
                (&coverage["actual"], &coverage["severity"]),
                (&json!("7.69230769"), &json!("error")),
                "{last}"
            );
            assert_eq!(coverage["name"], "coverage of price");
        }
    }
    Ok(())
}

#[tokio::test]
async fn watch_and_pull_send_events_too() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    let inbox = app.folder().join("in");
    fs::create_dir(&inbox)?;
    fs::write(inbox.join("prices.csv"), PRICES.replace("2024-13", "2024-06"))?;
    app.ingest(&["watch", "in", "--source", "desk", "--once", "--settle", "0s"]).await?;
    let sent = events(&catalogue)?;
    assert_eq!(
        (types(&sent), sent[1]["inputs"][0]["name"].as_str()),
        (vec!["START", "COMPLETE"], inbox.join("prices.csv").to_str())
    );

    let vendor = Vendor::start(|asked, _| {
        let day = asked.path.trim_start_matches("/v2/").trim_end_matches(".csv");
        format!("symbol,date,close\nKO,{day},60\n").into_response()
    });
    let vendor = vendor.await?;
    let manifest = format!(
        "name = \"vendor\"\nbase_url = \"{}/v2/\"\nsince = \"2024-03-14\"\n\
         [credential]\nkind = \"query\"\nvariable = \"VENDOR_KEY\"\nparameter = \"key\"\n\
         [[request]]\nname = \"prices\"\npath = \"/{{date}}.csv\"\nending = \"csv\"\n",
        vendor.address
    );
    fs::write(app.folder().join("vendor.toml"), manifest)?;
    let pulled = app
        .run(
            Program::Ingest,
            &["pull", "vendor.toml", "--once", "--today", "2024-03-15"],
            &[("VENDOR_KEY", "vendor-secret")],
        )
        .await?;
    assert_eq!(pulled.code, 0, "{pulled:?}");
    let sent = events(&catalogue)?;
    let complete = &sent[3];
    assert_eq!(
        (&complete["eventType"], &complete["job"]["name"]),
        (&json!("COMPLETE"), &json!("ingest.load.vendor"))
    );
    assert_eq!(complete["inputs"].as_array().map(Vec::len), Some(1), "{complete}");
    let input = &complete["inputs"][0];
    assert_eq!((&input["namespace"], &input["name"]), (&json!(vendor.address), &json!("/v2/{date}.csv")));
    let statistics = &input["inputFacets"]["inputStatistics"];
    assert_eq!((&statistics["fileCount"], &statistics["rowCount"]), (&json!(2), &json!(2)));
    assert!(!complete.to_string().contains("vendor-secret"));
    Ok(())
}

/// Loads a file again, under another name. Returns the exit code, the summary without the values that differ between
/// loads, and the log.
async fn load_again(app: &TestApp, name: &str, env: &[(&str, &str)]) -> Result<(i32, Value, String)> {
    let load =
        ["load", "prices.csv", "--source", "desk", "--max-reject-percent", "50", "--again", name, "--json"];
    let output = app.run(Program::Ingest, &load, env).await?;
    let mut summary = output.json()?;
    (summary["seconds"], summary["run"]) = (Value::Null, Value::Null);
    summary["effect_command"] = Value::Null;
    summary["open_rejects"] = Value::Null;
    Ok((output.code, summary, output.stderr))
}

/// Events were not sent, with one warning that has no secret.
fn is_warned(log: &str) -> bool {
    log.matches(WARNING).count() == 1 && !log.contains(KEY) && !log.contains("hidden")
}

/// Begins a load of a new file, which is killed after its start manifest.
async fn begin_load(app: &TestApp, folder: &str) -> Result<()> {
    fs::create_dir(app.folder().join(folder))?;
    let path = format!("{folder}/prices.csv");
    fs::write(app.folder().join(&path), format!("symbol,date,close\n{folder},2024-06-27,63\n"))?;
    assert!(killed_at(app, Program::Ingest, &["load", &path, "--source", "desk"], "ingest.begun", 1).await?);
    Ok(())
}

#[tokio::test]
async fn a_resumed_run_is_another_attempt_and_a_failing_catalogue_is_logged_once() -> Result<()> {
    let (app, catalogue) = app_with_catalogue().await?;
    begin_load(&app, "AAA").await?;
    let resumed = app.ingest(&["resume", "--json"]).await?.success()?.json()?;
    // The killed attempt may have sent its first event.
    let mut sent = events(&catalogue)?;
    let attempt = sent.last().context("an event")?["run"]["runId"].clone();
    sent.retain(|event| event["run"]["runId"] == attempt);
    assert_eq!(types(&sent), ["START", "COMPLETE"]);
    for event in &sent {
        assert_eq!(tag(event, "run"), resumed["run"].as_str(), "{event}");
    }

    begin_load(&app, "BBB").await?;
    begin_load(&app, "CCC").await?;
    let failing = Vendor::start(|_, _| StatusCode::INTERNAL_SERVER_ERROR.into_response()).await?;
    let resumed =
        app.run(Program::Ingest, &["resume", "--json"], &[("OPENLINEAGE_URL", &failing.address)]).await?;
    assert_eq!((resumed.code, resumed.stdout.lines().count()), (0, 2), "{resumed:?}");
    assert!(is_warned(&resumed.stderr), "{}", resumed.stderr);
    Ok(())
}

#[tokio::test]
async fn a_catalogue_that_fails_changes_no_load() -> Result<()> {
    let app = TestApp::start().await?;
    fs::write(app.folder().join("prices.csv"), PRICES)?;
    // The first load of a source differs from later ones.
    load_again(&app, "first", &[]).await?;
    let (code, expected, _) = load_again(&app, "second", &[]).await?;
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let broken = Vendor::start(|_, _| (StatusCode::INTERNAL_SERVER_ERROR, "hidden").into_response()).await?;
    let silent_url = format!("http://user:hidden@{}", silent.local_addr()?);
    let closed = format!("http://user:hidden@{}", app.free_address()?);
    for url in [silent_url, broken.address.clone(), closed] {
        let env = [("OPENLINEAGE_URL", url.as_str()), ("OPENLINEAGE_API_KEY", KEY)];
        let (found_code, found, log) = load_again(&app, &url, &env).await?;
        assert_eq!((found_code, &found), (code, &expected), "{url}: {log}");
        assert!(is_warned(&log), "{url}: {log}");
    }
    assert_eq!(broken.asked().len(), 2, "both events");
    // An empty setting is none.
    let (_, found, log) =
        load_again(&app, "empty", &[("OPENLINEAGE_URL", ""), ("OPENLINEAGE_API_KEY", "")]).await?;
    assert!(found == expected && !log.contains(WARNING), "{log}");
    let invalid = app
        .run(
            Program::Ingest,
            &["load", "prices.csv", "--source", "desk"],
            &[("OPENLINEAGE_URL", "ftp://user:hidden@host")],
        )
        .await?;
    assert_eq!(invalid.code, 2, "{invalid:?}");
    assert!(
        invalid.stderr.contains("OPENLINEAGE_URL") && !invalid.stderr.contains("hidden"),
        "{}",
        invalid.stderr
    );
    Ok(())
}
