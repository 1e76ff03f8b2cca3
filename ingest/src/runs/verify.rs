//! `ingest verify` and `ingest resume`: both publish record batches that are missing in the log. `verify` repairs
//! completed runs, and `resume` completes interrupted runs.
//!
//! Missing batches are created again from the original files. These always give the same batches and ids.

use std::collections::{HashMap, HashSet};

use clap::Args;
use event_log::record_batch::batch_ids_of_run;
use event_log::stream::{COPY_HINT, LaggingReplica, StreamSettings, is_compressed};
use market::event::{Kind, RunManifest, RunState, RunVisibility};
use serde::Serialize;
use telemetry::report::Report;
use telemetry::{Shutdown, counted};

use crate::load::publication::LoadError;
use crate::load::report::LoadSummary;
use crate::load::{LoadArgs, load};
use crate::log::reader::{Log, LogError};
use crate::log::run_states::{Runs, StoredManifest};
use crate::source::feed_files::join_names;

/// Checks that the log has all record batches of its runs, and republishes missing batches.
///
/// The manifest of a run says which batches the run published. Every message is read and decoded, so that damaged
/// messages are found. To replace a missing batch, the files of the run are read again. The files must still be at
/// their paths. Interrupted runs are listed; `ingest resume` completes them. Messages are read from the leader of the
/// stream. Replicas that are not current are listed.
///
/// Exit codes: 0 the log is complete, or was repaired; 1 messages are missing or damaged, a replica is not current, or
/// the log does not exist; 3 NATS unreachable.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// Report only, without publishing
    #[arg(long)]
    pub check_only: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Resumes interrupted runs from their original files.
///
/// Exit codes: 0 if no run was interrupted; otherwise as in `ingest load`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// Run id, or its beginning; default: all interrupted runs
    pub run: Option<String>,
    /// Print each run as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Result of a verification.
#[derive(Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Number of messages read, including damaged messages.
    pub messages: u64,
    /// Sequence numbers without a message in the stream.
    pub gaps: Vec<u64>,
    /// Messages that cannot be decoded.
    pub damaged: Vec<DamagedMessage>,
    /// Completed runs with missing record batches.
    pub incomplete: Vec<IncompleteRun>,
    /// Ids of runs with a start manifest but without a completion manifest. Undone runs are not listed.
    pub interrupted: Vec<String>,
    /// Number of missing messages that cannot be assigned to a completed run. They may belong to interrupted runs, or
    /// to runs whose manifests are missing too.
    pub unaccounted: u64,
    /// Replicas of the stream that are not current.
    pub lagging_replicas: Vec<LaggingReplica>,
    /// True if nats-server compresses the stream. A compressed stream may be damaged if the server is killed.
    pub compressed: bool,
    /// True if nothing is damaged, missing, interrupted, lagging or unaccounted for after the repair. Gaps in the
    /// sequence numbers remain, because republished batches get new sequence numbers.
    pub whole: bool,
}

/// Message that cannot be decoded.
#[derive(Debug, Serialize)]
pub struct DamagedMessage {
    /// Sequence in the stream.
    pub sequence: u64,
    /// Error of decoding the message.
    pub reason: String,
}

/// Completed run with missing record batches.
#[derive(Debug, Serialize)]
pub struct IncompleteRun {
    /// Run id, as `ingest runs` lists it.
    pub run: String,
    /// Source of the run.
    pub source: String,
    /// Files that the run loaded, as in its manifest.
    pub files: Vec<String>,
    /// Number of files that `files` leaves out.
    pub more_files: u64,
    /// Number of missing record batches.
    pub missing: usize,
    /// Number of republished record batches; 0 with `--check-only`.
    pub published_again: u64,
    /// Reason why missing batches could not be republished; absent if all were republished. Also absent with
    /// `--check-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip)]
    command: Vec<String>,
}

