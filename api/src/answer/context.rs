//! Input of a handler: generation, tier, parameters and body of a request; and functions that render the body of a response.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use futures::StreamExt;
use serde::Serialize;

use crate::admission::RequestContext;
use crate::app::App;
use crate::app::site_address::SiteAddress;
use crate::auth::{Tier, years_before};
use crate::error::ApiError;
use crate::parameters::{Output, Page, ResponseFormat, Sortable};
use crate::read::memory_tables::RestrictedSecurities;
use crate::read::{DataVersion, ServedGeneration};
use crate::render::envelope::{Depth, ListMeta, Meta};
use crate::render::icalendar::{CalendarSource, host_of};
use crate::render::rows;

/// Inputs of a handler that renders a response.
#[derive(Debug)]
pub(crate) struct HandlerContext<P> {
    pub(crate) app: App,
    pub(crate) generation: Arc<ServedGeneration>,
    pub(crate) tier: Tier,
    /// Current day in New York, unless the settings name another day.
    pub(crate) today: NaiveDate,
    /// Value of the parameter `known_at`; `None` if absent.
    pub(crate) known_at: Option<DateTime<Utc>>,
    pub(crate) parameters: P,
}

/// Rendered body and its data version.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    pub(crate) body: Bytes,
    pub(crate) version: DataVersion,
    pub(crate) next_cursor: Option<String>,
}

/// Rows of one page, with their metadata and data version.
#[derive(Debug)]
pub(crate) struct SelectedPage<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) meta: ListMeta,
    pub(crate) version: DataVersion,
}

/// Renders the rows of one page.
pub(crate) fn render_page(
    output: &Output,
    rows: &[impl Serialize],
    meta: &ListMeta,
    version: DataVersion,
) -> Result<RenderedBody, ApiError> {
    let body = rows::render_list(output, rows, meta)?;
    Ok(RenderedBody { body, version, next_cursor: meta.next_cursor.clone() })
}

impl<P> HandlerContext<P> {
    /// Start of the history that the tier includes.
    pub(crate) fn depth(&self) -> Depth {
        Depth { from: self.first_day_of_tier_history(), tier: self.tier }
    }

    /// First day of a response: the requested day, else the first day of the history that the tier includes.
    pub(crate) fn first_day(&self, start_date: Option<NaiveDate>) -> NaiveDate {
        start_date.unwrap_or_else(|| self.first_day_of_tier_history())
    }

    /// Start of the history in a response; `None` if the request names a start date.
    pub(crate) fn depth_without(&self, start_date: Option<NaiveDate>) -> Option<Depth> {
        start_date.is_none().then(|| self.depth())
    }

    /// First day of the history that the tier includes.
    pub(crate) fn first_day_of_tier_history(&self) -> NaiveDate {
        years_before(self.today, self.app.admission.tiers().depth_years(self.tier))
    }

    /// Securities that bulk responses leave out.
    pub(crate) async fn restricted(&self) -> Result<Arc<RestrictedSecurities>, ApiError> {
        Ok(self.app.memory_tables.restricted(&self.generation).await?)
    }

    /// Renders one resource.
    pub(crate) fn render_single(
        &self,
        output: &Output,
        version: DataVersion,
        row: &impl Serialize,
    ) -> Result<RenderedBody, ApiError> {
        let meta = Meta { known_at: self.known_at, ..Meta::new(&version) };
        let body = rows::render_single(output, row, &meta)?;
        Ok(RenderedBody { body, version, next_cursor: None })
    }

    /// Renders one page of `rows`. `finish` may set further metadata of the page.
    pub(crate) fn render_page<'a, T: Sortable + Serialize + 'a>(
        &self,
        output: &Output,
        page: &Page,
        version: DataVersion,
        rows: impl IntoIterator<Item = &'a T>,
        finish: impl FnOnce(&mut ListMeta),
    ) -> Result<RenderedBody, ApiError> {
        let SelectedPage { rows, mut meta, version } = self.select_page(page, version, rows);
        finish(&mut meta);
        render_page(output, &rows, &meta, version)
    }

    /// Selects one page of `rows`.
    pub(crate) fn select_page<'a, T: Sortable + 'a>(
        &self,
        page: &Page,
        version: DataVersion,
        rows: impl IntoIterator<Item = &'a T>,
    ) -> SelectedPage<&'a T> {
        let (rows, next_cursor) =
            page.select_rows(rows, &self.app.signer.of_response(version.to_exact_text()));
        let mut meta = ListMeta::new(&version, rows.len(), page.limit, next_cursor);
        meta.known_at = self.known_at;
        SelectedPage { rows, meta, version }
    }
}

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
