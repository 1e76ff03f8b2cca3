//! Run of a load: reads the inputs, and publishes them between a start manifest and a completion manifest.
//!
//! The start manifest fixes the observation time, so that a resumed run gives equal batches with equal ids. The
//! completion manifest is published after all batches are on disk. Both contain the digests of the inputs. A later load
//! compares digests, and skips the batches that the log already has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use event_log::record_batch::{Body, TARGET_BYTES};
use event_log::stream::StreamSettings;
use market::event::{RunManifest as Manifest, RunState};
use telemetry::spans::SPAN_TARGET;
use telemetry::{Shutdown, failpoint};
use tokio::sync::mpsc;

use crate::batch::chunk_encoder::ChunkEncoder;
use crate::batch::coverage::EarlierCoverage;
use crate::batch::holdings::LoadHoldings;
use crate::batch::load_stats::LoadStats;
use crate::batch::row_accumulator::RowChunk;
use crate::clock::now;
use crate::format::ReaderOptions;
use crate::load::args::LoadArgs;
use crate::load::error::LoadError;
use crate::load::file_report::FileReport;
use crate::load::input::LoadInput;
use crate::load::producer::{Producer, ProducerEvent};
use crate::load::progress::LoadProgress;
use crate::load::publication::Publication;
use crate::load::report::LoadSummary;
use crate::load::row_checks::{report_assumed_currencies, report_unmatched_retractions, review_rows};
use crate::log::reader::{EarlierRuns, Log, LogError, StoredBatches, find_earlier_runs};
use crate::log::run_status::RunStatus;
use crate::rejects::OpenRejects;

pub(crate) struct LoadRun {
    /// Id of the run: a hash of source and inputs. The same command therefore gives the same id.
    id: String,
    source: String,
    format: String,
    observed_at: Option<DateTime<Utc>>,
    inputs: Vec<LoadInput>,
    options: ReaderOptions,
    max_reject_percent: Option<f64>,
    /// True if batches that a completed run lost are to be republished.
    repair: bool,
    /// Command line that repeats the load.
    command: Vec<String>,
    progress: LoadProgress,
    shutdown: Shutdown,
    stop: Arc<AtomicBool>,
}

