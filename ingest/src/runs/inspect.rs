//! `ingest runs` and `ingest show`: list of runs, and display of a log message as JSON.

use std::collections::HashMap;

use clap::Args;
use event_log::record_batch::{BatchError, RecordBatch};
use event_log::stream::StreamSettings;
use market::event::{RunChange, RunManifest, RunState};
use serde_json::{Value, json};
use telemetry::table::{Column, ListArgs, Table};
use telemetry::{counted, outln};

use crate::log::reader::{Log, LogError};
use crate::log::run_states::{Runs, StoredManifest};

/// Lists the runs of the log, oldest first
///
/// A run is a load (also a load by `ingest watch` or `ingest pull`). If the log has more runs than --limit allows, the
/// oldest runs are left out. With --json, each line is a manifest, the record of a run in the log, with the state of the
/// run. A completed run has two manifests: one from its start, one from its completion. A held run is not served.
#[derive(Debug, Clone, Args)]
pub struct RunsArgs {
    /// Id of the run to list, or its beginning; default: all runs
    pub run: Option<String>,
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

/// Prints the runs.
pub async fn list_runs(args: &RunsArgs, settings: &StreamSettings) -> Result<(), LogError> {
    let mut runs = Runs::default();
    let mut empty =
        "no runs: nothing was loaded into this log yet; ingest load FILE --source NAME loads a file"
            .to_owned();
    match Log::open_existing(settings).await {
        // If the log is absent, print the error. A lost log must not look like an empty log.
        Err(error) if error.is_absence() => empty = format!("no runs: {error}"),
        log => runs = Runs::read(&log?).await?,
    }
    let wanted = runs.find_id(args.run.as_deref())?.map(str::to_owned);
    runs.manifests.retain(|StoredManifest { manifest, .. }| {
        wanted.as_ref().map_or(args.all || manifest.pull.is_none(), |run| *run == manifest.run)
    });
    if !args.output.json {
        print_runs(&runs, args.output.max_rows(), &empty);
        return Ok(());
    }
    let skipped = runs.manifests.len().saturating_sub(args.output.max_rows());
    for StoredManifest { sequence, manifest, .. } in &runs.manifests[skipped..] {
        let mut value = serde_json::to_value(manifest).unwrap_or_default();
        value["sequence"] = (*sequence).into();
        value["visibility"] = runs.states.state(&manifest.run).as_str().into();
        value["change"] = json!(runs.states.last_change(&manifest.run));
        outln!("{value}");
    }
    Ok(())
}

/// Prints a table with one row per run. Each row shows the last manifest of its run. The rows are in the log order of
/// these manifests.
fn print_runs(runs: &Runs, max_rows: usize, empty: &str) {
    let columns = [
        Column::Id("run"),
        Column::Text("loaded (UTC)"),
        Column::Text("source"),
        Column::Number("rows"),
        Column::Text("state"),
    ];
    let mut table = Table::new(["run", "runs"], &columns, max_rows).keep_newest();
    let last: HashMap<&str, u64> =
        runs.manifests.iter().map(|stored| (stored.manifest.run.as_str(), stored.sequence)).collect();
    for StoredManifest { sequence, stored_at, manifest } in &runs.manifests {
        if *sequence == last[manifest.run.as_str()] {
            table.add_row([
                manifest.run.clone(),
                stored_at.format("%Y-%m-%d %H:%M").to_string(),
                manifest.source.clone(),
                manifest.rows.to_string(),
                describe_state(manifest, runs.states.last_change(&manifest.run)),
            ]);
        }
    }
    table.print(empty);
}

/// State of a run as text, for example `completed, 2 rejects, 1 of 3 files refused`.
fn describe_state(run: &RunManifest, change: Option<&RunChange>) -> String {
    let mut state = match run.state {
        RunState::Started => "started, not completed".to_owned(),
        RunState::Completed => "completed".to_owned(),
    };
    if let Some(RunChange { new_state, operator, reason, .. }) = change {
        state += &format!("; {new_state} by {operator}");
        if !reason.is_empty() {
            state += &format!(" ({reason})");
        }
    }
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
