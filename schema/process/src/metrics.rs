//! What a program tells a monitoring system, on a listener apart from any public one: figures at `/metrics` in
//! Prometheus's text format, and at `/health` whether it can do its work.
//!
//! Invariant: whoever reads here costs the program no more than a few connections and a text at a time.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Buckets of durations, seconds: from what memory answers to what nobody waits for.
pub const SECONDS: [f64; 15] =
    [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Readers at once.
const READERS: usize = 16;
/// The longest a reader may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a program tells its figures.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct MetricsSettings {
    /// Address of /metrics (Prometheus) and /health, apart from any public one; a port alone is on loopback. Not told: none
    #[arg(long, env = "METRICS_LISTEN", value_name = "[ADDRESS:]PORT", value_parser = parse_address)]
    pub metrics_listen: Option<SocketAddr>,
}

/// A program that tells how it is.
pub trait Observed: Send + Sync + 'static {
    /// The figures of this moment.
    fn figures(&self) -> Vec<MetricFamily>;

    /// Why the program cannot do its work, when it cannot.
    fn health(&self) -> Result<(), String>;
}

/// An open listener.
#[derive(Debug)]
pub struct MetricsListener(TcpListener);

impl MetricsSettings {
    /// Opens the listener, when there is to be one.
    pub async fn bind(self) -> std::io::Result<Option<MetricsListener>> {
        let Some(address) = self.metrics_listen else { return Ok(None) };
        let told = |error: std::io::Error| {
            let reason = format!("METRICS_LISTEN: cannot listen on {address}: {error}");
            std::io::Error::new(error.kind(), reason)
        };
        let listener = TcpListener::bind(address).await.map_err(told)?;
        tracing::info!(address = %listener.local_addr()?, "telling figures at /metrics");
        Ok(Some(MetricsListener(listener)))
    }
}

impl MetricsListener {
    /// Answers readers for as long as it is polled; dropping it ends them.
    pub async fn serve(self, observed: Arc<impl Observed>) -> Infallible {
        let mut readers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.0.accept(), if readers.len() < READERS => match accepted {
                    Ok((stream, _)) => {
                        readers.spawn(answer(stream, Arc::clone(&observed)));
                    }
                    // Out of file handles, or the reader was gone already.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                Some(_) = readers.join_next() => {}
            }
        }
    }
}

async fn answer(stream: TcpStream, observed: Arc<impl Observed>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(request.uri().path(), &*observed);
        async { Ok::<_, Infallible>(response) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.keep_alive(false).max_buf_size(16 * 1024);
    // A reader that breaks off is its own affair.
    let _ = tokio::time::timeout(PATIENCE, builder.serve_connection(TokioIo::new(stream), service)).await;
}

fn respond(path: &str, observed: &impl Observed) -> Response<String> {
    let (status, kind, text) = match path {
        "/metrics" => match TextEncoder::new().encode_to_string(&observed.figures()) {
            Ok(text) => (StatusCode::OK, TEXT_FORMAT, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", format!("no figures: {error}\n")),
        },
        "/health" => {
            let (status, answer) = match observed.health() {
                Ok(()) => (StatusCode::OK, serde_json::json!({ "status": "ok" })),
                Err(reason) => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    serde_json::json!({ "status": "down", "reason": reason }),
                ),
            };
            (status, "application/json", format!("{answer}\n"))
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "/metrics and /health are here\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An address with its port, or a port of loopback.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse()
        .map_err(|_| "neither a port, like 9464, nor an address with one, like 127.0.0.1:9464".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn a_port_alone_is_reachable_from_this_machine_only() {
        assert_eq!(parse_address("9464").map(|address| address.to_string()), Ok("127.0.0.1:9464".to_owned()));
        assert!(parse_address("0.0.0.0:9464").is_ok_and(|address| address.ip().is_unspecified()));
        assert!(parse_address("everywhere").is_err());
    }
}
