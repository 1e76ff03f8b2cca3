//! Status of the service from its traffic: recorded over several processes, restarts and an outage.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use harness::{Api, Servers, Signal, TestApp, eventually};
use serde_json::{Value, json};

use crate::api_world::{World, check};

const PATIENCE: Duration = Duration::from_secs(120);
const CALL: &str = "/v1/stocks?limit=1";

async fn status(api: &Api) -> Result<Value> {
    let reply = api.get("/v1/status", None).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    Ok(reply.json()?["data"].take())
}

/// Status with everything that is read from the databases. A busy machine may read it too late for the first response.
async fn full_status(api: &Api) -> Result<Value> {
    eventually(PATIENCE, async || {
        let status = status(api).await?;
        ensure!(status["feeds"].is_array() && status["history"].is_object(), "{status}");
        Ok(status)
    })
    .await
}

/// Stops an instance, which then writes its last minute.
async fn stop(api: &mut Api) -> Result<()> {
    let ended = api.process.stop(Signal::TERM, PATIENCE).await?;
    ensure!(ended.success(), "{}", api.process.log_tail(5));
    Ok(())
}

#[tokio::test]
async fn calls_over_two_processes_and_a_restart_are_all_in_the_status() -> Result<()> {
    let world = World::start().await?;
    let (mut one, mut two) = (world.app.api_serve().await?, world.app.api_serve().await?);
    for api in [&one, &two, &one] {
        api.get("/v1/stocks/COLA/quote", Some(&world.professional)).await?;
        api.get("/v1/stocks/NOPE/dividends", Some(&world.professional)).await?;
        for uncounted in
            ["/livez", "/readyz", "/v1/health", "/v1/status", "/status", "/assets/style.css", "/nowhere"]
        {
            api.get(uncounted, None).await?;
        }
    }
    two.get("/plans", None).await?;
    tokio::try_join!(stop(&mut one), stop(&mut two))?;

    let restarted = world.app.api_serve().await?;
    let status = full_status(&restarted).await?;
    let history = &status["history"];
    check(&history["total"], json!({ "calls": 7, "failures": 0, "availability_percent": 100 }));
    for (name, count) in [("days", 90), ("hours", 24)] {
        let periods = history[name].as_array().context(name)?;
        let calls: Vec<i64> = periods.iter().filter_map(|period| period["calls"].as_i64()).collect();
        assert_eq!((calls.len(), calls.iter().sum()), (count, 7), "{periods:?}");
        check(&periods[0], json!({ "calls": 0, "availability_percent": null }));
    }
    let groups = history["endpoint_groups"].as_array().context("groups")?;
    let calls: Vec<(&Value, &Value)> =
        groups.iter().map(|group| (&group["group"], &group["last_24_hours"]["calls"])).collect();
    assert_eq!(json!(calls), json!([["dividends", 3], ["pages", 1], ["securities", 3]]));
    for group in groups {
        let [p50, p95] = ["p50_ms", "p95_ms"].map(|name| group["last_90_days"][name].as_f64());
        assert!(p50 > Some(0.0) && p50 <= p95, "{group}");
    }
    assert_eq!(history["incidents"], json!([]));
    let in_text = restarted.get("/v1/status?decimals=string", None).await?.json()?;
    assert_eq!(in_text["data"]["history"]["total"]["availability_percent"], "100");
    check(&status["health"], json!({ "status": "ok" }));
    let feeds = status["feeds"].as_array().context("feeds")?;
    let sources = restarted.get("/v1/sources", Some(&world.professional)).await?.json()?;
    let named: Vec<&Value> =
        sources["data"].as_array().context("sources")?.iter().map(|row| &row["source"]).collect();
    for kind in ["price", "dividend"] {
        let feed = feeds.iter().find(|feed| feed["kind"] == kind).with_context(|| status.to_string())?;
        assert!(named.contains(&&feed["source"]), "{feed} {named:?}");
        assert!(feed["newest"].as_str() > Some("2024-01-01") && feed["updated_at"].is_string(), "{feed}");
    }
    Ok(())
}

/// Inserts `calls` and `failures` in a minute of the hour that began two hours ago.
async fn insert_minute(app: &TestApp, minute: i32, calls: i64, failures: i64) -> Result<()> {
    let insert = "insert into accounts.traffic_minutes
        values (date_trunc('hour', now(), 'UTC') - interval '2 hours' + make_interval(mins => $1), $2, $3)";
    app.sql(insert, &[&minute, &calls, &failures]).await?;
    Ok(())
}

