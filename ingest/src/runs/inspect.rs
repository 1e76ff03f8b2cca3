//! `ingest runs` and `ingest show`: runs, and any message of the log as JSON.

use clap::Args;
use event_log::frame::{Frame, FrameError};
use event_log::stream::StreamSettings;
use market::event::RunState;
use serde_json::{Value, json};
use telemetry::outln;

use crate::log::reader::{Log, LogError};

/// Lists the runs of the log, oldest first
#[derive(Debug, Clone, Args)]
pub struct RunsArgs {
    /// List the records of `ingest pull` too: calls charged to a budget, and bookmarks
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object per manifest and line
    #[arg(long)]
    pub json: bool,
}

/// Shows a message of the log as JSON
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Sequence number of the message
    pub sequence: u64,
}

/// Prints the manifests of all runs.
pub async fn list_runs(args: &RunsArgs, settings: &StreamSettings) -> Result<(), LogError> {
    let manifests = Log::open(settings).await?.manifests().await?;
    for (sequence, run) in manifests.into_iter().filter(|(_, run)| args.all || run.pull.is_none()) {
        if args.json {
            outln!("{}", run_to_json(sequence, &run));
            continue;
        }
        let figures = match run.state {
            RunState::Started => format!("{} files", run.files.len()),
            RunState::Completed => {
                format!("{} rows in {} frames, {} rejected", run.rows, run.chunks, run.rejects)
            }
        };
        outln!(
            "{sequence:>8}  {}  {:<9}  {}  {}  {figures}",
            run.run,
            run.state.as_str(),
            run.observed_at.format("%Y-%m-%d %H:%M:%S"),
            run.source
        );
    }
    Ok(())
}

fn run_to_json(sequence: u64, run: &market::event::RunManifest) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    value["sequence"] = sequence.into();
    value
}

/// Prints the record batches of one message.
pub async fn show_message(args: &ShowArgs, settings: &StreamSettings) -> Result<(), LogError> {
    let frames = Log::open(settings).await?.decode_frames_at(args.sequence).await?;
    let shown: Result<Vec<Value>, FrameError> =
        frames.iter().map(|frame| frame_to_json(args.sequence, frame)).collect();
    let mut shown = shown.map_err(|source| LogError::Frame { sequence: args.sequence, source })?;
    // A single record batch is one object, compatible with logs before shared messages.
    let shown = if shown.len() == 1 { shown.remove(0) } else { Value::Array(shown) };
    outln!("{shown:#}");
    Ok(())
}

/// Record batch with its envelope as JSON. Columns are shown as rows.
pub fn frame_to_json(sequence: u64, frame: &Frame) -> Result<Value, FrameError> {
    Ok(json!({
        "sequence": sequence,
        "id": frame.id.to_string(),
        "kind": frame.body.kind(),
        "source": frame.source,
        "run": frame.run,
        "chunk": frame.chunk,
        "file": frame.file,
        "line": frame.line,
        "rows": frame.body.rows_json()?,
    }))
}
