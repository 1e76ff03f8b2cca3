//! Messages that no NATS client can receive. Each becomes a dead letter, and no program stops.
//!
//! The server stores any header block. A client disconnects at a malformed block, and hides a message whose block has a
//! status.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_nats::jetstream;
use harness::{Program, TestApp, eventually};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::log_copies::verify;

const PATIENCE: Duration = Duration::from_secs(120);

/// Pairs of a kind and a header block. The kind is the last part of the message's subject.
const POISON: [(&str, &[u8]); 6] = [
    ("run", b"NATS/9.9\r\nA: b\r\n\r\n"),
    ("price", b"NATS/1.0 503 No Responders\r\n\r\n"),
    ("reject", b"NATS/1.0\r\nno colon\r\n\r\n"),
    ("dividend", b"NATS/1.0\r\nA: \xff\r\n\r\n"),
    ("price", b"NATS/1.0\r\nA: b\rc\r\n\r\n"),
    ("unheard-of", b"NATS/1.0 100\r\n\r\n"),
];

async fn last_sequence(app: &TestApp) -> Result<u64> {
    let stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    Ok(stream.cached_info().state.last_sequence)
}

/// Publishes all messages of [`POISON`] over a raw connection, in a rotated order that begins at the index `first`.
/// Returns their sequences in the log.
async fn publish_poison(app: &TestApp, first: usize) -> Result<Vec<u64>> {
    let before = last_sequence(app).await?;
    let address = app.servers().nats.url().trim_start_matches("nats://").to_owned();
    let mut connection = TcpStream::connect(&address).await.with_context(|| address.clone())?;
    connection.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n").await?;
    let payload = b"[]";
    for (kind, block) in POISON.into_iter().cycle().skip(first).take(POISON.len()) {
        let subject = format!("{}.{kind}", app.endpoints().subject_prefix);
        let line = format!("HPUB {subject} {} {}\r\n", block.len(), block.len() + payload.len());
        connection.write_all(&[line.as_bytes(), block, payload, b"\r\n"].concat()).await?;
    }
    connection.write_all(b"PING\r\n").await?;
    let mut seen = Vec::new();
    while !seen.windows(4).any(|bytes| bytes == b"PONG") {
        let mut bytes = [0; 4096];
        let read = connection.read(&mut bytes).await?;
        ensure!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..read]);
    }
    let last = before + POISON.len() as u64;
    eventually(PATIENCE, async || {
        let now = last_sequence(app).await?;
        ensure!(now == last, "the log ends at {now}, not {last}");
        Ok(())
    })
    .await?;
    Ok((before + 1..=last).collect())
}

fn prices(days: std::ops::RangeInclusive<u32>) -> String {
    let rows: String = days.map(|day| format!("AAA,2024-06-{day:02},{day}.5\n")).collect();
    format!("symbol,date,close\n{rows}")
}

async fn closes_at(app: &TestApp, close: &str) -> Result<()> {
    eventually(PATIENCE, async || {
        let query = "select coalesce(max(price::text), '') from read_g1.quotes where symbol = 'AAA'";
        let found: String = app.sql_value(query).await?;
        ensure!(found == close, "AAA closes at {found:?}");
        Ok(())
    })
    .await
}

async fn letters(app: &TestApp) -> Result<Vec<Value>> {
    let listed = app.projector(&["dead-letters", "list", "--json"]).await?.success()?.json()?;
    Ok(listed.as_array().cloned().unwrap_or_default())
}

/// Returns the sequences of the dead letters. Each dead letter must be a whole message with the code `bad_headers`.
async fn poisoned(app: &TestApp) -> Result<Vec<u64>> {
    let letters = letters(app).await?;
    for letter in &letters {
        ensure!(letter["code"] == "bad_headers" && letter["item"] == 0, "{letter}");
    }
    Ok(letters.iter().filter_map(|letter| letter["sequence"].as_u64()).collect())
}

fn sequences(found: &Value) -> Vec<u64> {
    let found = found.as_array().into_iter().flatten();
    found.filter_map(|damaged| damaged["sequence"].as_u64()).collect()
}

