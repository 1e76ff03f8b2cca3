//! List of the files of a load, for its summary. All files are counted, but only the first ones are printed.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use telemetry::counted;

use crate::load::file_report::{FileReport, FileStatus};
use crate::source::file_label::MAX_LISTED;

/// Maximum number of reasons in a log message.
const MAX_REASONS: usize = 5;

/// Files of a load. Its JSON has the first files as `files`, refused ones before loaded ones if some are left out, and
/// the number of the other files as `more_files`.
#[derive(Debug, Clone, Default)]
pub struct FileList {
    reports: Vec<FileReport>,
    /// Number of files without a report.
    unlisted: u64,
}

impl FileList {
    pub(crate) fn push(&mut self, report: FileReport) {
        self.reports.push(report);
    }

    pub(crate) fn extend(&mut self, reports: impl IntoIterator<Item = FileReport>) {
        self.reports.extend(reports);
    }

    /// Adds a number of files without reports.
    pub(crate) fn add_unlisted(&mut self, files: u64) {
        self.unlisted += files;
    }

    /// Files with a report.
    pub fn reports(&self) -> &[FileReport] {
        &self.reports
    }

    pub(crate) fn refused(&self) -> impl Iterator<Item = &FileReport> {
        self.reports.iter().filter(|file| file.status == FileStatus::Refused)
    }

    pub(crate) fn loaded(&self) -> impl Iterator<Item = &FileReport> {
        self.reports.iter().filter(|file| file.status == FileStatus::Loaded)
    }

    /// Reasons for refusing files, each once, with the number of its files if they are several. An archive may have
    /// thousands of refused files.
    pub(crate) fn describe_refusals(&self) -> String {
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
            0 => text,
            more => format!("{text}; and {}", counted(more, "other reason")),
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
