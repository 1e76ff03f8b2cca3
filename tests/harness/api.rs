//! A running API and the answers it gives.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder, Method, StatusCode};
use serde_json::Value;

use crate::eventually;
use crate::process::Daemon;
use crate::root_certificates;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// An API process; it ends when this is dropped.
#[derive(Debug)]
pub struct Api {
    /// Without the `/v1`, which is part of every path.
    pub base_url: String,
    /// The server, to be stopped or sent signals.
    pub process: Daemon,
    client: Client,
}

/// One answer, read to its end.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The last one, where redirections were followed.
    pub status: StatusCode,
    /// As the server sent them.
    pub headers: HeaderMap,
    /// As the server sent it, which may be compressed.
    pub body: Vec<u8>,
}

/// HTTP client with a timeout for a whole response. It uses no proxy.
pub fn client(timeout: Duration) -> Result<Client> {
    Ok(client_builder()?.timeout(timeout).build()?)
}

/// HTTP client to configure further. It uses no proxy.
pub fn client_builder() -> Result<ClientBuilder> {
    let tls = root_certificates::tls_configuration()?;
    Ok(Client::builder().tls_backend_preconfigured(tls).no_proxy())
}

impl Api {
    /// Waits until `/v1/health` says that the process can serve.
    pub(crate) async fn wait_until_ready(base_url: String, process: Daemon) -> Result<Api> {
        let client = client(Duration::from_secs(60))?;
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

    /// A figure of the process's memory in kB: `VmRSS`, what it has now, or `VmHWM`, the most it had.
    pub fn memory_kilobytes(&self, figure: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.with_context(|| format!("no {figure}: {status}"))?.parse()?)
    }

    /// `GET path`, which starts with a slash, with or without a key.
    pub async fn get(&self, path: &str, key: Option<&str>) -> Result<Reply> {
        let headers: Vec<(&str, String)> =
            key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect();
        self.send(Method::GET, path, &headers).await
    }

    /// Any request without a body.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, String)]) -> Result<Reply> {
        self.send_body(method, path, headers, Vec::new()).await
    }

    /// Any request.
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
    /// The body as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; an error with status and body when it is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{}: not JSON: {}", self.status, self.text()))
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
