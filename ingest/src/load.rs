//! `ingest load`: files into the log, from their paths to the run's manifest.
//!
//! A load is a run: its start is published first and fixes the observation time, its completion last. Both name the
//! inputs by digest, by which a later load finds what it need not publish again.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use schema::event::{Kind, Run, RunState};
use schema::frame::{Body, Envelope, FrameError, FrameId, TARGET_BYTES, schema_name};
use schema::process::Shutdown;
use schema::stream::StreamSettings;
use schema::symbol::Symbol;
use tokio::sync::mpsc;

use crate::collect::Stats;
use crate::encode::{Encoded, Encoder};
use crate::format::{Choice, Options};
use crate::holdings::Holdings;
use crate::input::{Input, survey};
use crate::log::{Known, Log, LogError, known};
use crate::normalize::{parse_currency, parse_time};
use crate::produce::{Event, Producer};
use crate::publish::{Outgoing, PublishFailure, Publisher};
use crate::report::{FileReport, FileStatus, Progress, Summary};
use crate::source;

/// Loads feed files into the log.
///
/// PATH is a file or a folder (read recursively, in name order): CSV, NDJSON, also packed as .gz, .zst or in a .zip.
/// A canonical CSV file is named by its kind: prices.csv, dividends-2024.csv.gz, securities.csv. Rows that cannot be
/// used are kept as rejects, with file, line and reason (`ingest rejects`), and do not stop the others.
///
/// Loading the same files again publishes nothing again; after an interruption the same command resumes.
///
/// Exit codes: 0 all loaded; 1 loaded, but some rows or files were refused; 2 nothing loaded; 3 NATS unreachable;
/// 130 interrupted.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Files and folders
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name of the feed; facts are kept by source, and a source policy says which one wins
    #[arg(long, value_parser = parse_source)]
    pub source: String,
    /// Format of the files
    #[arg(long, value_enum, default_value_t)]
    pub format: Choice,
    /// Symbol of files that hold one symbol and do not name it
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Currency of amounts in vendor files, which do not name it (ISO 4217, or a minor unit such as GBX)
    #[arg(long, default_value = "USD", value_parser = checked_currency)]
    pub currency: String,
    /// Parse everything and print the summary, contact nothing
    #[arg(long)]
    pub dry_run: bool,
    /// When rows that do not say so were observed (RFC 3339); default: the time of the load
    #[arg(long, value_parser = checked_time)]
    pub observed_at: Option<DateTime<Utc>>,
    /// Read past columns and fields of unknown names instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Refuse a file whole when more than this share of its rows cannot be used
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    pub max_reject_percent: f64,
    /// Publish while reading, without looking at the whole file first
    #[arg(long)]
    pub no_precheck: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Today, for historical data (YYYY-MM-DD); default: the date in New York
    #[arg(long, env = "SERVICE_DATE", value_name = "DATE")]
    pub today: Option<NaiveDate>,
}

fn parse_source(text: &str) -> Result<String, String> {
    let valid = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    valid.then(|| text.to_owned()).ok_or_else(|| "1 to 64 letters, digits, '-', '_' and '.'".to_owned())
}

fn checked_currency(text: &str) -> Result<String, String> {
    parse_currency(text)
        .map(|_| text.to_owned())
        .ok_or_else(|| "an ISO 4217 code such as USD, or GBX, ZAc, ILA".to_owned())
}

fn checked_time(text: &str) -> Result<DateTime<Utc>, String> {
    parse_time(text).ok_or_else(|| "an RFC 3339 time such as 2024-03-15T21:00:00Z".to_owned())
}

/// Why a load ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}; run the same command again to resume")]
    Publish(#[from] PublishFailure),
    #[error("interrupted; what was acknowledged is kept, run the same command again to resume")]
    Interrupted,
    #[error("{0}")]
    Failed(String),
    #[error("a frame cannot be encoded: {0}")]
    Encode(#[from] FrameError),
}

impl LoadError {
    /// The exit code of a load that ended so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Publish(_) => 3,
            Self::Interrupted => 130,
            Self::Failed(_) | Self::Encode(_) => 2,
        }
    }
}

