//! Tests of requests for earlier data with `data_version` or `known_at`, and of the matching `projector` options.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use harness::{Api, Servers, TestApp};
use serde_json::{Value, json};

use crate::api_world::{TODAY, World, check, column};
use crate::change_feed::lift_limits;
use crate::generations::answer;

async fn load(world: &World, name: &str, row: Value) -> Result<()> {
    world.app.feed(name, format!("{row}\n")).today(TODAY).apply().await
}

/// Returns the current time of Postgres as a value for `known_at`.
async fn now(world: &World) -> Result<String> {
    let now: DateTime<Utc> = world.app.sql_value("select clock_timestamp()").await?;
    Ok(now.to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// Returns a revision of COLA's dividend of March 2024.
fn declared(amount: &str, revision: i32) -> Value {
    json!({ "kind": "dividend", "symbol": "COLA", "id": "c20243", "ex_date": "2024-03-13", "amount": amount,
            "payment_date": "2024-03-28", "declaration_date": "2024-01-01", "frequency": "quarterly", "revision": revision })
}

#[tokio::test]
async fn a_restart_of_the_projector_gives_no_data_version() -> Result<()> {
    let app = TestApp::start().await?;
    let security = json!({ "kind": "security", "symbol": "COLA", "name": "Cola", "type": "stock" });
    app.feed("security.ndjson", security.to_string()).apply().await?;
    assert_same_version_after_restart(&app, "without prices").await?;
    let price = json!({ "kind": "price", "symbol": "TEA", "date": "2024-06-14", "close": "50" });
    let file = app.folder().join("price.ndjson");
    std::fs::write(&file, price.to_string())?;
    let load = ["load", &file.to_string_lossy(), "--source", "test", "--json"];
    let loaded = app.ingest(&load).await?.success()?.json()?;
    app.catch_up().await?;
    assert_same_version_after_restart(&app, "with a price").await?;
    app.ingest(&["undo", loaded["run"].as_str().context("a run")?]).await?.success()?;
    app.catch_up().await?;
    assert_same_version_after_restart(&app, "without the price again").await
}

async fn assert_same_version_after_restart(app: &TestApp, market: &str) -> Result<()> {
    let query = "select v::text from read_g1.version v";
    let before: String = app.sql_value(query).await?;
    app.catch_up().await?;
    assert_eq!(app.sql_value::<String>(query).await?, before, "{market}");
    Ok(())
}

#[tokio::test]
async fn mistakes_are_refused_with_the_parameter_or_the_reason() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let path = "/v1/stocks/COLA/metrics";
    let version = world.json(path).await?["meta"]["data_version"].as_str().context("a version")?.to_owned();
    for (query, param) in [
        ("data_version=yesterday", "data_version"),
        ("data_version=g1", "data_version"),
        ("known_at=yesterday", "known_at"),
        ("known_at=2024-06-31", "known_at"),
        (&format!("known_at=2024-06-14&data_version={version}"), "known_at"),
    ] {
        let (status, body) = world.refused(&format!("{path}?{query}"), &world.professional).await?;
        assert_eq!(status, 400, "{query}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": param }));
    }
    for query in ["data_version=g1.999999", "data_version=g7.1", "data_version=g1.1.999999"] {
        let (status, body) = world.refused(&format!("{path}?{query}"), &world.professional).await?;
        assert_eq!((status, &body["code"]), (412, &json!("VERSION_NOT_SERVED")), "{query}: {body}");
    }
    let (status, body) = world.refused(&format!("{path}?known_at=2020-01-01"), &world.professional).await?;
    assert_eq!(status, 404, "{body}");
    // The history of the free plan begins in 2023. This also limits `known_at`.
    let (status, body) = world.refused(&format!("{path}?known_at=2020-01-01"), &world.free).await?;
    assert_eq!((status, &body["required_feature"]), (403, &json!("historical_depth")), "{body}");
    check(&body, json!({ "earliest_date": "2023-06-17" }));
    let (status, _) = world
        .refused(&format!("{path}?data_version={version}&as_of=2024-06-03"), &world.professional)
        .await?;
    assert_eq!(status, 200, "the current version has a name too");

    // If a version was derived with other rules, the error names the program version that has those rules.
    load(&world, "later.ndjson", declared("0.99", 1)).await?;
    world
        .app
        .sql("update control.version_inputs set method_version = 'old', program_version = '0.0.1'", &[])
        .await?;
    let (status, body) =
        world.refused(&format!("{path}?data_version={version}"), &world.professional).await?;
    assert_eq!(status, 410, "{body}");
    check(
        &body,
        json!({ "code": "VERSION_NOT_REPRODUCIBLE", "method_version": "old", "program_version": "0.0.1" }),
    );
    Ok(())
}

