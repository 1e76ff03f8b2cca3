//! A local registry that serves one file, with the faults that a test requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use harness::fetch::Source;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

const FILE: &str = "/files/server-1.0.tgz";
const PAGE: &str = r#"<a href="../../files/server-0.9.tgz#sha256=00">server-0.9.tgz</a>
<a href="../../files/server-1.0.tgz#sha256=00">server-1.0.tgz</a>"#;

#[derive(Debug)]
pub(super) struct Registry {
    /// Address of the file.
    pub(super) url: Url,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    faults: Mutex<Faults>,
    /// Path and first requested byte of every request. The byte is `None` if the request has no range.
    requests: Mutex<Vec<(String, Option<usize>)>>,
    /// Responses wait while a test has the write lock.
    running: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Faults {
    closing_after: Option<usize>,
    status: Option<u16>,
    ignores_ranges: bool,
}

impl Registry {
    pub(super) async fn start(bytes: &[u8]) -> Result<Registry> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = Url::parse(&format!("http://{}{FILE}", listener.local_addr()?))?;
        let state = Arc::new(State {
            bytes: bytes.to_vec(),
            faults: Mutex::default(),
            requests: Mutex::default(),
            running: Arc::default(),
        });
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let served = Arc::clone(&served);
                // An error of the connection is ignored, because the test's client reports it.
                tokio::spawn(async move { served.serve(connection).await });
            }
        });
        Ok(Registry { url, state })
    }

    pub(super) fn closing_first_response_after(self, bytes: usize) -> Registry {
        locked(&self.state.faults).closing_after = Some(bytes);
        self
    }

    pub(super) fn answering_first_request_with(self, status: u16) -> Registry {
        locked(&self.state.faults).status = Some(status);
        self
    }

    pub(super) fn without_ranges(self) -> Registry {
        locked(&self.state.faults).ignores_ranges = true;
        self
    }

    /// Delays every response until the guard is dropped.
    pub(super) async fn pause(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.state.running).write_owned().await
    }

    pub(super) fn file(&self) -> Source {
        Source::File(self.url.clone())
    }

    pub(super) fn index_page(&self) -> Result<Source> {
        Ok(Source::IndexPage(self.url.join("/simple/server/")?))
    }

    /// Returns the first byte that each request asked for, or `None` for a request without a range.
    pub(super) fn ranges(&self) -> Vec<Option<usize>> {
        locked(&self.state.requests).iter().map(|(_, range)| *range).collect()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        locked(&self.state.requests).iter().map(|(path, _)| path.clone()).collect()
    }
}

impl State {
    async fn serve(&self, mut connection: TcpStream) -> Result<()> {
        let (path, range) = read_request(&mut connection).await?;
        locked(&self.requests).push((path.clone(), range));
        let _running = self.running.read().await;
        let (closing_after, status, ignores_ranges) = {
            let mut faults = locked(&self.faults);
            (faults.closing_after.take(), faults.status.take(), faults.ignores_ranges)
        };
        if let Some(status) = status {
            let response =
                format!("HTTP/1.1 {status} Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            return Ok(connection.write_all(response.as_bytes()).await?);
        }
        let whole = if path == FILE { &self.bytes } else { PAGE.as_bytes() };
        let first = range.filter(|_| !ignores_ranges).unwrap_or(0);
        let body = &whole[first..];
        let status = if first > 0 { "206 Partial Content" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\ncontent-range: bytes {first}-{}/{}\r\nconnection: close\r\n\r\n",
            body.len(),
            whole.len() - 1,
            whole.len()
        );
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(&body[..closing_after.unwrap_or(body.len())]).await?;
        Ok(connection.shutdown().await?)
    }
}

async fn read_request(connection: &mut TcpStream) -> Result<(String, Option<usize>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await?);
    }
    let head = String::from_utf8(head)?.to_lowercase();
    let path = head.split(' ').nth(1).context("a request line")?.to_owned();
    let range = head.split("range: bytes=").nth(1).and_then(|range| range.split('-').next()?.parse().ok());
    Ok((path, range))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