async fn compare_with_manifests(log: &Log) -> Result<VerifyReport, LogError> {
    let mut findings = VerifyReport::default();
    let runs = Runs::read(log).await?;
    let completed = completions(&runs);
    let mut stored_messages: HashMap<&str, u64> = HashMap::new();
    let (mut ids, mut next) = (HashSet::new(), 1);
    log.each_message(|message| {
        let sequence = message.sequence.to_u64();
        findings.gaps.extend(next..sequence);
        (next, findings.messages) = (sequence + 1, findings.messages + 1);
        match message.decode_batches() {
            Ok(batches) => {
                let run = batches.first().filter(|batch| batch.body.kind() != Kind::Run);
                if let Some((run, end)) = run.and_then(|batch| completed.get_key_value(batch.run.as_str())) {
                    // Messages of the run after its completion manifest republish lost batches. The message count in
                    // the manifest excludes them, so they are not counted here.
                    *stored_messages.entry(*run).or_default() += u64::from(sequence < end.sequence);
                }
                ids.extend(batches.iter().map(|batch| batch.id));
            }
            Err(error) => findings.damaged.push(DamagedMessage { sequence, reason: error.to_string() }),
        }
        Ok(())
    })
    .await?;
    if let Some(range) = log.sequence_range() {
        findings.gaps.extend(next..=*range.end());
    }
    for run in runs.manifests() {
        let missing = batch_ids_of_run(run).filter(|id| !ids.contains(id)).count();
        if run.state == RunState::Completed && missing > 0 {
            findings.incomplete.push(IncompleteRun {
                run: run.run.clone(),
                source: run.source.clone(),
                files: run.files.clone(),
                more_files: run.more_files,
                missing,
                published_again: 0,
                reason: None,
                command: run.command.clone(),
            });
        }
        let ended = completed.contains_key(run.run.as_str())
            || runs.states.state(&run.run) == RunVisibility::Excluded;
        if run.state == RunState::Started && !ended {
            findings.interrupted.push(run.run.clone());
        }
    }
    let is_before = |stored: &&StoredManifest, end: &StoredManifest| end.sequence > stored.sequence;
    let begun: HashSet<&str> = runs
        .manifests
        .iter()
        .filter(|stored| stored.manifest.state == RunState::Started)
        .filter(|stored| {
            completed.get(stored.manifest.run.as_str()).is_some_and(|end| is_before(stored, end))
        })
        .map(|stored| stored.manifest.run.as_str())
        .collect();
    let lost = completed.iter().map(|(name, StoredManifest { manifest: run, .. })| {
        let messages = run.messages.unwrap_or(run.chunks);
        // The message count of a run excludes its start manifest, so a missing start manifest is added. A run with
        // `pull`, which records calls and bookmarks of `ingest pull`, never has a start manifest.
        let beginning = u64::from(run.pull.is_none() && !begun.contains(name));
        beginning + messages.saturating_sub(stored_messages.get(name).copied().unwrap_or_default())
    });
    findings.unaccounted = (findings.gaps.len() as u64).saturating_sub(lost.sum());
    Ok(findings)
}

/// Last completion manifest of each run, with its sequence. The key is the run id.
fn completions(runs: &Runs) -> HashMap<&str, &StoredManifest> {
    let completed = runs.manifests.iter().filter(|stored| stored.manifest.state == RunState::Completed);
    completed.map(|stored| (stored.manifest.run.as_str(), stored)).collect()
}

