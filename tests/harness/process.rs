//! Child processes that die with the harness process, even after `kill -9`.
//!
//! Invariants: all children run under `setpriv --pdeathsig` and start from one thread. Each child leads its own process
//! group, so Ctrl-C reaches only the parent.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};

const POLL: Duration = Duration::from_millis(20);

/// Shell script that runs the child only if the parent is still alive. If the parent has died before `setpriv` requests
/// the death signal, the kernel never sends that signal.
const GUARD: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

type Request = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Long-running child process whose output goes to a file. Dropping this value kills the child and its process group.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    log: PathBuf,
}

/// Exit status and output of a finished child.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit code, or 128 plus the signal number if a signal ended the child.
    pub code: i32,
    /// Standard output as text, with invalid UTF-8 replaced. It is empty if the harness did not read the output.
    pub stdout: String,
    /// Standard error as text, with invalid UTF-8 replaced. It is empty if the child wrote directly to the standard
    /// error of the harness.
    pub stderr: String,
}

/// Guard that kills the process group of a child on drop. It contains `None` after the child has ended.
struct Leash(Option<Pid>);

impl Daemon {
    /// Starts `command`, which [`command_bound_to_parent`] must have returned. The output of the child is appended to
    /// the file `log`.
    pub(crate) fn start(name: &str, mut command: Command, log: &Path) -> Result<Daemon> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("opening the log {}", log.display()))?;
        command.stdout(file.try_clone()?).stderr(file);
        let child = spawn(command).with_context(|| format!("starting {name}"))?;
        Ok(Daemon { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// Name of the child in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Process id of the child, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the child. Does nothing if the child has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.exit_status()?.is_none() {
            kill_process(Pid::from_child(&self.child), signal)
                .with_context(|| format!("signalling {}", self.name))?;
        }
        Ok(())
    }

    /// Exit status of the child, or `None` while the child runs.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("waiting for {}", self.name))
    }

    /// Waits until the child ends. Fails if the child still runs after `limit`. The error then contains the last lines
    /// of the child's log.
    pub async fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            if started.elapsed() > limit {
                bail!("{} still runs after {limit:?}; its log ends:\n{}", self.name, self.log_tail(20));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Sends a signal to the child, and waits until the child ends. Kills the child if it still runs after `limit`.
    pub async fn stop(&mut self, signal: Signal, limit: Duration) -> Result<ExitStatus> {
        self.signal(signal)?;
        match self.wait(limit).await {
            Ok(status) => Ok(status),
            Err(_) => self.kill9(),
        }
    }

    /// Kills the child and its process group with SIGKILL.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.exit_status()? {
            return Ok(status);
        }
        kill_group(Pid::from_child(&self.child));
        self.child.wait().with_context(|| format!("waiting for {}", self.name))
    }

    /// Path of the file that contains the child's output.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Output of the child so far: standard output and standard error, mixed.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Last lines of the child's output. `lines` is the maximum number of lines.
    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // An error cannot be reported here. The child has ended, or it dies with this process.
        let _ = self.kill9();
    }
}

impl Output {
    /// Returns `self` if the exit code is 0. Otherwise returns an error that contains the exit code and the output.
    pub fn success(self) -> Result<Output> {
        if self.code != 0 {
            bail!("exit code {}\nstdout:\n{}\nstderr:\n{}", self.code, self.stdout, self.stderr);
        }
        Ok(self)
    }

    /// Standard output, parsed as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.stdout).with_context(|| format!("not JSON: {}", self.stdout))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            kill_group(group);
        }
    }
}

/// Command that runs `program`. When the harness process dies, the kernel sends `death_signal` to the program.
pub(crate) fn command_bound_to_parent(program: impl AsRef<OsStr>, death_signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", death_signal, "sh", "-c", GUARD])
        .arg(std::process::id().to_string())
        .arg(program)
        .process_group(0)
        .stdin(Stdio::null());
    command
}

/// Runs `command`, which [`command_bound_to_parent`] must have returned, until the program ends. Dropping the future
/// kills the program.
pub(crate) async fn output(mut command: Command) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    collect(command).await
}

/// Like [`output`], but the program's standard output is a pipe without a reader. Every write to this pipe fails with a
/// broken pipe.
pub(crate) async fn output_unread(mut command: Command) -> Result<Output> {
    let (_, unread) = io::pipe()?;
    command.stdout(unread).stderr(Stdio::piped());
    collect(command).await
}

/// Like [`output`], but the program writes directly to the standard error of the harness.
pub(crate) async fn output_showing_progress(mut command: Command) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    collect(command).await
}

async fn collect(command: Command) -> Result<Output> {
    let child = spawn(command)?;
    let mut leash = Leash(Some(Pid::from_child(&child)));
    let finished = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
    leash.0 = None;
    Ok(Output {
        code: exit_code(finished.status),
        stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
    })
}

/// Exit code as a shell reports it: 128 plus the signal number if a signal ended the process.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Spawns a child from a thread that lives as long as the harness process.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    let (reply, answer) = mpsc::sync_channel(1);
    keeper().send((command, reply)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?.map_err(explain_missing_setpriv)
}

fn keeper() -> &'static mpsc::Sender<Request> {
    static KEEPER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    KEEPER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        // The kernel sends the death signal when the thread that started the child ends, so this thread never ends.
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                // If the caller no longer waits, the child is dropped with the reply.
                let _ = reply.send(command.spawn());
            }
        });
        requests
    })
}

fn explain_missing_setpriv(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return io::Error::new(error.kind(), "setpriv is not on PATH; install the package util-linux");
    }
    error
}

fn kill_group(leader: Pid) {
    // The group may have ended already.
    let _ = kill_process_group(leader, Signal::KILL);
}
