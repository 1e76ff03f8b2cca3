//! A load of keep-alive connections, each with one request in flight, and what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, interval_at};

/// Requests to send, over connections to one or more servers.
pub(crate) struct Load {
    addresses: Vec<String>,
    pub(crate) connections: usize,
    /// Whole requests; each connection begins at another one.
    requests: Arc<Vec<Vec<u8>>>,
    /// True if every answered request counts against a quota.
    pub(crate) is_counted: bool,
    /// Requests a second of all connections; else each sends the next as soon as it has the last one's answer.
    pace: Option<u32>,
}

/// Measured throughput and latency of a load.
pub(crate) struct Figures {
    /// Of answered requests, in microseconds, sorted.
    times: Vec<u32>,
    seconds: f64,
    /// Requests that were answered, those of the short run before included.
    pub(crate) answered: usize,
    /// Requests that failed on the server's side.
    pub(crate) failed: usize,
}

/// Counts and latencies of some requests.
#[derive(Default)]
struct Outcome {
    /// Microseconds.
    times: Vec<u32>,
    failed: usize,
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn rate(&self) -> f64 {
        self.times.len() as f64 / self.seconds
    }

    /// Milliseconds within which this share of the requests was answered.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the length"
    )]
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let index = (self.times.len().saturating_sub(1) as f64 * share) as usize;
        self.times.get(index).map_or(f64::NAN, |time| f64::from(*time) / 1_000.0)
    }
}

impl Load {
    pub(crate) fn new(addresses: &[&String], connections: usize, requests: Arc<Vec<Vec<u8>>>) -> Load {
        let addresses =
            addresses.iter().map(|address| address.trim_start_matches("http://").to_owned()).collect();
        Load { addresses, connections, requests, is_counted: true, pace: None }
    }

    /// This load at so many requests a second; the time of each is counted from the moment it is due.
    pub(crate) fn paced(self, pace: u32) -> Load {
        Load { pace: Some(pace), ..self }
    }

    /// A load of a server that keeps no account.
    pub(crate) fn uncounted(address: &String, connections: usize, requests: Arc<Vec<Vec<u8>>>) -> Load {
        Load { is_counted: false, ..Load::new(&[address], connections, requests) }
    }

    /// Sends every request once, so that whatever is kept is kept.
    pub(crate) async fn once(&self) -> Result<()> {
        let share = self.requests.len().div_ceil(self.connections);
        self.drive(share, None).await?;
        Ok(())
    }

    /// Sends so many requests, or a few more; gives how many were answered.
    pub(crate) async fn calls(&self, calls: usize) -> Result<usize> {
        let outcome = self.drive(calls.div_ceil(self.connections), None).await?;
        ensure!(outcome.failed == 0, "{} failed", outcome.failed);
        Ok(outcome.times.len())
    }

    /// Sends requests for so long, after a short run that is not counted.
    pub(crate) async fn run(&self, duration: Duration) -> Result<Figures> {
        let before = self.drive(usize::MAX, Some(duration / 5)).await?;
        let started = Instant::now();
        let Outcome { mut times, failed } = self.drive(usize::MAX, Some(duration)).await?;
        let seconds = started.elapsed().as_secs_f64();
        ensure!(!times.is_empty(), "nothing was answered");
        times.sort_unstable();
        let answered = before.times.len() + times.len();
        Ok(Figures { times, seconds, answered, failed: before.failed + failed })
    }

    async fn drive(&self, most: usize, duration: Option<Duration>) -> Result<Outcome> {
        let share = self.requests.len().div_ceil(self.connections);
        let every = self.pace.map(|pace| Duration::from_secs(1) / pace);
        let started = tokio::time::Instant::now();
        let tasks = (0..).take(self.connections).map(|number: u32| {
            let index = number as usize;
            let address = self.addresses[index % self.addresses.len()].clone();
            let requests = Arc::clone(&self.requests);
            let due =
                every.map(|every| interval_at(started + every * number, every * self.connections as u32));
            tokio::spawn(connection(address, requests, index * share, most, duration, due))
        });
        let mut all = Outcome::default();
        for outcome in try_join_all(tasks).await? {
            let Outcome { times, failed } = outcome?;
            all.times.extend(times);
            all.failed += failed;
        }
        Ok(all)
    }
}

/// Connections that got one answer each and stay open.
pub(crate) struct OpenConnections(Vec<TcpStream>);

impl OpenConnections {
    pub(crate) async fn open(address: &str, requests: &[Vec<u8>], count: usize) -> Result<Self> {
        let (address, mut buffer, mut open) = (address.trim_start_matches("http://"), Vec::new(), Vec::new());
        for request in requests.iter().cycle().take(count) {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(request).await?;
            ensure!(answer(&mut stream, &mut buffer).await?, "the server failed");
            open.push(stream);
        }
        Ok(Self(open))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

async fn connection(
    address: String,
    requests: Arc<Vec<Vec<u8>>>,
    first: usize,
    most: usize,
    duration: Option<Duration>,
    mut due: Option<Interval>,
) -> Result<Outcome> {
    let mut stream = TcpStream::connect(&address).await.context(address)?;
    stream.set_nodelay(true)?;
    let (mut buffer, mut outcome) = (Vec::with_capacity(1 << 16), Outcome::default());
    let started = Instant::now();
    for turn in 0..most {
        if duration.is_some_and(|duration| started.elapsed() >= duration) {
            break;
        }
        let sent = match &mut due {
            Some(due) => due.tick().await.into_std(),
            None => Instant::now(),
        };
        stream.write_all(&requests[(first + turn) % requests.len()]).await?;
        if answer(&mut stream, &mut buffer).await? {
            outcome.times.push(u32::try_from(sent.elapsed().as_micros())?);
        } else {
            outcome.failed += 1;
        }
    }
    Ok(outcome)
}

/// Reads one answer to its end; `false` when the server failed.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<bool> {
    buffer.clear();
    let mut end = None;
    while !end.as_ref().is_some_and(|end: &End| end.is_reached(buffer)) {
        ensure!(stream.read_buf(buffer).await? > 0, "the connection was closed");
        if end.is_none() {
            end = End::of(buffer)?;
        }
    }
    Ok(buffer.starts_with(b"HTTP/1.1 2"))
}

/// End of an answer in the received bytes.
enum End {
    /// At this length, its head included.
    Length(usize),
    /// With the last chunk; the JSON of a chunk never looks like it.
    LastChunk,
}

impl End {
    /// Reads it from the head, once that is there.
    fn of(buffer: &[u8]) -> Result<Option<End>> {
        let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&buffer[..head])?.to_ascii_lowercase();
        if !text.starts_with("http/1.1 2") && !text.starts_with("http/1.1 5") {
            bail!("{}", String::from_utf8_lossy(buffer));
        }
        let header = |name| text.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
        match (header("content-length:"), header("transfer-encoding:")) {
            (Some(length), _) => Ok(Some(End::Length(head + 4 + length.parse::<usize>()?))),
            (None, Some("chunked")) => Ok(Some(End::LastChunk)),
            _ => bail!("an answer without an end: {text}"),
        }
    }

    fn is_reached(&self, buffer: &[u8]) -> bool {
        match self {
            End::Length(length) => buffer.len() >= *length,
            End::LastChunk => buffer.ends_with(b"\r\n0\r\n\r\n"),
        }
    }
}