/// Verifies the log, and repairs it unless `--check-only` is set.
pub async fn verify_log(
    args: &VerifyArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<VerifyReport, LogError> {
    let log = Log::open_existing(settings).await?;
    let mut findings = compare_with_manifests(&log).await?;
    if !args.check_only {
        for incomplete in &mut findings.incomplete {
            match repeat_command(&incomplete.command, settings, shutdown, true).await {
                Ok(repaired) => {
                    incomplete.published_again = repaired.frames;
                    let lacking = repaired.frames < incomplete.missing as u64;
                    incomplete.reason = lacking.then(|| repaired.report().to_string());
                }
                Err(error) => incomplete.reason = Some(error.to_string()),
            }
        }
    }
    findings.compressed = is_compressed(&log.stream);
    findings.lagging_replicas = log.lagging_replicas().await?;
    let restored = |run: &IncompleteRun| run.published_again >= run.missing as u64;
    findings.whole = findings.damaged.is_empty()
        && findings.interrupted.is_empty()
        && findings.unaccounted == 0
        && findings.lagging_replicas.is_empty()
        && findings.incomplete.iter().all(restored);
    Ok(findings)
}

/// Repeats the command of a run, in order to publish its missing batches. `repair` must be true if the run is
/// completed.
async fn repeat_command(
    command: &[String],
    settings: &StreamSettings,
    shutdown: &Shutdown,
    repair: bool,
) -> Result<LoadSummary, LoadError> {
    if command.is_empty() {
        let message = "it was read from standard input: run `ingest load -` again with the same input";
        return Err(LoadError::Failed(message.to_owned()));
    }
    let args = LoadArgs::parse_command(command)?;
    load(&LoadArgs { repair, ..args }, settings, shutdown).await
}

impl VerifyReport {
    /// Report of the verification.
    pub fn report(&self) -> Report {
        let mut report = Report::new(format!("{} read", counted(self.messages, "message")));
        if let (Some(first), Some(last)) = (self.gaps.first(), self.gaps.last()) {
            report.add_fact(format!("{} missing, from {first} to {last}: the gap is permanent; `ingest export` and `ingest import` create a log without it",
                counted(self.gaps.len(), "sequence")));
        }
        for DamagedMessage { sequence, reason } in &self.damaged {
            report.add_fact(format!("cannot read message {sequence}: {reason}"));
        }
        for IncompleteRun { run, files, more_files, missing, published_again, reason, .. } in &self.incomplete
        {
            let (files, batches) = (join_names(files, *more_files), counted(missing, "record batch"));
            let reason =
                reason.as_ref().map_or_else(String::new, |reason| format!(": {}", reason.trim_end()));
            report.add_fact(format!(
                "run {run} ({files}): {batches} missing, {published_again} published again{reason}"
            ));
        }
        for run in &self.interrupted {
            report.add_fact(format!("run {run} was interrupted: ingest resume {run}"));
        }
        if self.unaccounted > 0 {
            let lost = counted(self.unaccounted, "lost message");
            report.add_fact(format!("{lost} of unknown runs: load the feeds of that time again, or import the second copy of the log"));
        }
        for replica in &self.lagging_replicas {
            report.add_fact(format!("{replica}: start its server or read its log, then verify again"));
        }
        if self.compressed {
            report.add_fact(format!(
                "the stream is compressed, and a kill of its server can damage it: {COPY_HINT}"
            ));
        }
        report.add_fact(if self.whole { "the log is whole" } else { "the log is not whole" });
        report
    }
}

/// Resumes interrupted runs, and returns the result of each run.
pub async fn resume_runs(
    args: &ResumeArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<Vec<LoadSummary>, LoadError> {
    let runs = Runs::read(&Log::open_existing(settings).await?).await?;
    let completed = completions(&runs);
    let wanted_id = runs.find_id(args.run.as_deref())?;
    let wanted = |run: &RunManifest| wanted_id.is_none_or(|wanted| wanted == run.run);
    let is_excluded = |run: &RunManifest| runs.states.state(&run.run) == RunVisibility::Excluded;
    if let Some(run) = wanted_id
        && runs.manifests().any(|known| wanted(known) && is_excluded(known))
    {
        let message =
            format!("cannot resume run {run}: it was undone; ingest release {run} takes the undo back");
        return Err(LoadError::Failed(message));
    }
    let is_interrupted = |run: &&RunManifest| !completed.contains_key(run.run.as_str()) && !is_excluded(run);
    let mut repeated = HashSet::new();
    let mut resumed = Vec::new();
    for run in runs.manifests().filter(|run| wanted(run)).filter(is_interrupted) {
        if repeated.insert(run.run.as_str()) {
            resumed.push(repeat_command(&run.command, settings, shutdown, false).await?);
        }
    }
    Ok(resumed)
}
