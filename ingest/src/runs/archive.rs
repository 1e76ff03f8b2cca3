//! `ingest export` and `ingest import`: copies of the log in a file.

use std::path::PathBuf;

use clap::Args;
use event_log::archive::{ArchiveWriter, ImportReport, import_archive};
use event_log::stream::{StreamSettings, stream_identity};
use indicatif::ProgressBar;
use serde::Serialize;
use telemetry::counted;
use telemetry::report::Report;

use crate::log::reader::{Log, LogError};

/// Writes a complete copy of the log to a file
#[derive(Debug, Clone, Args)]
pub struct ExportLogArgs {
    /// New file for the copy (compressed with zstd)
    pub file: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Imports an exported log into an empty stream
///
/// The stream gets the identity of the exported log. A projector that read the exported log therefore accepts the
/// stream. Messages keep their sequence numbers, unless the exported log had gaps. If the import is interrupted, the
/// same command resumes it.
#[derive(Debug, Clone, Args)]
pub struct ImportLogArgs {
    /// File written by `ingest export`
    pub file: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Result of an export or import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogCopyReport {
    #[serde(flatten)]
    copied: ImportReport,
    /// Path of the file, as on the command line.
    pub file: String,
    #[serde(skip)]
    is_import: bool,
}

impl LogCopyReport {
    /// Report of the copy.
    pub fn report(&self) -> Report {
        let Self { copied: ImportReport { messages, gaps, already_present }, file, is_import } = self;
        let new = counted(messages.saturating_sub(*already_present), "message");
        let before = match already_present {
            0 => String::new(),
            before => format!("; already in the stream: {}", counted(before, "message")),
        };
        let mut report = Report::new(match is_import {
            true => format!("imported {new} from {file}{before}"),
            false => format!("exported {new} to {file}"),
        });
        if *gaps > 0 {
            report.add_fact(format!(
                "{} missing in the original: a copy gives later messages smaller sequences; rebuild the facts from the copy",
                counted(gaps, "sequence")
            ));
        }
        report
    }
}

/// Writes the log to a file. The file has a temporary name until it is complete.
pub async fn export_log(args: &ExportLogArgs, settings: &StreamSettings) -> Result<LogCopyReport, LogError> {
    let log = Log::open_existing(settings).await?;
    let identity = stream_identity(&log.stream).map_err(LogError::from)?;
    let mut archive = ArchiveWriter::create(&args.file, identity)?;
    let bar = ProgressBar::new(log.sequence_range().map_or(0, |range| *range.end()));
    let (mut next, mut gaps) = (1, 0);
    log.each_message(|message| {
        let sequence = message.sequence.to_u64();
        gaps += sequence - next;
        next = sequence + 1;
        bar.set_position(sequence);
        archive.append_message(message).map_err(LogError::Archive)
    })
    .await?;
    bar.finish_and_clear();
    let copied = ImportReport { messages: archive.finish()?, gaps, already_present: 0 };
    Ok(LogCopyReport { copied, file: args.file.display().to_string(), is_import: false })
}

/// Imports an exported log into the stream. The stream must be empty, or contain the beginning of the exported log.
pub async fn import_log(args: &ImportLogArgs, settings: &StreamSettings) -> Result<LogCopyReport, LogError> {
    let copied = import_archive(&args.file, settings).await?;
    Ok(LogCopyReport { copied, file: args.file.display().to_string(), is_import: true })
}
