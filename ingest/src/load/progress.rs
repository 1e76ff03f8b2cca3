//! Progress display of a load.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::batch::load_stats::LoadStats;
use crate::source::feed_files::MAX_LISTED;

/// Progress display on standard error: a bar on a terminal, log lines elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct LoadProgress {
    bar: ProgressBar,
    terminal: bool,
    last_log_at: Arc<Mutex<Instant>>,
    /// Number of files in the log lines of [`Self::log_file_read`].
    logged_files: Arc<AtomicUsize>,
}

/// Interval between two log lines, if standard error is not a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

impl LoadProgress {
    pub(crate) fn start() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self {
            bar,
            terminal,
            last_log_at: Arc::new(Mutex::new(Instant::now())),
            logged_files: Arc::default(),
        }
    }

    /// Shows that the formats and digests of the files are being determined.
    pub(crate) fn show_identifying(&self) {
        self.bar.set_style(style("{spinner} identifying files {bytes} ({bytes_per_sec})"));
    }

    /// Shows that files are being loaded. `total_bytes` is their unpacked size.
    pub(crate) fn show_loading(&self, total_bytes: u64) {
        self.bar.reset();
        self.bar.set_length(total_bytes);
        self.bar.set_style(style("{bar:30} {percent:>3} % {bytes_per_sec} {eta} {msg}"));
    }

    pub(crate) fn show_file(&self, label: &str) {
        self.bar.set_message(label.to_owned());
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bar.inc(bytes);
        if !self.terminal
            && let Ok(mut last_log_at) = self.last_log_at.try_lock()
            && last_log_at.elapsed() >= LOG_INTERVAL
        {
            *last_log_at = Instant::now();
            let all = self.bar.length().unwrap_or_default().max(1);
            let percent = self.bar.position() * 100 / all;
            tracing::info!(file = self.bar.message(), percent, "loading");
        }
    }

    /// Logs the number of accepted and rejected rows of a loaded file, if standard error is not a terminal. Only the
    /// first files are logged, because an archive may have thousands.
    pub(crate) fn log_file_read(&self, label: &str, stats: &LoadStats) {
        if !self.terminal && self.logged_files.fetch_add(1, Ordering::Relaxed) < MAX_LISTED {
            let (accepted, rejected) = (stats.accepted_count(), stats.rejected_count());
            tracing::info!(file = label, accepted, rejected, "file read");
        }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
