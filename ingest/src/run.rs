//! One run: the inputs of a load, read and published between two manifests.
//!
//! The start is published first and fixes the observation time, so that a resumed run gives equal bytes under equal
//! frame ids; the completion comes last, when everything before it is on disk. Both name the inputs by digest, by
//! which a later load finds what it need not publish again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use event_log::frame::{Body, Envelope, Frame, FrameId, TARGET_BYTES, body_version, schema_name};
use event_log::stream::StreamSettings;
use market::event::{InputFrames, Kind, Run as Manifest, RunState};
use process::Shutdown;
use process::failpoint;
use tokio::sync::mpsc;

use crate::collect::Piece;
use crate::encode::{Encoded, Encoder};
use crate::format::Options;
use crate::holdings::Holdings;
use crate::input::Input;
use crate::load::{LoadArgs, LoadError};
use crate::log::{Known, Log, known};
use crate::produce::{Event, Producer};
use crate::publish::{Outgoing, Publisher};
use crate::report::{FileReport, Progress, Summary};
use crate::stats::Stats;

/// What is to be loaded, and how.
pub(crate) struct Run {
    /// Hash of source and inputs: the same command is the same run.
    id: String,
    source: String,
    format: String,
    observed_at: Option<DateTime<Utc>>,
    inputs: Vec<Input>,
    options: Options,
    max_reject_percent: Option<f64>,
    /// Looks for missing frames of a run that was completed.
    repair: bool,
    /// How to load the same again.
    command: Vec<String>,
    progress: Progress,
    shutdown: Shutdown,
    stop: Arc<AtomicBool>,
}

