//! Run of a load: publishes the inputs between a start manifest and a completion manifest. A resumed run takes its
//! observation time from the start manifest, and so gives the same batches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};
use event_log::record_batch::Body;
use event_log::stream::StreamSettings;
use market::event::{RunChange, RunManifest as Manifest, RunState, RunVisibility};
use telemetry::logging::SPAN_TARGET;
use telemetry::{Shutdown, failpoint};
use tokio::sync::mpsc;

use crate::batch::batch_spool::{ChunkEncoder, EncodedBatch};
use crate::batch::coverage::EarlierCoverage;
use crate::batch::load_stats::LoadStats;
use crate::batch::row_buffers::LoadHoldings;
use crate::format::ReaderOptions;
use crate::load::args::LoadArgs;
use crate::load::effect::{CandidateFile, LoadEffect, ProjectorProgram};
use crate::load::file_list::FileReport;
use crate::load::gate::{GateResult, judge_candidate};
use crate::load::input::{LoadInput, Producer, ProducerEvent};
use crate::load::progress::LoadProgress;
use crate::load::publication::{LoadError, Publication, publish_change};
use crate::load::report::LoadSummary;
use crate::load::row_checks::{check_rows, needs_security_records};
use crate::log::publisher::now;
use crate::log::reader::{Log, StoredBatches};
use crate::log::run_states::{EarlierRuns, Runs, find_earlier_runs};
use crate::rejects::OpenRejects;
use crate::source::feed_files::MAX_LISTED;

pub(crate) struct LoadRun<'a> {
    /// Id of the run: a hash of the source and the inputs' digests. The same load therefore has the same id when it is
    /// repeated.
    pub id: String,
    args: &'a LoadArgs,
    producer: Producer,
    shutdown: &'a Shutdown,
}

/// Loaded inputs and their statistics. Holdings are collected here, and published after all inputs were read.
#[derive(Default)]
struct LoadedInputs<'a> {
    total: LoadStats,
    inputs: Vec<&'a LoadInput>,
    /// Holdings of all files. `holding_inputs` are the inputs that contain holdings.
    holdings: LoadHoldings,
    holding_inputs: Vec<&'a LoadInput>,
}

