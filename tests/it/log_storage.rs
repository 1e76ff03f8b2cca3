//! Storage of the log: compression of streams, lagging replicas, and stalled consumers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_nats::jetstream::{self, stream};
use harness::{NatsCluster, Program, TestApp, eventually};
use serde_json::{Value, json};

use crate::log_copies::{market, messages, verify};

const PATIENCE: Duration = Duration::from_secs(120);

async fn config(app: &TestApp) -> Result<stream::Config> {
    let stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    Ok(stream.cached_info().config.clone())
}

/// Replaces the app's empty stream with a compressed stream, like the streams of earlier program versions.
async fn compress(app: &TestApp) -> Result<()> {
    app.create_stream().await?;
    let old = stream::Config { compression: Some(stream::Compression::S2), ..config(app).await? };
    app.servers().nats.delete_stream(&old.name).await?;
    jetstream::new(app.nats().await?).create_stream(old).await?;
    Ok(())
}

#[tokio::test]
async fn a_new_stream_is_uncompressed() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    assert_eq!(config(&app).await?.compression, Some(stream::Compression::None));
    let (code, found) = verify(&app, &[]).await?;
    assert_eq!((code, &found["compressed"], &found["lagging_replicas"]), (0, &json!(false), &json!([])));
    Ok(())
}

#[tokio::test]
async fn a_compressed_stream_is_copied_with_its_sequences_ids_and_identity() -> Result<()> {
    let (app, copy) = (TestApp::start().await?, TestApp::start().await?);
    compress(&app).await?;
    let feed = market(&app, "30", "3")?;
    let loaded = app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    let warnings = loaded.stderr.matches("the stream is compressed").count();
    assert!(warnings == 1 && loaded.stderr.contains("ingest export"), "{}", loaded.stderr);
    let verified = app.ingest(&["verify"]).await?;
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    assert!(verified.stdout.contains("the stream is compressed"), "{}", verified.stdout);
    app.catch_up().await?;

    let file = app.folder().join("log.export").display().to_string();
    app.ingest(&["export", &file]).await?.success()?;
    let (stream, prefix) = (&copy.endpoints().stream, &copy.endpoints().subject_prefix);
    app.ingest(&["import", &file, "--nats-stream", stream, "--nats-subject-prefix", prefix])
        .await?
        .success()?;

    let (old, new) = (config(&app).await?, config(&copy).await?);
    assert_eq!(new.compression, Some(stream::Compression::None));
    assert_eq!(old.metadata["genesis_id"], new.metadata["genesis_id"]);
    let numbered = |messages: Vec<(String, async_nats::HeaderMap, Vec<u8>)>| {
        let id = |headers: &async_nats::HeaderMap| headers.get("Nats-Msg-Id").map(ToString::to_string);
        let messages = messages.into_iter().enumerate();
        messages.map(|(at, (kind, headers, body))| (at, kind, id(&headers), body)).collect::<Vec<_>>()
    };
    assert!(numbered(messages(&app).await?) == numbered(messages(&copy).await?), "the copy differs");

    // The projector continues with the copy, and a further load is appended to it.
    let moved = [("NATS_STREAM", stream.as_str()), ("NATS_SUBJECT_PREFIX", prefix.as_str())];
    let more = app.folder().join("prices-more.csv");
    std::fs::write(&more, "symbol,date,close\nMORE,2024-06-28,7\n")?;
    let load = ["load", &more.display().to_string(), "--source", "test"];
    let loaded = app.run(Program::Ingest, &load, &moved).await?.success()?;
    assert!(!loaded.stderr.contains("compressed"), "{}", loaded.stderr);
    app.run(Program::Projector, &["run", "--until-caught-up"], &moved).await?.success()?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'MORE'").await?;
    assert_eq!(price, "7");
    Ok(())
}

#[tokio::test]
async fn an_import_into_a_compressed_stream_is_refused() -> Result<()> {
    let (app, copy) = (TestApp::start().await?, TestApp::start().await?);
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    let file = app.folder().join("log.export").display().to_string();
    app.ingest(&["export", &file]).await?.success()?;
    compress(&copy).await?;
    let refused = copy.ingest(&["import", &file]).await?;
    assert!(refused.code != 0 && refused.stderr.contains("it is compressed"), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_replica_that_is_not_current_is_named_until_it_is() -> Result<()> {
    let mut cluster = NatsCluster::start().await?;
    let app = TestApp::builder().env("NATS_URL", cluster.url()).env("NATS_REPLICAS", "3").start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    app.catch_up().await?;
    let stream = app.endpoints().stream.clone();
    cluster.wait_until_current(&stream, PATIENCE).await?;
    assert_eq!(verify(&app, &[]).await?.0, 0);

    let node = (cluster.leader(&stream).await? + 1) % cluster.nodes();
    cluster.kill9(node)?;
    let name = format!("node-{node}");
    let named = format!("the replica on {name} is");
    // The leader notices the loss of a server after a while.
    let verified = eventually(PATIENCE, async || {
        let verified = app.ingest(&["verify"]).await?;
        ensure!(verified.code == 1, "{}", verified.stdout);
        Ok(verified)
    })
    .await?;
    assert!(verified.stdout.contains(&named), "{}", verified.stdout);
    assert!(verified.stdout.ends_with("the log is not whole\n"), "{}", verified.stdout);
    let status = app.projector(&["status", "--json"]).await?.success()?.json()?;
    let lagging: &Value = &status["lagging_replicas"];
    assert_eq!((&lagging[0]["node"], &lagging[1]), (&json!(name), &Value::Null), "{status}");

    cluster.restart(node)?;
    cluster.wait_until_current(&stream, PATIENCE).await?;
    assert_eq!(verify(&app, &[]).await?.0, 0);
    let status = app.projector(&["status", "--json"]).await?.success()?.json()?;
    assert_eq!(status["lagging_replicas"], json!([]));
    Ok(())
}

#[tokio::test]
async fn a_consumer_that_delivers_nothing_is_replaced() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").load().await?;
    let projector = app.spawn(Program::Projector, &["run"]).await?;
    let closes_at = async |close: &str| {
        eventually(PATIENCE, async || {
            let query = "select coalesce(max(price::text), '') from read_g1.quotes where symbol = 'AAA'";
            let found: String = app.sql_value(query).await?;
            ensure!(found == close, "AAA closes at {found:?}");
            Ok(())
        })
        .await
    };
    closes_at("6").await?;
    // A paused consumer looks like one on a damaged replica: heartbeats arrive, messages do not.
    let client = app.nats().await?;
    let stream = app.endpoints().stream.clone();
    let listed = client.request(format!("$JS.API.CONSUMER.NAMES.{stream}"), "".into()).await?;
    let listed: Value = serde_json::from_slice(&listed.payload)?;
    let consumers = listed["consumers"].as_array().context("consumers")?;
    ensure!(!consumers.is_empty(), "{listed}");
    for consumer in consumers {
        let subject = format!("$JS.API.CONSUMER.PAUSE.{stream}.{}", consumer.as_str().context("a name")?);
        let pause = json!({ "pause_until": "2999-01-01T00:00:00Z" }).to_string();
        let paused = client.request(subject, pause.into()).await?;
        let paused: Value = serde_json::from_slice(&paused.payload)?;
        assert_eq!(paused["paused"], true, "{paused}");
    }

    app.feed("prices-2.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    closes_at("7").await?;
    assert!(projector.log().contains("it is read by its sequence"), "{}", projector.log_tail(20));
    Ok(())
}
