//! Inputs of a load: files with a detected format and a content digest. Compression and folder do not change the
//! digest.
//!
//! Producer of a load: reads the inputs in order and passes record batches to the publisher. It runs on blocking threads.
//! By default, a precheck reads a whole file before its first batch is published.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use chrono::{DateTime, Utc};
use rayon::prelude::*;
use telemetry::counted;
use tokio::sync::mpsc::Sender;

use crate::batch::batch_spool::{BatchSpool, ChunkEncoder, EncodedBatch};
use crate::batch::load_stats::LoadStats;
use crate::batch::row_accumulator::{RowAccumulator, RowChunk};
use crate::batch::row_buffers::LoadHoldings;
use crate::format::{FeedReadError, FileFormat, FileHead, ReaderOptions};
use crate::load::progress::LoadProgress;
use crate::normalize::ExchangeZone;
use crate::price::price_batch::PriceBatch;
use crate::rejects::RejectIdSearch;
use crate::source::feed_files::FeedFile;
use crate::source::unpack;

/// Size of the read buffer, in bytes. An archive may have many small files, and each needs a buffer.
const BUFFER: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct LoadInput {
    pub file: FeedFile,
    pub format: FileFormat,
    /// Time zone of the exchange. Set if the date column contains UTC times that are midnight in this zone.
    pub zone: Option<ExchangeZone>,
    /// Digest of the unpacked content and of [`FileFormat::identity_context`], as 64 hexadecimal digits.
    pub digest: String,
    /// Hash of the unpacked content. The load reads the file a second time to parse it. If the hash is then different,
    /// the file has changed, and the load fails.
    pub content: blake3::Hash,
    pub unpacked_bytes: u64,
    /// Ids of rejects of earlier loads. This file contains the corrected rows of these rejects.
    pub mends: BTreeSet<String>,
    /// Names of the first Parquet columns with binary floating-point numbers. Each number is read as the shortest decimal
    /// with the same binary value.
    pub doubles: Vec<String>,
}

/// Detects the format and computes the digest of each file, on several threads. The results are in the order of
/// `files`. An error is the reason for refusing the file.
pub(crate) fn identify_inputs(
    files: &[FeedFile],
    options: &ReaderOptions,
    report_bytes: &(impl Fn(u64) + Sync),
) -> Vec<Result<LoadInput, String>> {
    files.par_iter().map(|file| identify_file(file, options, report_bytes)).collect()
}

fn identify_file(
    file: &FeedFile,
    options: &ReaderOptions,
    report_bytes: &impl Fn(u64),
) -> Result<LoadInput, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let head = unpack::read_text(file, |reader| FileHead::read(file, reader)).map_err(unreadable)?;
    let format = FileFormat::detect(file, &head, options)?;
    let zone = format.exchange_zone(&head)?;
    let mut mends = RejectIdSearch::default();
    let (content, unpacked_bytes) = unpack::read_text(file, |reader| {
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                return Ok((hasher.finalize(), bytes));
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
            mends.search_piece(&buffer[..read]);
            report_bytes(read as u64);
        }
    })
    .map_err(unreadable)?;
    let context = format.identity_context();
    let digest = if context.is_empty() {
        content
    } else {
        blake3::Hasher::new().update(content.as_bytes()).update(context.as_bytes()).finalize()
    };
    let digest = digest.to_hex().to_string();
    let doubles = unpack::double_columns(file).map_err(unreadable)?;
    Ok(LoadInput {
        file: file.clone(),
        format,
        zone,
        digest,
        content,
        unpacked_bytes,
        mends: mends.ids,
        doubles,
    })
}

/// Event of the producer about an input. The events come in the order of the inputs.
pub(crate) enum ProducerEvent {
    Batch {
        input: usize,
        batch: EncodedBatch,
    },
    /// All record batches of the input were sent as [`Self::Batch`] events.
    Loaded {
        input: usize,
        stats: LoadStats,
        holdings: LoadHoldings,
    },
    /// The input is refused. If it had a precheck, none of its batches was sent.
    Refused {
        input: usize,
        stats: LoadStats,
        reason: String,
    },
    /// The whole load must stop. The text is the reason.
    Failed(String),
}

