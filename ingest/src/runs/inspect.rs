//! `ingest runs` and `ingest show`: list of runs, and display of a log message as JSON.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use clap::Args;
use event_log::record_batch::{BatchError, RecordBatch};
use event_log::stream::StreamSettings;
use market::event::{RunManifest, RunState};
use serde_json::{Value, json};
use telemetry::table::{Column, ListArgs, Table};
use telemetry::{counted, outln};

use crate::log::reader::{Log, LogError};
use crate::log::run_status::{RunStatus, is_undo};

/// Number of characters of a run id in a state such as `undone by 1a2b3c4d…`.
const SHORT_ID: usize = 8;

/// Lists the runs of the log, oldest first
///
/// A run is a load (also a load by `ingest watch` or `ingest pull`) or an undo. If the log has more runs than --limit
/// allows, the oldest runs are left out. With --json, each line is a manifest, the record of a run in the log. A
/// completed run has two manifests: one from its start, one from its completion.
#[derive(Debug, Clone, Args)]
pub struct RunsArgs {
    /// Also list the records that `ingest pull` writes about its own work: API calls charged to a budget, and the
    /// progress of each request
    #[arg(long)]
    pub all: bool,
    /// Limit and format of the list.
    #[command(flatten)]
    pub output: ListArgs,
}

/// Shows a message of the log as JSON
#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Sequence number of the message
    pub sequence: u64,
}

/// Log sequence of a manifest, time at which the log stored it, and the manifest.
type StoredManifest = (u64, DateTime<Utc>, RunManifest);

/// Prints the runs.
pub async fn list_runs(args: &RunsArgs, settings: &StreamSettings) -> Result<(), LogError> {
    let mut manifests: Vec<StoredManifest> = Vec::new();
    let mut empty =
        "no runs: nothing was loaded into this log yet; ingest load FILE --source NAME loads a file"
            .to_owned();
    match Log::open_existing(settings).await {
        // If the log is absent, print the error. A lost log must not look like an empty log.
        Err(error) if error.is_absence() => empty = format!("no runs: {error}"),
        log => {
            let add = |sequence, stored_at, run: RunManifest| {
                if args.all || run.pull.is_none() {
                    manifests.push((sequence, stored_at, run));
                }
            };
            log?.each_manifest(1, add).await?;
        }
    }
    if !args.output.json {
        print_runs(&manifests, args.output.max_rows(), &empty);
        return Ok(());
    }
    for (sequence, _, run) in &manifests[manifests.len().saturating_sub(args.output.max_rows())..] {
        let mut value = serde_json::to_value(run).unwrap_or_default();
        value["sequence"] = (*sequence).into();
        outln!("{value}");
    }
    Ok(())
}

/// Prints a table with one row per run. Each row shows the last manifest of its run. The rows are in the log order of
/// these manifests.
fn print_runs(manifests: &[StoredManifest], max_rows: usize, empty: &str) {
    let status = RunStatus::from_manifests(manifests.iter().map(|(_, _, run)| run));
    let columns = [
        Column::Text("run"),
        Column::Text("loaded (UTC)"),
        Column::Text("source"),
        Column::Number("rows"),
        Column::Text("state"),
    ];
    let mut table = Table::new(["run", "runs"], &columns, max_rows).keep_newest();
    let last: HashMap<&str, &StoredManifest> =
        manifests.iter().map(|manifest| (manifest.2.run.as_str(), manifest)).collect();
    for (sequence, _, run) in manifests {
        let (last_sequence, stored_at, newest) = last[run.run.as_str()];
        if sequence == last_sequence {
            table.add_row([
                run.run.clone(),
                stored_at.format("%Y-%m-%d %H:%M").to_string(),
                run.source.clone(),
                newest.rows.to_string(),
                describe_state(newest, &status),
            ]);
        }
    }
    table.print(empty);
}

/// State of a run as text, for example `completed, 2 rejects, 1 of 3 files refused`.
fn describe_state(run: &RunManifest, status: &RunStatus) -> String {
    if run.state == RunState::Started {
        return "started, not completed".to_owned();
    }
    let short = |id: &str| id.get(..SHORT_ID).map_or_else(|| id.to_owned(), |start| format!("{start}…"));
    let mut state = match (status.undone_by(&run.run), run.files.first()) {
        (Some(undo), _) => format!("undone by {}", short(undo)),
        (None, Some(undone)) if is_undo(run) => format!("undo of {}", short(undone)),
        (None, _) => "completed".to_owned(),
    };
    if run.rejects > 0 {
        state += &format!(", {}", counted(run.rejects, "reject"));
    }
    if !run.refused.is_empty() {
        let refused = run.refused.len() as u64 + run.more_refused;
        let files = counted(refused + run.files.len() as u64 + run.more_files, "file");
        state += &format!(", {refused} of {files} refused");
    }
    state
}

/// Prints the record batches of one message.
pub async fn show_message(args: &ShowArgs, settings: &StreamSettings) -> Result<(), LogError> {
    let batches = Log::open_existing(settings).await?.decode_batches_at(args.sequence).await?;
    // A batch that is stored in columns is shown as rows.
    let to_json = |batch: &RecordBatch| {
        Ok(json!({
            "sequence": args.sequence,
            "id": batch.id.to_string(),
            "kind": batch.body.kind(),
            "source": batch.source,
            "run": batch.run,
            "chunk": batch.chunk,
            "file": batch.file,
            "line": batch.line,
            "rows": batch.body.rows_json()?,
        }))
    };
    let shown: Result<Vec<Value>, BatchError> = batches.iter().map(to_json).collect();
    let mut shown = shown.map_err(|source| LogError::Batch { sequence: args.sequence, source })?;
    // A message with one record batch is printed as an object, a message with several as an array. Older program
    // versions wrote one batch per message, so the output for their messages has not changed.
    let shown = if shown.len() == 1 { shown.remove(0) } else { Value::Array(shown) };
    outln!("{shown:#}");
    Ok(())
}
