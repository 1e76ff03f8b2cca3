//! Client connections: caps, write timeout, and the id of a request.
//!
//! Request id of the current task. Log lines, the body of a 500 response, and a header of every response contain the
//! id.
//!
//! Invariant: an idle or slow client occupies resources only for a limited time. hyper limits the time until the head of
//! a request is complete, and the size of the head.

mod registry;

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::auth::redact_secrets;

pub(crate) use registry::{ClientConnection, ConnectionCaps, ConnectionRegistry, WriteTimeout};

/// Header of the request id, in requests and responses.
pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    static REQUEST_ID: RequestId;
}

/// Request id, stored as a header value. Outside of a request it is empty.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// Request id: the client's id if it is valid, else the client's trace id, else a random id.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        given(headers).or_else(|| traced(headers)).unwrap_or_else(Self::generate)
    }

    /// Creates a request id from a trace id. Returns `None` if the text is not 32 lower-case hexadecimal digits, or if
    /// all digits are 0.
    pub(crate) fn from_trace_id(id: &str) -> Option<Self> {
        let sane = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_id = sane && id.bytes().any(|byte| byte != b'0');
        is_id.then(|| HeaderValue::from_str(id).ok().map(Self)).flatten()
    }

    /// New random id: 128 bits in hexadecimal digits.
    pub(crate) fn generate() -> Self {
        let digit = |half: u8| half + b'0' + u8::from(half > 9) * (b'a' - b'9' - 1);
        let digits = rand::random::<[u8; 16]>().map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        let text = digits.as_flattened();
        HeaderValue::from_bytes(text).map_or_else(|_| Self::default(), Self)
    }

    pub(crate) fn to_header_value(&self) -> HeaderValue {
        self.0.clone()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self(HeaderValue::from_static(""))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Request id in the client's `x-request-id` header; `None` if it is absent or invalid.
fn given(headers: &HeaderMap) -> Option<RequestId> {
    let given = headers.get(&REQUEST_ID_HEADER)?;
    let id = given.to_str().ok()?;
    // An id that contains a key or a one-time link is rejected, because ids are logged.
    let sane = (8..=64).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && matches!(redact_secrets(id), Cow::Borrowed(_));
    sane.then(|| RequestId(given.clone()))
}

/// Request id from the trace id in the `traceparent` header (W3C Trace Context). Log lines and traces then have the
/// same id.
fn traced(headers: &HeaderMap) -> Option<RequestId> {
    let parent = headers.get(&TRACE_PARENT)?.to_str().ok()?;
    parent.split('-').nth(1).and_then(RequestId::from_trace_id)
}

/// Runs `work`, during which [`current_request_id`] returns `id`.
pub(crate) fn with_request_id<F: Future>(id: RequestId, work: F) -> impl Future<Output = F::Output> {
    REQUEST_ID.scope(id, work)
}

/// Request id of the current task; empty outside of a request.
pub(crate) fn current_request_id() -> RequestId {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}