#[derive(Clone)]
pub(crate) struct Producer {
    pub inputs: Vec<LoadInput>,
    pub options: ReaderOptions,
    pub observed_at: DateTime<Utc>,
    /// Maximum percentage of rejects in a file. A precheck refuses a file above this limit as a whole. `None` turns the
    /// precheck off: batches are published while the file is read.
    pub max_reject_percent: Option<f64>,
    pub progress: LoadProgress,
    /// Flag that stops the load when it is true.
    pub stop: Arc<AtomicBool>,
}

/// Result of reading an input: the batches to send, and the event to send after them. Without a precheck, the batches
/// were already sent, and `batches` is empty.
struct FileOutcome {
    input: usize,
    batches: BatchSpool,
    event: ProducerEvent,
}

impl Producer {
    /// Reads all inputs and sends events. Returns early if the receiver is closed.
    pub(crate) fn run(&self, events: &Sender<ProducerEvent>) {
        let (sender, outcomes) = sync_channel(1);
        std::thread::scope(|scope| {
            scope.spawn(|| self.send_outcomes(outcomes, events));
            for (index, input) in self.inputs.iter().enumerate() {
                self.progress.show_file(&input.file.label);
                let outcome = match self.max_reject_percent {
                    Some(limit) => self.spool_file(index, limit),
                    None => self.stream_file(index, events),
                };
                let failed = matches!(outcome.event, ProducerEvent::Failed(_));
                if sender.send(outcome).is_err() || failed || self.is_stopped() {
                    break;
                }
            }
            drop(sender);
        });
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends the results of the files. A file's batches are sent while the next file is read.
    fn send_outcomes(&self, outcomes: Receiver<FileOutcome>, events: &Sender<ProducerEvent>) {
        for outcome in outcomes {
            if !send_outcome(outcome, events) || self.is_stopped() {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
        }
    }

    fn spool_file(&self, input: usize, limit: f64) -> FileOutcome {
        let mut batches = BatchSpool::default();
        let mut event = self.parse_file(input, &mut |batch| batches.push(batch));
        let mapped = self.inputs[input].format.is_mapped();
        if let ProducerEvent::Loaded { stats, .. } = &mut event
            && let Some(reason) = describe_excess_rejects(stats, limit, mapped)
        {
            event = ProducerEvent::Refused { input, stats: std::mem::take(stats), reason };
        }
        if !matches!(event, ProducerEvent::Loaded { .. }) {
            batches = BatchSpool::default();
        }
        FileOutcome { input, batches, event }
    }

    fn stream_file(&self, input: usize, events: &Sender<ProducerEvent>) -> FileOutcome {
        let event = self.parse_file(input, &mut |batch| {
            let stopped = |_| io::Error::other("stopped");
            events.blocking_send(ProducerEvent::Batch { input, batch }).map_err(stopped)
        });
        FileOutcome { input, batches: BatchSpool::default(), event }
    }

    /// Parses one file on this thread, while another thread encodes its rows. Returns the last event of the file.
    fn parse_file(
        &self,
        index: usize,
        emit: &mut (dyn FnMut(EncodedBatch) -> io::Result<()> + Send),
    ) -> ProducerEvent {
        let input = &self.inputs[index];
        let (sender, pieces) = sync_channel::<RowChunk>(1);
        let (recycle, spare) = sync_channel::<PriceBatch>(2);
        let mut rows =
            RowAccumulator::new(&input.file.label, self.observed_at, self.options.today, sender, spare);
        rows.zone = input.zone;
        let broken = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let encoding = scope.spawn(|| encode_pieces(pieces, recycle, emit, &broken));
            let read = unpack::read_text(&input.file, |reader| {
                let hasher = blake3::Hasher::new();
                let mut reader = HashingReader { inner: reader, hasher, producer: self, broken: &broken };
                let read = input.format.read(&mut reader, &self.options, &mut rows);
                Ok(read.map(|()| reader.hasher.finalize()))
            });
            let (mut stats, holdings) = rows.finish();
            let encoder = match encoding.join() {
                Ok(Ok(encoder)) => encoder,
                Ok(Err(error)) => return ProducerEvent::Failed(error.to_string()),
                Err(_) => return ProducerEvent::Failed("the encoder stopped unexpectedly".to_owned()),
            };
            stats.rounded += encoder.rounded;
            stats.reviewed = encoder.reviewed;
            if stats.conflicting_prices.sample.count > 0 {
                let found = unpack::read_text(&input.file, |reader| {
                    stats.conflicting_prices.find_column(reader);
                    Ok(())
                });
                if let Err(error) = found {
                    return ProducerEvent::Failed(error.to_string());
                }
            }
            match read.map_err(FeedReadError::from).and_then(|read| read) {
                _ if self.is_stopped() => ProducerEvent::Failed("stopped".to_owned()),
                Ok(content) if content == input.content => {
                    ProducerEvent::Loaded { input: index, stats, holdings }
                }
                Ok(_) => ProducerEvent::Failed(format!(
                    "{} changed while it was read: load it again",
                    input.file.label
                )),
                Err(error) => ProducerEvent::Refused { input: index, stats, reason: error.to_string() },
            }
        })
    }
}

