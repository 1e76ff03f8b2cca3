//! Tests of notices: what happened to a security, from a feed file to the change stream and to the Atom feed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Reply, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::World;
use crate::change_feed::lift_limits;
use crate::change_stream::event_stream::{EventStream, StreamEvent};

const PATIENCE: Duration = Duration::from_secs(60);
const ALL: &str = "declared,raised,cut,special,suspended,resumed,corrected,cancelled,split,spin_off,renamed,delisted,\
                   ex_date_soon";

/// Service with the small market, and the place in the journal from which the tests read notices.
struct Market {
    world: World,
    since: String,
    files: usize,
}

fn security(symbol: &str) -> Value {
    json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "currency": "USD" })
}

fn dividend(symbol: &str, ex_date: &str, amount: &str) -> Value {
    json!({ "kind": "dividend", "symbol": symbol, "id": format!("{symbol}{ex_date}"), "ex_date": ex_date,
            "amount": amount, "frequency": "quarterly", "type": "regular" })
}

fn with(mut row: Value, more: Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        row[name] = value.clone();
    }
    row
}

/// Quarterly dividends of 0.50 with ex-dates from June 2023 to May 2024.
fn history(symbol: &str) -> Vec<Value> {
    let days = ["2023-06-01", "2023-09-01", "2023-12-01", "2024-03-01", "2024-05-31"];
    let dividends = days.map(|day| dividend(symbol, day, "0.50"));
    std::iter::once(security(symbol)).chain(dividends).collect()
}

impl Market {
    /// Starts the service. `symbols` are payers with a history.
    async fn start(symbols: &[&str]) -> Result<Self> {
        let world = World::start().await?;
        lift_limits(&world.app).await?;
        let mut market = Self { world, since: String::new(), files: 0 };
        let rows: Vec<Value> = symbols.iter().flat_map(|symbol| history(symbol)).collect();
        market.load(&rows).await?;
        market.since = market.position().await?;
        Ok(market)
    }

