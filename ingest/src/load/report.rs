//! Progress display and summary of a load.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use market::event::{Kind, Reject, RunManifest};
use serde::Serialize;
use telemetry::{out, outln};

use crate::batch::coverage::{Before, Dates, Symbols};
use crate::batch::retractions::Untouching;
use crate::batch::stats::Stats;

/// Prints a command's result: one JSON object for scripts, its text for people.
pub fn print(result: &impl Serialize, text: &str, json: bool) {
    if json {
        outln!("{}", serde_json::to_string(result).unwrap_or_default());
    } else {
        out!("{text}");
    }
}

/// A bar on a terminal, lines elsewhere; both on standard error.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    /// When a line last said how far the load is.
    said: Arc<Mutex<Instant>>,
}

/// How often a line says how far a load is, where there is no terminal.
const SAID_EVERY: Duration = Duration::from_secs(10);
/// Files that a summary names.
const NAMED_FILES: usize = 20;

impl Progress {
    /// Shows progress from now on.
    pub fn start() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, terminal, said: Arc::new(Mutex::new(Instant::now())) }
    }

    /// The files are being identified.
    pub fn identify(&self) {
        self.bar.set_style(style("{spinner} identifying files {bytes} ({bytes_per_sec})"));
    }

    /// The files, of so many bytes together, are being loaded.
    pub fn load(&self, bytes: u64) {
        self.bar.reset();
        self.bar.set_length(bytes);
        self.bar.set_style(style("{bar:30} {percent:>3} % {bytes_per_sec} {eta} {msg}"));
    }

    /// A file is being read.
    pub fn file(&self, label: &str) {
        self.bar.set_message(label.to_owned());
    }

    /// Bytes were read.
    pub fn read(&self, bytes: u64) {
        self.bar.inc(bytes);
        if !self.terminal
            && let Ok(mut said) = self.said.try_lock()
            && said.elapsed() >= SAID_EVERY
        {
            *said = Instant::now();
            let all = self.bar.length().unwrap_or_default().max(1);
            tracing::info!("{}: {} % of all files", self.bar.message(), self.bar.position() * 100 / all);
        }
    }

    /// A file was read to its end; one that is refused is the summary's to name.
    pub fn done(&self, label: &str, stats: &Stats) {
        if !self.terminal {
            tracing::info!("{label}: {} rows, {} rejected", stats.accepted(), stats.rejected());
        }
    }

    /// All is done.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// True if a file was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// Its usable rows are in the log; in a dry run, they would be.
    #[default]
    Loaded,
    /// It is not loaded; without a check beforehand, rows above its fault may be in the log.
    Refused,
}

/// One file's part of a summary.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FileReport {
    /// Its name, relative to the path given.
    pub file: String,
    /// Where a refused file is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of its format; absent when it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Refused exactly when there is a reason.
    pub status: FileStatus,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Records read, rejected ones included.
    pub records: u64,
    /// Accepted rows of all kinds.
    pub rows: u64,
    /// Rejected records, by reason code.
    pub rejects: BTreeMap<String, u64>,
    /// Columns that hold binary doubles, which were read by their shortest decimals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubles: Vec<String>,
    /// Some rejected rows of a refused file; those of loaded ones are in the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Reject>,
}

impl FileReport {
    /// A file that was refused before any row was read.
    pub fn refused(file: String, reason: String) -> Self {
        Self { file, status: FileStatus::Refused, reason: Some(reason), ..Self::default() }
    }

    /// A file that was read to its end, and refused then when there is a reason.
    pub(crate) fn of(file: &str, format: &str, stats: &Stats, refused: Option<String>) -> Self {
        let rejects = stats.rejects.iter().map(|(reason, count)| ((*reason).to_owned(), *count));
        Self {
            file: file.to_owned(),
            format: Some(format.to_owned()),
            status: if refused.is_some() { FileStatus::Refused } else { FileStatus::Loaded },
            records: stats.records,
            rows: stats.accepted(),
            rejects: rejects.collect(),
            examples: if refused.is_some() { stats.examples.clone() } else { Vec::new() },
            reason: refused,
            path: None,
            doubles: Vec::new(),
        }
    }
}

