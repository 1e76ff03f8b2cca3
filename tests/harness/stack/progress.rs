//! Progress display while the stack starts: one line per step, with the time since the start.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::fetch::announce;
use crate::process::{Daemon, exit_code};

const HEARTBEAT: Duration = Duration::from_secs(5);
const LINE: usize = 100;

#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
}

impl Progress {
    pub(super) fn start() -> Progress {
        Progress { started: Instant::now() }
    }

    pub(super) fn say(&self, what: fmt::Arguments<'_>) {
        announce(format_args!("[{:6.1} s] {what}", self.started.elapsed().as_secs_f64()));
    }

    /// Prints `what`, and runs `command`, whose output goes to `log`. Every few seconds, prints the last line of the
    /// output. Fails if the exit code is not 0.
    pub(super) async fn step(&self, what: &str, command: Command, log: &Path) -> Result<()> {
        self.step_with_findings(what, command, log, &[]).await?;
        Ok(())
    }

    /// Like [`Progress::step`], but an exit code in `findings` is not an error. For such a code, returns the pair of
    /// the code and the output of the command. Returns `None` if the exit code is 0.
    pub(super) async fn step_with_findings(
        &self,
        what: &str,
        command: Command,
        log: &Path,
        findings: &[i32],
    ) -> Result<Option<(i32, String)>> {
        self.say(format_args!("{what}"));
        let earlier = fs::metadata(log).map_or(0, |metadata| metadata.len() as usize);
        let mut child = Daemon::start(what, command, log)?;
        let mut beat = Instant::now();
        loop {
            if let Some(status) = child.exit_status()? {
                match exit_code(status) {
                    0 => return Ok(None),
                    code if findings.contains(&code) => {
                        let output = child.log().get(earlier..).unwrap_or_default().to_owned();
                        return Ok(Some((code, output)));
                    }
                    code => {
                        bail!("{what}: exit code {code}; {} ends:\n{}", log.display(), child.log_tail(20))
                    }
                }
            }
            if beat.elapsed() >= HEARTBEAT {
                beat = Instant::now();
                self.say(format_args!("  … {}", last_words(&child)));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Last line of a child's log, without control characters. If a progress bar has overwritten this line several times,
/// only the newest text is returned.
fn last_words(child: &Daemon) -> String {
    let tail = child.log_tail(1);
    let last = tail.split('\r').rfind(|part| !part.trim().is_empty()).unwrap_or("working");
    last.chars().filter(|c| !c.is_control()).take(LINE).collect()
}
