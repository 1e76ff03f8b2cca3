//! List of the files of a load, for its summary. All files are counted, but only the first ones are printed.
//!
//! Report of one file, as a part of the summary of a load.

use std::collections::BTreeMap;

use market::event::Reject;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use telemetry::report::Report;
use telemetry::{counted, shorten};

use crate::batch::load_stats::LoadStats;
use crate::load::input::LoadInput;
use crate::source::feed_files::MAX_LISTED;

/// Maximum number of files named in a summary.
const MAX_NAMED_FILES: usize = 20;
/// Maximum number of reasons in a log message.
const MAX_REASONS: usize = 5;

/// Files of a load. Its JSON has the first files as `files`, refused ones before loaded ones if some are left out, and
/// the number of the other files as `more_files`.
#[derive(Debug, Clone, Default)]
pub struct FileList {
    /// Files with a report.
    pub reports: Vec<FileReport>,
    /// Number of files without a report.
    pub(crate) unlisted: u64,
}

impl FileList {
    pub(crate) fn refused(&self) -> impl Iterator<Item = &FileReport> {
        self.reports.iter().filter(|file| file.status == FileStatus::Refused)
    }

    pub(crate) fn loaded(&self) -> impl Iterator<Item = &FileReport> {
        self.reports.iter().filter(|file| file.status == FileStatus::Loaded)
    }

    /// Reasons why no row was loaded. Reasons for refusing files are listed once, with the number of files if they are
    /// several, because an archive may have thousands of refused files. `rejects` is the number of rejects.
    pub(crate) fn describe_refusals(&self, rejects: u64) -> String {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for reason in self.refused().filter_map(|file| file.reason.as_deref()) {
            *counts.entry(reason).or_default() += 1;
        }
        let texts = counts.iter().take(MAX_REASONS).map(|(reason, files)| match files {
            1 => (*reason).to_owned(),
            files => format!("{reason} ({files} files)"),
        });
        let text = texts.collect::<Vec<_>>().join("; ");
        match counts.len().saturating_sub(MAX_REASONS) {
            _ if self.count() == 0 => "no feed files found".to_owned(),
            _ if counts.is_empty() => format!("all {rejects} rows were rejected"),
            0 => text,
            more => format!("{text}; and {}", counted(more, "other reason")),
        }
    }

    /// Time zones of files that give dates as UTC times.
    pub(crate) fn describe_time_zones(&self) -> Vec<String> {
        let mut zones: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for file in &self.reports {
            if let Some(zone) = &file.time_zone {
                zones.entry(zone).or_default().push(&file.file);
            }
        }
        let describe = |(zone, files): (&str, Vec<&str>)| {
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            format!("{}{more}: UTC times are midnights in {zone}; rows get the dates of this zone", files[0])
        };
        zones.into_iter().map(describe).collect()
    }

    /// Adds the files to a report, refused files first. Adds nothing for a load of one file.
    pub(crate) fn add_to(&self, report: &mut Report) {
        if self.count() < 2 {
            return;
        }
        report.add_fact("files:");
        for file in self.refused().chain(self.loaded()).take(MAX_NAMED_FILES) {
            let rejects = file.rejects.values().sum::<u64>();
            report.add_fact(match file.status {
                FileStatus::Refused => format!("  {}: refused", file.file),
                FileStatus::Loaded => {
                    format!("  {}: {}, {rejects} rejected", file.file, counted(file.rows, "row"))
                }
            });
        }
        let more = self.count().saturating_sub(MAX_NAMED_FILES as u64);
        if more > 0 {
            report.add_fact(format!("  … and {more} more"));
        }
    }

    /// Adds the refused files and their reasons to a report.
    pub(crate) fn add_refused_to(&self, report: &mut Report) {
        for file in self.refused().take(MAX_LISTED) {
            let path = file.path.as_deref().unwrap_or(&file.file);
            report.add_fact(format!("refused {path}: {}", file.reason.as_deref().unwrap_or_default()));
            add_counts(report, &file.rejects);
            add_examples(report, &file.examples);
        }
        let more = self.refused().count().saturating_sub(MAX_LISTED);
        if more > 0 {
            report.add_fact(format!("refused: {}", counted(more, "more file")));
        }
    }

