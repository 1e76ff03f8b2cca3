//! Proxy in front of an object store, with faults at a write of a publisher.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::Notify;

/// Fault of a proxy. Writes are counted from 0.
#[derive(Clone)]
pub(super) enum Fault {
    /// The write is not forwarded, and never answered.
    Before(usize),
    /// The write is forwarded, and never answered.
    After(usize),
    /// Another client writes this text to the path just before the first write to it.
    Conflict { path: &'static str, text: String },
}

/// Proxy. Its task ends with the async runtime of the test.
pub(super) struct Proxy {
    pub(super) address: String,
    forwarding: Arc<Forwarding>,
}

struct Forwarding {
    store: String,
    client: reqwest::Client,
    fault: Fault,
    writes: AtomicUsize,
    conflicts: AtomicUsize,
    reached: Notify,
}

impl Proxy {
    pub(super) async fn start(store: &str, fault: Fault) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let forwarding = Arc::new(Forwarding {
            store: store.to_owned(),
            client: harness::client(Duration::from_secs(60))?,
            fault,
            writes: AtomicUsize::new(0),
            conflicts: AtomicUsize::new(0),
            reached: Notify::new(),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&forwarding));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, forwarding })
    }

    /// Waits until the write with the fault arrives.
    pub(super) async fn wait_for_fault(&self) {
        self.forwarding.reached.notified().await;
    }
}

async fn serve(State(forwarding): State<Arc<Forwarding>>, request: Request) -> Response {
    let served = forwarding.serve(request).await;
    served.unwrap_or_else(|error| (StatusCode::BAD_GATEWAY, error.to_string()).into_response())
}

impl Forwarding {
    async fn serve(&self, request: Request) -> Result<Response> {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await?;
        let target = head.uri.path_and_query().context("a path")?.as_str();
        if head.method != Method::PUT {
            return self.forward(head.method, target, head.headers, body).await;
        }
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        match &self.fault {
            Fault::Before(number) if write == *number => return self.hang().await,
            Fault::Conflict { path, text }
                if target.contains(path) && self.conflicts.fetch_add(1, Ordering::SeqCst) == 0 =>
            {
                let mut headers = head.headers.clone();
                for name in ["if-match", "if-none-match", "x-amz-content-sha256"] {
                    headers.remove(name);
                }
                let other = self.forward(Method::PUT, target, headers, text.clone().into()).await?;
                assert_eq!(other.status(), StatusCode::OK, "the other write");
            }
            _ => {}
        }
        let response = self.forward(head.method, target, head.headers, body).await?;
        match &self.fault {
            Fault::After(number) if write == *number => self.hang().await,
            _ => Ok(response),
        }
    }

    async fn hang(&self) -> Result<Response> {
        self.reached.notify_one();
        std::future::pending().await
    }

    async fn forward(
        &self,
        method: Method,
        target: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response> {
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        let request = self.client.request(method, format!("{}{target}", self.store)).headers(headers);
        let answer = request.body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        headers.remove(header::TRANSFER_ENCODING);
        headers.remove(header::CONNECTION);
        Ok((status, headers, answer.bytes().await?).into_response())
    }
}