#[tokio::test]
async fn a_message_that_no_client_can_receive_stops_no_program() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", prices(3..=4)).load().await?;
    let metrics = app.free_address()?;
    let listen = [("METRICS_LISTEN", metrics.as_str())];
    let projector = app.spawn_with(Program::Projector, &["run"], &listen).await?;
    closes_at(&app, "4.5").await?;

    // A running projector skips the messages, and so does a load that is publishing.
    let mut expected = publish_poison(&app, 0).await?;
    let path = app.folder().join("prices-2.csv");
    std::fs::write(&path, prices(5..=6))?;
    let path = path.display().to_string();
    let load = ["load", &path, "--source", "test", "--today", "2024-06-30", "--json"];
    let loaded = app.ingest(&load).await?.success()?.json()?;
    let run = loaded["run"].as_str().context("a run")?.to_owned();
    closes_at(&app, "6.5").await.with_context(|| projector.log_tail(30))?;
    assert_eq!(poisoned(&app).await?, expected);
    let healthy = app.run(Program::Projector, &["health"], &listen).await?;
    assert_eq!(healthy.code, 0, "{}", healthy.stdout);

    // A projector whose checkpoint is before the messages skips them too.
    drop(projector);
    app.feed("prices-3.csv", prices(3..=4)).load().await?;
    expected.extend(publish_poison(&app, 4).await?);
    app.catch_up().await?;
    assert_eq!(poisoned(&app).await?, expected);

    // Every program that reads the log continues after the messages.
    let (code, found) = verify(&app, &["--check-only"]).await?;
    assert_eq!((code, sequences(&found["damaged"])), (1, expected.clone()), "{found}");
    assert_eq!(found["gaps"].as_array().map(Vec::len), Some(0), "{found}");
    let readers: [&[&str]; 4] = [
        &["runs"],
        &["rejects"],
        &["resume"],
        &["freshness", "--at", "2024-07-01T00:00:00Z", "--error", "9999d"],
    ];
    for reader in readers {
        let output = app.ingest(reader).await?;
        assert!(output.code <= 1 && !output.stdout.contains("no run"), "{reader:?}: {output:?}");
    }
    let shown = app.ingest(&["show", &expected[0].to_string()]).await?;
    assert!(shown.stderr.contains("header block"), "{}", shown.stderr);
    let retried = app.projector(&["dead-letters", "retry"]).await?.success()?;
    assert!(retried.stdout.contains("0 of 12"), "{}", retried.stdout);
    app.projector(&["dead-letters", "export"]).await?.success()?;
    // A retry asks the projector to derive again.
    app.catch_up().await?;
    let folder = app.folder().join("kept").display().to_string();
    let kept = app.projector(&["backup", &folder, "--json"]).await?.success()?.json()?;
    assert_eq!(
        (&kept["missing_messages"], kept["messages"].as_u64()),
        (&0.into(), found["messages"].as_u64())
    );

    // A copy has the same message at every sequence.
    let file = app.folder().join("log.export").display().to_string();
    app.ingest(&["export", &file]).await?.success()?;
    let copy = TestApp::start().await?;
    copy.ingest(&["import", &file]).await?.success()?;
    copy.catch_up().await?;
    assert_eq!(poisoned(&copy).await?, expected);
    closes_at(&copy, "6.5").await?;

    // An undo needs none of the unreadable messages, neither before nor after they are discarded.
    let undone = app.ingest(&["undo", &run, "--json"]).await?.success()?.json()?;
    app.catch_up().await?;
    closes_at(&app, "4.5").await?;
    for sequence in &expected {
        app.projector(&["dead-letters", "discard", &sequence.to_string(), "0"]).await?.success()?;
    }
    let undo = undone["undo"].as_str().context("an undo")?;
    app.ingest(&["undo", undo]).await?.success()?;
    app.catch_up().await?;
    closes_at(&app, "6.5").await
}

#[tokio::test]
async fn a_row_that_fails_repeatedly_becomes_a_dead_letter() -> Result<()> {
    let app = TestApp::start().await?;
    app.sql(
        "create function public.refuse() returns trigger language plpgsql as
         'begin raise exception ''no''; end'",
        &[],
    )
    .await?;
    app.sql(
        "create trigger refuse before insert or update on facts.records
         for each row when (new.symbol = 'BAD') execute function public.refuse()",
        &[],
    )
    .await?;
    app.feed("prices.csv", prices(3..=6)).load().await?;
    let dividends = "symbol,ex_date,amount\nAAA,2024-06-03,1\nBAD,2024-06-04,2\nAAA,2024-06-05,3\n";
    app.feed("dividends.csv", dividends).load().await?;
    let projector = app.spawn(Program::Projector, &["run"]).await?;
    closes_at(&app, "6.5").await.with_context(|| projector.log_tail(30))?;
    let count = "select count(*) from read_g1.dividends";
    eventually(PATIENCE, async || {
        let count: i64 = app.sql_value(count).await?;
        ensure!(count == 2, "{count} dividends");
        Ok(())
    })
    .await?;
    let held = letters(&app).await?;
    assert_eq!((held.len(), &held[0]["code"]), (1, &"sql_p0001".into()), "{held:?}");
    app.sql("drop trigger refuse on facts.records", &[]).await?;
    let retried = app.projector(&["dead-letters", "retry"]).await?.success()?;
    assert!(retried.stdout.contains("1 of 1"), "{}", retried.stdout);
    Ok(())
}
