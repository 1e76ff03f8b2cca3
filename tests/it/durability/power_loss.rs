//! Tests that every acknowledged batch is on disk, so that it survives a power loss. The tests record the system calls
//! of the NATS server during a load, and check the recording.

use anyhow::{Context, Result};
use harness::{Servers, SystemCalls, TestApp};

use super::recorded::{Verdict, judge};
use crate::log_copies::market;

const CALLS: &str = "write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,rename,renameat,renameat2";

/// Loads a feed, records the system calls of the NATS server, and checks the recording. Returns `None` if this machine
/// cannot record system calls.
async fn recorded_load(app: &TestApp, symbols: &str, years: &str) -> Result<Option<Verdict>> {
    let feed = market(app, symbols, years)?;
    let (server, record) = (app.servers().nats.pid().await?, app.folder().join("nats.calls"));
    let Some(calls) = SystemCalls::record(server, CALLS, &record).await? else { return Ok(None) };
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    let verdict = judge(&calls.finish().await?, &app.endpoints().stream);
    let exported = app.folder().join("log.export").display().to_string();
    let exported = app.ingest(&["export", &exported, "--json"]).await?.success()?.json()?;
    let messages = exported["messages"].as_u64().context("messages")?;
    assert_eq!(verdict.acknowledged.len() as u64, messages, "every acknowledgement was seen");
    assert!(messages > 5, "{messages} messages are too few to judge by");
    Ok(Some(verdict))
}

#[tokio::test]
async fn a_batch_is_on_disk_before_it_is_acknowledged() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let Some(verdict) = recorded_load(&app, "30", "3").await? else { return Ok(()) };
    assert!(verdict.uncertain.is_empty() && verdict.replaced_early.is_empty(), "{verdict:?}");

    // A server that acknowledges before it writes to disk fails the same check.
    servers.nats.restart_acknowledging_early().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let Some(verdict) = recorded_load(&app, "30", "3").await? else { return Ok(()) };
    assert!(verdict.uncertain.len() * 2 > verdict.acknowledged.len(), "{verdict:?}");
    Ok(())
}

#[tokio::test]
#[ignore = "a market of which the server packs whole block files, two minutes"]
async fn packing_old_messages_loses_none_of_them_in_a_power_loss() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let Some(verdict) = recorded_load(&app, "1000", "10").await? else { return Ok(()) };
    assert!(servers.nats.block_files(&app.endpoints().stream).await?.len() > 2, "nothing was packed");
    assert!(verdict.uncertain.is_empty() && verdict.replaced_early.is_empty(), "{verdict:?}");
    Ok(())
}
