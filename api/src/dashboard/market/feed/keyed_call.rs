//! Calls of the API with the key from a feed path (`/feed/{key}/…`), and parsing of the responses.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tower::ServiceExt;

use crate::admission::RequestContext;
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::dashboard::market::api_calls::{version_of, with_parameter};
use crate::error::ApiError;
use crate::parameters::MinVersion;

/// Maximum size of an API response that is converted to a calendar file, in bytes.
const BYTES: usize = 4 * 1024 * 1024;

/// Router of the API endpoints. The feeds get their data from these endpoints.
#[derive(Debug, Clone)]
pub(super) struct DataRouter(pub(super) Router);

/// Value of the `Authorization` header that contains this key.
pub(super) fn bearer(key: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| ApiError::InvalidKey)
}

/// Error for a feed path that cannot be read.
pub(super) fn nothing_here() -> ApiError {
    ApiError::NotFound("Nothing is at this address".to_owned())
}

/// Calls the API with the key, on behalf of the client that requested the feed. Returns the response. If `conditional`
/// is true, it is 304 for a client whose copy is current.
pub(super) async fn ask(
    data: Router,
    key: &str,
    target: &str,
    caller: &Parts,
    conditional: bool,
) -> Result<Response, ApiError> {
    let mut request = Request::get(target).body(Body::empty()).map_err(|_| nothing_here())?;
    request.headers_mut().insert(header::AUTHORIZATION, bearer(key)?);
    if let Some(tags) = caller.headers.get(header::IF_NONE_MATCH).filter(|_| conditional) {
        request.headers_mut().insert(header::IF_NONE_MATCH, tags.clone());
    }
    if let Some(context) = RequestContext::from_extensions(&caller.extensions) {
        request.extensions_mut().insert(Arc::clone(context));
    }
    let Ok(response) = data.oneshot(request).await;
    Ok(response)
}

/// Calls the API with the key. Returns the body (with decimals as strings) and its data version. The inner `Err` is an
/// error response of the API.
pub(super) async fn ask_for_json(
    data: Router,
    key: &str,
    target: &str,
    caller: &Parts,
) -> Result<Result<(Value, MinVersion), Response>, ApiError> {
    let response = ask(data, key, &with_parameter(target, "decimals=string"), caller, false).await?;
    if response.status() != StatusCode::OK {
        return Ok(Err(response));
    }
    let version = version_of(&response);
    let body = to_bytes(response.into_body(), BYTES).await;
    let body = body.map_err(|error| ApiError::Unavailable(error.to_string()))?;
    let answer = serde_json::from_slice(&body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Ok((answer, version)))
}

/// Scheme and host of the service as its clients see them, for example `https://data.example.com`.
pub(super) fn origin_of(app: &App, caller: &Parts) -> String {
    let context = RequestContext::from_extensions(&caller.extensions);
    let unknown = (std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    let (client, is_proxied) = context.map_or(unknown, |context| (context.client, context.is_proxied));
    let public = app.settings.dashboard.public_url.as_ref();
    SiteAddress::from_request(&caller.headers, client, is_proxied, public).origin
}
