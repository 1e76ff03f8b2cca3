//! Tests of the memory for loading and applying a feed. A feed ten times as large must not take ten times the memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Daemon, Program, TestApp};

use crate::log_copies::market;

const YEARS: &str = "10";
/// Maximum size of a projector batch, in bytes. The small and the large feed are both larger than a batch, so their
/// memory peaks are comparable.
const BATCH_BYTES: &str = "1000000";

/// Returns the peak resident memory of a program so far in MiB, or `None` if the program has ended.
fn peak(program: &Daemon) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
}

async fn peak_of(app: &TestApp, program: Program, arguments: &[&str]) -> Result<u64> {
    let mut running = app.spawn(program, arguments).await?;
    let mut highest = 0;
    let status = loop {
        highest = highest.max(peak(&running).unwrap_or_default());
        if let Some(status) = running.exit_status()? {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    ensure!(status.success(), "{}", running.log_tail(20));
    Ok(highest)
}

/// Loads and applies a market of `symbols` securities. Returns the peak memory of `ingest` and of `projector` in MiB.
async fn peaks(symbols: &str) -> Result<[u64; 2]> {
    let app = TestApp::builder().env("PROJECTOR_BATCH_BYTES", BATCH_BYTES).start().await?;
    let feed = market(&app, symbols, YEARS)?;
    let load = peak_of(&app, Program::Ingest, &["load", &feed, "--source", "test"]).await?;
    let apply = peak_of(&app, Program::Projector, &["run", "--until-caught-up"]).await?;
    Ok([load, apply])
}

/// Fails if `ingest` or `projector` needs `times` times as much memory for `large` as for `small` securities.
async fn stays_within(times: u64, small: &str, large: &str) -> Result<()> {
    let (before, after) = (peaks(small).await?, peaks(large).await?);
    for (program, (before, after)) in ["ingest", "projector"].iter().zip(before.into_iter().zip(after)) {
        assert!(before > 0 && after < before * times, "{program} took {before} MiB, then {after} MiB");
    }
    Ok(())
}

#[tokio::test]
async fn ten_times_the_feed_does_not_take_ten_times_the_memory() -> Result<()> {
    stays_within(3, "40", "400").await
}

#[tokio::test]
#[ignore = "a hundred times the feed, a minute or two"]
async fn a_hundred_times_the_feed_is_held_in_bounds_too() -> Result<()> {
    stays_within(6, "40", "4000").await
}
