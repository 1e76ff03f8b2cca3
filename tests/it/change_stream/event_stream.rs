//! A client for server-sent events.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::Api;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct EventStream {
    response: reqwest::Response,
    received: Vec<u8>,
}

/// An event of the change stream, or a heartbeat. A heartbeat has an id, but no name and no data.
#[derive(Debug, Clone)]
pub(crate) struct StreamEvent {
    pub(crate) id: String,
    /// Name of the event, for example `upsert`. Empty for a heartbeat.
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl StreamEvent {
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self.name.as_str(), "" | "end")
    }

    /// Returns the kind and the id of the changed row.
    pub(crate) fn key(&self) -> (String, String) {
        let text = |name: &str| self.data[name].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("id"))
    }

    /// Returns the position in the change journal up to which all changes have arrived. Returns `None` if more changes
    /// of the same commit follow.
    pub(crate) fn position(&self) -> Option<i64> {
        let mut parts = self.id.split('.');
        let position = parts.nth(1)?.parse().ok();
        position.filter(|_| parts.next().is_none())
    }
}

/// Requests a stream. `last` is the value of the header `Last-Event-ID`. The response may have an error status.
pub(crate) async fn request(
    api: &Api,
    query: &str,
    key: &str,
    last: Option<&str>,
) -> Result<reqwest::Response> {
    let client = harness::client_builder()?.build()?;
    let mut request = client.get(format!("{}/v1/changes?{query}", api.base_url)).header("x-api-key", key);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    Ok(request.send().await?)
}

impl EventStream {
    pub(crate) async fn open(api: &Api, query: &str, key: &str, last: Option<&str>) -> Result<Self> {
        let response = request(api, query, key, last).await?;
        let status = response.status();
        ensure!(status == 200, "{status}: {}", response.text().await?);
        Ok(Self { response, received: Vec::new() })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>> {
        tokio::time::timeout(PATIENCE, self.read()).await.context("no event came")?
    }

    /// Waits for the next change, and skips heartbeats. Fails if the stream ends.
    pub(crate) async fn next_change(&mut self) -> Result<StreamEvent> {
        let change = async {
            loop {
                let event = self.next().await?.context("the stream ended")?;
                if event.is_change() {
                    return Ok(event);
                }
                ensure!(event.name.is_empty(), "{event:?}");
            }
        };
        tokio::time::timeout(PATIENCE, change).await.context("no change came")?
    }

    /// Reads the stream to its end. Returns all changes and the last event. Fails if the last event is not `end`.
    pub(crate) async fn read_to_end(&mut self) -> Result<(Vec<StreamEvent>, StreamEvent)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        let end = events.pop().context("a last event")?;
        ensure!(end.name == "end", "{end:?}");
        Ok((events.into_iter().filter(StreamEvent::is_change).collect(), end))
    }

    async fn read(&mut self) -> Result<Option<StreamEvent>> {
        loop {
            if let Some(end) = self.received.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.received.drain(..end + 2).collect();
                return Ok(Some(parse(&String::from_utf8(block)?)?));
            }
            match self.response.chunk().await? {
                Some(chunk) => self.received.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

pub(super) fn parse(block: &str) -> Result<StreamEvent> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data = field("data").map(serde_json::from_str).transpose()?.unwrap_or_default();
    let id = field("id").context("an id")?.to_owned();
    Ok(StreamEvent { id, name: field("event").unwrap_or_default().to_owned(), data })
}
