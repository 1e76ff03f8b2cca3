//! Tests with corrupted block files of the log. `ingest verify` reports the loss, and a repair restores the messages.
//!
//! The NATS server may skip a message, cut off a file, or lose the stream. The programs must notice each of these
//! losses.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use async_nats::jetstream;
use harness::{Servers, TestApp};
use serde_json::json;

use crate::log_copies::{market, verify};

/// Inverts 64 bytes in the middle of a file.
fn rot(file: &Path) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte = !*byte);
    Ok(std::fs::write(file, bytes)?)
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Stopped,
    Killed,
}

async fn rot_oldest_block(servers: &Servers, app: &TestApp, ending: Ending) -> Result<()> {
    let blocks = servers.nats.block_files(&app.endpoints().stream).await?;
    rot_while_down(servers, blocks.first().context("a block file")?, ending).await
}

/// Corrupts the configuration file of an app's stream, so that the restarted server cannot restore the stream.
async fn rot_configuration(servers: &Servers, app: &TestApp, ending: Ending) -> Result<()> {
    let blocks = servers.nats.block_files(&app.endpoints().stream).await?;
    let messages = blocks.first().and_then(|block| block.parent()).context("a folder of blocks")?;
    rot_while_down(servers, &messages.with_file_name("meta.inf"), ending).await
}

async fn rot_while_down(servers: &Servers, file: &Path, ending: Ending) -> Result<()> {
    match ending {
        Ending::Stopped => servers.nats.stop().await?,
        Ending::Killed => servers.nats.kill9().await?,
    }
    rot(file)?;
    servers.nats.restart().await
}

/// Returns the ids of all readable messages of the log.
async fn ids(app: &TestApp) -> Result<BTreeSet<String>> {
    let stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    let mut ids = BTreeSet::new();
    for sequence in 1..=stream.cached_info().state.last_sequence {
        if let Ok(message) = stream.get_raw_message(sequence).await {
            ids.insert(message.headers.get("Nats-Msg-Id").context("an id")?.to_string());
        }
    }
    Ok(ids)
}

/// Loads a small run and then a large one, so that the log has several block files. Returns the path of an exported
/// copy of the log.
async fn large_log(app: &TestApp) -> Result<String> {
    let small = app.folder().join("prices.csv");
    std::fs::write(&small, "symbol,date,close\nKEPT,2024-06-28,7\n")?;
    app.ingest(&["load", &small.display().to_string(), "--source", "test"]).await?.success()?;
    app.catch_up().await?;
    let feed = market(app, "400", "15")?;
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    let blocks = app.servers().nats.block_files(&app.endpoints().stream).await?;
    assert!(blocks.len() > 1, "{blocks:?}");
    let copy = app.folder().join("log.export").display().to_string();
    app.ingest(&["export", &copy]).await?.success()?;
    Ok(copy)
}

#[tokio::test]
async fn messages_lost_from_the_newest_file_are_found_and_published_again() -> Result<()> {
    let servers = Servers::private().await?;
    for ending in [Ending::Stopped, Ending::Killed] {
        let app = TestApp::builder().servers(&servers).start().await?;
        let feed = market(&app, "60", "10")?;
        app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
        let before = ids(&app).await?;
        rot_oldest_block(&servers, &app, ending).await?;
        let (code, found) = verify(&app, &["--check-only"]).await?;
        assert_eq!((code, &found["whole"]), (1, &false.into()), "{ending:?}: {found}");
        // `ingest resume` completes a run whose last messages are lost. `ingest verify` repairs a run with a lost batch
        // in the middle.
        app.ingest(&["resume"]).await?.success()?;
        let (code, found) = verify(&app, &[]).await?;
        assert_eq!(code, 0, "{ending:?}: {found}");
        let (code, found) = verify(&app, &["--check-only"]).await?;
        assert_eq!(code, 0, "{ending:?}: {found}");
        assert!(before.is_subset(&ids(&app).await?), "{ending:?}");
    }
    Ok(())
}

/// Fails if the projector recognizes its last applied message only by the sequence number. In this test, the log lost
/// that message, and another message now has its number.
#[tokio::test]
async fn a_log_that_lost_its_end_and_grew_again_is_not_read_on() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let feed = market(&app, "60", "10")?;
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    app.catch_up().await?;
    let applied = ids(&app).await?.len();
    rot_oldest_block(&servers, &app, Ending::Killed).await?;
    assert!(ids(&app).await?.len() < applied, "the log's end is lost");
    app.ingest(&["load", &feed, "--source", "another"]).await?.success()?;
    assert!(ids(&app).await?.len() > applied, "its numbers are taken");
    let halted = app.projector(&["run", "--until-caught-up"]).await?;
    assert_eq!(halted.code, 2, "{}", halted.stderr);
    assert!(halted.stderr.contains("is not the one that was applied"), "{}", halted.stderr);
    Ok(())
}

#[tokio::test]
async fn a_damaged_older_file_is_passed_named_and_its_batches_published_again() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let copy = large_log(&app).await?;
    let before = ids(&app).await?;
    rot_oldest_block(&servers, &app, Ending::Stopped).await?;
    let halted = app.projector(&["run", "--until-caught-up"]).await?;
    assert_eq!(halted.code, 2, "{}", halted.stderr);
    assert!(halted.stderr.contains("the log has no messages between"), "{}", halted.stderr);

    let (code, found) = verify(&app, &[]).await?;
    let run = &found["incomplete"][0];
    assert!(found["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty()), "{found}");
    assert!(
        run["files"].to_string().contains("prices-0001.csv") && run["missing"].as_u64() > Some(0),
        "{found}"
    );
    assert_eq!(run["published_again"], run["missing"], "{found}");
    assert_eq!((code, &found["unaccounted"]), (0, &0.into()), "{found}");
    let (code, found) = verify(&app, &["--check-only"]).await?;
    assert_eq!((code, &found["incomplete"], &found["unaccounted"]), (0, &json!([]), &0.into()), "{found}");

    // An import of the exported copy gives a complete log.
    let fresh = TestApp::builder().servers(&servers).start().await?;
    fresh.ingest(&["import", &copy]).await?.success()?;
    assert_eq!(ids(&fresh).await?, before);
    let (code, found) = verify(&fresh, &["--check-only"]).await?;
    assert_eq!((code, found["gaps"].as_array().map(Vec::len)), (0, Some(0)), "{found}");
    Ok(())
}

#[tokio::test]
async fn a_log_its_server_gave_up_is_not_taken_for_an_empty_one_and_comes_back_from_its_copy() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let copy = large_log(&app).await?;
    let before = ids(&app).await?;
    rot_configuration(&servers, &app, Ending::Killed).await?;

    let found = app.ingest(&["verify", "--check-only"]).await?;
    assert_eq!(found.code, 1, "{}", found.stdout);
    assert!(
        found.stderr.contains("could not restore it") && found.stderr.contains("ingest import"),
        "{found:?}"
    );
    let halted = app.projector(&["run", "--until-caught-up"]).await?;
    assert_eq!(halted.code, 3, "{}", halted.stderr);
    assert!(halted.stderr.contains("cannot find stream"), "{}", halted.stderr);

    app.ingest(&["import", &copy]).await?.success()?;
    assert_eq!(verify(&app, &["--check-only"]).await?.0, 0);
    assert_eq!(ids(&app).await?, before);
    // The projector accepts the imported log as the one from which the facts were derived.
    let status = app.projector(&["status", "--json"]).await?.success()?.json()?;
    assert_eq!(status["log_last_sequence"].as_u64(), Some(before.len() as u64), "{status}");
    Ok(())
}
