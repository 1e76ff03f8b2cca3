//! Search of every answer, page and tool for days and years from before a plan of one year.
//!
//! All plans of these tests have a history of one year. Explanations and bulk answers, which need a higher plan, are
//! therefore searched too.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use chrono::NaiveDate;
use harness::{Api, find_older_dates};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::{World, day};
use crate::dashboard::visitor::Person;

/// First day of a history of one year.
const FIRST: &str = "2023-06-17";
/// Fields that describe the security, its newest state or an observation of it. Every plan includes them.
const DESCRIPTION: [&str; 3] = ["former_symbols", "price_date", "delisted_on"];
const PAGES: [(&str, &str); 4] = [
    ("PAGES", "public"),
    ("PAGES_TIER", "professional"),
    ("PAGES_PER_MINUTE", "100000"),
    ("PAGES_BURST", "100000"),
];
/// Answers of all endpoints with market data.
const ANSWERS: [&str; 35] = [
    "/v1/stocks?is_active=false",
    "/v1/stocks",
    "/v1/stocks/COLA",
    "/v1/stocks/GONE",
    "/v1/stocks/COLA/quote",
    "/v1/stocks/COLA/fundamentals",
    "/v1/stocks/COLA/metrics",
    "/v1/stocks/COLA/metrics?explain=true",
    "/v1/stocks/COLA/metrics?explain=true&as_of=2023-07-03",
    "/v1/stocks/GONE/metrics?explain=true",
    "/v1/stocks/FUND/metrics?explain=true",
    "/v1/stocks/COLA/dividends",
    "/v1/stocks/COLA/splits",
    "/v1/stocks/COLA/events",
    "/v1/stocks/NEWCO/events",
    "/v1/stocks/COLA/etf-holders",
    "/v1/stocks/COLA/revisions",
    "/v1/dividends/calendar",
    "/v1/dividends/history?symbols=COLA",
    "/v1/dividends/ex-dates?include_projected=true",
    "/v1/dividends/payment-dates",
    "/v1/splits/calendar",
    "/v1/screener",
    "/v1/screener/high-yield",
    "/v1/etfs",
    "/v1/etfs/FUND",
    "/v1/etfs/FUND/holdings",
    "/v1/prices/COLA?range=max&interval=monthly",
    "/v1/prices/COLA/latest",
    "/v1/search?q=co",
    "/v1/compare?symbols=COLA,FUND,GONE",
    "/v1/sectors",
    "/v1/portfolio/income?holdings=COLA:10:100",
    "/v1/bulk/metrics?symbols=COLA,FUND",
    "/v1/bulk/dividends?symbols=COLA",
];

/// Adds a corrected, a withdrawn and a quarantined dividend from before the history, and a withdrawn one within it.
fn unusual() -> Vec<Value> {
    let dividend = |id: &str, ex_date: &str, amount: &str| {
        json!({ "kind": "dividend", "symbol": "COLA", "id": id, "ex_date": ex_date, "amount": amount,
                "frequency": "quarterly", "revision": 1 })
    };
    let withdrawn = |id: &str, ex_date: &str| {
        let mut record = dividend(id, ex_date, "1");
        record["action"] = "retract".into();
        record
    };
    vec![
        dividend("c20199", "2019-09-13", "1.91"),
        dividend("x-2018-05-04", "2018-05-04", "177"),
        withdrawn("paid-2019-02-01", "2019-02-01"),
        withdrawn("c20239", "2023-09-13"),
        json!({ "kind": "dividend", "symbol": "GONE", "id": "g1", "ex_date": "2019-02-01", "amount": "0.3", "frequency": "annual" }),
        json!({ "kind": "dividend", "symbol": "GONE", "id": "g2", "ex_date": "2020-02-03", "amount": "0.2", "frequency": "annual" }),
        json!({ "kind": "price", "symbol": "GONE", "date": "2023-12-28", "close": "9" }),
        json!({ "kind": "dividend", "symbol": "FUND", "id": "f1", "ex_date": "2021-02-01", "amount": "0.3", "frequency": "annual" }),
    ]
}

/// Starts a service in which every plan has a history of one year. Returns also an explanation from before, with a long
/// history.
async fn start() -> Result<(World, Api, Value)> {
    let world = World::start().await?;
    let feed = world.app.folder().join("unusual.ndjson");
    let lines: Vec<String> = unusual().iter().map(ToString::to_string).collect();
    std::fs::write(&feed, lines.join("\n"))?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    let whole = world.json("/v1/stocks/COLA/metrics?explain=true").await?;
    ensure!(!older_in(&whole).is_empty(), "a plan with a longer history has older days");
    world.app.sql("update accounts.tiers set depth_years = 1, burst = 100000", &[]).await?;
    let api = world.app.api_serve_with(&PAGES).await?;
    let metrics = api.get("/v1/stocks/COLA/metrics", Some(&world.professional)).await?.json()?;
    assert_eq!(metrics["meta"]["depth"], json!({ "from": FIRST, "tier": "professional" }), "{metrics}");
    Ok((world, api, whole))
}

