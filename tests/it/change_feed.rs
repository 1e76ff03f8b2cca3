//! Tests of the parameter `updated_since`.

mod copies;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::Days;
use harness::{Api, TestApp, eventually};
use rand::RngExt;
use serde_json::{Value, json};

use crate::api_world::{World, check, column};
use crate::generations::answer;
use crate::random_histories::RandomHistory;

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Service {
    pub(crate) app: TestApp,
    pub(crate) api: Api,
    pub(crate) key: String,
}

/// Raises the rate limit of the highest tier, because tests poll the API without long pauses.
pub(crate) async fn lift_limits(app: &TestApp) -> Result<()> {
    let lift =
        "update accounts.tiers set rate_per_minute = 1000000, burst = 1000000 where tier = 'professional'";
    app.sql(lift, &[]).await?;
    Ok(())
}

impl Service {
    async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(env: &[(&str, &str)]) -> Result<Self> {
        let app = TestApp::start().await?;
        lift_limits(&app).await?;
        let (api, key) = (app.api_serve_with(env).await?, app.key("professional").await?);
        Ok(Self { app, api, key })
    }

    pub(crate) async fn json(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text());
        reply.json()
    }

    /// Requests all pages of a list. Returns the rows and the list's `sync_from`, which a client sends as
    /// `updated_since` in its next request for changes. Returns `None` if the status is 404.
    pub(crate) async fn walk(&self, path: &str) -> Result<Option<(Vec<Value>, String)>> {
        let (mut rows, mut first, mut next) = (Vec::new(), None, String::new());
        loop {
            let reply = self.api.get(&format!("{path}{next}"), Some(&self.key)).await?;
            if reply.status == 404 {
                return Ok(None);
            }
            ensure!(reply.status == 200, "{path}{next}: {}", reply.text());
            let mut body = reply.json()?;
            let sync_from = body["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned();
            let first = first.get_or_insert_with(|| sync_from.clone());
            ensure!(*first == sync_from, "{path}: every page says where the first one stood");
            rows.extend(body["data"].as_array_mut().map(std::mem::take).unwrap_or_default());
            match body["meta"]["next_cursor"].as_str() {
                Some(cursor) => next = format!("&cursor={cursor}"),
                None => return Ok(Some((rows, sync_from))),
            }
        }
    }

    /// Returns the position in the change journal up to which the served tables are current.
    pub(crate) async fn position(&self) -> Result<i64> {
        let active: i32 = self.app.sql_value("select generation from control.active").await?;
        self.app.sql_value(&format!("select position from read_g{active}.version")).await
    }
}

/// Rebuilds the read tables as a new generation, and promotes the generation. About half of the rebuilds have a market
/// date (`--as-of`) of at most 39 days before `sequence.day`.
pub(crate) async fn promote(service: &Service, sequence: &mut RandomHistory) -> Result<()> {
    let day = (sequence.day - Days::new(sequence.random.random_range(0..40))).to_string();
    let mut arguments = vec!["rebuild"];
    if sequence.random.random_bool(0.5) {
        arguments.extend(["--as-of", &day]);
    }
    let built = answer(&service.app, &arguments).await?;
    let generation = built["generation"].as_i64().context("a generation")?.to_string();
    service.app.projector(&["promote", &generation, "--accept-diff"]).await?.success()?;
    Ok(())
}

async fn load(world: &World, name: &str, rows: &[Value]) -> Result<()> {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    world.app.feed(name, text).source("test").today("2024-06-17").load().await?;
    world.app.catch_up().await
}

/// Waits until a list has the expected number of changes since `since`, and returns the response.
async fn changes(world: &World, path: &str, since: &str, expected: usize) -> Result<Value> {
    eventually(PATIENCE, async || {
        let body = world.json(&format!("{path}?updated_since={since}")).await?;
        let count = body["data"].as_array().map_or(0, Vec::len);
        ensure!(count == expected, "{count} rows: {body}");
        Ok(body)
    })
    .await
}

