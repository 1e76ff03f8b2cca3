//! `ingest watch`: loads the files that arrive in a folder.
//!
//! Invariant: a file is moved only after its rows are in the log or it is refused. A killed watch therefore loads
//! the file again, and the second load publishes nothing twice. The folder is polled, which also works on network
//! file systems.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use event_log::stream::StreamSettings;
use telemetry::listener::MetricsSettings;
use telemetry::{Shutdown, failpoint};

use crate::load::error::LoadError;
use crate::load::report::LoadSummary;
use crate::load::{LoadArgs, load, parse_source_name};
use crate::normalize::parse_duration;
use crate::source::dir_lock;

/// Folders for processed files.
const DONE: &str = "done";
const REFUSED: &str = "refused";
/// Lock file of the watching process.
const LOCK: &str = ".ingest-watch.lock";
/// Pause after the log was unreachable.
const AWAY: Duration = Duration::from_secs(5);

/// Loads every file that arrives in a folder.
///
/// A file is loaded after it was unchanged for --settle. Then it is moved to done/, or to refused/ together with a file
/// that has the reason. Names that begin with a dot are ignored, so a sender can write under such a name and rename. Only
/// one process can watch a folder. While the log is unreachable, the files stay in the folder.
///
/// Options of `ingest load` follow `--`: ingest watch in --source eod -- --format yahoo
///
/// Exit codes: 0 ended by a signal or, with --once, all files processed; 2 the folder cannot be watched.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Folder to watch
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Name of the feed
    #[arg(long, value_parser = parse_source_name)]
    pub source: String,
    /// Time without a change after which a file is loaded
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub settle: Duration,
    /// Interval of polling the folder
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub every: Duration,
    /// End after every file was processed
    #[arg(long)]
    pub once: bool,
    /// Address of metrics and health.
    #[command(flatten)]
    pub metrics: MetricsSettings,
    /// Options of `ingest load`
    #[arg(last = true, value_name = "LOAD OPTIONS")]
    pub options: Vec<String>,
}

/// Errors that prevent watching a folder.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("cannot watch {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot watch {}: another process watches it", folder.display())]
    Locked { folder: PathBuf },
    #[error("cannot parse the options of ingest load: {0}")]
    Options(#[from] clap::Error),
}

/// Event of a watch.
#[derive(Debug, Clone, Copy)]
pub enum WatchEvent<'a> {
    /// The rows of a file are in the log.
    Loaded(&'a LoadSummary),
    /// A file was refused; none of its rows are in the log.
    Refused,
    /// The log is unreachable.
    Away,
}