fn encode_pieces(
    pieces: Receiver<RowChunk>,
    recycle: SyncSender<PriceBatch>,
    emit: &mut (dyn FnMut(EncodedBatch) -> io::Result<()> + Send),
    broken: &AtomicBool,
) -> io::Result<ChunkEncoder> {
    let mut encoder = ChunkEncoder::default();
    for piece in pieces {
        let encoded = encoder.encode_chunk(piece, emit);
        if let Some(spare) = encoded.inspect_err(|_| broken.store(true, Ordering::Relaxed))? {
            // If the channel is full or closed, the price batch is dropped instead of reused.
            let _ = recycle.try_send(spare);
        }
    }
    Ok(encoder)
}

fn describe_excess_rejects(stats: &LoadStats, limit: f64, mapped: bool) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "a share of rows, compared with a limit people choose")]
    let percent = stats.rejected_count() as f64 * 100.0 / stats.records.max(1) as f64;
    (percent > limit).then(|| {
        let (rejected, records) = (stats.rejected_count(), stats.records);
        let rows = counted(records, "row");
        let of = |reason| stats.rejects.get(reason).copied().unwrap_or_default();
        let written_otherwise = !mapped && (of("bad_date") + of("bad_number")) * 2 > records;
        let map = match written_otherwise {
            true => ", or read it under a map that describes its dates and numbers (ingest map FILE)",
            false => "",
        };
        format!("{rejected} of {rows} cannot be used ({percent:.1} %, limit {limit} %): the file was not loaded; correct the file{map}, or raise --max-reject-percent")
    })
}

/// Sends the record batches and the last event of an input; false if the receiver is closed.
fn send_outcome(outcome: FileOutcome, events: &Sender<ProducerEvent>) -> bool {
    let FileOutcome { input, batches, event } = outcome;
    let batches = match batches.into_record_batches() {
        Ok(batches) => batches,
        Err(error) => return events.blocking_send(ProducerEvent::Failed(error.to_string())).is_ok(),
    };
    for batch in batches {
        let event = match batch {
            Ok(batch) => ProducerEvent::Batch { input, batch },
            Err(error) => ProducerEvent::Failed(format!("cannot read the spooled record batches: {error}")),
        };
        if events.blocking_send(event).is_err() {
            return false;
        }
    }
    events.blocking_send(event).is_ok()
}

/// Reader that hashes the bytes of a file. Reading fails after the load was stopped.
struct HashingReader<'a, R> {
    inner: R,
    hasher: blake3::Hasher,
    producer: &'a Producer,
    broken: &'a AtomicBool,
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.producer.is_stopped() || self.broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.producer.progress.add_bytes(read as u64);
        Ok(read)
    }
}