/// What a load came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The run that has the files, in a dry run too; empty when there was no file to load.
    pub run: String,
    /// The feed that the files are loaded as.
    pub source: String,
    /// All was read and nothing published.
    pub dry_run: bool,
    /// All of it was loaded before: nothing was published.
    pub already_loaded: bool,
    /// An interrupted run was taken up again.
    pub resumed: bool,
    /// Every file that was found, loaded or refused.
    pub files: Vec<FileReport>,
    /// Files of the folders given that are no feed by their name.
    pub skipped: Vec<String>,
    /// Accepted rows of the loaded files, by kind; empty when all was loaded before.
    pub rows: BTreeMap<String, u64>,
    /// Accepted rows of all kinds.
    pub rows_total: u64,
    /// Rejected records of the loaded files, by reason code; empty when all was loaded before.
    pub rejects: BTreeMap<String, u64>,
    /// Rejected records, for whatever reason.
    pub rejects_total: u64,
    /// Whose the accepted rows are.
    pub symbols: Symbols,
    /// The first and the last date of the accepted rows; absent when none has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dates: Option<Dates>,
    /// No run of this source was completed before.
    pub new_source: bool,
    /// The sources that were, when this one is new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_sources: Vec<String>,
    /// Numbers whose excess fraction digits were rounded.
    pub rounded: u64,
    /// Frames published (in a dry run: to publish).
    pub frames: u64,
    /// Frames that were in the log already.
    pub frames_in_log: u64,
    /// Rows refused before that are closed by this run.
    pub mended: u64,
    /// Refused rows of the source that nobody mended; absent when the log was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_rejects: Option<u64>,
    /// Retractions that touch nothing of the source; absent when there are none, or the log was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouching_retractions: Option<Untouching>,
    /// Time the load took, by the wall clock.
    pub seconds: f64,
    /// Some rejected rows of the loaded files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Reject>,
}

impl Summary {
    /// Takes over the figures of all loaded files.
    pub fn total(&mut self, stats: &Stats) {
        self.rows = stats.rows.iter().map(|(kind, rows)| (kind.to_string(), *rows)).collect();
        self.rejects = stats.rejects.iter().map(|(reason, rows)| ((*reason).to_owned(), *rows)).collect();
        (self.rows_total, self.rejects_total) = (stats.accepted(), stats.rejected());
        self.rounded = stats.rounded;
        self.examples.clone_from(&stats.examples);
    }

    /// Compares what was loaded with what earlier runs had; `None` when the log could not be asked.
    pub(crate) fn compare(&mut self, stats: &Stats, before: Option<&Before>) {
        let new = before.and_then(|before| before.new_symbols(&stats.coverage));
        self.symbols = Symbols::of(&stats.coverage, new.as_deref());
        self.dates = Dates::of(&stats.coverage);
        if let Some(before) = before.filter(|before| !before.sources.contains(&self.source)) {
            self.new_source = true;
            self.known_sources = before.sources.iter().cloned().collect();
        }
    }

    /// Takes over the figures of the run that loaded everything before.
    pub fn loaded_before(&mut self, manifest: &RunManifest) {
        self.run.clone_from(&manifest.run);
        self.already_loaded = true;
        (self.rows_total, self.rejects_total) = (manifest.rows, manifest.rejects);
        self.rounded = manifest.rounded;
        self.frames_in_log = manifest.chunks;
        let loaded = |file: &String| FileReport { file: file.clone(), ..FileReport::default() };
        self.files.extend(manifest.files.iter().map(loaded));
    }

