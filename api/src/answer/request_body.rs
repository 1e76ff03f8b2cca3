//! Body of a request, with a limit on its size.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt;

use crate::admission::RequestContext;
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::error::ApiError;
use crate::parameters::ResponseFormat;
use crate::render::icalendar::{CalendarSource, host_of};

/// Maximum size of a body with data, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Maximum number of bytes that are read from an oversized body. The bytes are discarded. They are read because a
/// client that is still sending its body would not read the error response.
const MAX_DISCARDED_BYTES: usize = 2 * 1024 * 1024;

/// Body of a request with data, as JSON or CSV. Its text may be confidential, so it has no debug output.
pub(crate) struct RequestBody {
    pub(crate) format: ResponseFormat,
    pub(crate) text: String,
    pub(crate) calendar: CalendarSource,
}

impl RequestBody {
    /// Reads the body of a request.
    pub(super) async fn read(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let format = format_of(&parts.headers).ok_or_else(|| {
            let message = "The Content-Type is neither application/json nor text/csv";
            ApiError::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        })?;
        let body = read_body(body, MAX_BODY_BYTES, app.settings.request_timeout).await?;
        let text = String::from_utf8(body)
            .map_err(|_| ApiError::refused(StatusCode::BAD_REQUEST, "The body is not UTF-8"))?;
        // Internal calls have their own source, because they have no host name.
        let calendar = parts.extensions.get().cloned().unwrap_or_else(|| {
            let host = host_of(&origin_of(app, &parts)).to_owned();
            CalendarSource { host, edits: 0 }
        });
        Ok(Self { format, text, calendar })
    }
}

/// Scheme and host of the service as its clients see them, for example `https://data.example.com`.
pub(crate) fn origin_of(app: &App, caller: &Parts) -> String {
    let context = RequestContext::from_extensions(&caller.extensions);
    let unknown = (Ipv4Addr::UNSPECIFIED.into(), false);
    let (client, is_proxied) = context.map_or(unknown, |context| (context.client, context.is_proxied));
    let public = app.settings.dashboard.public_url.as_ref();
    SiteAddress::from_request(&caller.headers, client, is_proxied, public).origin
}

fn format_of(headers: &HeaderMap) -> Option<ResponseFormat> {
    let media_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    match media_type.to_ascii_lowercase().as_str() {
        "application/json" => Some(ResponseFormat::Json),
        "text/csv" => Some(ResponseFormat::Csv),
        _ => None,
    }
}

/// Reads a body of at most `max_bytes`.
pub(crate) async fn read_body(body: Body, max_bytes: usize, timeout: Duration) -> Result<Vec<u8>, ApiError> {
    let late = |_| ApiError::refused(StatusCode::REQUEST_TIMEOUT, "The body took too long");
    tokio::time::timeout(timeout, read_limited(body, max_bytes)).await.map_err(late)?
}

async fn read_limited(body: Body, max_bytes: usize) -> Result<Vec<u8>, ApiError> {
    let (mut pieces, mut bytes, mut length) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| ApiError::refused(StatusCode::BAD_REQUEST, "The body ended early"))?;
        length += piece.len();
        if length > MAX_DISCARDED_BYTES {
            break;
        }
        if length <= max_bytes {
            bytes.extend_from_slice(&piece);
        }
    }
    if length > max_bytes {
        let message = format!("The body is larger than {max_bytes} bytes");
        return Err(ApiError::refused(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    Ok(bytes)
}
