//! `ingest undo`: reverts the rows of a run.
//!
//! The undo is a separate run that restores or retracts every row that was not corrected later. It reads the log only
//! up to its start manifest, so a resumed undo gives the same batches.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use chrono::{DateTime, Utc};
use clap::Args;
use event_log::record_batch::Envelope;
use event_log::stream::StreamSettings;
use market::event::{Kind, RunManifest, RunState};
use serde::Serialize;
use telemetry::{counted, failpoint};

use crate::clock::now;
use crate::load::error::LoadError;
use crate::load::publication::Publication;
use crate::log::reader::Log;
use crate::log::run_status::UNDO_FORMAT;
use crate::suggest::find_nearest_name;

mod bars;
mod changes;
mod records;
mod scope;

use changes::EncodedBatches;
pub use changes::UndoChanges;
use scope::UndoScope;

/// Undoes a run: reverts its rows.
///
/// The undo reverts every row that no later run corrected: it republishes the row's version from before the run, or
/// retracts the row if there was none. The changes are printed first. An undo of the undo restores the run.
///
/// A later row is a correction if it has a newer observation time or a higher revision than the undone row.
///
/// Exit codes: 0 undone; 2 the run does not exist, or was undone before; 3 NATS unreachable.
#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// Run id, as listed by `ingest runs`
    pub run: String,
    /// Print the changes; publish nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl UndoArgs {
    /// Parses the command from a run manifest. Returns `None` if the command is not an undo.
    pub(crate) fn parse_command(command: &[String]) -> Option<Self> {
        let [name, run] = command else { return None };
        (name == UNDO_FORMAT).then(|| Self { run: run.clone(), dry_run: false, json: false })
    }
}

/// Result of an undo.
#[derive(Debug, Default, Serialize)]
pub struct UndoReport {
    /// Id of the undone run.
    pub run: String,
    /// Run id of the undo.
    pub undo: String,
    /// Source of the undone run. The undo has the same source.
    pub source: String,
    /// True for a dry run, which publishes nothing. Its counts are computed from the current log.
    pub dry_run: bool,
    /// Changes to the run's rows, by kind. A kind without rows is absent.
    pub kinds: BTreeMap<Kind, UndoChanges>,
    /// Number of record batches published.
    pub frames: u64,
    /// Number of record batches that were already in the log.
    pub frames_in_log: u64,
    /// Sequences of damaged messages, which the undo could not read. The projector stores these messages as dead
    /// letters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u64>,
}

/// Result as text.
impl Display for UndoReport {
    fn fmt(&self, text: &mut Formatter<'_>) -> std::fmt::Result {
        let verb = if self.dry_run { "would be undone" } else { "is undone" };
        writeln!(text, "run {} of source {} {verb} by run {}:", self.run, self.source, self.undo)?;
        if self.kinds.is_empty() {
            writeln!(text, "  the run has no rows")?;
        }
        if !self.kinds.is_empty()
            && self.kinds.values().all(|changes| changes.restored + changes.retracted == 0)
        {
            writeln!(text, "  warning: no row changes: every row was corrected later, or changed nothing")?;
        }
        for (kind, changes) in &self.kinds {
            let UndoChanges { restored, retracted, corrected_since, unchanged, examples } = changes;
            writeln!(
                text,
                "  {kind}: {restored} restored to the earlier version, {retracted} retracted, {corrected_since} corrected since (kept), {unchanged} equal to the earlier version (kept)"
            )?;
            examples.iter().try_for_each(|example| writeln!(text, "    {example}"))?;
        }
        if let Some(first) = self.skipped.first() {
            let skipped = counted(self.skipped.len(), "damaged message");
            writeln!(
                text,
                "  warning: {skipped} of the log left out, the first at {first}; `ingest verify` lists them"
            )?;
        }
        Ok(())
    }
}