/// Days and years before [`FIRST`] in a JSON value: in its texts, and in its fields with a year. Members of
/// [`DESCRIPTION`] are skipped.
fn older_in(value: &Value) -> Vec<String> {
    let first = day(FIRST);
    match value {
        Value::String(text) => find_older_dates(text, first),
        Value::Array(items) => items.iter().flat_map(older_in).collect(),
        Value::Object(members) if members.get("metric").is_some_and(|name| name == "price_date") => vec![],
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !DESCRIPTION.contains(&name.as_str()))
            .flat_map(|(name, value)| match name.as_str() {
                "year" | "streak_started" => find_older_dates(&value.to_string(), first),
                _ => older_in(value),
            })
            .collect(),
        _ => vec![],
    }
}

#[tokio::test]
async fn no_answer_has_an_older_day_or_year() -> Result<()> {
    let (world, api, whole) = start().await?;
    let names = whole["data"]["explanation"]["metrics"].as_array().context("metrics")?;
    let names = names.iter().filter_map(|metric| metric["metric"].as_str());
    let explained = names.map(|name| format!("/v1/stocks/COLA/metrics?explain=true&fields={name}"));
    let paths: Vec<String> = ANSWERS.iter().map(ToString::to_string).chain(explained).collect();
    assert!(paths.len() > ANSWERS.len() + 40, "{}", paths.len());
    for path in paths {
        let reply = api.get(&path, Some(&world.professional)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        let older = older_in(&reply.json()?);
        ensure!(older.is_empty(), "{path}: {older:?}\n{}", reply.text());
    }
    Ok(())
}

#[tokio::test]
async fn a_text_says_how_many_earlier_years_are_left_out() -> Result<()> {
    let world = World::start().await?;
    let path = "/v1/stocks/COLA/metrics?explain=true&fields=increase_streak_years,first_payment_date";
    let years = |answer: &Value| {
        let streak = &answer["data"]["explanation"]["metrics"][0];
        let listed = streak["years"].as_array().cloned().unwrap_or_default();
        let listed = listed.iter().map(|year| json!([year["year"], year["total"], year["change_percent"]]));
        json!([streak["older_years"], listed.collect::<Vec<Value>>()])
    };
    let starter = world.api.get(path, Some(&world.starter)).await?.json()?;
    let listed = json!([
        [2020, 3.92, null],
        [2021, 4.04, 3.0612],
        [2022, 4.16, 2.9703],
        [2023, 4.28, 2.8846],
        [2024, 3.3, null]
    ]);
    assert_eq!(years(&starter), json!([25, listed]));
    assert_eq!(starter["data"]["first_payment_date"], Value::Null);
    assert_eq!(starter["data"]["explanation"]["metrics"][1]["value"], Value::Null);
    assert_eq!(starter["meta"]["depth"], json!({ "from": "2019-06-17", "tier": "starter" }));
    let whole = world.json(path).await?;
    assert_eq!(years(&whole)[0], 0);
    assert_eq!(years(&whole)[1][1], json!([1995, 0.92, 15]), "{whole}");
    assert_eq!(whole["data"]["first_payment_date"], "1994-03-13");
    Ok(())
}

#[tokio::test]
async fn no_tool_has_an_older_day_or_year() -> Result<()> {
    let (world, api, _) = start().await?;
    let headers = [
        ("authorization", format!("Bearer {}", world.professional)),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
    ];
    let post = async |method: &str, params: Value| -> Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = api.send_body(Method::POST, "/mcp", &headers, body.to_string().into_bytes()).await?;
        Ok(reply.json()?["result"].clone())
    };
    let mut calls = vec![
        ("search", json!({ "q": "cola" })),
        ("compare", json!({ "symbols": ["COLA", "GONE"] })),
        ("dividend_history", json!({ "symbols": "COLA" })),
        ("dividend_calendar", json!({ "include_projected": true })),
        ("split_calendar", json!({})),
        ("portfolio_income", json!({ "holdings": ["COLA:120"] })),
        ("screener", json!({})),
        ("prices", json!({ "symbol": "COLA", "interval": "monthly" })),
        ("sectors", json!({})),
    ];
    let tools = post("tools/list", json!({})).await?;
    let tools = tools["tools"].as_array().context("tools")?;
    let security = tools.iter().find(|tool| tool["name"] == "security").context("a tool")?;
    let views = security["inputSchema"]["properties"]["view"]["enum"].as_array().context("views")?;
    for view in views {
        let symbol = if view == "holdings" || view == "fund" { "FUND" } else { "COLA" };
        calls.push(("security", json!({ "symbol": symbol, "view": view })));
    }
    let explained =
        |fields: Value| json!({ "symbol": "COLA", "view": "metrics", "explain": true, "fields": fields });
    for figure in [
        "increase_streak_years",
        "growth_5y",
        "streak_started",
        "annual_totals",
        "last_cut_date",
        "frequency",
    ] {
        calls.push(("security", explained(json!([figure]))));
    }
    let called: BTreeSet<&str> = calls.iter().map(|(name, _)| *name).collect();
    let all: BTreeSet<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(called, all, "every tool is called");
    for (tool, arguments) in calls {
        let result = post("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
        ensure!(result["isError"] != true, "{tool} {arguments}: {result}");
        let text = result["content"][0]["text"].as_str().context("a text")?;
        let older = older_in(&serde_json::from_str(text)?);
        ensure!(older.is_empty(), "{tool} {arguments}: {older:?}\n{text}");
    }
    Ok(())
}

#[tokio::test]
async fn no_page_has_an_older_day_or_year() -> Result<()> {
    let (_world, api, _) = start().await?;
    let mut reader = Person::at(&api)?;
    let mut paths: Vec<String> = [
        "/calendar",
        "/calendar?from=1999-01-01",
        "/calendar.csv",
        "/calendar.ics?symbols=COLA",
        "/screener",
        "/sectors",
        "/sectors/financials",
        "/quality",
        "/search?q=co",
        "/income?holdings=COLA:10:100",
        "/plans",
        "/sitemap.xml",
    ]
    .map(str::to_owned)
    .into();
    for symbol in ["COLA", "BRK.B", "NEWCO", "GONE", "FUND"] {
        let page = reader.get(&format!("/s/{symbol}?range=max")).await?;
        ensure!(page.status == 200, "{symbol}: {}", page.text);
        let links = page.text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let links = links.filter(|link| link.starts_with(&format!("/s/{symbol}")));
        let links: BTreeSet<String> =
            links.map(|link| link.replace("&amp;", "&").replace("#prices", "")).collect();
        ensure!(links.iter().filter(|link| link.contains("/why/")).count() > 20, "{links:?}");
        paths.extend(links);
    }
    for path in paths {
        let page = reader.get(&path).await?;
        ensure!(page.status == 200, "{path}: {} {}", page.status, page.text);
        let older = older_in_page(&page.text, day(FIRST));
        ensure!(older.is_empty(), "{path}: {older:?}\n{}", page.text);
    }
    Ok(())
}

/// Attributes with coordinates of a drawing.
const COORDINATES: [&str; 11] =
    [" d=", " x=", " y=", " x1=", " x2=", " y1=", " y2=", " viewBox=", " points=", " width=", " height="];

/// Days and years before `first` in a page or a file. Skipped are coordinates of drawings, and the day of a rename.
fn older_in_page(text: &str, first: NaiveDate) -> Vec<String> {
    let text = text.replace("2022-06-08", "");
    let mut shown = String::new();
    let mut is_coordinate = false;
    for part in text.split('"') {
        if !is_coordinate {
            shown.extend([part, "\n"]);
        }
        is_coordinate = !is_coordinate && COORDINATES.iter().any(|name| part.ends_with(name));
    }
    find_older_dates(&shown, first)
}

#[tokio::test]
async fn a_page_has_a_block_only_if_the_plan_of_the_pages_includes_it() -> Result<()> {
    let world = World::start_with(&[("PAGES", "public")]).await?;
    let why = "/s/COLA/why/increase_streak_years";
    let mut reader = Person::at(&world.api)?;
    let free = reader.get(why).await?;
    assert!(free.status == 200 && free.has("value=\"29\"") && free.has("href=\"/plans\""), "{}", free.text);
    assert!(
        !free.has("Formula") && !free.has("Rows behind this figure") && !free.has("explain=true"),
        "{}",
        free.text
    );
    assert!(!reader.get("/s/COLA").await?.has("/why/"));
    let starter = world.app.api_serve_with(&[("PAGES", "public"), ("PAGES_TIER", "starter")]).await?;
    let mut reader = Person::at(&starter)?;
    assert!(reader.get("/s/COLA").await?.has(why));
    let page = reader.get(why).await?;
    assert!(page.has("25 more years count") && page.has("<title>2020: 3.92 USD</title>"), "{}", page.text);
    assert!(!page.has("<title>2019: "), "{}", page.text);
    Ok(())
}
