//! Tests of the limits of change streams: plans, quotas, deleted keys, slow clients, and instances that stop.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use harness::{Api, Signal, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::event_stream::{self, EventStream, StreamEvent, request};
use super::{load, open, sync_point};
use crate::api_world::{World, check};
use crate::change_feed::lift_limits;

const PATIENCE: Duration = Duration::from_secs(120);

fn dividend(amount: &str) -> Value {
    json!({ "kind": "dividend", "symbol": "COLA", "id": "d", "ex_date": "2024-05-20", "amount": amount, "type": "special" })
}

/// Requests a stream. Returns the status and the body of the response.
async fn refused(world: &World, query: &str, key: &str) -> Result<(u16, Value)> {
    let response = request(&world.api, query, key, None).await?;
    let status = response.status().as_u16();
    let body = tokio::time::timeout(PATIENCE, response.json()).await.context("a stream opened")?;
    Ok((status, body?))
}

#[tokio::test]
async fn a_stream_is_refused_like_any_request() -> Result<()> {
    let world = World::start().await?;
    let (status, body) = refused(&world, "", &world.starter).await?;
    assert_eq!((status, &body["required_feature"]), (403, &json!("market_changes")));
    for (query, param) in [
        ("symbols=COLA&since=00000000.1", "since"),
        ("symbols=COLA&since=2001-01-01T00:00:00Z", "since"),
        ("symbols=COLA&since=yesterday", "since"),
        ("symbols=COLA&since=2999-01-01T00:00:00Z", "since"),
        ("symbols=COLA&kinds=prices", "kinds"),
        ("symbols=COLA&limit=1", "limit"),
    ] {
        let (status, body) = refused(&world, query, &world.professional).await?;
        assert_eq!(status, 400, "{query}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": param }));
    }
    // A place that the journal has not reached yet, for example after a restore of an older backup.
    let ahead = ahead_of(&sync_point(&world).await?)?;
    let (status, body) = refused(&world, &format!("symbols=COLA&since={ahead}"), &world.professional).await?;
    assert_eq!(status, 400, "{body}");
    check(&body, json!({ "code": "INVALID_PARAMETER", "param": "since" }));
    assert!(
        body["error"].as_str().is_some_and(|error| error.contains("after the last recorded change")),
        "{body}"
    );
    let polled = format!("/v1/dividends/history?symbols=COLA&updated_since={ahead}");
    let (status, body) = world.refused(&polled, &world.professional).await?;
    assert_eq!((status, &body["param"]), (400, &json!("updated_since")), "{body}");
    let bad = request(&world.api, "symbols=COLA", &world.professional, Some("7f3a9c1d.1.W10")).await?;
    assert_eq!((bad.status().as_u16(), &bad.json::<Value>().await?["param"]), (400, &json!("Last-Event-ID")));
    Ok(())
}

/// Place of the same journal as `place`, a thousand positions later.
fn ahead_of(place: &str) -> Result<String> {
    let (journal, position) = place.split_once('.').context("a journal")?;
    let position: i64 = position.split('.').next().context("a position")?.parse()?;
    Ok(format!("{journal}.{}", position + 1_000))
}

#[tokio::test]
async fn streams_above_a_lower_plan_end_without_a_change() -> Result<()> {
    let world = World::start_with(&[("CHANGE_STREAMS", "1,2,5,50")]).await?;
    world.app.create_account("down@example.com", "professional").await?;
    let key = world.app.create_key("down@example.com", "programs").await?;
    let open = async |query: &'static str| EventStream::open(&world.api, query, &key, None).await;
    let (mut first, mut market, mut third) =
        (open("symbols=COLA").await?, open("kinds=splits").await?, open("symbols=COLA").await?);
    world.app.api(&["account", "set-tier", "down@example.com", "starter"]).await?.success()?;
    let (_, end) =
        tokio::time::timeout(PATIENCE, market.read_to_end()).await.context("the stream is open")??;
    check(&end.data, json!({ "code": "FEATURE_NOT_AVAILABLE", "current_tier": "starter" }));
    let (_, end) =
        tokio::time::timeout(PATIENCE, third.read_to_end()).await.context("the stream is open")??;
    check(&end.data, json!({ "code": "TOO_MANY_STREAMS" }));
    // The first stream is within the plan. A slot is free again, because the stream of the market has ended.
    load(&world, "news.ndjson", &[dividend("0.10")]).await?;
    first.next_change().await?;
    let _second = eventually(PATIENCE, async || open("symbols=COLA").await).await?;
    assert_eq!(request(&world.api, "symbols=COLA", &key, None).await?.status(), 429);
    Ok(())
}

