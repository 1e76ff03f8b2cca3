//! Tests of the change stream. A client that applies its events has the same rows as a full download.
//!
//! To repeat a failed run, set the environment variable `STREAM_SEED` to the seed in the error message.

mod copy;
pub(crate) mod event_stream;
mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Program, eventually, number_variable};
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use crate::api_world::World;
use crate::change_feed::{Service, lift_limits, promote};
use crate::random_histories::{self, RandomHistory, SOURCES};
use copy::StreamCopy;
use event_stream::{EventStream, StreamEvent};

const PATIENCE: Duration = Duration::from_secs(120);
const STEPS: usize = 12;
/// Symbols that the second client follows. The first client follows the whole market.
const FOLLOWED: [&str; 3] = ["S00", "S01", "S02"];
/// Sets the interval between heartbeats to 100 ms, so that a stream without changes soon reports its position.
const HEARTBEAT: (&str, &str) = ("CHANGE_STREAM_HEARTBEAT_MS", "100");

/// Starts a projector and kills it after `pause`. Then starts another projector, which applies the rest of the log.
async fn catch_up_after_a_crash(service: &Service, pause: Duration) -> Result<()> {
    let mut projector = service.app.spawn(Program::Projector, &["run"]).await?;
    let _ = projector.wait(pause).await;
    projector.kill9()?;
    service.app.catch_up().await
}

async fn change_market(service: &Service, step: usize, sequence: &mut RandomHistory) -> Result<()> {
    let source = SOURCES.choose(&mut sequence.random).copied().unwrap_or("left");
    match sequence.random.random_range(0..13) {
        _ if step % 4 == 3 => promote(service, sequence).await?,
        0..3 => random_histories::load(&service.app, step, source, &sequence.next_day()).await?,
        3..6 => {
            let news: Vec<Value> = (0..4).flat_map(|_| sequence.news()).collect();
            random_histories::load(&service.app, step, source, &news).await?;
        }
        6 => random_histories::change_policy(&service.app, &mut sequence.random).await?,
        7 => random_histories::decide(&service.app, &mut sequence.random).await?,
        8 | 9 => random_histories::stage(&service.app, step, source, &sequence.next_day()).await?,
        10 | 11 => random_histories::change_random_run(&service.app, &mut sequence.random).await?,
        // The exit code is ignored, because there may be no earlier generation to roll back to.
        _ => drop(service.app.projector(&["rollback", "--stale-ok"]).await?),
    }
    Ok(())
}

async fn run(seed: u64) -> Result<()> {
    let mut sequence = RandomHistory::new(seed);
    let mut service = Service::start_with(&[HEARTBEAT]).await?;
    let (_, start) = service.walk("/v1/dividends/history?symbols=S00").await?.context("an answer")?;
    let mut copies = [StreamCopy::starting_at(&start, &[]), StreamCopy::starting_at(&start, &FOLLOWED)];
    let mut symbols = BTreeSet::new();
    let first = json!({ "kind": "dividend", "symbol": "S00", "ex_date": sequence.day, "amount": "0.50" });
    random_histories::load(&service.app, STEPS, "left", &[first]).await?;
    for step in 0..STEPS {
        change_market(&service, step, &mut sequence).await?;
        if sequence.random.random_bool(0.3) {
            let pause = Duration::from_millis(sequence.random.random_range(0..800));
            catch_up_after_a_crash(&service, pause).await?;
        } else {
            service.app.catch_up().await?;
        }
        if sequence.random.random_bool(0.2) {
            service.api.process.kill9()?;
            service.api = service.app.api_serve_with(&[HEARTBEAT]).await?;
        }
        symbols.extend(sequence.symbols.iter().cloned());
        let position = service.position().await?;
        for (number, copy) in copies.iter_mut().enumerate() {
            let place = || format!("client {number} in step {step}");
            // Each client skips some steps, but not the last one. In the other steps, it may first disconnect up to
            // three times.
            if step + 1 < STEPS && sequence.random.random_bool(0.25) {
                continue;
            }
            for _ in 0..sequence.random.random_range(0..4) {
                let events = sequence.random.random_range(1..6);
                copy.follow_for(&service, position, events).await.with_context(place)?;
            }
            copy.follow(&service, position).await.with_context(place)?;
            copy.is_complete(&service, &symbols).await.with_context(place)?;
        }
    }
    let events: usize = copies.iter().map(StreamCopy::events).sum();
    ensure!(events > STEPS, "only {events} events came");
    Ok(())
}