#[tokio::test]
async fn failing_minutes_are_joined_to_incidents_and_no_traffic_is_no_outage() -> Result<()> {
    let app = TestApp::start().await?;
    // Minute 1 has exactly 5 % failures. Minutes 10 and 16 belong together, and minute 23 comes too late.
    for (minute, calls, failures) in
        [(1, 20, 1), (10, 10, 10), (12, 100, 0), (16, 10, 1), (23, 1, 1), (24, 100_000, 100_000)]
    {
        insert_minute(&app, minute, calls, failures).await?;
    }
    app.sql("insert into accounts.traffic_minutes values (now() - interval '40 days', 1000000, 1)", &[])
        .await?;
    let status = full_status(&app.api_serve().await?).await?;
    let history = &status["history"];
    let incidents = history["incidents"].as_array().context("incidents")?;
    check(&incidents[0], json!({ "calls": 100_001, "failures": 100_001, "failure_percent": 100 }));
    check(&incidents[1], json!({ "calls": 120, "failures": 11, "failure_percent": 9.17 }));
    let minutes = |name: &str| -> Vec<&str> {
        incidents.iter().filter_map(|incident| incident[name].as_str()?.get(14..16)).collect()
    };
    assert_eq!((minutes("start"), minutes("end")), (vec!["23", "10"], vec!["25", "17"]));
    let used = |name: &str| -> Vec<Value> {
        let periods = history[name].as_array().into_iter().flatten();
        periods.filter(|period| !period["availability_percent"].is_null()).cloned().collect()
    };
    let hours = used("hours");
    assert_eq!(hours.len(), 1, "hours without traffic have no share: {hours:?}");
    check(&hours[0], json!({ "calls": 100_141, "failures": 100_013, "availability_percent": 0.1278 }));
    check(&used("days")[0], json!({ "calls": 1_000_000, "failures": 1, "availability_percent": 99.9999 }));
    Ok(())
}

#[tokio::test]
async fn an_outage_of_the_accounts_is_an_incident_afterwards() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let mut api = app.api_serve_with(&[("API_ADMISSION_TIMEOUT_MS", "250")]).await?;
    let key = app.key("professional").await?;
    ensure!(api.get(CALL, Some(&key)).await?.status != 503, "no key is checked");
    servers.postgres.freeze().await?;
    let while_frozen = async {
        for _ in 0..3 {
            let refused = api.get(CALL, Some(&key)).await?;
            ensure!(refused.status == 503, "{}", refused.text());
        }
        // The status does not wait for the database.
        let status = eventually(PATIENCE, async || {
            let status = status(&api).await?;
            ensure!(status["health"]["status"] == "down", "{status}");
            Ok(status)
        });
        ensure!(status.await?["feeds"].is_null(), "the data cannot be read");
        ensure!(api.get("/status", None).await?.status == 503, "the page says that the service is down");
        // A write at the end of the minute fails, and its calls are not lost.
        eventually(PATIENCE, async || {
            ensure!(api.process.log().contains("cannot write the traffic"), "{}", api.process.log_tail(5));
            Ok(())
        })
        .await
    };
    let outcome = while_frozen.await;
    // A frozen server would block the cleanup of the test.
    servers.postgres.thaw().await?;
    outcome?;
    eventually(PATIENCE, async || {
        let reply = api.get("/v1/health", None).await?;
        ensure!(!reply.text().contains("\"accounts\":\"down\""), "{}", reply.text());
        Ok(())
    })
    .await?;
    stop(&mut api).await?;
    let written: i64 = app.sql_value("select sum(failures)::bigint from accounts.traffic_minutes").await?;
    assert_eq!(written, 3);

    let restarted = app.api_serve().await?;
    let status = full_status(&restarted).await?;
    let incidents = &status["history"]["incidents"];
    assert_eq!(incidents.as_array().map(Vec::len), Some(1), "{incidents}");
    check(&incidents[0], json!({ "end": null, "failures": 3 }));
    let page = restarted.get("/status", None).await?.text();
    assert!(page.contains("may continue"), "{page}");
    Ok(())
}

#[tokio::test]
async fn planned_work_is_announced_before_during_and_after() -> Result<()> {
    let app = TestApp::start().await?;
    let at = |hours| (Utc::now() + TimeDelta::hours(hours)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let add = async |from: String, to: String, text: &str| {
        app.api(&["maintenance", "add", "--from", &from, "--to", &to, "--text", text, "--json"]).await
    };
    for (from, to, text) in [(1, 2, "new disks"), (-1, 1, "upgrade"), (-3, -2, "new <cable>")] {
        add(at(from), at(to), text).await?.success()?;
    }
    let added = add(at(1), at(3), "to remove").await?.success()?.json()?;
    let id = added["id"].to_string();
    app.api(&["maintenance", "remove", &id]).await?.success()?;
    let again = app.api(&["maintenance", "remove", &id]).await?;
    assert!(again.code == 1 && again.stderr.contains("no work has the id"), "{again:?}");
    for (to, text) in [(at(-1), "x"), (at(2), " ")] {
        let refused = add(at(1), to, text).await?;
        assert!(refused.code == 1 && refused.stderr.contains("cannot announce the work"), "{refused:?}");
    }
    let listed = app.api(&["maintenance", "list", "--json"]).await?.success()?.json()?;
    let states = |works: &Value| -> Vec<(Value, Value)> {
        let works = works.as_array().into_iter().flatten();
        works.map(|work| (work["description"].clone(), work["state"].clone())).collect()
    };
    let expected =
        json!([["new disks", "planned"], ["upgrade", "in_progress"], ["new <cable>", "completed"],]);
    assert_eq!(json!(states(&listed)), expected);

    let api = app.api_serve().await?;
    assert_eq!(json!(states(&full_status(&api).await?["history"]["maintenance"])), expected);
    let page = api.get("/status", None).await?.text();
    for shown in
        ["Planned work. ", "Planned work is in progress. ", "new disks", "upgrade", "new &lt;cable&gt;"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    Ok(())
}