/// Undoes a run. Fails if the log already has a completed undo of the run. If `repair` is true, publishes the lost
/// batches of the completed undo again instead of failing.
pub async fn undo_run(
    args: &UndoArgs,
    settings: &StreamSettings,
    repair: bool,
) -> Result<UndoReport, LoadError> {
    let log = Log::open_existing(settings).await?;
    let manifests: Vec<RunManifest> = log.manifests().await?.into_iter().map(|(_, run)| run).collect();
    let Some(run) = manifests.iter().find(|run| run.run == args.run && run.pull.is_none()) else {
        let known = manifests.iter().filter(|run| run.pull.is_none()).map(|run| run.run.as_str());
        let begun = known.clone().find(|run| args.run.len() > 3 && run.starts_with(&args.run));
        let near = begun.or_else(|| find_nearest_name(&args.run, known));
        let near = near.map(|run| format!(", perhaps {run}")).unwrap_or_default();
        return Err(LoadError::Failed(format!(
            "cannot find run {} in the log{near}; see: ingest runs",
            args.run
        )));
    };
    // The id of an undo depends only on the id of the undone run. A repeated undo therefore has the same id.
    let id = blake3::hash(format!("undo {}", run.run).as_bytes()).to_hex()[..32].to_owned();
    let of_undo = |state| manifests.iter().find(|run| run.run == id && run.state == state);
    if of_undo(RunState::Completed).is_some() && !repair {
        let message =
            format!("cannot undo run {}: run {id} undid it before; `ingest undo {id}` restores it", run.run);
        return Err(LoadError::Failed(message));
    }
    let scope = UndoScope { log: &log, run, id: &id, end: u64::MAX };
    if args.dry_run {
        return Ok(compute_changes(&scope).await?.1);
    }
    let started = of_undo(RunState::Started).map(|started| started.observed_at);
    publish_undo(scope, started, of_undo(RunState::Completed).is_some()).await
}

/// Publishes an undo. `started` is the observation time of the undo's start manifest; `None` if the log has no such
/// manifest. `completed` is true if the log has the undo's completion manifest.
async fn publish_undo(
    mut scope: UndoScope<'_>,
    started: Option<DateTime<Utc>>,
    completed: bool,
) -> Result<UndoReport, LoadError> {
    let UndoScope { log, run, id, .. } = scope;
    let known = log.find_batches(1, &[id.to_owned()].into()).await?;
    let format = UNDO_FORMAT.to_owned();
    let digest = blake3::hash(id.as_bytes()).to_hex().to_string();
    let manifest = RunManifest {
        files: vec![run.run.clone()],
        inputs: vec![digest.clone()],
        command: vec![format.clone(), run.run.clone()],
        new_symbols: Some(Vec::new()),
        ..RunManifest::started(id.to_owned(), run.source.clone(), format, started.unwrap_or_else(now))
    };
    let mut publication = Publication::new(log, manifest, known);
    if started.is_none() {
        publication.publish_manifest(RunState::Started).await?;
    }
    failpoint!("ingest.begun");
    let manifests = log.manifests().await?;
    let Some((start, _)) = manifests.iter().find(|(_, run)| run.run == id) else {
        let message = "cannot find the start manifest of the undo in the log";
        return Err(LoadError::Failed(message.to_owned()));
    };
    scope.end = *start;
    let (batches, mut undone) = compute_changes(&scope).await?;
    tracing::info!(run = %undone.run, undo = %undone.undo, "publishing the undo of a run");
    publication.manifest.rows = batches.rows;
    for batch in batches.encoded {
        publication.publish_batch(&digest, "", batch).await?;
    }
    publication.wait_until_stored().await?;
    failpoint!("ingest.drained");
    if !completed {
        publication.publish_manifest(RunState::Completed).await?;
    }
    failpoint!("ingest.completed");
    (undone.dry_run, undone.frames, undone.frames_in_log) = (false, publication.published, publication.found);
    Ok(undone)
}

/// Computes the record batches of an undo, and its report. Publishes nothing, so the report has `dry_run` set.
async fn compute_changes(scope: &UndoScope<'_>) -> Result<(EncodedBatches, UndoReport), LoadError> {
    let mut batches = EncodedBatches::default();
    let mut report = UndoReport {
        run: scope.run.run.clone(),
        undo: scope.id.to_owned(),
        source: scope.run.source.clone(),
        dry_run: true,
        ..UndoReport::default()
    };
    let mut kinds = Kind::ALL.to_vec();
    kinds.retain(|kind| !matches!(kind, Kind::Decision | Kind::Reject | Kind::Run));
    // Number of the run's rows, by kind.
    let mut rows: BTreeMap<Kind, u64> = BTreeMap::new();
    let count = |envelope: &Envelope| {
        if envelope.run == scope.run.run {
            *rows.entry(envelope.kind).or_default() += envelope.rows;
        }
    };
    scope.log.each_envelope(&kinds, scope.end, count).await?;
    for (kind, rows) in rows {
        let changes = match kind {
            Kind::Price => bars::compute_changes(scope, rows, &mut batches).await?,
            kind => records::compute_changes(kind, scope, &mut batches).await?,
        };
        report.kinds.insert(kind, changes);
    }
    report.skipped = scope.log.skipped_messages();
    Ok((batches, report))
}