/// Loads files until shutdown.
pub async fn watch_folder(
    args: &WatchArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    report_event: impl Fn(WatchEvent<'_>),
) -> Result<(), WatchError> {
    load_args(args, Path::new("any.csv"))?;
    let unusable = |source| WatchError::Folder { folder: args.folder.clone(), source };
    for folder in [DONE, REFUSED] {
        fs::create_dir_all(args.folder.join(folder)).map_err(unusable)?;
    }
    let _lock = lock_folder(&args.folder)?;
    let mut waiting = PendingFiles::default();
    while !shutdown.is_requested() {
        let settled = waiting.poll_folder(&args.folder, args.settle).map_err(unusable)?;
        let mut pause = args.every;
        for path in settled {
            match load_file(args, &path, &waiting, settings, shutdown, &report_event)
                .await
                .map_err(unusable)?
            {
                FileResult::Moved => waiting.forget(&path),
                FileResult::Changed => waiting.restart(&path),
                FileResult::Away => {
                    report_event(WatchEvent::Away);
                    pause = AWAY;
                    break;
                }
            }
        }
        if args.once && waiting.is_empty() {
            return Ok(());
        }
        let mut shutdown = shutdown.clone();
        tokio::select! { () = tokio::time::sleep(pause) => {}, () = shutdown.wait() => {} }
    }
    Ok(())
}

fn lock_folder(folder: &Path) -> Result<File, WatchError> {
    let held = dir_lock::try_lock(&folder.join(LOCK));
    let held = held.map_err(|source| WatchError::Folder { folder: folder.to_owned(), source })?;
    held.ok_or_else(|| WatchError::Locked { folder: folder.to_owned() })
}

fn load_args(args: &WatchArgs, path: &Path) -> Result<LoadArgs, clap::Error> {
    let file = path.display().to_string();
    let mut command = vec!["load".to_owned(), file, "--source".to_owned(), args.source.clone()];
    command.extend(args.options.iter().cloned());
    LoadArgs::parse_command(&command)
}

/// Outcome of processing a file.
enum FileResult {
    Moved,
    /// The file is still being written.
    Changed,
    /// The log is unreachable, or the load was stopped.
    Away,
}

async fn load_file(
    args: &WatchArgs,
    path: &Path,
    waiting: &PendingFiles,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    report_event: &impl Fn(WatchEvent<'_>),
) -> io::Result<FileResult> {
    let load_args = load_args(args, path).map_err(io::Error::other)?;
    match load(&load_args, settings, shutdown).await {
        Ok(summary) if summary.exit_code() == 2 => {
            report_event(WatchEvent::Refused);
            move_to_refused(path, &summary.text())?;
        }
        Ok(summary) => {
            report_event(WatchEvent::Loaded(&summary));
            failpoint!("watch.loaded");
            let report = (summary.exit_code() == 1).then(|| summary.text());
            move_file(path, DONE, report.as_deref())?;
        }
        Err(LoadError::Interrupted) => return Ok(FileResult::Away),
        Err(error @ (LoadError::Log(_) | LoadError::Publish(_))) => {
            tracing::warn!(%error, "cannot load: the log is unreachable; the files stay in the folder");
            return Ok(FileResult::Away);
        }
        Err(_) if waiting.has_changed(path) => return Ok(FileResult::Changed),
        Err(error) => {
            report_event(WatchEvent::Refused);
            move_to_refused(path, &error.to_string())?;
        }
    }
    Ok(FileResult::Moved)
}

fn move_to_refused(path: &Path, reason: &str) -> io::Result<()> {
    tracing::warn!(file = %path.display(), reason = reason.trim_end(), "file refused");
    move_file(path, REFUSED, Some(reason))
}

/// Moves a file to a subfolder, under an unused name. The report is written first, so that no file lacks its report.
fn move_file(path: &Path, folder: &str, report: Option<&str>) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let name = name.to_string_lossy();
    let folder = parent.join(folder);
    let names = std::iter::once(name.to_string()).chain((2..).map(|number| format!("{name}.{number}")));
    let free = names.map(|name| folder.join(name)).find(|path| !path.exists());
    let Some(target) = free else { return Ok(()) };
    if let Some(report) = report {
        let mut report_path = target.clone().into_os_string();
        report_path.push(".reason.txt");
        fs::write(report_path, report)?;
    }
    fs::rename(path, target)
}

/// Size and modification time of a file, and the time since which they are unchanged.
#[derive(Debug, Clone, Copy)]
struct FileState {
    state: (u64, Option<SystemTime>),
    since: Instant,
}

/// Files that arrived and are not yet processed.
#[derive(Debug, Default)]
struct PendingFiles {
    files: HashMap<PathBuf, FileState>,
}

impl PendingFiles {
    /// Polls the folder. Returns the files that stayed unchanged long enough, in name order.
    fn poll_folder(&mut self, folder: &Path, settle: Duration) -> io::Result<Vec<PathBuf>> {
        let mut files = HashMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
            // A file may disappear between listing and reading.
            let Ok(state) = read_state(&path) else { continue };
            if hidden || !path.is_file() {
                continue;
            }
            let seen = self.files.get(&path).copied().filter(|seen| seen.state == state);
            files.insert(path, seen.unwrap_or(FileState { state, since: Instant::now() }));
        }
        self.files = files;
        let settled = self.files.iter().filter(|(_, seen)| seen.since.elapsed() >= settle);
        let mut settled: Vec<PathBuf> = settled.map(|(path, _)| path.clone()).collect();
        settled.sort();
        Ok(settled)
    }

    fn has_changed(&self, path: &Path) -> bool {
        let seen = self.files.get(path).map(|seen| seen.state);
        seen != read_state(path).ok()
    }

    fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// Restarts the wait for a file.
    fn restart(&mut self, path: &Path) {
        if let Some(seen) = self.files.get_mut(path) {
            seen.since = Instant::now();
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

fn read_state(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.len(), metadata.modified().ok()))
}
