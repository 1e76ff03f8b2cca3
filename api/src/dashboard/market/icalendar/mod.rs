//! Dividends as iCalendar (RFC 5545), for calendar programs.

mod dividend_events;
mod income_events;
mod revisions;
mod writer;

pub(crate) use dividend_events::{dividends_calendar, dividends_call};
pub(crate) use income_events::{income_calendar, income_call};

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

const MEDIA_TYPE: &str = "text/calendar; charset=utf-8";

/// HTTP response with an iCalendar file.
pub(crate) fn as_calendar(file: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], file).into_response()
}

/// Host name in an origin such as `https://data.example.com:8080`, without scheme and port.
pub(crate) fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}
