//! Cost of a call as a count: instructions (by callgrind) or system calls (by strace). Unlike times, these counts do
//! not depend on other work on the machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use harness::eventually;
use tokio::process::Command;

use crate::load::Load;

/// Quantity to count. Callgrind must run the process from its start; strace attaches to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Count {
    /// Instructions in user space.
    Instructions,
    /// System calls.
    SystemCalls,
}

impl Count {
    /// Number of instructions or system calls of a process per call. It is the average over at least `calls` calls of a
    /// load.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) async fn of(self, process: u32, folder: &Path, load: &Load, calls: usize) -> Result<f64> {
        load.calls(calls / 4).await?;
        let (counted, answered) = match self {
            Self::Instructions => instructions(process, folder, load, calls).await?,
            Self::SystemCalls => system_calls(process, folder, load, calls).await?,
        };
        Ok(counted as f64 / answered as f64)
    }
}

/// Command and arguments that run a program under callgrind. Callgrind writes its counts to `folder`.
pub(crate) fn callgrind(folder: &Path) -> Vec<String> {
    let out = folder.join("callgrind.%p").display().to_string();
    vec!["valgrind".to_owned(), "--tool=callgrind".to_owned(), format!("--callgrind-out-file={out}")]
}

async fn instructions(process: u32, folder: &Path, load: &Load, calls: usize) -> Result<(u64, usize)> {
    control(process, "--zero").await?;
    let answered = load.calls(calls).await?;
    control(process, "--dump").await?;
    let dumps = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let prefix = format!("callgrind.{process}.");
    let of_process = dumps.iter().filter(|dump| dump.file_name().to_string_lossy().starts_with(&prefix));
    let newest = of_process.max_by_key(|dump| dump.metadata().and_then(|data| data.modified()).ok());
    let path = newest.context("callgrind wrote nothing")?.path();
    let counted = eventually(Duration::from_secs(60), async || {
        let text = std::fs::read_to_string(&path)?;
        let line = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        Ok(line.context("no total yet")?.trim().parse()?)
    });
    Ok((counted.await?, answered))
}

async fn control(process: u32, what: &str) -> Result<()> {
    let output = Command::new("callgrind_control").arg(what).arg(process.to_string()).output().await?;
    ensure!(output.status.success(), "callgrind_control: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn system_calls(process: u32, folder: &Path, load: &Load, calls: usize) -> Result<(u64, usize)> {
    let summary = folder.join("system-calls");
    let mut strace = Command::new("strace")
        .args(["--summary-only", "--follow-forks", "--attach", &process.to_string(), "--output"])
        .arg(&summary)
        .kill_on_drop(true)
        .spawn()?;
    eventually(Duration::from_secs(10), async || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        ensure!(!status.contains("TracerPid:\t0"), "strace is not attached");
        Ok(())
    })
    .await?;
    let answered = load.calls(calls).await?;
    let strace_id = strace.id().context("strace ended")?.to_string();
    Command::new("kill").args(["-INT", &strace_id]).status().await?;
    strace.wait().await?;
    let text = std::fs::read_to_string(&summary)?;
    let total = text.lines().rev().find(|line| line.ends_with("total")).context("no total")?;
    Ok((total.split_whitespace().nth(3).context("no count")?.parse()?, answered))
}
