//! A stack that a test starts as a user does, with the program `stack`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::binaries::{Binaries, Program};
use crate::eventually::eventually;
use crate::folder;
use crate::market::generate_market;
use crate::process::{Daemon, Output, Signal, command_bound_to_parent, output};

const READY_WITHIN: Duration = Duration::from_secs(240);
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// First lines of every shell script. They make a command line fail if `curl` receives an error response.
const SHELL_SETUP: &str = r#"set -euo pipefail
eval "$("$STACK_PROGRAM" env)"
curl() { command curl --fail-with-body "$@"; }
"#;
const INHERITED: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE"];

/// Running stack with its own servers, data and working folder.
#[derive(Debug)]
pub struct StackProcess {
    program: PathBuf,
    folder: PathBuf,
    daemon: Daemon,
}

impl StackProcess {
    /// Starts a stack with a generated market and `files` (pairs of name and text). Waits until the stack is ready.
    pub async fn start(files: &[(&str, &str)]) -> Result<StackProcess> {
        let binaries = Binaries::shared().await?;
        let program = binaries.path(Program::Ingest).with_file_name("stack");
        ensure!(program.is_file(), "cannot start the stack: no program at {}", program.display());
        let folder = folder::ephemeral("stack")?;
        let market = folder.join("market");
        generate_market(&market, "--symbols 60 --years 12 --seed 7 --familiar-tickers")?;
        let further = folder.join("further");
        fs::create_dir(&further)?;
        for (name, text) in files {
            fs::write(further.join(name), text)?;
        }

        let mut command = in_private_environment(&program, &folder);
        command.args(["--source", "demo"]).arg(&market).arg(&further);
        let mut daemon = Daemon::start("the stack", command, &folder.join("stack.log"))?;
        let ready = eventually(READY_WITHIN, async || {
            if let Some(status) = daemon.exit_status()? {
                return Ok(Err(anyhow::anyhow!("the stack ended ({status}):\n{}", daemon.log_tail(20))));
            }
            ensure!(daemon.log().contains("\nready: "), "not ready:\n{}", daemon.log_tail(20));
            Ok(Ok(()))
        });
        ready.await??;
        Ok(StackProcess { program, folder, daemon })
    }

    /// Runs a stack that loads only `files`, which are pairs of file name and text. Waits until the stack ends.
    pub async fn run_to_end(files: &[(&str, &str)]) -> Result<Output> {
        let program = Binaries::shared().await?.path(Program::Ingest).with_file_name("stack");
        let folder = folder::ephemeral("stack")?;
        let feeds = folder.join("feeds");
        fs::create_dir(&feeds)?;
        for (name, text) in files {
            fs::write(feeds.join(name), text)?;
        }
        let mut command = in_private_environment(&program, &folder);
        command.arg(&feeds);
        output(command).await
    }

    /// Output of the stack so far.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Working folder of the shells.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a command line in a shell with the variables of `stack env`.
    pub async fn shell(&self, line: &str) -> Result<Output> {
        output(self.shell_command(line)).await
    }

    /// Starts a command line in a shell. The shell is killed when the returned process is dropped.
    pub fn background(&self, line: &str) -> Result<Daemon> {
        Daemon::start(line, self.shell_command(line), &self.folder.join("background.log"))
    }

    /// Stops the stack with SIGTERM. Fails if the exit status of the stack is not 0.
    pub async fn stop(mut self) -> Result<()> {
        let status = self.daemon.stop(Signal::TERM, STOP_WITHIN).await?;
        ensure!(status.success(), "the stack ended ({status}):\n{}", self.daemon.log_tail(20));
        Ok(())
    }

    fn shell_command(&self, line: &str) -> Command {
        let mut command = in_private_environment(Path::new("bash"), &self.folder);
        let script = format!("{SHELL_SETUP}{line}\n");
        command.env("STACK_PROGRAM", &self.program).args(["-c", &script]).current_dir(&self.folder);
        command
    }
}

fn in_private_environment(program: &Path, folder: &Path) -> Command {
    let mut command = command_bound_to_parent(program, "TERM");
    command.env_clear().env("STACK_DIR", folder.join("data"));
    for name in INHERITED {
        if let Some(value) = crate::environment::read_variable(name) {
            command.env(name, value);
        }
    }
    command
}
