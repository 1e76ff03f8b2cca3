//! `ingest export` and `ingest import`: copies of the log in a file.

use std::path::PathBuf;

use clap::Args;
use event_log::archive::{ArchiveError, ArchiveWriter};
use event_log::restore;
use event_log::stream::StreamSettings;
use indicatif::ProgressBar;
use serde::Serialize;
use telemetry::counted;

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

/// Imports an exported log into an empty stream, with the identity of the exported stream. Messages keep their sequence
/// numbers, unless the exported stream had gaps. If the import is interrupted, the same command resumes it
#[derive(Debug, Clone, Args)]
pub struct ImportLogArgs {
    /// File written by `ingest export`
    pub file: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Errors of copying the log.
#[derive(Debug, thiserror::Error)]
pub enum LogCopyError {
    /// The log could not be opened or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file could not be written or read, or its messages could not be published.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Result of an export or import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogCopyReport {
    /// Number of messages in the file, including messages that the stream already had.
    pub messages: u64,
    /// Number of sequences that are missing in the exported stream. The messages after a gap get smaller sequences in
    /// the copy.
    pub gaps: u64,
    /// Number of messages that an interrupted import had already published to the stream.
    #[serde(rename = "there_before")]
    pub already_present: u64,
    /// Path of the file, as on the command line.
    pub file: String,
}

impl LogCopyReport {
    /// Result of an export as text.
    pub fn export_text(&self) -> String {
        format!("exported {} to {}\n{}", counted(self.messages, "message"), self.file, self.gaps_text())
    }

    /// Result of an import as text.
    pub fn import_text(&self) -> String {
        let new = self.messages.saturating_sub(self.already_present);
        let before = match self.already_present {
            0 => String::new(),
            before => format!("; the stream had {} of it before", counted(before, "message")),
        };
        format!("imported {} from {}{before}\n{}", counted(new, "message"), self.file, self.gaps_text())
    }

    fn gaps_text(&self) -> String {
        let mut text = String::new();
        if self.gaps > 0 {
            text.push_str(&format!(
                "{} missing in the original: later messages get smaller sequences in a copy, so facts must be rebuilt from it\n",
                counted(self.gaps, "sequence")
            ));
        }
        text
    }
}

/// Writes the log to a file. The file has a temporary name until it is complete.
pub async fn export_log(
    args: &ExportLogArgs,
    settings: &StreamSettings,
) -> Result<LogCopyReport, LogCopyError> {
    let log = Log::open_existing(settings).await?;
    let mut archive = ArchiveWriter::create(&args.file, log.identity()?)?;
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
    Ok(LogCopyReport {
        messages: archive.finish()?,
        gaps,
        already_present: 0,
        file: args.file.display().to_string(),
    })
}

/// Imports an exported log into the stream. The stream must be empty, or contain the beginning of the exported log.
pub async fn import_log(
    args: &ImportLogArgs,
    settings: &StreamSettings,
) -> Result<LogCopyReport, LogCopyError> {
    let imported = restore::import_archive(&args.file, settings).await?;
    Ok(LogCopyReport {
        messages: imported.messages,
        gaps: imported.gaps,
        already_present: imported.already_present,
        file: args.file.display().to_string(),
    })
}
