//! `ingest watch`: loads the files that arrive in a folder.
//!
//! Invariant: a file is moved only after it was loaded or refused. A file that is loaded again after a kill publishes
//! no row twice. A file that changes after it was moved is moved back and loaded again.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use event_log::stream::StreamSettings;
use telemetry::listener::MetricsSettings;
use telemetry::{Shutdown, failpoint};

use crate::load::publication::LoadError;
use crate::load::{LoadArgs, load};
use crate::metrics::IngestMetrics;
use market::event::parse_source_name;
use telemetry::command_line::parse_duration;

mod arrived_files;
mod watched_folder;

use arrived_files::{EntryState, MovedFiles, PendingFiles};
pub use watched_folder::WatchError;
use watched_folder::{DONE, REFUSED, WatchedFolder};

/// Pause after a load that could not reach the log.
const RECONNECT_PAUSE: Duration = Duration::from_secs(5);
/// Text that replaces the report of a file with several hard links. A user can create a hard link in the folder to a
/// file of another user. The report would then disclose contents of that file.
const WITHHELD_REPORT: &str = "the report is withheld: the file has several names (hard links), so its contents may not be the sender's; ingest load prints the report\n";

/// Loads every file that arrives in a folder.
///
/// A file is loaded after it was unchanged for --settle. The file is then moved to done/, or to refused/ with a second
/// file that contains the reason. Files whose names begin with a dot are ignored, so a sender can write a file under
/// such a name and rename the complete file. Only one process can watch a folder. While the log is unreachable, the
/// files stay in the folder.
///
/// If the sender writes to a file after it was moved, within a day, the file is moved back and loaded again.
///
/// Links are refused and never followed. A file that cannot be moved stays in the folder, with a warning, and is
/// processed again after a minute. A file name that would be too long with the ending `.reason.txt` is shortened.
///
/// Options of `ingest load` follow `--`: ingest watch in --source eod -- --format yahoo
///
/// Exit codes: 0 ended by a signal or, with --once, all files loaded; 1 with --once, some files or rows were refused or
/// held, or some files could not be moved; 2 the folder cannot be watched.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Folder to watch
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Name of the feed
    #[arg(long, value_parser = parse_source_name)]
    pub source: String,
    /// Time for which a file must be unchanged before it is loaded
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub settle: Duration,
    /// Interval between two checks of the folder for new files
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub every: Duration,
    /// Exit after all files in the folder were processed
    #[arg(long)]
    pub once: bool,
    /// Serve a file only if it meets the expectations of its source (see `ingest load --gate`)
    #[arg(long)]
    pub gate: bool,
    /// Address of metrics and health.
    #[command(flatten)]
    pub metrics: MetricsSettings,
    /// Options of `ingest load`
    #[arg(last = true, value_name = "LOAD OPTIONS")]
    pub options: Vec<String>,
}

/// Loads files until shutdown, or with `--once` until all files are processed. With `--once`, returns the number of
/// files that were refused in whole or in part, or that could not be moved; otherwise 0.
pub async fn watch_folder(
    args: &WatchArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    metrics: &IngestMetrics,
) -> Result<usize, WatchError> {
    // `any.csv` is a placeholder. Each load replaces it by the path of the arrived file.
    let mut load_args = LoadArgs::parse_options("any.csv", &args.source, args.options.iter())?;
    load_args.gate |= args.gate;
    let mut watch = Watch {
        args,
        load_args,
        folder: WatchedFolder::open(&args.folder)?,
        settings,
        shutdown,
        metrics,
        incomplete: 0,
    };
    let unusable = |source| WatchError::Folder { folder: args.folder.clone(), source };
    let (mut pending, mut processed) = (PendingFiles::default(), 0_u64);
    while !shutdown.is_requested() {
        if !watch.folder.folder.is_at_its_path() {
            return Err(WatchError::Gone { folder: args.folder.clone() });
        }
        let mut pause = args.every;
        watch.folder.move_changed_files_back(MovedFiles::find_changed);
        // Polling also works on network file systems.
        for name in pending.poll(&watch.folder.folder, args.settle).map_err(unusable)? {
            match watch.process_file(&name, pending.state(&name)).await {
                FileResult::Moved => {
                    processed += 1;
                    pending.forget(&name);
                }
                FileResult::Changed => pending.restart(&name),
                FileResult::NotMoved => pending.postpone(&name),
                FileResult::LogUnavailable(error) => {
                    if let Some(error) = error {
                        metrics.set_log_failure(error.to_string());
                    }
                    pause = RECONNECT_PAUSE;
                    break;
                }
            }
        }
        if args.once
            && let Some(left) = pending.only_postponed()
            && watch.folder.move_changed_files_back(MovedFiles::find_all_changed) == 0
        {
            tracing::info!(processed, left, "the folder has no more files");
            return Ok(left + watch.incomplete);
        }
        shutdown.or_stop(tokio::time::sleep(pause)).await;
    }
    Ok(0)
}