#[tokio::test]
async fn knowledge_and_market_date_are_two_times() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let first = now(&world).await?;
    load(&world, "second.ndjson", declared("2.10", 1)).await?;
    let second = now(&world).await?;
    load(&world, "third.ndjson", declared("2.30", 2)).await?;
    let amount = async |known_at: &str| -> Result<Value> {
        let path = "/v1/stocks/COLA/dividends?start_date=2024-03-01&end_date=2024-03-31";
        let body = world.json(&format!("{path}&known_at={known_at}")).await?;
        assert_eq!(
            body["meta"]["known_at"].as_str().map(str::parse::<DateTime<Utc>>),
            Some(known_at.parse())
        );
        Ok(body["data"][0]["amount"].clone())
    };
    let last = now(&world).await?;
    assert_eq!(amount(&first).await?.to_string(), "1.1");
    assert_eq!(amount(&second).await?.to_string(), "2.1");
    assert_eq!(amount(&last).await?.to_string(), "2.3");

    // Before the ex-date, neither answer counts the dividend. From the ex-date on, each answer counts the amount that
    // was known at its `known_at`.
    let paid = async |known_at: &str, as_of: &str| -> Result<String> {
        let path = format!("/v1/stocks/COLA/metrics?known_at={known_at}&as_of={as_of}");
        Ok(world.json(&path).await?["data"]["dps_ttm"].to_string())
    };
    assert_eq!(paid(&first, "2024-03-12").await?, paid(&last, "2024-03-12").await?);
    assert_ne!(paid(&first, "2024-03-13").await?, paid(&last, "2024-03-13").await?);

    let revisions = world.json("/v1/stocks/COLA/revisions?kind=dividend").await?;
    let amounts: Vec<&Value> =
        revisions["data"].as_array().into_iter().flatten().filter(|row| row["field"] == "amount").collect();
    assert_eq!(amounts.len(), 2, "{revisions}");
    check(
        amounts[0],
        json!({ "before": "2.1", "after": "2.3", "first_reported": "1.1", "latest": "2.3", "reason": "correction",
                "date": "2024-03-13", "source": "test" }),
    );
    check(amounts[1], json!({ "before": "1.1", "after": "2.1", "first_reported": "1.1", "latest": "2.3" }));
    let withdrawn = json!({ "kind": "dividend", "symbol": "COLA", "id": "c20246", "ex_date": "2024-06-13",
                            "amount": "1.10", "action": "retract", "revision": 1 });
    load(&world, "fourth.ndjson", withdrawn).await?;
    let figures = world.json("/v1/stocks/COLA/revisions?limit=200").await?;
    assert!(column(&figures, "field").contains(&json!("dps_ttm")), "{figures}");
    check(&figures["data"][0], json!({ "reason": "retraction" }));

    // The commands `explain` and `rebuild` give the same results, for one figure and for the whole market.
    let explained = answer(&world.app, &["explain", "COLA", "dps_ttm", "--known-at", &first]).await?;
    let value = paid(&first, "2024-06-14").await?;
    assert_eq!(explained["metrics"][0]["value"].to_string().trim_matches('"'), value, "{explained}");
    answer(&world.app, &["rebuild", "--known-at", &second]).await?;
    let rebuilt: String = world
        .app
        .sql_value("select trim_scale(amount)::text from read_g2.dividends where id like '%c20243%'")
        .await?;
    assert_eq!(rebuilt, "2.1");
    Ok(())
}

#[tokio::test]
async fn a_restored_service_answers_for_versions_before_the_backup() -> Result<()> {
    let world = World::start().await?;
    let path = "/v1/stocks/COLA/metrics";
    let before = world.get(path).await?.text();
    let version = serde_json::from_str::<Value>(&before)?["meta"]["data_version"].clone();
    let version = version.as_str().context("a version")?.to_owned();
    load(&world, "later.ndjson", declared("2.10", 1)).await?;
    let folder = world.app.folder().join("kept").display().to_string();
    world.app.create_account("kept@example.com", "professional").await?;
    let key = world.app.create_key("kept@example.com", "mine").await?;
    world.app.projector(&["backup", &folder]).await?.success()?;

    let servers = Servers::private().await?;
    let builder = TestApp::builder().servers(&servers).without_migration().env("SERVICE_DATE", TODAY);
    let restored = builder.start().await?;
    restored.projector(&["restore", &folder, "--json"]).await?.success()?;
    let api = restored.api_serve().await?;
    let reply = api.get(&format!("{path}?data_version={version}"), Some(&key)).await?;
    assert_eq!((reply.status.as_u16(), reply.text()), (200, before));
    Ok(())
}

