//! Tests of faults that the programs survive. Every acknowledged row is in the tables once. Only a bad row becomes a
//! dead letter.
//!
//! The expected tables come from a load of the same feed without a fault.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_nats::HeaderMap;
use async_nats::jetstream;
use harness::{NatsCluster, Program, Servers, Signal, TestApp, eventually, generate_market};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);

fn prices(symbol: &str, days: std::ops::RangeInclusive<u32>) -> String {
    let rows: String = days.map(|day| format!("{symbol},2024-06-{day:02},{day}.5\n")).collect();
    format!("symbol,date,close\n{rows}")
}

async fn closes_at(app: &TestApp, symbol: &str, close: &str, limit: Duration) -> Result<()> {
    let query =
        format!("select coalesce(max(price::text), '') from read_g1.quotes where symbol = '{symbol}'");
    eventually(limit, async || {
        let found: String = app.sql_value(&query).await?;
        ensure!(found == close, "{symbol} closes at {found:?}");
        Ok(())
    })
    .await
}

async fn holder(app: &TestApp) -> Result<String> {
    app.sql_value("select coalesce(holder, '') from control.fact_sets where name = 'facts'").await
}

#[tokio::test]
async fn a_stand_by_takes_over_from_a_stopped_projector_which_can_write_no_more() -> Result<()> {
    let app = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "2").start().await?;
    app.feed("prices.csv", prices("AAA", 3..=4)).load().await?;
    let mut projectors =
        [app.spawn(Program::Projector, &["run"]).await?, app.spawn(Program::Projector, &["run"]).await?];
    closes_at(&app, "AAA", "4.5", PATIENCE).await?;
    let first = holder(&app).await?;
    let of = |pid: u32| format!("{pid}@");
    let stopped = projectors.iter().position(|p| first.starts_with(&of(p.pid()))).context("a holder")?;
    projectors[stopped].signal(Signal::STOP)?;

    app.feed("prices-2.csv", prices("AAA", 5..=6)).load().await?;
    closes_at(&app, "AAA", "6.5", PATIENCE).await?;
    let second = holder(&app).await?;
    assert!(second.starts_with(&of(projectors[1 - stopped].pid())), "{second}");
    let epoch: i64 = app.sql_value("select epoch from control.fact_sets where name = 'facts'").await?;

    projectors[stopped].signal(Signal::CONT)?;
    app.feed("prices-3.csv", prices("AAA", 7..=10)).load().await?;
    closes_at(&app, "AAA", "10.5", PATIENCE).await?;
    // The first projector runs again but writes no more: the lease and the epoch are still those of the second
    // projector.
    let after: i64 = app.sql_value("select epoch from control.fact_sets where name = 'facts'").await?;
    assert_eq!((after, holder(&app).await?), (epoch, second));
    Ok(())
}

#[tokio::test]
async fn a_derivation_that_takes_longer_than_the_lease_keeps_it() -> Result<()> {
    let app = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "1").start().await?;
    app.feed("prices.csv", prices("AAA", 3..=4)).load().await?;
    let _projectors =
        [app.spawn(Program::Projector, &["run"]).await?, app.spawn(Program::Projector, &["run"]).await?];
    closes_at(&app, "AAA", "4.5", PATIENCE).await?;
    let epoch = "select epoch from control.fact_sets where name = 'facts'";
    let before: (i64, String) = (app.sql_value(epoch).await?, holder(&app).await?);

    // The derivation waits for the locked table, in a transaction that has locked the fact set.
    let mut client = app.servers().postgres.connect(app.database()).await?;
    let locked = client.transaction().await?;
    locked.batch_execute("lock table read_g1.quotes in exclusive mode").await?;
    app.feed("prices-2.csv", prices("AAA", 5..=6)).load().await?;
    eventually(PATIENCE, async || {
        let expired = "select lease_until < clock_timestamp() - interval '2 s' from control.fact_sets \
             where name = 'facts'";
        ensure!(app.sql_value::<bool>(expired).await?, "the lease is valid");
        Ok(())
    })
    .await?;
    // The projector on standby does not wait for the derivation, so it can report that it is alive. At most one renewal
    // waits.
    let waiting = |text: &str| {
        format!(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' \
             and query like '%{text}%'"
        )
    };
    assert_eq!(app.sql_value::<i64>(&waiting("set holder")).await?, 0);
    let renewals: i64 = app.sql_value(&waiting("set lease_until")).await?;
    assert!(renewals <= 1, "{renewals} renewals wait");
    // The status names the derivation, although the lease is not valid now.
    let status = app.projector(&["status"]).await?.success()?;
    let busy = format!("projector    {}, busy since 20", before.1);
    assert!(status.stdout.contains(&busy), "{}", status.stdout);
    assert!(!status.stdout.contains("without the lease"), "{}", status.stdout);
    locked.rollback().await?;
    closes_at(&app, "AAA", "6.5", PATIENCE).await?;
    let after: (i64, String) = (app.sql_value(epoch).await?, holder(&app).await?);
    assert_eq!(after, before);
    let status = app.projector(&["status"]).await?.success()?;
    assert!(status.stdout.contains(&format!("projector    {}\n", before.1)), "{}", status.stdout);
    Ok(())
}