/// Loads files as the command line says.
pub async fn load(
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<Summary, LoadError> {
    let begun = Instant::now();
    let options = options(args);
    let progress = Progress::start();
    let (mut summary, inputs) = {
        let (args, options, progress) = (args.clone(), options.clone(), progress.clone());
        let surveyed = tokio::task::spawn_blocking(move || find_inputs(&args, &options, &progress));
        surveyed.await.map_err(|error| LoadError::Failed(error.to_string()))?
    };
    if !inputs.is_empty() {
        let run = Load::new(args, inputs, options, progress.clone(), shutdown.clone());
        if args.dry_run {
            run.try_out(&mut summary).await?
        } else {
            run.publish(settings, &mut summary).await?
        }
    }
    progress.finish();
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

fn options(args: &LoadArgs) -> Options {
    let new_york = Utc::now().with_timezone(&chrono_tz::America::New_York).date_naive();
    Options {
        choice: args.format,
        symbol: args.symbol.clone(),
        currency: parse_currency(&args.currency).unwrap_or_else(crate::normalize::Currency::dollar),
        ignore_unknown: args.ignore_unknown,
        today: args.today.unwrap_or(new_york),
    }
}

/// The inputs of all paths, and a summary that names the files already refused.
fn find_inputs(args: &LoadArgs, options: &Options, progress: &Progress) -> (Summary, Vec<Input>) {
    let found = source::find(&args.paths);
    let mut summary = Summary {
        source: args.source.clone(),
        dry_run: args.dry_run,
        skipped: found.skipped,
        ..Summary::default()
    };
    let refused = |file: String, reason: String| FileReport {
        file,
        status: FileStatus::Refused,
        reason: Some(reason),
        ..FileReport::default()
    };
    summary.files.extend(found.refused.into_iter().map(|(file, reason)| refused(file, reason)));
    progress.identify();
    let surveyed = survey(&found.files, options, &|bytes| progress.read(bytes));
    let mut inputs = Vec::new();
    for (file, input) in found.files.iter().zip(surveyed) {
        match input {
            Ok(input) => inputs.push(input),
            Err(reason) => summary.files.push(refused(file.label.clone(), reason)),
        }
    }
    progress.load(inputs.iter().map(|input| input.bytes).sum());
    (summary, inputs)
}

/// One load under way.
struct Load {
    run: String,
    source: String,
    format: String,
    observed_at: Option<DateTime<Utc>>,
    inputs: Vec<Input>,
    options: Options,
    max_reject_percent: Option<f64>,
    progress: Progress,
    shutdown: Shutdown,
    stop: Arc<AtomicBool>,
}

/// What was given to the log so far.
struct Published {
    /// Ids of frames that are in the log.
    known: HashSet<FrameId>,
    digest: blake3::Hasher,
    chunks: u64,
    total: Stats,
    holdings: Holdings,
    /// Inputs that were loaded.
    loaded: Vec<usize>,
    /// Inputs that have holdings, with the first one's file.
    holding_inputs: Vec<usize>,
}

impl Load {
    fn new(
        args: &LoadArgs,
        inputs: Vec<Input>,
        options: Options,
        progress: Progress,
        shutdown: Shutdown,
    ) -> Self {
        let format = format!("{:?}", args.format).to_ascii_lowercase();
        let mut hasher = blake3::Hasher::new();
        for part in
            std::iter::once(args.source.as_str()).chain(inputs.iter().map(|input| input.digest.as_str()))
        {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part.as_bytes());
        }
        Self {
            run: hasher.finalize().to_hex()[..32].to_owned(),
            source: args.source.clone(),
            format,
            observed_at: args.observed_at,
            inputs,
            options,
            max_reject_percent: (!args.no_precheck).then_some(args.max_reject_percent),
            progress,
            shutdown,
            stop: Arc::default(),
        }
    }

    /// Reads everything and publishes nothing.
    async fn try_out(self, summary: &mut Summary) -> Result<(), LoadError> {
        summary.run.clone_from(&self.run);
        let mut events = self.produce(self.observed_at.unwrap_or_else(now));
        let mut published = Published::new(HashSet::new());
        while let Some(event) = self.next(&mut events).await? {
            match event {
                Event::Frame { .. } => summary.frames += 1,
                Event::Loaded { input, stats, .. } => {
                    self.count(input, &stats, None, &mut published, summary)
                }
                Event::Refused { input, stats, reason } => {
                    self.count(input, &stats, Some(reason), &mut published, summary)
                }
                Event::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        summary.total(&published.total);
        Ok(())
    }

    /// Publishes what the log has not.
    async fn publish(self, settings: &StreamSettings, summary: &mut Summary) -> Result<(), LoadError> {
        summary.run.clone_from(&self.run);
        let log = Log::open(settings).await?;
        let digests: Vec<String> = self.inputs.iter().map(|input| input.digest.clone()).collect();
        let Known { completed, started, earlier } =
            known(log.manifests().await?, &self.run, &self.source, &digests);
        if let Some(completed) = completed {
            summary.loaded_before(&completed);
            return Ok(());
        }
        let ids = match earlier {
            Some((sequence, runs)) => log.frame_ids(sequence, &runs).await?,
            None => HashSet::new(),
        };
        let mut publisher = Publisher::new(log.context.clone());
        let observed_at = match &started {
            Some(started) => started.observed_at,
            None => {
                let observed_at = self.observed_at.unwrap_or_else(now);
                self.publish_manifest(
                    RunState::Started,
                    observed_at,
                    &Published::new(HashSet::new()),
                    &log,
                    &mut publisher,
                )
                .await?;
                observed_at
            }
        };
        summary.resumed = started.is_some();
        let mut published = Published::new(ids);
        let result = self.publish_all(observed_at, &log, &mut publisher, &mut published, summary).await;
        self.stop.store(true, Ordering::Relaxed);
        // Whatever happened, what is on the way is either acknowledged or reported.
        let drained = publisher.drain().await;
        result?;
        drained?;
        self.publish_manifest(RunState::Completed, observed_at, &published, &log, &mut publisher).await?;
        summary.total(&published.total);
        Ok(())
    }

    async fn publish_all(
        &self,
        observed_at: DateTime<Utc>,
        log: &Log,
        publisher: &mut Publisher,
        published: &mut Published,
        summary: &mut Summary,
    ) -> Result<(), LoadError> {
        let mut events = self.produce(observed_at);
        while let Some(event) = self.next(&mut events).await? {
            match event {
                Event::Frame { input, frame } => {
                    let (digest, label) = (&self.inputs[input].digest, &self.inputs[input].file.label);
                    self.publish_frame(digest, label, frame, log, publisher, published, summary).await?;
                }
                Event::Loaded { input, stats, holdings } => {
                    self.count(input, &stats, None, published, summary);
                    if !holdings.is_empty() {
                        published.holding_inputs.push(input);
                        published.holdings.append(holdings);
                    }
                }
                Event::Refused { input, stats, reason } => {
                    self.count(input, &stats, Some(reason), published, summary)
                }
                Event::Failed(reason) => return Err(LoadError::Failed(reason)),
            }
        }
        self.publish_holdings(log, publisher, published, summary).await
    }

    /// Publishes the holdings of all files: their input is all files that have some.
    async fn publish_holdings(
        &self,
        log: &Log,
        publisher: &mut Publisher,
        published: &mut Published,
        summary: &mut Summary,
    ) -> Result<(), LoadError> {
        let Some(first) = published.holding_inputs.first().copied() else { return Ok(()) };
        let mut hasher = blake3::Hasher::new();
        published.holding_inputs.iter().for_each(|input| {
            hasher.update(self.inputs[*input].digest.as_bytes());
        });
        let digest = hasher.finalize().to_hex().to_string();
        let holdings = std::mem::take(&mut published.holdings);
        let mut frames = Vec::new();
        let mut encoder = Encoder::default();
        for rows in holdings.into_frames(TARGET_BYTES) {
            let line = rows.first().map_or(0, |row| row.line);
            encoder.encode(crate::collect::Piece::Rows(Body::Holdings(rows), line), &mut |frame| {
                frames.push(frame)
            })?;
        }
        for frame in frames {
            self.publish_frame(
                &digest,
                &self.inputs[first].file.label,
                frame,
                log,
                publisher,
                published,
                summary,
            )
            .await?;
        }
        Ok(())
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

    #[expect(clippy::too_many_arguments, reason = "one frame and where it goes")]
    async fn publish_frame(
        &self,
        digest: &str,
        label: &str,
        frame: Encoded,
        log: &Log,
        publisher: &mut Publisher,
        published: &mut Published,
        summary: &mut Summary,
    ) -> Result<(), LoadError> {
        let id = FrameId::of(&self.source, digest, frame.chunk, &schema_name(frame.kind));
        published.digest.update(&id.0);
        published.chunks += 1;
        if !published.known.insert(id) {
            summary.frames_in_log += 1;
            return Ok(());
        }
        let Encoded { kind, codec, rows, line, body, .. } = frame;
        let envelope = Envelope {
            id,
            kind,
            codec,
            source: self.source.clone(),
            run: self.run.clone(),
            chunk: published.chunks - 1,
            rows,
            file: label.to_owned(),
            line,
        };
        summary.frames += 1;
        publisher.send(Outgoing { subject: log.subject(kind), headers: envelope.headers(), body }).await?;
        Ok(())
    }

    async fn publish_manifest(
        &self,
        state: RunState,
        observed_at: DateTime<Utc>,
        published: &Published,
        log: &Log,
        publisher: &mut Publisher,
    ) -> Result<(), LoadError> {
        let inputs: Vec<&Input> = match state {
            RunState::Started => self.inputs.iter().collect(),
            RunState::Completed => published.loaded.iter().map(|input| &self.inputs[*input]).collect(),
        };
        let manifest = Run {
            run: self.run.clone(),
            state,
            source: self.source.clone(),
            format: self.format.clone(),
            files: inputs.iter().map(|input| input.file.label.clone()).collect(),
            inputs: inputs.iter().map(|input| input.digest.clone()).collect(),
            observed_at,
            chunks: published.chunks,
            rows: published.total.accepted(),
            rejects: published.total.rejected(),
            rounded: published.total.rounded,
            digest: published.digest.finalize().to_hex().to_string(),
        };
        // A run completed once more, with a file that was refused before, is another message.
        let identity = format!("{}/{}", self.run, manifest.digest);
        let id = FrameId::of(&self.source, &identity, state as u64, &schema_name(Kind::Run));
        let body = Body::Run(Box::new(manifest));
        let frame = schema::frame::Frame {
            id,
            source: self.source.clone(),
            run: self.run.clone(),
            chunk: published.chunks,
            file: String::new(),
            line: 0,
            body,
        };
        let (headers, body) = frame.encode()?;
        publisher.send(Outgoing { subject: log.subject(Kind::Run), headers, body }).await?;
        Ok(publisher.drain().await?)
    }

    fn count(
        &self,
        input: usize,
        stats: &Stats,
        refused: Option<String>,
        published: &mut Published,
        summary: &mut Summary,
    ) {
        let file = &self.inputs[input];
        let status = if refused.is_some() { FileStatus::Refused } else { FileStatus::Loaded };
        if refused.is_none() {
            published.loaded.push(input);
            published.total.add(stats);
        }
        self.progress.done(&file.file.label, stats, refused.as_deref());
        summary.files.push(FileReport {
            file: file.file.label.clone(),
            format: Some(file.format.name().to_owned()),
            status,
            reason: refused,
            records: stats.records,
            rows: stats.accepted(),
            rejects: stats
                .rejects
                .iter()
                .map(|(reason, count)| ((*reason).to_owned(), *count))
                .collect::<BTreeMap<_, _>>(),
            examples: if status == FileStatus::Refused { stats.examples.clone() } else { Vec::new() },
        });
    }
}

impl Published {
    fn new(known: HashSet<FrameId>) -> Self {
        Self {
            known,
            digest: blake3::Hasher::new(),
            chunks: 0,
            total: Stats::default(),
            holdings: Holdings::default(),
            loaded: Vec::new(),
            holding_inputs: Vec::new(),
        }
    }
}

/// Now, to the microsecond the log keeps.
fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap_or_default()
}