impl LoadRun {
    pub(crate) fn new(
        args: &LoadArgs,
        inputs: Vec<LoadInput>,
        options: ReaderOptions,
        progress: LoadProgress,
        shutdown: Shutdown,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        let digests = inputs.iter().map(|input| input.digest.as_str());
        for part in std::iter::once(args.source.as_str()).chain(digests) {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part.as_bytes());
        }
        Self {
            id: hasher.finalize().to_hex()[..32].to_owned(),
            source: args.source.clone(),
            format: args.map.as_ref().map_or(args.format.name(), |_| "map").to_owned(),
            observed_at: args.observed_at,
            inputs,
            max_reject_percent: (!args.no_precheck).then_some(args.max_reject_percent),
            repair: args.repair,
            command: args.repeat_command(&options),
            options,
            progress,
            shutdown,
            stop: Arc::default(),
        }
    }

    /// Reads all inputs and publishes nothing. The log is read if it is reachable.
    pub(crate) async fn run_dry(
        self,
        settings: &StreamSettings,
        summary: &mut LoadSummary,
    ) -> Result<(), LoadError> {
        summary.run.clone_from(&self.id);
        let before = match read_manifests(settings).await {
            Ok(manifests) => Some(EarlierCoverage::from_manifests(manifests.iter().map(|(_, run)| run))),
            Err(error) => {
                tracing::warn!(%error, "cannot tell which symbols are new: the log was not read");
                None
            }
        };
        let mut events = self.start_producer(self.observed_at.unwrap_or_else(now));
        let mut total = LoadStats::default();
        while let Some(event) = self.next_event(&mut events).await? {
            match event {
                ProducerEvent::Batch { .. } => summary.frames += 1,
                ProducerEvent::Loaded { input, stats, holdings } => {
                    summary.frames += holdings.into_record_batches(TARGET_BYTES).len() as u64;
                    summary.files.push(self.file_report(input, &stats, None));
                    total.merge(stats);
                }
                ProducerEvent::Refused { input, stats, reason } => {
                    summary.files.push(self.file_report(input, &stats, Some(reason)));
                }
                ProducerEvent::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        summary.set_totals(&total);
        summary.compare_with_earlier(&total, before.as_ref());
        let needs_log = !total.retractions.is_empty() || !total.missing_currencies.is_empty();
        let log = match before.as_ref().filter(|_| needs_log) {
            Some(before) => Log::open_existing(settings).await.map(|log| (log, before)).ok(),
            None => None,
        };
        if let Some((log, before)) = &log {
            report_unmatched_retractions(log, &total, before, summary).await;
        }
        report_assumed_currencies(log.as_ref().map(|(log, _)| log), &total, summary).await;
        summary.review = review_rows(&mut total, self.source.clone(), self.options.today).await?;
        Ok(())
    }

    /// Publishes the batches that the log does not have, between the start manifest and the completion manifest.
    #[tracing::instrument(
        target = SPAN_TARGET,
        name = "load",
        skip_all,
        fields(otel.kind = "producer", run = self.id, source = self.source)
    )]
    pub(crate) async fn publish(
        self,
        settings: &StreamSettings,
        summary: &mut LoadSummary,
    ) -> Result<(), LoadError> {
        summary.run.clone_from(&self.id);
        let log = Log::open(settings).await?;
        let manifests = log.manifests().await?;
        let before = EarlierCoverage::from_manifests(manifests.iter().map(|(_, run)| run));
        let status = RunStatus::from_manifests(manifests.iter().map(|(_, run)| run));
        let mut open_rejects = OpenRejects::from_manifests(manifests.iter().map(|(_, run)| run));
        let digests: Vec<String> = self.inputs.iter().map(|input| input.digest.clone()).collect();
        let EarlierRuns { completed, started, earlier } =
            find_earlier_runs(manifests, &self.id, &self.source, &digests);
        let undone = |run: &String| Some((run.clone(), status.undone_by(run)?.to_owned()));
        if let Some((run, undo)) = earlier.iter().flat_map(|(_, runs)| runs).find_map(undone) {
            return Err(LoadError::RunUndone { run, undo });
        }
        if let Some(completed) = completed.as_ref().filter(|_| !self.repair) {
            summary.set_already_loaded(completed);
            summary.open_rejects = Some(open_rejects.count_open(&self.source));
            return Ok(());
        }
        let in_log = match earlier {
            Some((sequence, runs)) => log.find_batches(sequence, &runs).await?,
            None => StoredBatches::default(),
        };
        summary.resumed = started.is_some();
        let observed_at =
            started.as_ref().map(|started| started.observed_at).or(self.observed_at).unwrap_or_else(now);
        let publication = Publication::new(&log, self.manifest(observed_at), in_log);
        let mut loading = RunningLoad::new(&self, publication, before);
        if started.is_none() {
            loading.publication.publish_manifest(RunState::Started).await?;
        }
        failpoint!("ingest.begun");
        let published = loading.publish_inputs(summary).await;
        self.stop.store(true, Ordering::Relaxed);
        // Even after an error, wait until every message in flight is acknowledged or has failed.
        let drained = loading.publication.wait_until_stored().await;
        (summary.frames, summary.frames_in_log) = (loading.publication.published, loading.publication.found);
        published?;
        drained?;
        failpoint!("ingest.drained");
        // The log already has the completion manifest of a repaired run.
        if completed.is_none() {
            loading.publish_completion(summary).await?;
            open_rejects.add_run(&loading.publication.manifest);
        }
        failpoint!("ingest.completed");
        summary.set_totals(&loading.total);
        summary.compare_with_earlier(&loading.total, Some(&loading.before));
        report_unmatched_retractions(&log, &loading.total, &loading.before, summary).await;
        report_assumed_currencies(Some(&log), &loading.total, summary).await;
        summary.review = review_rows(&mut loading.total, self.source.clone(), self.options.today).await?;
        summary.mended = loading.publication.manifest.mends.len() as u64;
        summary.open_rejects = Some(open_rejects.count_open(&self.source));
        Ok(())
    }

    /// Manifest at the start of the run, without counts.
    fn manifest(&self, observed_at: DateTime<Utc>) -> Manifest {
        Manifest {
            files: self.inputs.iter().map(|input| input.file.label.clone()).collect(),
            inputs: self.inputs.iter().map(|input| input.digest.clone()).collect(),
            command: self.command.clone(),
            ..Manifest::started(self.id.clone(), self.source.clone(), self.format.clone(), observed_at)
        }
    }

    /// Starts the producer on a blocking thread.
    fn start_producer(&self, observed_at: DateTime<Utc>) -> mpsc::Receiver<ProducerEvent> {
        let (sender, events) = mpsc::channel(8);
        let producer = Producer {
            inputs: self.inputs.clone(),
            options: self.options.clone(),
            observed_at,
            max_reject_percent: self.max_reject_percent,
            progress: self.progress.clone(),
            stop: self.stop.clone(),
        };
        tokio::task::spawn_blocking(move || producer.run(&sender));
        events
    }

    /// Returns the next event of the producer; `None` after the last event. A shutdown is an error.
    async fn next_event(
        &self,
        events: &mut mpsc::Receiver<ProducerEvent>,
    ) -> Result<Option<ProducerEvent>, LoadError> {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            biased;
            () = shutdown.wait() => {
                self.stop.store(true, Ordering::Relaxed);
                Err(LoadError::Interrupted)
            }
            event = events.recv() => Ok(event),
        }
    }

    fn file_report(&self, input: usize, stats: &LoadStats, refused: Option<String>) -> FileReport {
        let input = &self.inputs[input];
        if refused.is_some() {
            let report = FileReport::from_stats(&input.file.label, input.format.name(), stats, refused);
            return FileReport { path: Some(input.file.display_path()), ..report };
        }
        self.progress.log_file_read(&input.file.label, stats);
        let report = FileReport::from_stats(&input.file.label, input.format.name(), stats, None);
        let time_zone = input.zone.map(|zone| zone.to_string());
        FileReport { doubles: input.doubles.clone(), time_zone, ..report }
    }
}

