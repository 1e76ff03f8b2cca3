//! Recording of the system calls of a process, made by strace.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use skipped::Requirement;

use crate::process::{Daemon, Signal, command_bound_to_parent};

const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum number of bytes that strace records of one buffer. It is larger than every message of the log.
const LONGEST_DATA: &str = "2000000";

/// Running recording of another process's system calls.
#[derive(Debug)]
pub struct SystemCalls {
    strace: Daemon,
    record: PathBuf,
}

impl SystemCalls {
    /// Records the system calls `calls` of a process and its threads in the file `record`, with strings in hexadecimal.
    /// Returns `None` and records the test as skipped if tracing is impossible.
    pub async fn record(process: u32, calls: &str, record: &Path) -> Result<Option<SystemCalls>> {
        let mut command = command_bound_to_parent("strace", "KILL");
        command.args(["--follow-forks", "-xx", "-yy", "--string-limit", LONGEST_DATA]);
        command.arg(format!("--trace={calls}")).arg("--output").arg(record);
        command.arg("--attach").arg(process.to_string());
        let mut strace = Daemon::start("strace", command, &record.with_extension("log"))?;
        let started = Instant::now();
        while !strace.log().contains("attached") {
            if strace.exit_status()?.is_some() {
                skipped::record(Requirement::Strace, &strace.log());
                return Ok(None);
            }
            if started.elapsed() > PATIENCE {
                bail!("strace does not attach: {}", strace.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Some(SystemCalls { strace, record: record.to_owned() }))
    }

    /// Ends the recording and returns its text, one system call per line. strace splits a call into two lines if
    /// another thread's call interrupts it.
    pub async fn finish(mut self) -> Result<String> {
        self.strace.stop(Signal::INT, PATIENCE).await?;
        std::fs::read_to_string(&self.record).context("reading the recorded system calls")
    }
}