    /// Number of all files.
    pub(crate) fn count(&self) -> u64 {
        self.reports.len() as u64 + self.unlisted
    }
}

impl Serialize for FileList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let listed: Vec<&FileReport> = match self.reports.len() <= MAX_LISTED {
            true => self.reports.iter().collect(),
            false => self.refused().chain(self.loaded()).take(MAX_LISTED).collect(),
        };
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("files", &listed)?;
        let more = self.count() - listed.len() as u64;
        if more > 0 {
            members.serialize_entry("more_files", &more)?;
        }
        members.end()
    }
}

/// Adds numbers of rows by reason or kind to a report.
pub(crate) fn add_counts(report: &mut Report, counts: &BTreeMap<String, u64>) {
    counts.iter().for_each(|(name, count)| report.add_fact(format!("  {name}: {count}")));
}

/// Adds examples of rejects to a report.
pub(crate) fn add_examples(report: &mut Report, examples: &[Reject]) {
    for reject in examples {
        report.add_fact(format!("  {}:{}: {}", reject.file, reject.line, reject.message));
    }
}

/// Maximum length of the reason for refusing a file, in characters. A reason may quote the content of the file.
const MAX_REASON_CHARS: usize = 1000;

/// Load status of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// The accepted rows of the file are in the log. In a dry run, a real load would publish these rows.
    #[default]
    Loaded,
    /// The file is refused. With `--no-precheck`, the log may contain the rows before the error.
    Refused,
}

/// Summary of one file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FileReport {
    /// File name, relative to the path on the command line.
    pub file: String,
    /// Path of the file; set only for a refused file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Name of the format; absent if the file was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Load status. It is `Refused` if and only if `reason` is set.
    pub status: FileStatus,
    /// Reason for refusing the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of records read, including rejects.
    pub records: u64,
    /// Number of accepted rows of all kinds.
    pub rows: u64,
    /// Number of rejects, by reason code.
    pub rejects: BTreeMap<String, u64>,
    /// Names of the first Parquet columns with binary floating-point numbers. Each number is read as the shortest decimal
    /// with the same binary value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubles: Vec<String>,
    /// Time zone of the exchange. Set if the file gives each date as the UTC time of midnight in this zone. The loaded
    /// dates are the local dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Sample of the rejects of a refused file. All rejects of a loaded file are in the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Reject>,
}

impl FileReport {
    /// Report of a file that was refused before any row was read.
    pub fn refused_unread(file: String, reason: String) -> Self {
        let reason = Some(shorten(&reason, MAX_REASON_CHARS));
        Self { file, status: FileStatus::Refused, reason, ..Self::default() }
    }

    /// Report of a file of which at least a part was read. `refusal` is the reason for refusing the file; `None` if it
    /// was loaded.
    pub(crate) fn of_input(input: &LoadInput, stats: &LoadStats, refusal: Option<String>) -> Self {
        let rejects = stats.rejects.iter().map(|(reason, count)| ((*reason).to_owned(), *count));
        let report = Self {
            file: input.file.label.clone(),
            format: Some(input.format.name().to_owned()),
            records: stats.records,
            rows: stats.accepted_count(),
            rejects: rejects.collect(),
            ..Self::default()
        };
        if let Some(reason) = refusal {
            let (path, examples) = (Some(input.file.display_path()), stats.examples.clone());
            let reason = Some(shorten(&reason, MAX_REASON_CHARS));
            return Self { path, status: FileStatus::Refused, reason, examples, ..report };
        }
        let time_zone = input.zone.map(|zone| zone.to_string());
        Self { doubles: input.doubles.clone(), time_zone, ..report }
    }
}