    async fn position(&self) -> Result<String> {
        let body = self.world.json("/v1/stocks/COLA/splits").await?;
        Ok(body["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned())
    }

    async fn load(&mut self, rows: &[Value]) -> Result<()> {
        self.files += 1;
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let name = format!("file-{}.ndjson", self.files);
        self.world.app.feed(&name, text).source("test").today("2024-06-17").load().await?;
        self.world.app.catch_up().await
    }

    /// Notices since the start of the test, as `SYMBOL word`. Reads until all changes of the loads are there.
    async fn stream(&self, query: &str) -> Result<Vec<StreamEvent>> {
        let position = self.served_position().await?;
        let query = format!("{query}&follow=false&since={}", self.since);
        eventually(PATIENCE, async || {
            let mut stream =
                EventStream::open(&self.world.api, &query, &self.world.professional, None).await?;
            let (events, end) = stream.read_to_end().await?;
            ensure!(end.position() >= Some(position), "the stream ended at {end:?}");
            Ok(events)
        })
        .await
    }

    async fn served_position(&self) -> Result<i64> {
        self.world.app.sql_value("select max(position) from control.versions").await
    }

    async fn words(&self, query: &str) -> Result<Vec<String>> {
        let events = self.stream(query).await?;
        let mut words: Vec<String> = events.iter().map(word).collect();
        words.sort();
        Ok(words)
    }

    async fn feed(&self, query: &str) -> Result<Reply> {
        let address = format!("/feed/{}/events.atom?{query}", self.world.professional);
        self.world.api.send(Method::GET, &address, &[]).await
    }
}

fn word(event: &StreamEvent) -> String {
    assert_eq!(event.data["event"], event.name);
    format!("{} {}", event.data["symbol"].as_str().unwrap_or_default(), event.name)
}

#[tokio::test]
async fn each_event_is_noticed_from_a_feed_file() -> Result<()> {
    let symbols = ["RAISE", "CUT", "SAME", "SPEC", "STOP", "FIX", "DROP", "SPLIT", "SPIN", "OLDN", "QUIT"];
    let mut market = Market::start(&symbols).await?;
    let announced = json!({ "declaration_date": "2024-06-13" });
    market
        .load(&[
            with(dividend("RAISE", "2024-08-30", "0.55"), announced.clone()),
            with(dividend("CUT", "2024-08-30", "0.25"), announced.clone()),
            with(dividend("SAME", "2024-08-30", "0.50"), announced.clone()),
            with(
                dividend("SPEC", "2024-07-10", "3.00"),
                json!({ "type": "special", "frequency": "irregular" }),
            ),
            with(security("STOP"), json!({ "revision": 1, "dividend_suspended_on": "2024-06-13" })),
            with(dividend("FIX", "2024-05-31", "0.60"), json!({ "revision": 1 })),
            with(dividend("DROP", "2024-05-31", "0.50"), json!({ "revision": 1, "action": "retract" })),
            json!({ "kind": "split", "symbol": "SPLIT", "ex_date": "2024-07-01", "from": "1", "to": "4" }),
            json!({ "kind": "split", "symbol": "SPIN", "ex_date": "2024-07-01", "from": "100", "to": "128",
                    "type": "spin_off" }),
            with(security("NEWN"), json!({ "former_symbols": [{ "symbol": "OLDN", "to": "2024-06-12" }] })),
            with(
                security("QUIT"),
                json!({ "revision": 1, "status": "delisted", "delisted_on": "2024-06-11" }),
            ),
            dividend("SOON", "2023-12-18", "0.50"),
            dividend("SOON", "2024-03-18", "0.50"),
            dividend("SOON", "2024-06-17", "0.50"),
        ])
        .await?;
    let expected = [
        "CUT cut",
        "CUT declared",
        "DROP cancelled",
        "FIX corrected",
        "NEWN renamed",
        "QUIT delisted",
        "RAISE declared",
        "RAISE raised",
        "SAME declared",
        "SOON declared",
        "SOON ex_date_soon",
        "SPEC special",
        "SPIN spin_off",
        "SPLIT split",
        "STOP suspended",
    ];
    assert_eq!(market.words(&format!("events={ALL}")).await?, expected);

    // The suspension ends.
    market.since = market.position().await?;
    market
        .load(&[with(security("STOP"), json!({ "revision": 2 })), dividend("STOP", "2024-08-30", "0.50")])
        .await?;
    assert_eq!(market.words(&format!("events={ALL}&symbols=STOP")).await?, ["STOP declared", "STOP resumed"]);
    Ok(())
}

#[tokio::test]
async fn a_notice_has_both_rows_and_its_cause() -> Result<()> {
    let mut market = Market::start(&["RAISE", "FIX"]).await?;
    market
        .load(&[
            dividend("RAISE", "2024-08-30", "0.55"),
            with(dividend("FIX", "2024-05-31", "0.60"), json!({ "revision": 1 })),
        ])
        .await?;
    let events = market.stream("events=raised,corrected&decimals=string").await?;
    assert_eq!(events.len(), 2, "{events:?}");
    for event in &events {
        let data = &event.data;
        let (before, after) = (&data["before"], &data["after"]);
        assert_eq!((&data["cause"], &data["kind"]), (&json!("data"), &json!("dividends")));
        assert_eq!((&after["id"], &after["symbol"]), (&data["id"], &data["symbol"]));
        match event.name.as_str() {
            "raised" => {
                assert_eq!((&before["ex_date"], &before["amount"]), (&json!("2024-05-31"), &json!("0.5")));
                assert_eq!((&after["amount"], &data["date"]), (&json!("0.55"), &json!("2024-08-30")));
            }
            _ => assert_eq!((&before["amount"], &after["amount"]), (&json!("0.5"), &json!("0.6"))),
        }
    }
    let numbers = market.stream("events=raised").await?;
    assert_eq!(numbers[0].data["after"]["amount"].to_string(), "0.55");
    let more = market.stream("kinds=statuses&events=raised").await?;
    assert!(
        more.iter().any(|event| event.name == "raised") && more.iter().all(|event| event.name != "corrected")
    );
    assert!(market.stream("cause=policy").await?.is_empty());
    // Without a selection, a client that copies rows gets no notices.
    let rows = market.stream("symbols=RAISE").await?;
    assert!(rows.iter().all(|event| ["upsert", "delete"].contains(&event.name.as_str())), "{rows:?}");
    let (status, body) = market.world.refused("/v1/changes?events=rised", &market.world.professional).await?;
    assert_eq!((status, &body["param"]), (400, &json!("events")), "{body}");
    Ok(())
}

#[tokio::test]
async fn the_next_session_before_an_ex_date_gives_a_notice_once() -> Result<()> {
    let mut market = Market::start(&["SOON"]).await?;
    market.load(&[dividend("SOON", "2024-06-18", "0.50")]).await?;
    assert!(market.words("events=ex_date_soon").await?.is_empty());
    // The market date moves from Friday, 14 June, to Monday.
    let bar = json!({ "kind": "price", "symbol": "COLA", "date": "2024-06-17", "close": "51" });
    market.load(&[bar]).await?;
    assert_eq!(market.words("events=ex_date_soon").await?, ["SOON ex_date_soon"]);
    market.load(&[dividend("SOON", "2024-08-30", "0.50")]).await?;
    assert_eq!(market.words("events=ex_date_soon").await?, ["SOON ex_date_soon"]);
    Ok(())
}

#[tokio::test]
async fn a_notice_of_another_release_is_served_without_its_rows() -> Result<()> {
    let mut market = Market::start(&["RAISE"]).await?;
    market.load(&[dividend("RAISE", "2024-08-30", "0.55")]).await?;
    market.words("events=raised").await?;
    let stored = r#"update control.notices set after = '{"symbol": "RAISE"}' where event = 'raised'"#;
    market.world.app.sql(stored, &[]).await?;
    let events = market.stream("events=raised").await?;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0].data["after"], &events[0].data["symbol"]), (&Value::Null, &json!("RAISE")));
    assert_eq!(market.feed("symbols=RAISE").await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn old_history_and_promotions_give_no_notice() -> Result<()> {
    let mut market = Market::start(&[]).await?;
    market.load(&history("LATE")).await?;
    // The dividend of 31 May is ten sessions old, the others are older.
    assert_eq!(market.words("events=declared").await?, ["LATE declared"]);
    market.load(&[dividend("LATE", "2024-04-15", "0.40"), dividend("LATE", "2024-01-15", "0.40")]).await?;
    assert_eq!(market.words("events=declared").await?, ["LATE declared"]);
    assert_eq!(market.words("events=declared,special").await?, ["LATE declared"]);
    let backfilled = market.words("events=declared,special&backfill=true").await?;
    assert_eq!(backfilled, ["LATE declared", "LATE special"]);
    Ok(())
}

#[tokio::test]
async fn a_change_of_rules_or_policy_gives_a_notice_only_if_asked() -> Result<()> {
    let mut market = Market::start(&["PAYER"]).await?;
    market.load(&history("QUIET")[..5]).await?;
    let app = &market.world.app;
    let other = with(dividend("PAYER", "2024-05-31", "0.60"), json!({ "id": "other" }));
    app.feed("other.ndjson", format!("{other}\n")).source("other").today("2024-06-17").load().await?;
    app.catch_up().await?;
    market.since = market.position().await?;
    let served = market.world.json("/v1/stocks/PAYER/dividends?limit=1").await?["data"][0]["source"].clone();
    let source = if served == "test" { "other" } else { "test" };
    app.projector(&["policy", "set", "dividend", source, "--rank", "1", "--now"]).await?.success()?;
    app.catch_up().await?;
    assert!(market.words(&format!("events={ALL}")).await?.is_empty());
    assert_eq!(market.words(&format!("events={ALL}&cause=policy")).await?, ["PAYER corrected"]);
    market.since = market.position().await?;

    app.projector(&["rebuild", "--rule", "status.lapse_periods=1"]).await?.success()?;
    app.projector(&["promote", "2", "--accept-diff", "--accept-rules"]).await?.success()?;
    assert!(market.words(&format!("events={ALL}")).await?.is_empty());
    let changed = market.words(&format!("events={ALL}&cause=rule,promotion")).await?;
    assert_eq!(changed, ["QUIET suspended"]);
    Ok(())
}

#[tokio::test]
async fn notices_before_a_rename_are_those_of_the_new_symbol_too() -> Result<()> {
    let mut market = Market::start(&[]).await?;
    let days = [("2023-12-08", "0.50"), ("2024-03-08", "0.50"), ("2024-06-10", "0.55")];
    market.load(&days.map(|(day, amount)| dividend("OLDP", day, amount))).await?;
    assert_eq!(market.words("events=raised").await?, ["OLDP raised"]);
    let renamed = json!({ "former_symbols": [{ "symbol": "OLDP", "to": "2024-06-12" }] });
    market.load(&[with(security("NEWP"), renamed)]).await?;
    let expected = ["NEWP renamed", "OLDP raised"];
    assert_eq!(market.words("events=raised,renamed&symbols=NEWP").await?, expected);
    let text = market.feed("symbols=NEWP").await?.text();
    assert!(text.contains("OLDP is renamed to NEWP") && text.contains("OLDP raised its dividend"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_feed_reader_is_notified() -> Result<()> {
    let mut market = Market::start(&["RAISE"]).await?;
    market.load(&[dividend("RAISE", "2024-08-30", "0.55")]).await?;
    market.stream("events=raised").await?;
    let feed = market.feed("symbols=RAISE,NOWHERE&events=raised,cut").await?;
    assert_eq!(feed.status, 200, "{}", feed.text());
    assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    let text = feed.text();
    let title = "RAISE raised its dividend from 0.5 to 0.55 USD, ex-date 2024-08-30";
    assert!(text.contains(title) && text.contains("Unknown symbols: NOWHERE"), "{text}");
    assert_eq!(text.matches("<entry>").count(), 1, "{text}");
    let tag = feed.header("etag").context("an entity tag")?.to_owned();
    let address =
        format!("/feed/{}/events.atom?symbols=RAISE,NOWHERE&events=raised,cut", market.world.professional);
    let unchanged = market.world.api.send(Method::GET, &address, &[("if-none-match", tag)]).await?;
    assert_eq!(unchanged.status, 304);

    let declared = market.feed("symbols=RAISE").await?;
    assert!(declared.text().contains("RAISE declared a dividend of 0.55 USD"), "{}", declared.text());
    for (query, status) in [
        ("", 400),
        ("symbols=RAISE&portfolio=mine", 400),
        ("portfolio=mine", 404),
        ("symbols=RAISE&events=none", 400),
        ("symbols=RAISE&limit=2", 400),
    ] {
        let refused = market.feed(query).await?;
        assert_eq!(refused.status, status, "{query}: {}", refused.text());
    }
    let foreign =
        market.world.api.send(Method::GET, "/feed/dds_live_wrong/events.atom?symbols=RAISE", &[]).await?;
    assert_eq!(foreign.status, 401);
    Ok(())
}
