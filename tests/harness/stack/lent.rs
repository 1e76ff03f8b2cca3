//! Servers for tests that are processes of their own, as under `cargo nextest`.

#![expect(clippy::print_stdout, reason = "the script that starts the servers reads their addresses here")]

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, test_kill_process};

use crate::Servers;

const POLL: Duration = Duration::from_millis(200);

/// Starts one Postgres and one NATS, prints the variables by which the harness finds them, and keeps them until the
/// process `run` has ended.
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
