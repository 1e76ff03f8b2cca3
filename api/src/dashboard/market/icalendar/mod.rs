//! Dividends as iCalendar (RFC 5545), for calendar programs.

mod dividend_events;
mod income_events;
mod revisions;
mod writer;

pub(crate) use dividend_events::{dividends_calendar, dividends_call};
pub(crate) use income_events::{income_calendar, income_call};
pub(crate) use writer::CalendarFile;

use axum::http::HeaderValue;
use axum::response::Response;

use crate::answer::private_response;

const MEDIA_TYPE: &str = "text/calendar; charset=utf-8";

/// HTTP response with an iCalendar file, or 304 if the client's copy is current.
pub(crate) fn as_calendar(file: CalendarFile, if_none_match: Option<&HeaderValue>) -> Response {
    private_response(file.text, HeaderValue::from_static(MEDIA_TYPE), &file.etag, if_none_match)
}

/// Host name in an origin such as `https://data.example.com:8080`, without scheme and port.
pub(crate) fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}
