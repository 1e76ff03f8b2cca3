//! Load generator with keep-alive connections. Each connection has one request in flight. The results are rates and
//! latencies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Interval, interval_at};

/// Requests for one or more servers, and the connections that send them.
pub(crate) struct Load {
    addresses: Vec<String>,
    pub(crate) connections: usize,
    /// Complete HTTP requests. Each connection begins at another position in the list.
    requests: Arc<Vec<Vec<u8>>>,
    /// True if every answered request counts against a quota.
    pub(crate) is_counted: bool,
    /// Requests per second of all connections together. With `None`, each connection sends a request as soon as it has
    /// the previous response.
    pace: Option<u32>,
}

pub(crate) struct Figures {
    /// Latencies of the successful requests in microseconds, ascending.
    times: Vec<u32>,
    seconds: f64,
    /// Number of successful requests, including those of the warm-up.
    pub(crate) answered: usize,
    /// Number of requests with a server error (5xx), including those of the warm-up.
    pub(crate) failed: usize,
}

#[derive(Default)]
struct Outcome {
    /// Latencies of the successful requests, in microseconds.
    times: Vec<u32>,
    failed: usize,
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn rate(&self) -> f64 {
        self.times.len() as f64 / self.seconds
    }

    /// Latency quantile in milliseconds. For example, the quantile with `share` 0.5 is the median.
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

    /// The same load at a fixed number of requests per second. The latency of a request is measured from the time at
    /// which the request is due.
    pub(crate) fn paced(self, pace: u32) -> Load {
        Load { pace: Some(pace), ..self }
    }

    pub(crate) fn uncounted(address: &String, connections: usize, requests: Arc<Vec<Vec<u8>>>) -> Load {
        Load { is_counted: false, ..Load::new(&[address], connections, requests) }
    }

    /// Sends every request at least once, to fill the caches of the server.
    pub(crate) async fn once(&self) -> Result<()> {
        let share = self.requests.len().div_ceil(self.connections);
        self.drive(share, None).await?;
        Ok(())
    }

    /// Sends at least `calls` requests and returns the number of successful ones. Any server error is returned as an
    /// error.
    pub(crate) async fn calls(&self, calls: usize) -> Result<usize> {
        let outcome = self.drive(calls.div_ceil(self.connections), None).await?;
        ensure!(outcome.failed == 0, "{} failed", outcome.failed);
        Ok(outcome.times.len())
    }

    /// Sends requests for `duration`, after a warm-up. The rate and the latencies do not include the warm-up.
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

/// Connections that stay open after one response each.
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

/// Reads one response to its end. Returns `false` for a server error (5xx).
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

/// Way to recognize the end of a response.
enum End {
    /// The response has this length in bytes, including the head.
    Length(usize),
    /// The response is chunked and ends with the mark of the last chunk. The bytes of this mark do not occur in any
    /// other chunk.
    LastChunk,
}

impl End {
    /// Reads from the head of a response how its body ends. `None` if the head is incomplete.
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