#[tokio::test]
async fn corrections_and_retractions_are_told_one_by_one() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let path = "/v1/stocks/COLA/dividends";
    let since = world.json(path).await?["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned();
    assert_eq!(changes(&world, path, &since, 0).await?["meta"]["sync_from"], json!(since));
    load(
        &world,
        "news.ndjson",
        &[
            json!({ "kind": "dividend", "symbol": "COLA", "id": "c20249", "ex_date": "2024-09-13", "payment_date": "2024-09-30",
                    "declaration_date": "2024-06-01", "amount": "1.10", "frequency": "quarterly", "revision": 2 }),
            json!({ "kind": "dividend", "symbol": "COLA", "id": "c19943", "ex_date": "1994-03-13", "amount": "0.40", "action": "retract",
                    "revision": 2 }),
        ],
    )
    .await?;
    // The retraction of the first payment in 1994 also changes the row of the second payment, which now has no previous
    // payment.
    let body = changes(&world, path, &since, 3).await?;
    let mut statuses: Vec<String> = column(&body, "status").iter().map(Value::to_string).collect();
    statuses.sort();
    assert_eq!(statuses, ["\"cancelled\"", "\"declared\"", "\"paid\""]);
    let now = body["meta"]["sync_from"].as_str().context("a sync_from")?;
    changes(&world, path, now, 0).await?;

    // A split changes every earlier dividend of the symbol, and the adjustment factors of its prices.
    let factors = world.json("/v1/prices/COLA").await?["meta"]["factors_changed_at"].clone();
    load(
        &world,
        "split.ndjson",
        &[json!({ "kind": "split", "symbol": "COLA", "ex_date": "2024-06-03", "from": "4", "to": "5" })],
    )
    .await?;
    changes(&world, "/v1/stocks/COLA/splits", now, 2).await?;
    let market = world.json(&format!("/v1/dividends/history?updated_since={now}&limit=1000")).await?;
    let unscaled = market["data"].as_array().into_iter().flatten().filter(|row| row["split_factor"] == 1);
    // The first payment after the split changes too, because its growth since the previous payment changes.
    assert_eq!(unscaled.map(|row| &row["ex_date"]).collect::<Vec<_>>(), ["2024-06-13"], "{market}");
    let later = world.json("/v1/prices/COLA").await?["meta"]["factors_changed_at"].clone();
    assert!(later.as_str() > factors.as_str(), "{later} is not after {factors}");
    Ok(())
}

#[tokio::test]
async fn a_day_or_an_instant_begins_after_the_changes_before_it() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let path = "/v1/stocks/COLA/dividends";
    let row = json!({ "kind": "dividend", "symbol": "COLA", "ex_date": "2024-05-20", "amount": "0.01", "type": "special" });
    load(&world, "late.ndjson", &[row]).await?;
    let served = "select count(*) from read_g1.dividends where ex_date = '2024-05-20'";
    eventually(PATIENCE, async || {
        ensure!(world.app.sql_value::<i64>(served).await? == 1);
        Ok(())
    })
    .await?;
    let clock =
        |at: &str| format!("select to_char({at} at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')");
    let now: String = world.app.sql_value(&clock("clock_timestamp()")).await?;
    changes(&world, path, &now, 0).await?;
    let newest = "(select max(at) - interval '1 microsecond' from control.versions)";
    let before: String = world.app.sql_value(&clock(newest)).await?;
    changes(&world, path, &before, 1).await?;
    // A day begins at midnight in New York.
    world.app.sql("update control.versions set at = timestamptz '2024-06-18 03:59:59Z' where position < (select max(position) from control.versions)", &[]).await?;
    world
        .app
        .sql(
            "update control.versions set at = timestamptz '2024-06-18 04:00:01Z' where at > '2024-06-19'",
            &[],
        )
        .await?;
    world.app.sql("update control.journal set begun_at = '2024-06-01'", &[]).await?;
    changes(&world, path, "2024-06-18", 1).await?;
    changes(&world, path, "2024-06-19", 0).await?;
    let stream = world.get("/v1/changes?symbols=COLA&follow=false&since=2024-06-18").await?;
    assert!(stream.status == 200 && stream.text().contains("2024-05-20"), "{}", stream.text());
    Ok(())
}

