//! Calls of the API's routes by a page: in process, without a key and without a charge.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;

use crate::answer::InternalRequest;
use crate::auth::tier::Tier;
use crate::concurrency::cpu_pool::{CpuPoolError, run_low_priority};
use crate::parameters::MinVersion;
use crate::read::QueryError;

/// Maximum bytes of an answer.
const BYTES: usize = 8 * 1024 * 1024;

/// Bytes from which an answer is long.
const LONG: usize = 16 * 1024;

/// Encoded characters: all that have a meaning in an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b',').remove(b':');

/// Failure of a call, or another address for the page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MarketError {
    #[error("{0}")]
    NotFound(String),
    /// The page has another address.
    #[error("the page is at {0}")]
    Moved(String),
    #[error("{0}")]
    Refused(String),
    #[error("cannot build the page: {0}")]
    Unavailable(String),
}

impl From<CpuPoolError> for MarketError {
    fn from(error: CpuPoolError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<QueryError> for MarketError {
    fn from(error: QueryError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Router of the data, the tier of the reader, and the data versions of the answers so far.
#[derive(Debug, Clone)]
pub(crate) struct ApiCalls {
    data: Router,
    tier: Tier,
    versions: Arc<Mutex<BTreeSet<String>>>,
}

impl ApiCalls {
    pub(crate) fn new(data: Router, tier: Tier) -> Self {
        Self { data, tier, versions: Arc::default() }
    }

    /// True if all answers so far have one data version.
    pub(crate) fn have_one_version(&self) -> bool {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).len() <= 1
    }

    /// Records the data version of an answer.
    pub(crate) fn note_version(&self, version: &str) {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).insert(version.to_owned());
    }

    /// Answer of a call, with decimals as text.
    pub(crate) async fn json(&self, target: &str) -> Result<Value, MarketError> {
        Ok(self.json_at_version(target).await?.0)
    }

    /// Answer of a call, with decimals as text, and its data version.
    pub(crate) async fn json_at_version(&self, target: &str) -> Result<(Value, MinVersion), MarketError> {
        let (answer, version): (Value, _) = self.read_at_version(target).await?;
        if let Some(version) = answer["meta"]["data_version"].as_str() {
            self.note_version(version);
        }
        Ok((answer, version))
    }

    /// Answer of a call with many rows, with decimals as text.
    pub(crate) async fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        target: &str,
    ) -> Result<T, MarketError> {
        Ok(self.read_at_version(target).await?.0)
    }

    async fn read_at_version<T: DeserializeOwned + Send + 'static>(
        &self,
        target: &str,
    ) -> Result<(T, MinVersion), MarketError> {
        let response = self.respond(&with_parameter(target, "decimals=string")).await?;
        let (status, version) = (response.status(), version_of(&response));
        let body = to_bytes(response.into_body(), BYTES).await;
        let body = body.map_err(|error| MarketError::Unavailable(error.to_string()))?;
        if status == StatusCode::OK {
            let answer = parse(body).await?;
            return Ok((answer.map_err(|error| MarketError::Unavailable(error.to_string()))?, version));
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = body["error"].as_str().unwrap_or_default().to_owned();
        Err(match status {
            StatusCode::NOT_FOUND => MarketError::NotFound(message),
            status if status.is_client_error() => MarketError::Refused(refusal(&body, message)),
            _ => MarketError::Unavailable(message),
        })
    }

    /// Response of a call.
    pub(crate) async fn respond(&self, target: &str) -> Result<Response, MarketError> {
        let request = Request::get(target).body(Body::empty());
        let mut request = request.map_err(|error| MarketError::Refused(error.to_string()))?;
        request.extensions_mut().insert(InternalRequest(self.tier));
        let Ok(response) = self.data.clone().oneshot(request).await;
        Ok(response)
    }
}

/// Parses a body. A long one is parsed at low priority, so that the API's own calls come first.
async fn parse<T: DeserializeOwned + Send + 'static>(
    body: Bytes,
) -> Result<Result<T, serde_json::Error>, CpuPoolError> {
    match body.len() > LONG {
        true => run_low_priority(move || serde_json::from_slice(&body)).await,
        false => Ok(serde_json::from_slice(&body)),
    }
}

/// Data version of a response, from its entity tag.
pub(crate) fn version_of(response: &Response) -> MinVersion {
    let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
    MinVersion::of_entity_tags(tag.unwrap_or_default())
}

/// Sentence of a refused call: the first faulty parameter, else the message.
fn refusal(body: &Value, message: String) -> String {
    let first = &body["errors"][0];
    match (first["param"].as_str(), first["error"].as_str()) {
        (Some(param), Some(error)) => format!("{param} {error}"),
        _ => message,
    }
}

/// Target with one more parameter.
pub(crate) fn with_parameter(target: &str, parameter: &str) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}{parameter}")
}

/// Text as a path segment or a parameter value.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}