/// Returns the headers of a well-formed batch with one row.
pub(crate) fn headers(id: u8, schema: &str, codec: &str) -> HeaderMap {
    let id = format!("{id:032x}");
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("Nats-Msg-Id", id.as_str()),
        ("Dds-Schema", schema),
        ("Dds-Codec", codec),
        ("Dds-Source", "test"),
        ("Dds-Run", "by-hand"),
        ("Dds-Chunk", "0"),
        ("Dds-Rows", "1"),
        ("Dds-File", "by-hand.json"),
        ("Dds-Line", "1"),
    ] {
        headers.insert(name, value);
    }
    headers
}

pub(crate) async fn publish(app: &TestApp, kind: &str, headers: HeaderMap, body: Vec<u8>) -> Result<()> {
    let subject = format!("{}.{kind}", app.endpoints().subject_prefix);
    let context = jetstream::new(app.nats().await?);
    context.publish_with_headers(subject, headers, body.into()).await?.await?;
    Ok(())
}

async fn letters(app: &TestApp) -> Result<Vec<Value>> {
    let listed = app.projector(&["dead-letters", "list", "--json"]).await?.success()?.json()?;
    Ok(listed.as_array().cloned().unwrap_or_default())
}

#[tokio::test]
async fn poison_is_set_aside_once_and_its_neighbours_go_on() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", prices("AAA", 3..=4)).load().await?;
    let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(b' '), 3 << 30), 1)?;
    let poison: [(&str, &str, Vec<u8>, &str); 5] = [
        ("dividend.v1", "json", b"{ not json".to_vec(), "bad_json"),
        ("dividend.v1", "json", br#"[{"record":{"symbol":7}}]"#.to_vec(), "bad_json"),
        ("price.v1", "blocks", vec![0xff; 64], "bad_columns"),
        ("dividend.v1", "json+zstd", bomb, "bad_compression"),
        ("dividend.v1", "blocks", b"[]".to_vec(), "bad_headers"),
    ];
    for (index, (schema, codec, body, _)) in poison.iter().enumerate() {
        let kind = schema.trim_end_matches(".v1");
        publish(&app, kind, headers(index as u8 + 1, schema, codec), body.clone()).await?;
    }
    app.feed("prices-2.csv", prices("AAA", 5..=6)).load().await?;
    app.catch_up().await?;
    app.catch_up().await?;
    closes_at(&app, "AAA", "6.5", PATIENCE).await?;
    let held = letters(&app).await?;
    let codes: Vec<&str> = held.iter().filter_map(|letter| letter["code"].as_str()).collect();
    let expected: Vec<&str> = poison.iter().map(|(.., code)| *code).collect();
    assert_eq!(codes, expected, "{held:?}");
    assert!(held.iter().all(|letter| letter["file"] == "by-hand.json" && letter["reason"] != ""), "{held:?}");

    let sequence = held[0]["sequence"].to_string();
    app.projector(&["dead-letters", "discard", &sequence, "0"]).await?.success()?;
    assert_eq!(letters(&app).await?.len(), poison.len() - 1);
    let retried = app.projector(&["dead-letters", "retry"]).await?.success()?;
    assert!(retried.stdout.contains("0 of 4"), "{}", retried.stdout);
    Ok(())
}

#[tokio::test]
async fn a_row_postgres_refuses_stands_alone_and_can_be_tried_again_or_mended() -> Result<()> {
    let app = TestApp::start().await?;
    let refuses = "alter table facts.records add constraint refuses check (symbol <> 'BAD')";
    app.sql(refuses, &[]).await?;
    let dividends = "symbol,ex_date,amount\nGOOD,2024-06-03,1\nBAD,2024-06-04,2\nFINE,2024-06-05,3\n";
    app.feed("prices.csv", prices("GOOD", 3..=6)).load().await?;
    app.feed("dividends.csv", dividends).load().await?;
    app.catch_up().await?;
    let count = async || app.sql_value::<i64>("select count(*) from read_g1.dividends").await;
    assert_eq!(count().await?, 2, "its neighbours are served");
    let held = letters(&app).await?;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((&held[0]["line"], &held[0]["item"]), (&json!(3), &json!(2)));

    let exported = app.projector(&["dead-letters", "export"]).await?.success()?.stdout;
    let record: Value = serde_json::from_str(exported.trim())?;
    assert_eq!(
        (&record["kind"], &record["symbol"], &record["amount"]),
        (&json!("dividend"), &json!("BAD"), &json!("2"))
    );
    let mended = app.folder().join("mended.ndjson");
    std::fs::write(&mended, exported.replace("BAD", "MENDED"))?;
    let mended = mended.display().to_string();
    app.ingest(&["load", &mended, "--source", "test", "--today", "2024-06-30"]).await?.success()?;
    app.catch_up().await?;
    assert_eq!(count().await?, 3);

    app.sql("alter table facts.records drop constraint refuses", &[]).await?;
    let retried = app.projector(&["dead-letters", "retry"]).await?.success()?;
    assert!(retried.stdout.contains("1 of 1"), "{}", retried.stdout);
    app.catch_up().await?;
    assert_eq!((count().await?, letters(&app).await?.len()), (4, 0));
    Ok(())
}

