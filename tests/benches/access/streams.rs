//! Benchmark of open change streams (`GET /v1/changes`): memory per stream, and time from the end of a data load to its
//! event.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::seed::Seeded;

const LOADS: u32 = 30;
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct StreamFigures {
    streams: usize,
    /// Times from the end of a data load to its first event at each stream, ascending. 0 if the event arrived earlier.
    times: Vec<Duration>,
    kilobytes: f64,
}

impl fmt::Display for StreamFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |share: f64| {
            let index = (self.times.len() as f64 * share) as usize;
            self.times[index.min(self.times.len() - 1)].as_secs_f64() * 1e3
        };
        write!(
            f,
            "{} streams, {LOADS} loads: from load to event p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms; {:.1} KB a stream",
            self.streams,
            at(0.5),
            at(0.99),
            at(1.0),
            self.kilobytes
        )
    }
}

/// Opens `streams` change streams, and then loads one dividend at a time. After each load, waits until every stream has
/// received an event.
pub(crate) async fn measure(
    app: &TestApp,
    api: &Api,
    seeded: &Seeded,
    streams: usize,
) -> Result<StreamFigures> {
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let keys = seeded.keys.iter().skip(3).step_by(4).cycle().take(streams);
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    // For the first stream, the API starts a reader with buffers that all streams share. This extra stream is opened
    // before the measurement, so that these buffers do not count as memory of the measured streams.
    let mut open =
        vec![tokio::spawn(follow(connect(api, &seeded.keys[3]).await?, usize::MAX, arrived.clone()))];
    load(app, seeded, 0).await?;
    timeout(PATIENCE, arrivals.recv()).await?.context("an event")?;
    let before = api.memory_kilobytes("VmRSS")?;
    for (number, key) in keys.enumerate() {
        open.push(tokio::spawn(follow(connect(api, key).await?, number, arrived.clone())));
    }
    let idle = api.memory_kilobytes("VmRSS")?;
    let mut times = Vec::new();
    for number in 1..=LOADS {
        load(app, seeded, number).await?;
        let loaded = Instant::now();
        let mut waiting = vec![true; streams];
        let mut left = streams;
        while left > 0 {
            let (stream, at) = timeout(PATIENCE, arrivals.recv()).await?.context("an event")?;
            if waiting.get(stream).copied().unwrap_or(false) {
                waiting[stream] = false;
                left -= 1;
                times.push(at.saturating_duration_since(loaded));
            }
        }
        // Discard further events of this load before the next load.
        tokio::time::sleep(Duration::from_millis(200)).await;
        while arrivals.try_recv().is_ok() {}
    }
    let busy = api.memory_kilobytes("VmRSS")?;
    open.iter().for_each(tokio::task::JoinHandle::abort);
    times.sort_unstable();
    let kilobytes = (idle.max(busy) - before) as f64 / streams as f64;
    Ok(StreamFigures { streams, times, kilobytes })
}

async fn load(app: &TestApp, seeded: &Seeded, number: u32) -> Result<()> {
    let (symbol, cents) = (&seeded.symbols[number as usize % seeded.symbols.len()], 10 + number);
    let row = format!("symbol,ex_date,amount,type\n{symbol},2024-06-20,0.{cents},special\n");
    app.feed(&format!("dividends-{number}.csv"), row).source("bench").today("2024-07-01").load().await
}

/// Opens a change stream, and reads until the `retry` field, which the server sends with its first event.
async fn connect(api: &Api, key: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(api.base_url.trim_start_matches("http://")).await?;
    let head = format!("GET /v1/changes?kinds=dividends HTTP/1.1\r\nhost: bench\r\nx-api-key: {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut received = Vec::new();
    while !received.windows(7).any(|part| part == b"retry: ") {
        ensure!(stream.read_buf(&mut received).await? > 0, "{}", String::from_utf8_lossy(&received));
    }
    Ok(stream)
}

/// Reads a change stream until it ends. Each time `upsert` events arrive, sends the pair of `number` and the current
/// time to the channel `arrived`.
async fn follow(
    mut stream: TcpStream,
    number: usize,
    arrived: mpsc::UnboundedSender<(usize, Instant)>,
) -> Result<()> {
    let mut received = Vec::with_capacity(4_096);
    loop {
        received.clear();
        ensure!(stream.read_buf(&mut received).await? > 0, "the stream ended");
        if received.windows(13).any(|part| part == b"event: upsert") {
            arrived.send((number, Instant::now()))?;
        }
    }
}