#[tokio::test]
async fn a_client_of_the_stream_has_what_a_full_download_has() -> Result<()> {
    let seed = number_variable("STREAM_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    run(seed).await.with_context(|| format!("repeat with STREAM_SEED={seed}"))
}

async fn load(world: &World, name: &str, rows: &[Value]) -> Result<()> {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    world.app.feed(name, text).source("test").today("2024-06-17").load().await?;
    world.app.catch_up().await
}

/// Returns a value for the parameters `updated_since` and `since`. A request with this value returns only changes that
/// happen after this call.
async fn sync_point(world: &World) -> Result<String> {
    let body = world.json("/v1/stocks/COLA/splits").await?;
    Ok(body["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned())
}

async fn open(world: &World, query: &str, last: Option<&str>) -> Result<EventStream> {
    EventStream::open(&world.api, query, &world.professional, last).await
}

#[tokio::test]
async fn a_stream_resumes_within_a_commit() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let since = sync_point(&world).await?;
    // The split changes every earlier dividend.
    let split = json!({ "kind": "split", "symbol": "COLA", "ex_date": "2024-06-03", "from": "4", "to": "5" });
    load(&world, "split.ndjson", &[split]).await?;
    let whole = format!("symbols=COLA&follow=false&since={since}");
    let (all, end) = eventually(PATIENCE, async || {
        let (all, end) = open(&world, &whole, None).await?.read_to_end().await?;
        ensure!(!all.is_empty(), "no change yet");
        Ok((all, end))
    })
    .await?;
    assert_eq!(end.data, json!({ "code": "CAUGHT_UP" }));
    assert!(all.len() > 100, "{}", all.len());
    // The header `Last-Event-ID` has precedence over `since`. A browser reconnects with the header and the original
    // query.
    let mut resumed: Vec<StreamEvent> = Vec::new();
    for count in (1..).step_by(17) {
        let last = resumed.last().map_or(since.clone(), |event| event.id.clone());
        let mut stream = open(&world, &whole, Some(&last)).await?;
        let before = resumed.len();
        while resumed.len() < before + count {
            match stream.next().await? {
                Some(event) if event.is_change() => resumed.push(event),
                Some(_) => {}
                None => break,
            }
        }
        if resumed.len() == before {
            break;
        }
    }
    let data = |events: &[StreamEvent]| events.iter().map(|event| event.data.clone()).collect::<Vec<_>>();
    assert_eq!(data(&resumed), data(&all));
    assert_eq!(resumed.last().and_then(StreamEvent::position), end.position());
    // An event id is also a valid `updated_since`. If the event is in the middle of a commit, the response starts with
    // the first change of the commit.
    let path = format!("/v1/stocks/COLA/dividends?limit=100&updated_since={}", all[3].id);
    assert_eq!(world.json(&path).await?["meta"]["has_more"], true);
    Ok(())
}

async fn download(world: &World, symbol: &str) -> Result<Copy> {
    let body =
        world.json(&format!("/v1/dividends/history?limit=1000&decimals=string&symbols={symbol}")).await?;
    let rows = body["data"].as_array().context("rows")?.iter();
    rows.map(|row| Ok((row["id"].as_str().context("an id")?.to_owned(), row.clone()))).collect()
}

/// Rows by id.
type Copy = BTreeMap<String, Value>;

fn apply(copy: &mut Copy, event: &StreamEvent) {
    let (_, id) = event.key();
    match event.name.as_str() {
        "upsert" => drop(copy.insert(id, event.data["row"].clone())),
        _ => drop(copy.remove(&id)),
    }
}

#[tokio::test]
async fn a_symbol_is_followed_to_a_known_security_and_back() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let dividend = |symbol: &str, day: &str| json!({ "kind": "dividend", "symbol": symbol, "ex_date": day, "amount": "0.10" });
    let before = ["2024-05-01", "2024-05-08"].map(|day| dividend("OLDX", day));
    let other = ["2024-05-02", "2024-05-09"].map(|day| dividend("NEWX", day));
    load(&world, "both.ndjson", &[before, other].concat()).await?;
    let query = "symbols=OLDX&kinds=dividends&decimals=string";
    let mut live = open(&world, query, None).await?;
    let mut copies =
        [download(&world, "OLDX").await?, download(&world, "OLDX").await?, download(&world, "OLDX").await?];
    let mut since = sync_point(&world).await?;
    let rename = |action: &str, revision: i32| {
        json!({ "kind": "security", "symbol": "NEWX", "name": "New Company", "type": "stock", "action": action,
                "revision": revision, "former_symbols": [{ "symbol": "OLDX", "to": "2024-05-31" }] })
    };
    for (number, (news, size)) in [(rename("put", 0), 4), (rename("retract", 1), 2)].into_iter().enumerate() {
        load(&world, &format!("news-{number}.ndjson"), &[news]).await?;
        let expected = eventually(PATIENCE, async || {
            let rows = download(&world, "OLDX").await?;
            ensure!(rows.len() == size, "{rows:?}");
            Ok(rows)
        })
        .await?;
        let [followed, resumed, synchronized] = &mut copies;
        while *followed != expected {
            apply(followed, &live.next_change().await?);
        }
        let (events, _) =
            open(&world, &format!("{query}&follow=false&since={since}"), None).await?.read_to_end().await?;
        events.iter().for_each(|event| apply(resumed, event));
        assert_eq!(*resumed, expected);
        let path =
            format!("/v1/dividends/history?limit=1000&decimals=string&symbols=OLDX&updated_since={since}");
        let body = world.json(&path).await?;
        for row in body["data"].as_array().into_iter().flatten() {
            let id = row["id"].as_str().context("an id")?.to_owned();
            let is_removed = row["status"] == "cancelled";
            drop(if is_removed { synchronized.remove(&id) } else { synchronized.insert(id, row.clone()) });
        }
        assert_eq!(*synchronized, expected);
        since = body["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned();
    }
    Ok(())
}

#[tokio::test]
async fn every_kind_of_change_arrives_while_the_stream_is_open() -> Result<()> {
    let world = World::start().await?;
    lift_limits(&world.app).await?;
    let mut everything = open(&world, "decimals=string", None).await?;
    let mut renamed = open(&world, "symbols=OLDCO&kinds=events,dividends", None).await?;
    let start = [everything.next().await?, renamed.next().await?];
    assert!(start.iter().flatten().all(|event| event.name.is_empty() && event.position().is_some()));
    let rename = json!({ "kind": "security", "symbol": "NEXTCO", "name": "Next Company", "type": "stock",
        "former_symbols": [{ "symbol": "OLDCO", "to": "2022-06-08" }, { "symbol": "NEWCO", "to": "2024-06-07" }] });
    // The high-yield list contains only active securities, so the delisting removes COLA from the list.
    let delisted = json!({ "kind": "security", "symbol": "COLA", "name": "Cola Company", "type": "stock",
        "status": "delisted", "delisted_on": "2024-06-13" });
    load(&world, "news.ndjson", &[rename, delisted]).await?;
    // A stream that follows a former symbol also gets later changes of the new symbol.
    let dividend =
        json!({ "kind": "dividend", "symbol": "NEXTCO", "ex_date": "2024-06-12", "amount": "0.10" });
    load(&world, "dividend.ndjson", &[dividend]).await?;
    let mut kinds = BTreeSet::new();
    while kinds.len() < 5 {
        let event = everything.next_change().await.with_context(|| format!("only {kinds:?}"))?;
        let (kind, id) = event.key();
        let row = &event.data["row"];
        match (kind.as_str(), id.as_str()) {
            ("lists", "COLA") => {
                assert_eq!((event.name.as_str(), row), ("delete", &Value::Null), "{event:?}")
            }
            // The status becomes active only after the dividend is applied. Events with an earlier status are skipped.
            ("statuses", "NEXTCO") if row["dividend_status"] == "active" => {}
            ("events", "NEXTCO") => assert_eq!(row["events"].as_array().map(Vec::len), Some(2), "{event:?}"),
            ("factors", "NEXTCO") if !row.is_null() => {
                assert_eq!(row["factors"][0]["ex_date"], "2024-06-12", "{event:?}")
            }
            ("dividends", _) if row["symbol"] == "NEXTCO" => assert_eq!(row["amount"], "0.1", "{event:?}"),
            _ => continue,
        }
        kinds.insert(kind);
    }
    let mut keys = BTreeSet::new();
    while !keys.contains("dividends") {
        let event = renamed.next_change().await?;
        assert!(["NEWCO", "NEXTCO"].iter().any(|symbol| event.data["symbol"] == **symbol), "{event:?}");
        keys.insert(event.key().0);
    }
    assert_eq!(keys, BTreeSet::from(["dividends".to_owned(), "events".to_owned()]));
    Ok(())
}
