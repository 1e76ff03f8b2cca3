//! Dividends as iCalendar (RFC 5545): an event for each ex-date and for each payment.
//!
//! Invariants: the UID comes from the id of the dividend, so that a correction replaces its event. SEQUENCE grows with
//! every correction. A withdrawn dividend stays as CANCELLED, and an estimate is TENTATIVE.

use std::fmt::Write;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{digits, plain, text};

/// Media type of iCalendar.
pub(crate) const MEDIA_TYPE: &str = "text/calendar; charset=utf-8";
/// Days of past dividends in a calendar.
const PAST_DAYS: u64 = 90;
/// Maximum octets of a line.
const LINE: usize = 75;
/// Second from which SEQUENCE counts, 2000-01-01.
const EPOCH: i64 = 946_684_800;

/// Address of the calendar of symbols.
pub(crate) fn file_address(symbols: &str) -> String {
    format!("/calendar.ics?symbols={}", encode(symbols))
}

/// API call for the dividends of a calendar, with withdrawn and estimated ones.
pub(crate) fn call(symbols: &str, today: NaiveDate) -> String {
    let since = today - Days::new(PAST_DAYS);
    format!(
        "/v1/dividends/history?symbols={}&start_date={since}&status=declared,paid,cancelled&include_projected=true&limit=1000",
        encode(symbols)
    )
}

/// Writes the calendar of the rows of `/v1/dividends/history`. `host` makes the UIDs unique in the world.
pub(crate) fn write_calendar(rows: &[Value], host: &str) -> String {
    let mut calendar = String::new();
    for line in [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Dividend Data Service//Calendar//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "NAME:Dividends",
        "X-WR-CALNAME:Dividends",
        "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
        "X-PUBLISHED-TTL:PT12H",
    ] {
        write_line(&mut calendar, line);
    }
    for row in rows {
        for (field, word) in [("ex_date", "ex-dividend"), ("payment_date", "pays")] {
            if let Ok(day) = text(&row[field]).parse() {
                write_event(&mut calendar, row, Event { field, word, day }, host);
            }
        }
    }
    write_line(&mut calendar, "END:VCALENDAR");
    calendar
}

/// Day of a dividend.
struct Event<'a> {
    field: &'a str,
    word: &'a str,
    day: NaiveDate,
}

fn write_event(calendar: &mut String, row: &Value, event: Event<'_>, host: &str) {
    let Event { field, word, day } = event;
    let (symbol, kind) = (text(&row["symbol"]), text(&row["type"]));
    let status = match text(&row["status"]) {
        "cancelled" => "CANCELLED",
        "projected" => "TENTATIVE",
        _ => "CONFIRMED",
    };
    // An estimate has no id. It belongs to the month of its ex-date, and the declared dividend takes its place.
    let id = match row["id"].as_str() {
        Some(id) => id.to_owned(),
        None => format!("estimate-{symbol}-{}", text(&row["ex_date"])),
    };
    let changed: DateTime<Utc> = text(&row["updated_at"]).parse().unwrap_or_default();
    let amount = digits(&row["amount"]).unwrap_or_default();
    let estimated = if status == "TENTATIVE" { " (estimated)" } else { "" };
    let summary = format!("{symbol} {word} {amount} {}{estimated}", text(&row["currency"]));
    let description = format!("{} dividend of {symbol}, {}", plain(kind), plain(text(&row["status"])));
    for line in [
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}-{}@{host}", escape(&id), field.trim_end_matches("_date")),
        format!("DTSTAMP:{}", changed.format("%Y%m%dT%H%M%SZ")),
        format!("SEQUENCE:{}", (changed.timestamp() - EPOCH).clamp(0, i32::MAX.into())),
        format!("STATUS:{status}"),
        format!("DTSTART;VALUE=DATE:{}", day.format("%Y%m%d")),
        format!("DTEND;VALUE=DATE:{}", (day + Days::new(1)).format("%Y%m%d")),
        format!("SUMMARY:{}", escape(&summary)),
        format!("DESCRIPTION:{}", escape(&description)),
        "TRANSP:TRANSPARENT".to_owned(),
        "END:VEVENT".to_owned(),
    ] {
        write_line(calendar, &line);
    }
}

/// Text value with its special characters escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '\\' | ';' | ',') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// Writes a line, folded after [`LINE`] octets.
fn write_line(calendar: &mut String, line: &str) {
    let mut length = 0;
    for letter in line.chars() {
        if length + letter.len_utf8() > LINE {
            calendar.push_str("\r\n ");
            length = 1;
        }
        calendar.push(letter);
        length += letter.len_utf8();
    }
    let _ = calendar.write_str("\r\n");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(id: Option<&str>, status: &str) -> Value {
        json!({ "id": id, "symbol": "KO", "status": status, "type": "regular", "ex_date": "2024-06-13", "payment_date": "2024-06-28",
                "amount": "0.485", "currency": "USD", "updated_at": "2024-06-01T12:00:00Z" })
    }

    #[test]
    fn a_dividend_is_two_events_with_stable_ids() {
        let calendar = write_calendar(&[row(Some("d1"), "paid")], "data.example");
        for line in [
            "UID:d1-ex@data.example\r\n",
            "UID:d1-payment@data.example\r\n",
            "DTSTART;VALUE=DATE:20240613\r\nDTEND;VALUE=DATE:20240614\r\n",
            "SUMMARY:KO ex-dividend 0.485 USD\r\n",
            "SEQUENCE:770558400\r\n",
            "STATUS:CONFIRMED\r\n",
        ] {
            assert!(calendar.contains(line), "{line}: {calendar}");
        }
        assert!(write_calendar(&[row(Some("d1"), "cancelled")], "h").contains("STATUS:CANCELLED\r\n"));
        let estimate = write_calendar(&[row(None, "projected")], "h");
        assert!(
            estimate.contains("STATUS:TENTATIVE\r\n")
                && estimate.contains("UID:estimate-KO-2024-06-13-ex@h\r\n")
        );
    }

    #[test]
    fn long_lines_are_folded_and_special_characters_escaped() {
        let mut calendar = String::new();
        write_line(&mut calendar, &format!("SUMMARY:{}", escape(&"ä,;\\".repeat(40))));
        assert!(calendar.split("\r\n").all(|line| line.len() <= LINE), "{calendar}");
        assert_eq!(calendar.replace("\r\n ", ""), format!("SUMMARY:{}\r\n", "ä\\,\\;\\\\".repeat(40)));
    }
}
