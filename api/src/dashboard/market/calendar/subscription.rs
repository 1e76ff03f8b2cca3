//! `/calendar.ics`: dividend dates of some symbols, for calendar programs. Calendar programs cannot sign in, so they
//! can read the dates only if the market pages are public.

use axum::response::Response;

use crate::dashboard::market::api_calls::{MarketResult, encode};
use crate::dashboard::market::icalendar::{
    CalendarFile, as_calendar, dividends_calendar, dividends_call, host_of,
};
use crate::dashboard::market::reader::MarketReader;

/// Path of the iCalendar file for comma-separated symbols.
pub(crate) fn calendar_url(symbols: &str) -> String {
    format!("/calendar.ics?symbols={}", encode(symbols))
}

pub(crate) async fn show_file(reader: MarketReader) -> Response {
    match write_file(&reader).await {
        Ok(calendar) => as_calendar(calendar, None),
        Err(error) => reader.respond_error(error).await,
    }
}

async fn write_file(reader: &MarketReader) -> MarketResult<CalendarFile> {
    let symbols = reader.parameters().text("symbols").to_owned();
    let answer = reader.calls().json_at_version(&dividends_call(&symbols, reader.app.today())).await?;
    Ok(dividends_calendar(&reader.app, &answer, host_of(&reader.origin)).await?)
}