#[tokio::test]
async fn changes_of_securities_in_different_chunks_are_told_one_by_one() -> Result<()> {
    // A derivation writes the changes chunk by chunk, with at most 128 securities in a chunk.
    let service = Service::start().await?;
    let symbols: Vec<String> = (100..400).map(|number| format!("S{number}")).collect();
    let dividend = |symbol: &str, ex_date: &str| {
        json!({ "kind": "dividend", "symbol": symbol, "id": format!("{symbol}-{ex_date}"), "ex_date": ex_date,
                "amount": "1", "frequency": "quarterly" })
    };
    let price =
        |symbol: &str, date: &str| json!({ "kind": "price", "symbol": symbol, "date": date, "close": "50" });
    let of_symbol = |symbol: &String| {
        [dividend(symbol, "2024-03-15"), dividend(symbol, "2024-06-14"), price(symbol, "2024-06-14")]
    };
    let load = async |name: &str, rows: Vec<Value>| {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        service.app.feed(name, text).source("test").today("2024-06-18").load().await?;
        service.app.catch_up().await
    };
    load("market.ndjson", symbols.iter().flat_map(of_symbol).collect()).await?;
    let rows = async |path: &str, count: usize| {
        eventually(PATIENCE, async || {
            let (rows, sync_from) = service.walk(path).await?.context("a served list")?;
            ensure!(rows.len() == count, "{path} has {} rows", rows.len());
            Ok((rows, sync_from))
        })
        .await
    };
    let (_, since) = rows("/v1/stocks/S399/dividends?limit=10", 2).await?;

    // With the price of the next session, all securities are derived. One dividend of each chunk is retracted.
    let retracted: Vec<&String> = symbols.iter().step_by(149).collect();
    let mut news: Vec<Value> = retracted.iter().map(|symbol| dividend(symbol, "2024-06-14")).collect();
    for row in &mut news {
        row["action"] = json!("retract");
        row["revision"] = json!(2);
    }
    news.push(price("S250", "2024-06-17"));
    load("news.ndjson", news).await?;
    let path = format!("/v1/dividends/history?limit=1000&updated_since={since}");
    let (changed, _) = rows(&path, retracted.len()).await?;
    let changed: BTreeSet<_> = changed
        .iter()
        .map(|row| [&row["symbol"], &row["ex_date"], &row["status"]].map(Value::to_string))
        .collect();
    let expected = retracted
        .iter()
        .map(|symbol| [symbol, "2024-06-14", "cancelled"].map(|text| json!(text).to_string()));
    assert_eq!(changed, expected.collect());
    Ok(())
}

#[tokio::test]
async fn a_copy_that_cannot_be_brought_into_step_is_told_so() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let path = "/v1/stocks/COLA/dividends";
    let since = world.json(path).await?["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned();
    for (query, param) in [
        ("updated_since=00000000.1", "updated_since"),
        ("updated_since=2001-01-01T00:00:00Z", "updated_since"),
        ("updated_since=yesterday", "updated_since"),
        (&format!("updated_since={since}&status=paid"), "status"),
        (&format!("updated_since={since}&start_date=2024-01-01"), "start_date"),
        (&format!("updated_since={since}&sort=ex_date.asc"), "sort"),
    ] {
        let (status, body) = world.refused(&format!("{path}?{query}"), &world.professional).await?;
        assert_eq!(status, 400, "{query}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": param }));
    }
    let market = format!("/v1/dividends/history?updated_since={since}");
    let (status, body) = world.refused(&market, &world.starter).await?;
    assert_eq!((status, &body["required_feature"]), (403, &json!("market_changes")));
    let (status, _) = world.refused("/v1/dividends/history", &world.professional).await?;
    assert_eq!(status, 400, "the whole market has no history of one list");

    // The change journal contains the changes of the last 400 days.
    world.app.sql("update control.changes set at = at - interval '401 days'", &[]).await?;
    load(&world, "late.ndjson", &[json!({ "kind": "dividend", "symbol": "COLA", "ex_date": "2024-05-20", "amount": "0.01", "type": "special" })]).await?;
    let begins: i64 = world.app.sql_value("select begins from control.journal").await?;
    assert!(begins > 0);
    let old = format!("{}.0", since.split('.').next().unwrap_or_default());
    let (status, body) = world.refused(&format!("{path}?updated_since={old}"), &world.professional).await?;
    assert_eq!((status, &body["param"]), (400, &json!("updated_since")));
    assert!(body["allowed"]["minimum"].is_string(), "{body}");
    changes(&world, path, &since, 1).await?;
    Ok(())
}
