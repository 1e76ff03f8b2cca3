//! Monitoring listener, separate from the port of the service. It serves `/metrics` in the Prometheus text format, and
//! `/health`.
//!
//! Client that checks the health of a running program. The `health` commands use this client. A container runs such a
//! command as its health check.
//!
//! Invariant: the number of connections is limited, and each has at most one response text in memory.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus::proto::MetricFamily;
use prometheus::{TEXT_FORMAT, TextEncoder};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Histogram buckets for durations, in seconds.
pub const DURATION_BUCKETS: [f64; 15] =
    [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Maximum number of open connections of the monitoring listener.
const MAX_CONNECTIONS: usize = 16;
/// Time limit of one connection.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of the monitoring listener.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct MetricsSettings {
    /// Address of the monitoring listener (/metrics, /health), separate from any public port. A port alone binds to
    /// loopback. Default: no listener
    #[arg(long, env = "METRICS_LISTEN", value_name = "[ADDRESS:]PORT", value_parser = parse_listen_address)]
    pub metrics_listen: Option<SocketAddr>,
}

/// Program whose metrics and health the listener serves.
pub trait MetricsSource: Send + Sync + 'static {
    /// Current values of all metrics.
    fn metrics(&self) -> Vec<MetricFamily>;

    /// Health of the program. The error is a sentence with the reason why the program cannot do its work.
    fn health(&self) -> Result<(), String>;

    /// Sentences about conditions that an operator must resolve, although the program is healthy.
    fn warnings(&self) -> Vec<String> {
        vec![]
    }
}

/// Monitoring listener that is bound to its port.
#[derive(Debug)]
pub struct MetricsListener(TcpListener);

impl MetricsSettings {
    /// Binds the listener; `None` if no address is set.
    pub async fn bind(self) -> std::io::Result<Option<MetricsListener>> {
        let Some(address) = self.metrics_listen else { return Ok(None) };
        let describe = |error: std::io::Error| {
            let reason = format!("METRICS_LISTEN: cannot listen on {address}: {error}");
            std::io::Error::new(error.kind(), reason)
        };
        let listener = TcpListener::bind(address).await.map_err(describe)?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics and /health");
        Ok(Some(MetricsListener(listener)))
    }
}

impl MetricsListener {
    /// Serves requests until the returned future is dropped.
    pub async fn serve(self, source: Arc<impl MetricsSource>) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.0.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, Arc::clone(&source)));
                    }
                    // Accepting fails if file descriptors have run out or the client has disconnected. Retry after a
                    // pause.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, source: Arc<impl MetricsSource>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(request.uri().path(), &*source);
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.keep_alive(false).max_buf_size(16 * 1024);
    // An error means that the client has disconnected or was too slow.
    let _ = tokio::time::timeout(TIMEOUT, builder.serve_connection(TokioIo::new(stream), service)).await;
}

fn respond(path: &str, source: &impl MetricsSource) -> Response<String> {
    let (status, kind, text) = match path {
        "/metrics" => match TextEncoder::new().encode_to_string(&source.metrics()) {
            Ok(text) => (StatusCode::OK, TEXT_FORMAT, text),
            Err(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", format!("cannot encode metrics: {error}\n"))
            }
        },
        "/health" => {
            let warnings = source.warnings();
            let (status, answer) = match source.health() {
                Ok(()) if warnings.is_empty() => (StatusCode::OK, json!({ "status": "ok" })),
                Ok(()) => (StatusCode::OK, json!({ "status": "ok", "warnings": warnings })),
                Err(reason) => {
                    (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "down", "reason": reason }))
                }
            };
            (status, "application/json", format!("{answer}\n"))
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "not found: use /metrics or /health\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Parses `ADDRESS:PORT`, or a port alone, which means loopback.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse()
        .map_err(|_| "neither a port, like 9464, nor an address with one, like 127.0.0.1:9464".to_owned())
}

/// Time limit of the request.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Exit code for a healthy program.
pub const HEALTHY: u8 = 0;
/// Exit code for a program that reports a failure.
pub const UNHEALTHY: u8 = 1;
/// Exit code if the program does not respond.
pub const UNREACHABLE: u8 = 3;

/// Requests `path` from the program at `address`, prints the body of the response and returns the exit code.
pub async fn check_health(address: SocketAddr, path: &str) -> u8 {
    let address = loopback_of(address);
    let response = tokio::time::timeout(HEALTH_TIMEOUT, get(address, path)).await;
    match response.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok((status, body)) => {
            crate::outln!("{}", body.trim_end());
            if status == 200 { HEALTHY } else { UNHEALTHY }
        }
        Err(error) => {
            tracing::error!(%address, %error, "cannot reach the health endpoint");
            UNREACHABLE
        }
    }
}

/// Replaces an unspecified address (`0.0.0.0` or `::`) by the loopback address.
fn loopback_of(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Sends a GET request by HTTP/1.0. Returns the status and the body of the response.
async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut response).await?;
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP response");
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(invalid)?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::parse_listen_address;

    #[test]
    fn a_port_alone_is_reachable_from_this_machine_only() {
        assert_eq!(
            parse_listen_address("9464").map(|address| address.to_string()),
            Ok("127.0.0.1:9464".to_owned())
        );
        assert!(parse_listen_address("0.0.0.0:9464").is_ok_and(|address| address.ip().is_unspecified()));
        assert!(parse_listen_address("everywhere").is_err());
    }
}