impl<'a> LoadRun<'a> {
    pub(crate) fn new(
        args: &'a LoadArgs,
        inputs: Vec<LoadInput>,
        options: ReaderOptions,
        progress: LoadProgress,
        shutdown: &'a Shutdown,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        let digests = inputs.iter().map(|input| input.digest.as_str());
        for part in std::iter::once(args.source.as_str()).chain(digests) {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part.as_bytes());
        }
        let id = hasher.finalize().to_hex()[..32].to_owned();
        let producer = Producer {
            inputs,
            options,
            observed_at: args.observed_at.unwrap_or_else(now),
            max_reject_percent: (!args.no_precheck).then_some(args.max_reject_percent),
            progress,
            stop: Arc::default(),
        };
        Self { id, args, producer, shutdown }
    }

    pub(crate) fn inputs(&self) -> &[LoadInput] {
        &self.producer.inputs
    }

    /// Reads all inputs, but publishes nothing. If the log is reachable, it is read for the summary.
    pub(crate) async fn run_dry(
        self,
        settings: &StreamSettings,
        summary: &mut LoadSummary,
    ) -> Result<(), LoadError> {
        let runs = match Log::open_existing(settings).await {
            Err(error) if error.is_absence() => Ok(Runs::default()),
            Err(error) => Err(error),
            Ok(log) => Runs::read(&log).await,
        };
        let before = match runs {
            Ok(runs) => Some(EarlierCoverage::from_manifests(runs.visible_manifests())),
            Err(error) => {
                tracing::warn!(%error, "cannot determine which symbols are new: the log was not read");
                None
            }
        };
        let mut batches = 0;
        let mut candidate = match self.args.gate || ProjectorProgram::find_for_effect(self.args).is_some() {
            true => Some(CandidateFile::create(&self.args.source, &self.id)?),
            false => None,
        };
        let take_batch = async |input: &LoadInput, batch: EncodedBatch| {
            batches += 1;
            match &mut candidate {
                Some(candidate) => Ok(candidate.add_batch(&input.digest, &input.file.label, batch)?),
                None => Ok(()),
            }
        };
        let LoadedInputs { total, holdings, .. } =
            self.read_inputs(self.producer.observed_at, summary, take_batch).await?;
        if let Some(mut candidate) = candidate {
            let path = candidate.finish()?;
            if self.args.gate {
                summary.gate = Some(match batches {
                    0 => GateResult::failed("it has no rows"),
                    _ => judge_candidate(path, self.args, settings, self.shutdown).await?,
                });
            } else if let Some(path) = path {
                summary.effect = LoadEffect::measure_candidate(path, self.args, settings).await;
            }
        }
        summary.frames = batches + holdings.into_record_batches().len() as u64;
        let needs_log = !total.retractions.is_empty() || needs_security_records(&total);
        let log = match &before {
            Some(_) if needs_log => Log::open_existing(settings).await.ok(),
            _ => None,
        };
        check_rows(log.as_ref(), before.as_ref(), total, self.producer.options.today, summary).await
    }

    /// Publishes a start manifest, the batches that the log does not have, and a completion manifest.
    #[tracing::instrument(
        target = SPAN_TARGET,
        name = "load",
        skip_all,
        fields(otel.kind = "producer", run = self.id, source = self.args.source)
    )]
    pub(crate) async fn publish(
        self,
        settings: &StreamSettings,
        summary: &mut LoadSummary,
    ) -> Result<(), LoadError> {
        let log = Log::open(settings).await?;
        let mut runs = Runs::read(&log).await?;
        if runs.states.state(&self.id) == RunVisibility::Excluded {
            let reason = "its files were loaded again";
            let state = if self.args.holds_rows() { RunVisibility::Held } else { RunVisibility::Visible };
            self.change_state(&log, &mut runs, state, reason).await?;
            summary.visible_again = !self.args.holds_rows();
        }
        let before = EarlierCoverage::from_manifests(runs.visible_manifests());
        let mut open_rejects = OpenRejects::from_runs(&runs);
        let digests: Vec<String> = self.producer.inputs.iter().map(|input| input.digest.clone()).collect();
        let EarlierRuns { completed, started, earlier } =
            find_earlier_runs(&runs, &self.id, &self.args.source, &digests);
        let is_new = completed.is_none() && runs.states.last_change(&self.id).is_none();
        if self.args.holds_rows() && is_new {
            self.change_state(&log, &mut runs, RunVisibility::Held, "staged").await?;
        }
        failpoint!("ingest.staged");
        summary.held = runs.states.state(&self.id) == RunVisibility::Held;
        if let Some(completed) = completed.as_ref().filter(|_| !self.args.repair) {
            summary.set_already_loaded(completed);
            summary.open_rejects = Some(open_rejects.count_open(&self.args.source));
            return Ok(());
        }
        let in_log = match earlier {
            Some((sequence, runs)) => log.find_batches(sequence, &runs).await?,
            None => StoredBatches::default(),
        };
        summary.resumed = started.is_some();
        let observed_at = started.as_ref().map(|started| started.observed_at).or(self.args.observed_at);
        let mut publication = Publication::new(&log, self.manifest(observed_at.unwrap_or_else(now)), in_log);
        if started.is_none() {
            publication.publish_manifest(RunState::Started).await?;
        }
        failpoint!("ingest.begun");
        let loaded = self.publish_inputs(&mut publication, summary).await;
        self.producer.stop.store(true, Ordering::Relaxed);
        // Even after an error, wait until every message in flight is acknowledged or has failed.
        let drained = publication.wait_until_stored().await;
        (summary.frames, summary.frames_in_log) = (publication.published, publication.found);
        let LoadedInputs { total, inputs, .. } = loaded?;
        drained?;
        failpoint!("ingest.drained");
        // With `--repair`, the log may already have the completion manifest of this run. A second one is not published.
        if completed.is_none() {
            let mends: BTreeSet<String> =
                inputs.iter().flat_map(|input| input.mends.iter().cloned()).collect();
            publication.manifest = Manifest {
                files: first_labels(&inputs),
                more_files: unlisted(inputs.len()),
                inputs: inputs.iter().map(|input| input.digest.clone()).collect(),
                refused: summary.files.refused().take(MAX_LISTED).map(|file| file.file.clone()).collect(),
                more_refused: unlisted(summary.files.refused().count()),
                rows: total.accepted_count(),
                rejects: total.rejected_count(),
                rounded: total.rounded,
                mends: open_rejects.keep_known(mends),
                newest: total.coverage.newest_dates(),
                new_symbols: before.new_symbols(&total.coverage),
                ..publication.manifest
            };
            publication.publish_manifest(RunState::Completed).await?;
            open_rejects.add_run(&publication.manifest, summary.held);
        }
        failpoint!("ingest.completed");
        summary.mended = publication.manifest.mends.len() as u64;
        summary.open_rejects = Some(open_rejects.count_open(&self.args.source));
        check_rows(Some(&log), Some(&before), total, self.producer.options.today, summary).await
    }

    /// Publishes a change of this run's state, and adds it to `runs`.
    async fn change_state(
        &self,
        log: &Log,
        runs: &mut Runs,
        new_state: RunVisibility,
        reason: &str,
    ) -> Result<(), LoadError> {
        let (run, reason, operator) = (self.id.clone(), reason.to_owned(), "ingest load".to_owned());
        let change = RunChange { run, new_state, reason, at: now(), operator };
        let id = publish_change(log, &self.args.source, change.clone()).await?;
        runs.states.add(id, change);
        Ok(())
    }

    /// Start manifest of the run. It has no counts.
    fn manifest(&self, observed_at: DateTime<Utc>) -> Manifest {
        let format = self.args.map.as_ref().map_or(self.args.format.name(), |_| "map").to_owned();
        Manifest {
            files: first_labels(&self.producer.inputs.iter().collect::<Vec<_>>()),
            more_files: unlisted(self.producer.inputs.len()),
            inputs: self.producer.inputs.iter().map(|input| input.digest.clone()).collect(),
            command: self.args.repeat_command(&self.producer.options),
            ..Manifest::started(self.id.clone(), self.args.source.clone(), format, observed_at)
        }
    }

    /// Publishes the batches of all inputs. Holdings of all files are published together, as one additional input. Its
    /// digest is computed from the digests of all files with holdings.
    async fn publish_inputs(
        &self,
        publication: &mut Publication<'_>,
        summary: &mut LoadSummary,
    ) -> Result<LoadedInputs<'_>, LoadError> {
        let observed_at = publication.manifest.observed_at;
        let publish = async |input: &LoadInput, batch| {
            publication.publish_batch(&input.digest, &input.file.label, batch).await
        };
        let mut loaded = self.read_inputs(observed_at, summary, publish).await?;
        if let Some(first) = loaded.holding_inputs.first() {
            let mut hasher = blake3::Hasher::new();
            for input in &loaded.holding_inputs {
                hasher.update(input.digest.as_bytes());
            }
            let digest = hasher.finalize().to_hex().to_string();
            let mut encoder = ChunkEncoder::default();
            for rows in std::mem::take(&mut loaded.holdings).into_record_batches() {
                let line = rows.first().map_or(0, |row| row.line);
                let batch = encoder.encode(&Body::Holdings(rows), line)?;
                publication.publish_batch(&digest, &first.file.label, batch).await?;
            }
        }
        Ok(loaded)
    }

    /// Reads all inputs, passes their record batches to `take_batch`, and adds the files to the summary.
    async fn read_inputs(
        &self,
        observed_at: DateTime<Utc>,
        summary: &mut LoadSummary,
        mut take_batch: impl AsyncFnMut(&LoadInput, EncodedBatch) -> Result<(), LoadError>,
    ) -> Result<LoadedInputs<'_>, LoadError> {
        let (sender, mut events) = mpsc::channel(8);
        let producer = Producer { observed_at, ..self.producer.clone() };
        tokio::task::spawn_blocking(move || producer.run(&sender));
        let mut found = LoadedInputs::default();
        let files_before = summary.files.reports.len();
        loop {
            let Some(event) = self.shutdown.or_stop(events.recv()).await else {
                self.producer.stop.store(true, Ordering::Relaxed);
                return Err(LoadError::Interrupted);
            };
            let Some(event) = event else { break };
            match event {
                ProducerEvent::Batch { input, batch } => {
                    take_batch(&self.producer.inputs[input], batch).await?
                }
                ProducerEvent::Loaded { input, stats, holdings } => {
                    let input = &self.producer.inputs[input];
                    self.producer.progress.log_file_read(&input.file.label, &stats);
                    summary.files.reports.push(FileReport::of_input(input, &stats, None));
                    found.inputs.push(input);
                    found.total.merge(stats);
                    if !holdings.is_empty() {
                        found.holding_inputs.push(input);
                        found.holdings.merge(holdings);
                    }
                }
                ProducerEvent::Refused { input, stats, reason } => {
                    summary.files.reports.push(FileReport::of_input(
                        &self.producer.inputs[input],
                        &stats,
                        Some(reason),
                    ));
                }
                ProducerEvent::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        // If there are fewer reports than inputs, the producer panicked and sent no event for the remaining inputs.
        if summary.files.reports.len() - files_before < self.producer.inputs.len() {
            return Err(LoadError::Failed(
                "reading stopped unexpectedly; published rows are kept".to_owned(),
            ));
        }
        Ok(found)
    }
}

/// Labels of the first inputs, for a manifest.
fn first_labels(inputs: &[&LoadInput]) -> Vec<String> {
    inputs.iter().take(MAX_LISTED).map(|input| input.file.label.clone()).collect()
}

/// Number of files that a manifest counts but does not list.
fn unlisted(files: usize) -> u64 {
    files.saturating_sub(MAX_LISTED) as u64
}
