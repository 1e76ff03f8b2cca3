//! A local vendor server. Each test supplies the answers, and the server records the requests.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;

/// A request that the server received.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

type Answer = Arc<dyn Fn(&Asked, usize) -> Response + Send + Sync>;

/// The server. Its task ends with the async runtime of the test.
pub(crate) struct Vendor {
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Serving {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Answer,
}

impl Vendor {
    /// Starts the server. `answer` gets the request and the number of earlier requests.
    pub(crate) async fn start(
        answer: impl Fn(&Asked, usize) -> Response + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let serving = Serving { asked: Arc::clone(&asked), answer: Arc::new(answer) };
        let router = Router::new().fallback(serve).with_state(serving);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, asked })
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(State(serving): State<Serving>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let asked = Asked {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default(),
    };
    let before = {
        let mut all = serving.asked.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(asked.clone());
        all.len() - 1
    };
    (serving.answer)(&asked, before)
}
