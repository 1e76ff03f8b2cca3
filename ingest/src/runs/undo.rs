//! `ingest undo` and `ingest release`: change the state of a run. Both publish one event; no row is deleted or copied.

use std::collections::BTreeMap;

use clap::Args;
use event_log::stream::StreamSettings;
use market::event::{Kind, RunChange, RunIdError, RunManifest, RunState, RunVisibility, find_run_id};
use serde::Serialize;
use telemetry::counted;
use telemetry::report::Report;

use crate::load::publication::{LoadError, publish_change};
use crate::log::publisher::now;
use crate::log::reader::Log;
use crate::log::run_states::Runs;

/// Arguments of a change of state.
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
    /// Run id, or its beginning, as listed by `ingest runs`
    run: String,
    /// Why, for `ingest runs`
    #[arg(long, default_value = "")]
    reason: String,
    /// Who, for `ingest runs`; default: the user of the operating system
    #[arg(long, env = "USER", default_value = "unknown")]
    operator: String,
    /// Print the change; publish nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Result of a change of state.
#[derive(Debug, Serialize)]
pub struct ChangeReport {
    /// Id of the run.
    pub run: String,
    /// Source of the run.
    pub source: String,
    /// New state of the run.
    pub state: RunVisibility,
    /// Id of the event. `ingest undo` of this id takes an undo back. Absent for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// True for a dry run, which publishes nothing.
    pub dry_run: bool,
    /// Number of the run's rows; 0 if an interruption left them uncounted.
    pub rows: u64,
    /// Number of the run's record batches, by kind; empty if the run was interrupted.
    pub frames: BTreeMap<Kind, u64>,
    /// Other visible runs that loaded some of the same files. The rows of these files are visible in any case.
    pub shared_with: Vec<String>,
}

impl ChangeReport {
    /// Report of the change.
    pub fn report(&self) -> Report {
        let Self { run, source, state, undo, rows, frames, shared_with, .. } = self;
        let verb = if self.dry_run { "would be" } else { "is" };
        let batches: Vec<String> = frames.iter().map(|(kind, batches)| format!("{kind} {batches}")).collect();
        let batches = match batches.as_slice() {
            [] => "no counted rows".to_owned(),
            batches => format!("{}; record batches: {}", counted(rows, "row"), batches.join(", ")),
        };
        let mut report = Report::new(format!("run {run} of source {source} {verb} {state} ({batches})"));
        if !shared_with.is_empty() {
            let runs = shared_with.join(", ");
            report.add_fact(format!("  rows of files that were loaded twice stay visible, by run {runs}"));
        }
        if *state == RunVisibility::Excluded && undo.is_some() {
            report.add_fact(format!("  to take the undo back: ingest release {run}"));
        }
        report
    }
}

/// Undoes a run, or releases a run that is held or undone. The undo of an undo, by its id, releases its run.
pub async fn change_run(
    args: &ChangeArgs,
    wanted_state: RunVisibility,
    settings: &StreamSettings,
) -> Result<ChangeReport, LoadError> {
    let log = Log::open_existing(settings).await?;
    let runs = &Runs::read(&log).await?;
    let undone = runs.states.run_of_change(&args.run).filter(|_| wanted_state == RunVisibility::Excluded);
    let new_state = if undone.is_some() { RunVisibility::Visible } else { wanted_state };
    let manifest = find_run(undone.unwrap_or(&args.run), runs)?;
    let (run, source) = (&manifest.run, &manifest.source);
    if runs.states.state(run) == new_state {
        return Err(LoadError::Failed(already_message(run, new_state, runs)));
    }
    let is_other = |other: &&RunManifest| other.run != *run && other.source == *source;
    let shares = |other: &&RunManifest| other.inputs.iter().any(|input| manifest.inputs.contains(input));
    let completed = runs.visible_manifests().filter(|other| other.state == RunState::Completed);
    let mut shared_with: Vec<String> =
        completed.filter(is_other).filter(shares).map(|other| other.run.clone()).collect();
    shared_with.dedup();
    let mut frames = BTreeMap::new();
    for batches in &manifest.frames {
        *frames.entry(batches.kind).or_default() += batches.frames;
    }
    let mut report = ChangeReport {
        run: run.clone(),
        source: source.clone(),
        state: new_state,
        undo: None,
        dry_run: args.dry_run,
        rows: manifest.rows,
        frames,
        shared_with,
    };
    if !args.dry_run {
        let (reason, operator) = (args.reason.clone(), args.operator.clone());
        let change = RunChange { run: run.clone(), new_state, reason, at: now(), operator };
        report.undo = Some(publish_change(&log, source, change).await?.to_string());
    }
    Ok(report)
}

/// Newest manifest of a run. `text` is its id, or the beginning of its id.
fn find_run<'a>(text: &str, runs: &'a Runs) -> Result<&'a RunManifest, LoadError> {
    let loads = runs.manifests().filter(|known| known.pull.is_none());
    let id = find_run_id(text, loads.clone().map(|known| known.run.as_str()))?;
    loads.rev().find(|known| known.run == id).ok_or_else(|| RunIdError::Unknown(text.to_owned()).into())
}

fn already_message(run: &str, state: RunVisibility, runs: &Runs) -> String {
    let since = runs.states.last_change(run).map_or(String::new(), |change| {
        let reason = if change.reason.is_empty() { String::new() } else { format!(": {}", change.reason) };
        format!(" since {} by {}{reason}", change.at.format("%Y-%m-%d %H:%M UTC"), change.operator)
    });
    match state {
        RunVisibility::Visible => format!("cannot release run {run}: it is visible{since}"),
        _ => format!(
            "cannot undo run {run}: it is {state}{since}; ingest release {run} makes it visible again"
        ),
    }
}
