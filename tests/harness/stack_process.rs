//! A stack that a test starts as a user does, with the program `stack`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::binaries::{Binaries, Program};
use crate::eventually::eventually;
use crate::folder;
use crate::port;
use crate::process::{Daemon, Output, Signal, command_bound_to_parent, output};

const READY_WITHIN: Duration = Duration::from_secs(240);
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// First lines of every shell script.
const SHELL_SETUP: &str = r#"set -euo pipefail
eval "$("$STACK_PROGRAM" env)"
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
    /// Starts a stack with these arguments. Waits until the stack is ready.
    pub async fn start(arguments: &[&str]) -> Result<StackProcess> {
        let program = stack_program().await?;
        let folder = folder::ephemeral("stack")?;
        let mut command = in_private_environment(&program, &folder);
        command.args(["--port", &port::find_free()?.to_string()]).args(arguments);
        Self::wait_until_ready(program, folder, command).await
    }

    /// Starts a stack that loads `files`, which are pairs of file name and text. Waits until the stack is ready.
    pub async fn start_with(files: &[(&str, &str)]) -> Result<StackProcess> {
        let feeds = write_feeds(&folder::ephemeral("feeds")?, files)?;
        Self::start(&[feeds.to_str().context("a path that is not UTF-8")?]).await
    }

    /// Starts another stack in a shell that evaluated `stack env` of this one. Waits until the stack is ready.
    pub async fn start_in_its_shell(&self, arguments: &[&str]) -> Result<StackProcess> {
        let folder = folder::ephemeral("stack")?;
        let line = format!(
            "export STACK_DIR='{}'; exec \"$STACK_PROGRAM\" --port {} {}",
            folder.join("data").display(),
            port::find_free()?,
            arguments.join(" ")
        );
        Self::wait_until_ready(self.program.clone(), folder, self.shell_command(&line)).await
    }

    async fn wait_until_ready(program: PathBuf, folder: PathBuf, command: Command) -> Result<StackProcess> {
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
        let folder = folder::ephemeral("stack")?;
        let mut command = in_private_environment(&stack_program().await?, &folder);
        command.arg(write_feeds(&folder, files)?);
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

async fn stack_program() -> Result<PathBuf> {
    let program = Binaries::shared().await?.path(Program::Ingest).with_file_name("stack");
    ensure!(program.is_file(), "cannot start the stack: no program at {}", program.display());
    Ok(program)
}

fn write_feeds(folder: &Path, files: &[(&str, &str)]) -> Result<PathBuf> {
    let feeds = folder.join("feeds");
    fs::create_dir(&feeds)?;
    for (name, text) in files {
        fs::write(feeds.join(name), text)?;
    }
    Ok(feeds)
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