impl Run {
    pub(crate) fn new(
        args: &LoadArgs,
        inputs: Vec<Input>,
        options: Options,
        progress: Progress,
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
            format: args.format.name().to_owned(),
            observed_at: args.observed_at,
            inputs,
            max_reject_percent: (!args.no_precheck).then_some(args.max_reject_percent),
            repair: args.repair,
            command: args.command(&options),
            options,
            progress,
            shutdown,
            stop: Arc::default(),
        }
    }

    /// Reads everything and publishes nothing.
    pub(crate) async fn try_out(self, summary: &mut Summary) -> Result<(), LoadError> {
        summary.run.clone_from(&self.id);
        let mut events = self.produce(self.observed_at.unwrap_or_else(now));
        let mut total = Stats::default();
        while let Some(event) = self.next(&mut events).await? {
            match event {
                Event::Frame { .. } => summary.frames += 1,
                Event::Loaded { input, stats, holdings } => {
                    summary.frames += holdings.into_frames(TARGET_BYTES).len() as u64;
                    total.add(&stats);
                    summary.files.push(self.report(input, &stats, None));
                }
                Event::Refused { input, stats, reason } => {
                    summary.files.push(self.report(input, &stats, Some(reason)));
                }
                Event::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        summary.total(&total);
        Ok(())
    }

    /// Publishes what the log has not.
    pub(crate) async fn publish(
        self,
        settings: &StreamSettings,
        summary: &mut Summary,
    ) -> Result<(), LoadError> {
        summary.run.clone_from(&self.id);
        let log = Log::open(settings).await?;
        let digests: Vec<String> = self.inputs.iter().map(|input| input.digest.clone()).collect();
        let Known { completed, started, earlier } =
            known(log.manifests().await?, &self.id, &self.source, &digests);
        if let Some(completed) = completed.as_ref().filter(|_| !self.repair) {
            summary.loaded_before(completed);
            return Ok(());
        }
        let in_log = match earlier {
            Some((sequence, runs)) => log.frame_ids(sequence, &runs).await?,
            None => HashSet::new(),
        };
        summary.resumed = started.is_some();
        let observed_at =
            started.as_ref().map(|started| started.observed_at).or(self.observed_at).unwrap_or_else(now);
        let mut publication = Publication::new(&self, &log, observed_at, in_log);
        if started.is_none() {
            publication.manifest(RunState::Started).await?;
        }
        failpoint!("ingest.begun");
        let published = publication.everything(summary).await;
        self.stop.store(true, Ordering::Relaxed);
        // Whatever happened, what is on the way is either acknowledged or reported.
        let drained = publication.publisher.drain().await;
        published?;
        drained?;
        failpoint!("ingest.drained");
        // A repaired run has its manifest already.
        if completed.is_none() {
            publication.manifest(RunState::Completed).await?;
        }
        failpoint!("ingest.completed");
        summary.total(&publication.total);
        Ok(())
    }

    /// Starts reading on threads of its own.
    fn produce(&self, observed_at: DateTime<Utc>) -> mpsc::Receiver<Event> {
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

    /// The next event; an error when the user asked to stop.
    async fn next(&self, events: &mut mpsc::Receiver<Event>) -> Result<Option<Event>, LoadError> {
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

    fn report(&self, input: usize, stats: &Stats, refused: Option<String>) -> FileReport {
        let input = &self.inputs[input];
        self.progress.done(&input.file.label, stats, refused.as_deref());
        FileReport::of(&input.file.label, input.format.name(), stats, refused)
    }
}

/// A run on its way into the log.
struct Publication<'a> {
    run: &'a Run,
    log: &'a Log,
    publisher: Publisher,
    observed_at: DateTime<Utc>,
    /// Ids of frames that are in the log.
    in_log: HashSet<FrameId>,
    digest: blake3::Hasher,
    chunks: u64,
    /// Frames by input and kind.
    frames: BTreeMap<(String, Kind), u64>,
    total: Stats,
    /// Inputs that were loaded.
    loaded: Vec<usize>,
    /// Holdings of all files, and the inputs they came from.
    holdings: Holdings,
    holding_inputs: Vec<usize>,
}

impl<'a> Publication<'a> {
    fn new(run: &'a Run, log: &'a Log, observed_at: DateTime<Utc>, in_log: HashSet<FrameId>) -> Self {
        Self {
            run,
            log,
            publisher: log.publisher(),
            observed_at,
            in_log,
            digest: blake3::Hasher::new(),
            chunks: 0,
            frames: BTreeMap::new(),
            total: Stats::default(),
            loaded: Vec::new(),
            holdings: Holdings::default(),
            holding_inputs: Vec::new(),
        }
    }

    /// Publishes the frames of all inputs.
    async fn everything(&mut self, summary: &mut Summary) -> Result<(), LoadError> {
        let mut events = self.run.produce(self.observed_at);
        while let Some(event) = self.run.next(&mut events).await? {
            match event {
                Event::Frame { input, frame } => {
                    let input = &self.run.inputs[input];
                    self.frame(&input.digest, &input.file.label, frame, summary).await?;
                }
                Event::Loaded { input, stats, holdings } => {
                    summary.files.push(self.run.report(input, &stats, None));
                    self.loaded.push(input);
                    self.total.add(&stats);
                    if !holdings.is_empty() {
                        self.holding_inputs.push(input);
                        self.holdings.append(holdings);
                    }
                }
                Event::Refused { input, stats, reason } => {
                    summary.files.push(self.run.report(input, &stats, Some(reason)));
                }
                Event::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        self.collected_holdings(summary).await
    }

    /// Publishes the holdings of all files: their input is all files that have some.
    async fn collected_holdings(&mut self, summary: &mut Summary) -> Result<(), LoadError> {
        let Some(first) = self.holding_inputs.first() else { return Ok(()) };
        let label = &self.run.inputs[*first].file.label;
        let mut hasher = blake3::Hasher::new();
        for input in &self.holding_inputs {
            hasher.update(self.run.inputs[*input].digest.as_bytes());
        }
        let digest = hasher.finalize().to_hex().to_string();
        let mut frames = Vec::new();
        let mut encoder = Encoder::default();
        for rows in std::mem::take(&mut self.holdings).into_frames(TARGET_BYTES) {
            let line = rows.first().map_or(0, |row| row.line);
            encoder.encode(Piece::Rows(Body::Holdings(rows), line), &mut |frame| frames.push(frame))?;
        }
        for frame in frames {
            self.frame(&digest, label, frame, summary).await?;
        }
        Ok(())
    }

    /// Publishes a frame, unless it is in the log.
    async fn frame(
        &mut self,
        input_digest: &str,
        label: &str,
        frame: Encoded,
        summary: &mut Summary,
    ) -> Result<(), LoadError> {
        let Encoded { kind, codec, chunk, rows, line, body } = frame;
        let id = FrameId::of(&self.run.source, input_digest, chunk, &schema_name(kind));
        let number = self.chunks;
        self.digest.update(&id.0);
        self.chunks += 1;
        *self.frames.entry((input_digest.to_owned(), kind)).or_default() += 1;
        if !self.in_log.insert(id) {
            summary.frames_in_log += 1;
            return Ok(());
        }
        let (source, run) = (self.run.source.clone(), self.run.id.clone());
        let envelope = Envelope {
            id,
            kind,
            version: body_version(kind),
            codec,
            source,
            run,
            chunk: number,
            rows,
            file: label.to_owned(),
            line,
        };
        summary.frames += 1;
        let message = Outgoing { subject: self.log.subject(kind), headers: envelope.headers(), body };
        Ok(self.publisher.send(message).await?)
    }

    fn input_frames(&self) -> Vec<InputFrames> {
        let one = |((input, kind), frames): (&(String, Kind), &u64)| InputFrames {
            input: input.clone(),
            kind: *kind,
            frames: *frames,
        };
        self.frames.iter().map(one).collect()
    }

    /// Publishes a manifest and waits until it is on disk.
    async fn manifest(&mut self, state: RunState) -> Result<(), LoadError> {
        let inputs: Vec<&Input> = match state {
            RunState::Started => self.run.inputs.iter().collect(),
            RunState::Completed => self.loaded.iter().map(|input| &self.run.inputs[*input]).collect(),
        };
        let (source, run) = (self.run.source.clone(), self.run.id.clone());
        let manifest = Manifest {
            run: run.clone(),
            state,
            source: source.clone(),
            format: self.run.format.clone(),
            files: inputs.iter().map(|input| input.file.label.clone()).collect(),
            inputs: inputs.iter().map(|input| input.digest.clone()).collect(),
            observed_at: self.observed_at,
            chunks: self.chunks,
            rows: self.total.accepted(),
            rejects: self.total.rejected(),
            rounded: self.total.rounded,
            digest: self.digest.finalize().to_hex().to_string(),
            frames: self.input_frames(),
            command: self.run.command.clone(),
        };
        // A run completed once more, with a file that was refused before, is another message.
        let identity = format!("{run}/{}", manifest.digest);
        let id = FrameId::of(&source, &identity, state as u64, &schema_name(Kind::Run));
        let body = Body::Run(Box::new(manifest));
        let frame = Frame { id, source, run, chunk: self.chunks, file: String::new(), line: 0, body };
        let (headers, body) = frame.encode()?;
        self.publisher.send(Outgoing { subject: self.log.subject(Kind::Run), headers, body }).await?;
        Ok(self.publisher.drain().await?)
    }
}

/// Now, to the microsecond the log keeps.
fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap_or_default()
}
