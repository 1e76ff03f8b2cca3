//! A local vendor server. Each test supplies the answers, and the server records the requests.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;

/// A request that the server received.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

type Answer = Arc<dyn Fn(&Asked, usize) -> Response + Send + Sync>;

/// The server. Its task ends with the async runtime of the test.
pub(super) struct Vendor {
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
    pub(super) async fn start(
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

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(State(serving): State<Serving>, request: Request) -> Response {
    let asked = Asked {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: request.headers().clone(),
    };
    let before = {
        let mut all = serving.asked.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(asked.clone());
        all.len() - 1
    };
    (serving.answer)(&asked, before)
}
