//! Writer of iCalendar files (RFC 5545).

use std::fmt::{Display, Write};

use axum::http::HeaderValue;
use chrono::{DateTime, Days, NaiveDate, Utc};

pub(crate) const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("text/calendar; charset=utf-8");
/// Maximum length of a line, in octets.
const LINE: usize = 75;

/// Whole-day event.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    /// Id of the event: unique within the service, and the same in every calendar file with this event.
    pub(crate) id: &'a str,
    pub(crate) day: NaiveDate,
    /// Revision number, which grows with every change of the event.
    pub(crate) sequence: i64,
    /// `CONFIRMED`, `TENTATIVE` for an estimated dividend, or `CANCELLED` for a withdrawn dividend.
    pub(crate) status: &'static str,
    /// Time of the last change of the event, RFC 3339; empty if it is unknown.
    pub(crate) changed_at: &'a str,
    pub(crate) summary: &'a str,
    pub(crate) description: &'a str,
}

/// iCalendar file that is being written.
#[derive(Debug)]
pub(crate) struct CalendarWriter<'a> {
    file: String,
    /// Host name that is appended to the event ids. The resulting UIDs are globally unique.
    host: &'a str,
    created_at: DateTime<Utc>,
    /// Hash of all lines except `DTSTAMP`, which changes with every file.
    digest: blake3::Hasher,
}

/// Complete iCalendar file.
#[derive(Debug)]
pub(crate) struct CalendarFile {
    pub(crate) text: String,
    /// Weak entity tag: equal for files that differ only in their time of creation.
    pub(crate) etag: HeaderValue,
}

impl<'a> CalendarWriter<'a> {
    pub(crate) fn new(name: &str, host: &'a str) -> Self {
        let mut writer = Self::empty(host);
        for line in [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//Dividend Data Service//Calendar//EN",
            "CALSCALE:GREGORIAN",
            "METHOD:PUBLISH",
            &format!("NAME:{}", escape(name)),
            &format!("X-WR-CALNAME:{}", escape(name)),
            "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
            "X-PUBLISHED-TTL:PT12H",
        ] {
            writer.line(line);
        }
        writer
    }

    fn empty(host: &'a str) -> Self {
        Self { file: String::new(), host, created_at: Utc::now(), digest: blake3::Hasher::new() }
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        // By RFC 5545, DTSTAMP in a file with a METHOD is the time at which the file was created.
        let (stamp, day) = (stamp(self.created_at), event.day);
        self.line("BEGIN:VEVENT");
        self.line(&format!("UID:{}@{}", escape(event.id), self.host));
        self.append(&format!("DTSTAMP:{stamp}"));
        if let Ok(changed_at) = event.changed_at.parse() {
            self.line(&format!("LAST-MODIFIED:{}", self::stamp(changed_at)));
        }
        self.line(&format!("SEQUENCE:{}", event.sequence.clamp(0, i32::MAX.into())));
        self.line(&format!("STATUS:{}", event.status));
        self.line(&format!("DTSTART;VALUE=DATE:{}", day.format("%Y%m%d")));
        self.line(&format!("DTEND;VALUE=DATE:{}", (day + Days::new(1)).format("%Y%m%d")));
        self.line(&format!("SUMMARY:{}", escape(event.summary)));
        self.line(&format!("DESCRIPTION:{}", escape(event.description)));
        self.line("TRANSP:TRANSPARENT");
        self.line("END:VEVENT");
    }

    pub(crate) fn finish(mut self) -> CalendarFile {
        self.line("END:VCALENDAR");
        let tag = self.digest.finalize().to_hex();
        let etag = HeaderValue::try_from(["W/\"", &tag[..32], "\""].concat());
        CalendarFile { text: self.file, etag: etag.unwrap_or_else(|_| HeaderValue::from_static("W/\"0\"")) }
    }

    /// Writes a line that counts for the entity tag.
    fn line(&mut self, line: &str) {
        self.digest.update(line.as_bytes()).update(b"\n");
        self.append(line);
    }

    /// Writes a line. A line of more than [`LINE`] octets is folded: it continues on the next line, after a space.
    fn append(&mut self, line: &str) {
        let mut length = 0;
        for letter in line.chars() {
            if length + letter.len_utf8() > LINE {
                self.file.push_str("\r\n ");
                length = 1;
            }
            self.file.push(letter);
            length += letter.len_utf8();
        }
        let _ = self.file.write_str("\r\n");
    }
}

/// Source of a calendar file.
#[derive(Debug, Clone, Default)]
pub(crate) struct CalendarSource {
    /// Host name of the service, for the event ids.
    pub(crate) host: String,
    /// Number of changes of the saved portfolio, which is added to every revision number; 0 without a saved portfolio.
    pub(crate) edits: i64,
}

/// Id of a dividend, from which the ids of its events are formed. An estimated dividend has no id, so the symbol and
/// the ex-date are used.
pub(crate) fn event_id(id: Option<&str>, symbol: &str, ex_date: impl Display) -> String {
    id.map_or_else(|| format!("estimate-{symbol}-{ex_date}"), str::to_owned)
}

fn stamp(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
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

/// Host name in an origin such as `https://data.example.com:8080`, without scheme and port.
pub(crate) fn host_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_and_special_characters_escaped() {
        let mut writer = CalendarWriter::empty("h");
        writer.line(&format!("SUMMARY:{}", escape(&"ä,;\\".repeat(40))));
        assert!(writer.file.split("\r\n").all(|line| line.len() <= LINE), "{}", writer.file);
        assert_eq!(writer.file.replace("\r\n ", ""), format!("SUMMARY:{}\r\n", "ä\\,\\;\\\\".repeat(40)));
    }

    #[test]
    fn a_sequence_is_an_integer_of_the_format() {
        let mut writer = CalendarWriter::new("Dividends", "h");
        let event = Event {
            id: "d1",
            day: NaiveDate::default(),
            sequence: i64::MAX,
            status: "CONFIRMED",
            changed_at: "",
            summary: "",
            description: "",
        };
        writer.event(&event);
        let file = writer.finish().text;
        assert!(file.contains("SEQUENCE:2147483647\r\n") && !file.contains("LAST-MODIFIED"), "{file}");
    }
}
