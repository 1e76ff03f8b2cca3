//! Servers for tests that run in separate processes, as under `cargo nextest`.

#![expect(clippy::print_stdout, reason = "the script that starts the servers reads their addresses here")]

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, test_kill_process};

use crate::Servers;

const POLL: Duration = Duration::from_millis(200);

/// Starts Postgres and NATS, unless the environment names existing servers. Prints the environment variables with which
/// test processes use the servers. Returns when the process with the id `run` ends.
pub async fn lend_servers(run: i32) -> Result<()> {
    let run = Pid::from_raw(run).context("0 is no process")?;
    let servers = Servers::shared().await?;
    for (name, value) in servers.environment().await? {
        println!("{name}={value}");
    }
    while test_kill_process(run).is_ok() {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