#[tokio::test]
async fn a_newer_layout_stops_the_projector_instead_of_being_skipped() -> Result<()> {
    for (schema, codec) in [("dividend.v99", "json"), ("dividend.v1", "unheard-of")] {
        let app = TestApp::start().await?;
        app.feed("prices.csv", prices("AAA", 3..=4)).load().await?;
        publish(&app, "dividend", headers(1, schema, codec), b"[]".to_vec()).await?;
        let halted = app.projector(&["run", "--until-caught-up"]).await?;
        assert_eq!(halted.code, 2, "{}", halted.stderr);
        let hint = halted.stderr.contains("newer version") && halted.stderr.contains("upgrade this program");
        assert!(hint, "{}", halted.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn servers_killed_under_load_lose_nothing_and_all_converges() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let folder = app.folder().join("market").display().to_string();
    generate_market(&folder, "--symbols 60 --years 10 --until 2024-06-28")?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let mut load = app.spawn(Program::Ingest, &["load", &folder, "--source", "test"]).await?;
    eventually(PATIENCE, async || {
        ensure!(app.ingest(&["runs"]).await?.success()?.stdout.contains("started"), "no run yet");
        Ok(())
    })
    .await?;
    for _ in 0..2 {
        servers.nats.kill9().await?;
        servers.nats.restart().await?;
        servers.postgres.kill9().await?;
        servers.postgres.restart().await?;
    }
    let loaded = load.wait(PATIENCE).await?;
    ensure!(loaded.success(), "{}", load.log_tail(20));
    let verified = app.ingest(&["verify", "--check-only", "--json"]).await?;
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    let messages = verified.json()?["messages"].as_i64().context("messages")?;
    let caught_up = format!("select coalesce(min(sequence), 0) >= {messages} from read_g1.version");
    eventually(PATIENCE, async || {
        ensure!(app.sql_value::<bool>(&caught_up).await?, "the tables are behind the log");
        Ok(())
    })
    .await?;

    let undisturbed = TestApp::start().await?;
    let observed: String = app
        .sql_value("select (manifest->>'observed_at') from facts.runs where state = 'completed' limit 1")
        .await?;
    let arguments = ["load", &folder, "--source", "test", "--observed-at", &observed];
    undisturbed.ingest(&arguments).await?.success()?;
    undisturbed.catch_up().await?;
    for table in ["metrics", "dividends", "prices", "quotes"] {
        let query = format!("select md5(string_agg(t::text, ',' order by t::text)) from read_g1.{table} t");
        assert_eq!(
            app.sql_value::<String>(&query).await?,
            undisturbed.sql_value::<String>(&query).await?,
            "{table}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_cluster_loses_a_node_under_publish_and_consume_and_nothing_else() -> Result<()> {
    let mut cluster = NatsCluster::start().await?;
    let app = TestApp::builder().env("NATS_URL", cluster.url()).env("NATS_REPLICAS", "3").start().await?;
    let folder = app.folder().join("market").display().to_string();
    generate_market(&folder, "--symbols 60 --years 10 --until 2024-06-28")?;
    app.feed("prices.csv", prices("AAA", 3..=4)).load().await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let mut load_all = app.spawn(Program::Ingest, &["load", &folder, "--source", "test"]).await?;
    let leader = cluster.leader(&app.endpoints().stream).await?;
    cluster.kill9(leader)?;
    // While one node is down, new rows are still stored in the log and served.
    app.feed("prices-2.csv", prices("AAA", 5..=6)).load().await?;
    closes_at(&app, "AAA", "6.5", PATIENCE).await?;
    let loaded = load_all.wait(PATIENCE).await?;
    ensure!(loaded.success(), "{}", load_all.log_tail(20));
    cluster.restart(leader)?;
    cluster.wait_until_current(&app.endpoints().stream, PATIENCE).await?;
    let verified = app.ingest(&["verify", "--check-only", "--json"]).await?;
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    Ok(())
}