    fn refused(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|file| file.status == FileStatus::Refused)
    }

    /// 0 all loaded, 1 loaded with rejects or refused files, 2 nothing loaded.
    pub fn exit_code(&self) -> u8 {
        let refused = self.refused().count();
        let nothing =
            self.files.len() == refused || (self.rows_total == 0 && (self.rejects_total > 0 || refused > 0));
        match (nothing, self.rejects_total > 0 || refused > 0) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// The summary for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        for file in self.refused() {
            let place = file.path.as_deref().unwrap_or(&file.file);
            writeln!(text, "refused {place}: {}", file.reason.as_deref().unwrap_or_default())?;
            for (reason, count) in &file.rejects {
                writeln!(text, "  {reason}: {count}")?;
            }
            write_examples(text, &file.examples)?;
        }
        if !self.skipped.is_empty() {
            writeln!(text, "skipped, no feed by name: {}", self.skipped.join(", "))?;
        }
        if self.files.is_empty() {
            return writeln!(text, "nothing to load: no feed files found");
        }
        let (loaded, files) = (self.files.len() - self.refused().count(), self.files.len());
        if self.already_loaded {
            return writeln!(
                text,
                "all {} rows of {loaded} files were loaded before, by run {}: nothing was published",
                self.rows_total, self.run
            );
        }
        let verb = if self.dry_run { "would load" } else { "loaded" };
        let formats: std::collections::BTreeSet<&str> =
            self.files.iter().filter_map(|file| file.format.as_deref()).collect();
        let formats = formats.into_iter().collect::<Vec<_>>().join(", ");
        let formats = if formats.is_empty() { formats } else { format!(" ({formats})") };
        writeln!(
            text,
            "{verb} {} rows of {loaded} of {files} files{formats} in {:.1} s{}",
            self.rows_total,
            self.seconds,
            self.speed()
        )?;
        for (kind, rows) in &self.rows {
            writeln!(text, "  {kind}: {rows}")?;
        }
        self.write_files(text)?;
        for file in self.files.iter().filter(|file| !file.doubles.is_empty()) {
            let (name, columns) = (&file.file, file.doubles.join(", "));
            writeln!(text, "{name} holds binary doubles, read by their shortest decimals: {columns}")?;
        }
        self.symbols.write(text)?;
        if let Some(dates) = &self.dates {
            writeln!(text, "dates: {} to {}", dates.first, dates.last)?;
        }
        if self.new_source && !self.known_sources.is_empty() {
            writeln!(text, "source {} is new; known: {}", self.source, self.known_sources.join(", "))?;
        }
        if self.rounded > 0 {
            writeln!(text, "rounded to 10 fraction digits: {} numbers", self.rounded)?;
        }
        writeln!(text, "rejected: {}", self.rejects_total)?;
        for (reason, count) in &self.rejects {
            writeln!(text, "  {reason}: {count}")?;
        }
        write_examples(text, &self.examples)?;
        if let Some(untouching) = &self.untouching_retractions {
            untouching.write(&self.source, text)?;
        }
        if self.mended > 0 {
            writeln!(text, "mended: {} rows refused before are closed", self.mended)?;
        }
        if let Some(open) = self.open_rejects.filter(|open| *open > 0) {
            let source = &self.source;
            writeln!(
                text,
                "open rejects of source {source}: {open} (ingest rejects --source {source} --export FILE.ndjson)"
            )?;
        }
        if self.run.is_empty() {
            return Ok(());
        }
        let resumed = if self.resumed { ", resumed" } else { "" };
        writeln!(
            text,
            "run {}{resumed}: {} frames, {} more were in the log already",
            self.run, self.frames, self.frames_in_log
        )
    }

    /// Names the files of a load of several.
    fn write_files(&self, text: &mut String) -> std::fmt::Result {
        let loaded: Vec<&FileReport> =
            self.files.iter().filter(|file| file.status == FileStatus::Loaded).collect();
        if self.files.len() < 2 || loaded.is_empty() {
            return Ok(());
        }
        writeln!(text, "files:")?;
        for file in loaded.iter().take(NAMED_FILES) {
            writeln!(
                text,
                "  {}: {} rows, {} rejected",
                file.file,
                file.rows,
                file.rejects.values().sum::<u64>()
            )?;
        }
        match loaded.len().saturating_sub(NAMED_FILES) {
            0 => Ok(()),
            more => writeln!(text, "  … and {more} more"),
        }
    }

    fn speed(&self) -> String {
        let bars = self.rows.get(Kind::Price.as_str()).copied().unwrap_or_default();
        if bars < 100_000 || self.seconds <= 0.0 {
            return String::new();
        }
        #[expect(clippy::cast_precision_loss, reason = "a speed for people")]
        let speed = bars as f64 / self.seconds / 1e6;
        format!(", {speed:.2} million bars/s")
    }
}

fn write_examples(text: &mut String, examples: &[Reject]) -> std::fmt::Result {
    for reject in examples {
        writeln!(text, "  {}:{}: {}", reject.file, reject.line, reject.message)?;
    }
    Ok(())
}
