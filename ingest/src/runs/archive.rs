//! `ingest export` and `ingest import`: copies of the log in a file.

use std::path::PathBuf;

use clap::Args;
use event_log::archive::{ArchiveError, Writer};
use event_log::restore;
use event_log::stream::StreamSettings;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::log::reader::{Log, LogError};

/// Writes the log to a file, whole: the second copy
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// File to write (zstd); it must not exist yet
    pub file: PathBuf,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes an exported log into an empty stream, with its identity and its sequence numbers; goes on with an
/// interrupted import
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File that `ingest export` wrote
    pub file: PathBuf,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Errors of copying the log.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The log could not be opened or read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file could not be written or read, or its messages could not be published.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Result of an export or import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Messages in the file, including those that the stream already had.
    pub messages: u64,
    /// Sequences missing in the original. Messages after them got other numbers.
    pub gaps: u64,
    /// Messages that an interrupted import had already written.
    pub there_before: u64,
    /// Path of the file, as on the command line.
    pub file: String,
}

impl Copied {
    /// Result as text.
    pub fn text(&self) -> String {
        let mut text = format!("{} messages, {}\n", self.messages, self.file);
        if self.there_before > 0 {
            text.push_str(&format!("{} of them were there before\n", self.there_before));
        }
        if self.gaps > 0 {
            text.push_str(&format!(
                "{} sequences were lost in the original: sequences after them are smaller in a copy, so facts must be folded anew from it\n",
                self.gaps
            ));
        }
        text
    }
}

/// Writes the log to a file, which gets its name only when it is complete.
pub async fn export(args: &ExportArgs, settings: &StreamSettings) -> Result<Copied, CopyError> {
    let log = Log::existing(settings).await?;
    let mut archive = Writer::create(&args.file, log.genesis()?)?;
    let bar = ProgressBar::new(log.range().map_or(0, |range| *range.end()));
    let (mut next, mut gaps) = (1, 0);
    log.messages(|sequence, message| {
        gaps += sequence - next;
        next = sequence + 1;
        bar.set_position(sequence);
        let written = archive.message(sequence, &message.subject, message.headers.as_ref(), &message.payload);
        written.map_err(LogError::Archive)
    })
    .await?;
    bar.finish_and_clear();
    Ok(Copied { messages: archive.finish()?, gaps, there_before: 0, file: args.file.display().to_string() })
}

/// Imports an exported log into the stream. The stream must be empty or contain the beginning of the same log.
pub async fn import(args: &ImportArgs, settings: &StreamSettings) -> Result<Copied, CopyError> {
    let imported = restore::import(&args.file, settings).await?;
    Ok(Copied {
        messages: imported.messages,
        gaps: imported.gaps,
        there_before: imported.there_before,
        file: args.file.display().to_string(),
    })
}