/// A request for an earlier version uses the old generation. The test changes the recorded rules of the version, so the
/// answer cannot be derived again.
#[tokio::test]
async fn a_kept_generation_answers_for_its_version_until_it_is_dropped() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let paths = [
        "/v1/stocks/COLA/quote",
        "/v1/stocks/COLA/dividends?limit=2",
        "/v1/dividends/history?symbols=COLA&limit=2",
    ];
    let mut before = Vec::new();
    for path in paths {
        before.push(world.get(path).await?.text());
    }
    let version = serde_json::from_str::<Value>(&before[0])?["meta"]["data_version"].clone();
    let version = version.as_str().context("a version")?.to_owned();
    answer(&world.app, &["rebuild"]).await?;
    answer(&world.app, &["promote", "2", "--accept-diff"]).await?;
    for statement in [
        "update control.version_inputs set method_version = 'old'",
        "update control.generations set method_version = 'old' where id = 1",
    ] {
        world.app.sql(statement, &[]).await?;
    }
    load(&world, "later.ndjson", declared("2.10", 1)).await?;
    for (path, body) in paths.iter().zip(&before) {
        let joint = if path.contains('?') { '&' } else { '?' };
        let again = world.get(&format!("{path}{joint}data_version={version}")).await?;
        assert_eq!((again.status.as_u16(), &again.text()), (200, body), "{path}");
    }
    world.app.projector(&["drop", "1"]).await?.success()?;
    let (status, body) =
        world.refused(&format!("{}?data_version={version}", paths[0]), &world.professional).await?;
    assert_eq!((status, &body["code"]), (410, &json!("VERSION_NOT_REPRODUCIBLE")), "{body}");
    Ok(())
}

#[tokio::test]
async fn bulk_prices_of_an_earlier_version_have_listed_symbols() -> Result<()> {
    let world = World::start().await?;
    let version = world.json("/v1/stocks/COLA/quote").await?["meta"]["data_version"].clone();
    let version = version.as_str().context("a version")?.to_owned();
    for query in ["known_at=2030-01-01".to_owned(), format!("data_version={version}")] {
        let (status, body) = world.refused(&format!("/v1/bulk/prices?{query}"), &world.professional).await?;
        assert_eq!(status, 400, "{query}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": "symbols" }));
    }
    Ok(())
}

/// Number of securities whose requests are timed.
const MEASURED: usize = 40;

/// Returns a feed of thirty years of daily bars and quarterly dividends for the measured securities and the benchmark.
fn thirty_years() -> String {
    let first = chrono::NaiveDate::from_ymd_opt(1994, 6, 14).unwrap_or_default();
    let days = first.iter_days().take(30 * 365).filter(|day| day.format("%u").to_string().as_str() < "6");
    let symbols: Vec<String> =
        (0..MEASURED).map(|number| format!("OLD{number}")).chain(["SPY".to_owned()]).collect();
    let mut lines = Vec::new();
    for (number, day) in days.enumerate() {
        for symbol in &symbols {
            let close = format!("{}.{:02}", 40 + number % 17, number % 97);
            let row = json!({ "kind": "price", "symbol": symbol, "date": day, "open": close, "high": close, "low": close,
                              "close": close, "volume": 1000 + number });
            lines.push(row.to_string());
            if number % 65 == 64 {
                let amount = format!("0.{}", 20 + number / 260);
                let row = json!({ "kind": "dividend", "symbol": symbol, "ex_date": day, "amount": amount,
                                  "frequency": "quarterly" });
                lines.push(row.to_string());
            }
        }
    }
    lines.join("\n")
}

#[tokio::test]
#[ignore = "measures reproduced metrics of thirty years, and prints the median"]
#[expect(clippy::print_stdout, reason = "the figure is the output")]
async fn measure_reproduced_metrics() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    lift_limits(&app).await?;
    app.feed("market.ndjson", thirty_years()).today(TODAY).apply().await?;
    let first: DateTime<Utc> = app.sql_value("select clock_timestamp()").await?;
    let rows = (0..MEASURED).map(|number| {
        json!({ "kind": "dividend", "symbol": format!("OLD{number}"), "ex_date": "2024-05-20", "amount": "0.01", "type": "special" })
    });
    let late: String = rows.map(|row| format!("{row}\n")).collect();
    app.feed("late.ndjson", late).today(TODAY).apply().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let at = first.to_rfc3339_opts(SecondsFormat::Micros, true);
    let metrics = |number: usize| format!("/v1/stocks/OLD{number}/metrics?known_at={at}");
    let served = |number: usize| format!("/v1/stocks/OLD{number}/dividends?limit=1");
    println!("served dividends: median {:?}", median_time(&api, &key, served).await?);
    println!("reproduced metrics: median {:?}", median_time(&api, &key, metrics).await?);
    Ok(())
}

async fn median_time(api: &Api, key: &str, path: impl Fn(usize) -> String) -> Result<Duration> {
    let mut times = Vec::new();
    for number in 0..MEASURED {
        let started = Instant::now();
        let reply = api.get(&path(number), Some(key)).await?;
        times.push(started.elapsed());
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    times.sort();
    Ok(times[MEASURED / 2])
}
