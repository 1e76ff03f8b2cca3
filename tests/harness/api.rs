//! API process of a test, and the responses that it sends.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder, Method, StatusCode};
use serde_json::Value;

use crate::eventually;
use crate::process::Daemon;
use crate::root_certificates;

const READY_WITHIN: Duration = Duration::from_secs(120);

/// API process. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Api {
    /// Scheme and address of the server, without a path.
    pub base_url: String,
    /// Server process.
    pub process: Daemon,
    client: Client,
}

/// Response with its whole body.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status. After redirects, it is the status of the last response.
    pub status: StatusCode,
    /// Headers, as the server sent them.
    pub headers: HeaderMap,
    /// Body, as the server sent it. It may be compressed.
    pub body: Vec<u8>,
}

/// Creates an HTTP client that uses no proxy. `timeout` limits the time until the end of the response body.
pub fn client(timeout: Duration) -> Result<Client> {
    Ok(client_builder()?.timeout(timeout).build()?)
}

/// Builder of an HTTP client that uses no proxy.
pub fn client_builder() -> Result<ClientBuilder> {
    let tls = root_certificates::tls_configuration()?;
    Ok(Client::builder().tls_backend_preconfigured(tls).no_proxy())
}

impl Api {
    /// Waits until `/v1/health` responds with status 200. Fails if the process ends before this response.
    pub(crate) async fn wait_until_ready(base_url: String, process: Daemon) -> Result<Api> {
        let client = client(Duration::from_secs(120))?;
        let mut api = Api { base_url, process, client };
        let ready = eventually(READY_WITHIN, async || match api.process.exit_status()? {
            Some(status) => Ok(Err(status)),
            None => {
                let health = api.get("/v1/health", None).await?;
                ensure!(health.status == StatusCode::OK, "health: {} {}", health.status, health.text());
                Ok(Ok(()))
            }
        });
        match ready.await.with_context(|| "the API does not become ready")? {
            Ok(()) => Ok(api),
            Err(status) => anyhow::bail!("the API ended ({status}):\n{}", api.process.log_tail(20)),
        }
    }

    /// Memory of the process in kB. `figure` is a name in `/proc/<pid>/status`: `VmRSS` for the current memory, or
    /// `VmHWM` for the peak.
    pub fn memory_kilobytes(&self, figure: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.with_context(|| format!("no {figure}: {status}"))?.parse()?)
    }

    /// CPU time that the process has used so far. Other work of the machine does not lengthen it. Its resolution is 10 ms.
    pub fn cpu_time(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.pid()))?;
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
    }

    /// Sends `GET path` with an API key, or without a key if `key` is `None`. `path` begins with a slash.
    pub async fn get(&self, path: &str, key: Option<&str>) -> Result<Reply> {
        let headers: Vec<(&str, String)> =
            key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect();
        self.send(Method::GET, path, &headers).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, String)]) -> Result<Reply> {
        self.send_body(method, path, headers, Vec::new()).await
    }

    /// Sends a request with a body. If `body` is empty, the request has no body.
    pub async fn send_body(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Reply> {
        let mut request = self.client.request(method, format!("{}{path}", self.base_url));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if !body.is_empty() {
            request = request.body(body);
        }
        let response = request.send().await?;
        Ok(Reply {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await?.to_vec(),
        })
    }
}

impl Reply {
    /// Body as text. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Body as JSON. If the body is not JSON, the error contains the status and the body.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{}: not JSON: {}", self.status, self.text()))
    }

    /// Value of a header; `None` if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