/// Outcome of processing a file.
enum FileResult {
    Moved,
    /// The file changed during the load. It is not moved, and is loaded again later.
    Changed,
    /// The file could not be moved, and stays in the folder.
    NotMoved,
    /// The log is unreachable or stores nothing. The file stays in the folder. Without an error, a shutdown interrupted
    /// the load.
    LogUnavailable(Option<LoadError>),
}

struct Watch<'a> {
    args: &'a WatchArgs,
    load_args: LoadArgs,
    folder: WatchedFolder,
    settings: &'a StreamSettings,
    shutdown: &'a Shutdown,
    metrics: &'a IngestMetrics,
    /// Number of moved files that were refused, or that have rejected rows.
    incomplete: usize,
}

impl Watch<'_> {
    /// Loads a file and moves it to a subfolder. `settled` is the state of the file at the last poll.
    async fn process_file(&mut self, name: &OsStr, settled: Option<EntryState>) -> FileResult {
        let mut load_args = self.load_args.clone();
        load_args.paths = vec![self.args.folder.join(name)];
        load_args.folder = Some(self.folder.folder.clone());
        let loaded = load(&load_args, self.settings, self.shutdown).await;
        let now = EntryState::read(&self.folder.folder, name).ok();
        if now != settled {
            return FileResult::Changed;
        }
        let mut reason = String::new();
        let (subfolder, mut report) = match loaded {
            Ok(summary) if summary.exit_code() == 2 => {
                // The log message already names the file, so only the reasons are added.
                reason = summary.files.describe_refusals(summary.rejects_total);
                (REFUSED, Some(summary.report().to_string()))
            }
            Ok(summary) => {
                self.metrics.count_load(&summary);
                failpoint!("watch.loaded");
                (DONE, (summary.exit_code() > 0).then(|| summary.report().to_string()))
            }
            Err(LoadError::Interrupted) => return FileResult::LogUnavailable(None),
            Err(error @ (LoadError::Log(_) | LoadError::Publish(_))) => {
                tracing::warn!(%error, "cannot load into the log; the files stay in the folder");
                return FileResult::LogUnavailable(Some(error));
            }
            Err(error) => {
                reason = error.to_string();
                (REFUSED, Some(reason.clone()))
            }
        };
        if now.is_some_and(|state| state.links > 1) {
            reason = WITHHELD_REPORT.trim_end().to_owned();
            report = report.map(|_| WITHHELD_REPORT.to_owned());
        }
        if subfolder == REFUSED {
            self.metrics.count_refused_file();
            tracing::warn!(file = ?name, reason, "file refused");
        }
        match self.folder.move_file(name, subfolder, report.as_deref(), now) {
            Ok(()) => {
                self.incomplete += usize::from(report.is_some());
                FileResult::Moved
            }
            Err(error) => {
                tracing::warn!(file = ?name, %error, "cannot move a processed file: it stays in the folder");
                FileResult::NotMoved
            }
        }
    }
}