#[tokio::test]
async fn a_plan_has_a_number_of_open_streams_and_a_depth() -> Result<()> {
    let world = World::start_with(&[("CHANGE_STREAMS", "2,5,10,50")]).await?;
    let since = sync_point(&world).await?;
    let query = format!("symbols=COLA&since={since}");
    let free = || EventStream::open(&world.api, &query, &world.free, None);
    let (mut first, second) = (free().await?, free().await?);
    let (status, body) = refused(&world, &query, &world.free).await?;
    assert_eq!((status, &body["code"]), (429, &json!("TOO_MANY_STREAMS")), "{body}");
    drop(second);
    let _third = eventually(PATIENCE, async || free().await).await?;
    // The history of the free plan begins a year ago, so the stream skips the dividend of 2010.
    let old = json!({ "kind": "dividend", "symbol": "COLA", "id": "c20103", "ex_date": "2010-03-13",
        "amount": "0.91", "frequency": "quarterly", "revision": 2 });
    load(&world, "news.ndjson", &[old, dividend("0.10")]).await?;
    let event = loop {
        let event = first.next_change().await?;
        if event.data["kind"] == "dividends" {
            break event;
        }
    };
    assert_eq!(event.data["row"]["ex_date"], "2024-05-20", "{event:?}");
    Ok(())
}

#[tokio::test]
async fn all_instances_share_the_limit_of_open_streams() -> Result<()> {
    let limits = ("CHANGE_STREAMS", "2,5,10,2");
    let world = World::start_with(&[limits]).await?;
    lift_limits(&world.app).await?;
    let key = world.professional.clone();
    let mut second = world.app.api_serve_with(&[limits]).await?;
    let open = async |api: &Api| EventStream::open(api, "symbols=COLA", &key, None).await;
    let is_refused = async |api: &Api| -> Result<bool> {
        let response = request(api, "symbols=COLA", &key, None).await?;
        Ok(response.status() == 429 && response.json::<Value>().await?["code"] == "TOO_MANY_STREAMS")
    };
    let (first, mut other) = (open(&world.api).await?, open(&second).await?);
    assert!(is_refused(&world.api).await? && is_refused(&second).await?);
    // Each open stream has a lease in `accounts.stream_slots`, which its instance renews.
    let expiry = "select min(expires_at) from accounts.stream_slots";
    let before: DateTime<Utc> = world.app.sql_value(expiry).await?;
    eventually(PATIENCE, async || {
        let now: DateTime<Utc> = world.app.sql_value(expiry).await?;
        ensure!(now > before, "{now}");
        Ok(())
    })
    .await?;
    drop(first);
    let mut again = eventually(PATIENCE, async || open(&second).await).await?;
    // A stream ends if its row in `accounts.stream_slots` belongs to another instance.
    let slot = "(select max(slot) from accounts.stream_slots)";
    world.app.sql(&format!("update accounts.stream_slots set instance = 0 where slot = {slot}"), &[]).await?;
    let (_, end) = tokio::select! {
        ended = other.read_to_end() => ended?,
        ended = again.read_to_end() => ended?,
    };
    check(&end.data, json!({ "code": "SERVICE_UNAVAILABLE" }));
    // The streams of a killed instance count against the limit until their leases end.
    second.process.kill9()?;
    assert!(is_refused(&world.api).await?);
    world.app.sql("update accounts.stream_slots set expires_at = now()", &[]).await?;
    let _third = open(&world.api).await?;
    let _fourth = open(&world.api).await?;
    assert!(is_refused(&world.api).await?);
    Ok(())
}

#[tokio::test]
async fn deliveries_are_charged_and_a_used_quota_ends_the_stream() -> Result<()> {
    let world = World::start().await?;
    let key = world.app.key("professional").await?;
    let account = "select max(account_id) from accounts.limiter";
    let used = format!("select used from accounts.limiter where account_id = ({account})");
    let mut stream = EventStream::open(&world.api, "symbols=COLA&kinds=dividends", &key, None).await?;
    stream.next().await?;
    load(&world, "one.ndjson", &[dividend("0.10")]).await?;
    let first = stream.next_change().await?;
    assert_eq!(world.app.sql_value::<i64>(&used).await?, 2, "one request, one delivery");
    let limit = "update accounts.limiter set used = 1000000 where account_id = ";
    world.app.sql(&format!("{limit} ({account})"), &[]).await?;
    load(&world, "two.ndjson", &[dividend("0.20")]).await?;
    let (_, end) = stream.read_to_end().await?;
    check(&end.data, json!({ "code": "QUOTA_EXCEEDED" }));
    let position = |id: &str| id.split('.').nth(1).and_then(|number| number.parse::<i64>().ok());
    assert!(position(&end.id) >= position(&first.id), "{end:?}");
    // After the quota is reset, the stream continues with the change that was not delivered.
    world
        .app
        .sql(&format!("update accounts.limiter set used = 0 where account_id = ({account})"), &[])
        .await?;
    let mut stream =
        EventStream::open(&world.api, "symbols=COLA&kinds=dividends", &key, Some(&end.id)).await?;
    let next = stream.next_change().await?;
    assert_eq!(next.data["row"]["amount"], json!(0.2), "{next:?}");
    Ok(())
}