/// All manifests of the log; empty if the log does not exist.
async fn read_manifests(settings: &StreamSettings) -> Result<Vec<(u64, Manifest)>, LogError> {
    match Log::open_existing(settings).await {
        Err(error) if error.is_absence() => Ok(Vec::new()),
        log => log?.manifests().await,
    }
}

struct RunningLoad<'a> {
    run: &'a LoadRun,
    publication: Publication<'a>,
    /// Coverage of earlier runs.
    before: EarlierCoverage,
    total: LoadStats,
    /// Indexes in the list of inputs: inputs that were loaded.
    loaded: Vec<usize>,
    /// Holdings of all files, and indexes of the inputs that contain holdings.
    holdings: LoadHoldings,
    holding_inputs: Vec<usize>,
}

impl<'a> RunningLoad<'a> {
    fn new(run: &'a LoadRun, publication: Publication<'a>, before: EarlierCoverage) -> Self {
        Self {
            run,
            publication,
            before,
            total: LoadStats::default(),
            loaded: Vec::new(),
            holdings: LoadHoldings::default(),
            holding_inputs: Vec::new(),
        }
    }

    /// Publishes the batches of all inputs.
    async fn publish_inputs(&mut self, summary: &mut LoadSummary) -> Result<(), LoadError> {
        let mut events = self.run.start_producer(self.publication.manifest.observed_at);
        let mut ended = 0;
        while let Some(event) = self.run.next_event(&mut events).await? {
            ended +=
                usize::from(matches!(event, ProducerEvent::Loaded { .. } | ProducerEvent::Refused { .. }));
            match event {
                ProducerEvent::Batch { input, batch } => {
                    let input = &self.run.inputs[input];
                    self.publication.publish_batch(&input.digest, &input.file.label, batch).await?;
                }
                ProducerEvent::Loaded { input, stats, holdings } => {
                    summary.files.push(self.run.file_report(input, &stats, None));
                    self.loaded.push(input);
                    self.total.merge(stats);
                    if !holdings.is_empty() {
                        self.holding_inputs.push(input);
                        self.holdings.merge(holdings);
                    }
                }
                ProducerEvent::Refused { input, stats, reason } => {
                    summary.files.push(self.run.file_report(input, &stats, Some(reason)));
                }
                ProducerEvent::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        // If the producer panicked, it sent no event for the remaining inputs.
        if ended < self.run.inputs.len() {
            return Err(LoadError::Failed("reading stopped unexpectedly; what was read is kept".to_owned()));
        }
        self.publish_holdings().await
    }

    /// Publishes the holdings of all files as one input, with a digest of all files with holdings.
    async fn publish_holdings(&mut self) -> Result<(), LoadError> {
        let Some(first) = self.holding_inputs.first() else { return Ok(()) };
        let label = &self.run.inputs[*first].file.label;
        let mut hasher = blake3::Hasher::new();
        for input in &self.holding_inputs {
            hasher.update(self.run.inputs[*input].digest.as_bytes());
        }
        let digest = hasher.finalize().to_hex().to_string();
        let mut batches = Vec::new();
        let mut encoder = ChunkEncoder::default();
        for rows in std::mem::take(&mut self.holdings).into_record_batches(TARGET_BYTES) {
            let line = rows.first().map_or(0, |row| row.line);
            encoder.encode(RowChunk::Rows(Body::Holdings(rows), line), &mut |batch| batches.push(batch))?;
        }
        for batch in batches {
            self.publication.publish_batch(&digest, label, batch).await?;
        }
        Ok(())
    }

    /// Publishes the completion manifest, which names the loaded inputs and the refused files.
    async fn publish_completion(&mut self, summary: &LoadSummary) -> Result<(), LoadError> {
        let loaded: Vec<&LoadInput> = self.loaded.iter().map(|input| &self.run.inputs[*input]).collect();
        let manifest = &mut self.publication.manifest;
        manifest.files = loaded.iter().map(|input| input.file.label.clone()).collect();
        manifest.inputs = loaded.iter().map(|input| input.digest.clone()).collect();
        manifest.refused = summary.refused().map(|file| file.file.clone()).collect();
        (manifest.rows, manifest.rejects) = (self.total.accepted_count(), self.total.rejected_count());
        manifest.rounded = self.total.rounded;
        let mends: BTreeSet<String> = loaded.iter().flat_map(|input| input.mends.iter().cloned()).collect();
        manifest.mends = mends.into_iter().collect();
        manifest.newest = self.total.coverage.newest_dates();
        manifest.new_symbols = self.before.new_symbols(&self.total.coverage);
        self.publication.publish_manifest(RunState::Completed).await
    }
}