#[tokio::test]
async fn the_stream_of_a_deleted_key_ends_at_once() -> Result<()> {
    // No heartbeat comes during the test, and no change, so only the deletion can end the stream.
    let world = World::start_with(&[("CHANGE_STREAM_HEARTBEAT_MS", "600000")]).await?;
    world.app.create_account("holder@example.com", "starter").await?;
    let key = world.app.create_key("holder@example.com", "first").await?;
    let opened = request(&world.api, "symbols=COLA", &key, None).await?;
    assert_eq!(opened.headers()["cache-control"], "no-store", "only the client may keep the stream");
    drop(opened);
    let mut stream = EventStream::open(&world.api, "symbols=COLA", &key, None).await?;
    let mut other = open(&world, "symbols=COLA", None).await?;
    stream.next().await?;
    other.next().await?;
    world.app.sql("update accounts.api_keys set revoked_at = now() where name = 'first'", &[]).await?;
    let (_, end) = stream.read_to_end().await?;
    check(&end.data, json!({ "code": "INVALID_API_KEY" }));
    load(&world, "news.ndjson", &[dividend("0.10")]).await?;
    other.next_change().await?;
    Ok(())
}

#[tokio::test]
async fn a_stopping_instance_names_a_place_to_continue() -> Result<()> {
    let mut world = World::start().await?;
    let mut stream = open(&world, "symbols=COLA", None).await?;
    let first = stream.next().await?.context("an event")?;
    world.api.process.signal(Signal::TERM)?;
    let (_, end) = stream.read_to_end().await?;
    check(&end.data, json!({ "code": "SERVICE_UNAVAILABLE" }));
    assert_eq!(end.id, first.id);
    let status = world.api.process.wait(Duration::from_secs(120)).await?;
    assert!(status.success(), "{status}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_cut_off_and_can_continue() -> Result<()> {
    let world = World::start_with(&[("API_WRITE_TIMEOUT_MS", "60000")]).await?;
    lift_limits(&world.app).await?;
    let since = sync_point(&world).await?;
    let mut slow = TcpStream::connect(world.api.base_url.trim_start_matches("http://")).await?;
    let head = format!(
        "GET /v1/changes?kinds=dividends HTTP/1.1\r\nhost: a\r\nconnection: close\r\nlast-event-id: {since}\r\nx-api-key: {}\r\n\r\n",
        world.professional
    );
    slow.write_all(head.as_bytes()).await?;
    let mut received = vec![0; 64];
    slow.read_exact(&mut received).await?;
    // The changes of this load are too large for the instance's memory and the kernel's buffers of a connection.
    let day = |number: u32| chrono::NaiveDate::from_num_days_from_ce_opt(720_000 + number as i32);
    let rows: Vec<Value> = (0..20)
        .flat_map(|symbol| (0..1_500).map(move |number| (symbol, number)))
        .map(|(symbol, number)| {
            json!({ "kind": "dividend", "symbol": format!("T{symbol}"), "ex_date": day(number * 3), "amount": "0.10" })
        })
        .collect();
    load(&world, "many.ndjson", &rows).await?;
    let mut fast = open(&world, "kinds=dividends", Some(&since)).await?;
    fast.next_change().await?;
    // When the fast client has every change, the instance has also offered every change to the slow client.
    let position: i64 = world.app.sql_value("select position from read_g1.version").await?;
    loop {
        let event = fast.next().await?.context("an event")?;
        if event.position().is_some_and(|reached| reached >= position) {
            break;
        }
    }
    tokio::time::timeout(PATIENCE, slow.read_to_end(&mut received)).await.context("it goes on")??;
    let text = String::from_utf8_lossy(&received).into_owned();
    ensure!(text.contains("STREAM_LAGGED"), "no cut: …{:.500}", &text[text.len().saturating_sub(500)..]);
    let last = text.rsplit("id: ").next().and_then(|rest| rest.lines().next()).context("an id")?.to_owned();
    let (rest, end) = open(&world, "kinds=dividends&follow=false", Some(&last)).await?.read_to_end().await?;
    assert_eq!(end.data["code"], "CAUGHT_UP");
    // A row that changed twice has two events with different ids, so events and rows are counted separately.
    let events = text.split("\n\n").filter(|event| event.contains("event: upsert"));
    let first = events.map(event_stream::parse).collect::<Result<Vec<_>>>()?;
    let all = || first.iter().chain(&rest);
    assert_eq!(
        all().map(|event| &event.id).collect::<BTreeSet<_>>().len(),
        all().count(),
        "an event came twice"
    );
    let stored = "select count(*) from read_g1.dividends where symbol like 'T%' and id is not null";
    let rows = all().map(StreamEvent::key).collect::<BTreeSet<_>>().len();
    assert_eq!(i64::try_from(rows)?, world.app.sql_value::<i64>(stored).await?);
    Ok(())
}
