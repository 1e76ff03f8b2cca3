//! Detection of files that contain an error response instead of data: web pages, binary files, messages, throttle
//! notices.

use super::file_head::{FileHead, normalize_column_name};
use super::file_head::{is_word_of, words_of_topic};
use super::raw_json::RawJson;
use crate::normalize::abbreviate;
use crate::source::feed_files::Encoding;
use telemetry::shorten;

/// Maximum length of a service's message in a reason, in characters.
const MAX_NOTICE_CHARS: usize = 300;

/// Reason for refusing a file without data; `None` if the file may contain data.
pub(super) fn refusal_reason(head: &FileHead) -> Option<String> {
    let text = head.text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.get(..text.len().min(15)).unwrap_or_default().to_ascii_lowercase();
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| lower.starts_with(tag)) {
        return Some(format!("is a web page, not data{}: fetch it again", title(text)));
    }
    if lower.starts_with("<?xml") {
        return Some("is XML, which is not supported: fetch it as CSV or JSON".to_owned());
    }
    if !text.contains('\n') && text.trim_end().contains('\r') {
        return Some("has CR line ends: write it with LF line ends".to_owned());
    }
    if text.starts_with("version https://git-lfs.") {
        return Some("is a Git LFS pointer, not the data: fetch the file with git lfs pull".to_owned());
    }
    if text.starts_with("PAR1") {
        return Some("is Parquet in an archive, which is not supported: unpack it first".to_owned());
    }
    if text.starts_with("PK\u{3}\u{4}") {
        return Some(
            "is a zip archive or a workbook: name an archive .zip, save a workbook as CSV".to_owned(),
        );
    }
    if text.contains('\0') {
        return Some("is binary, neither text nor a supported packing (.gz, .zst, .zip)".to_owned());
    }
    let ServiceMessage { message, throttled } = match head.encoding {
        Encoding::Csv => parse_single_line(text)?,
        _ => parse_service_message(text).or_else(|| parse_single_line(text))?,
    };
    Some(if throttled {
        format!("is a throttle notice, not data: {message:?}; ask again later")
    } else {
        format!("is a service's message, not data: {message:?}")
    })
}

/// Service message in a text; `None` unless the text is a single line of words. Tables, lists of symbols and JSON are
/// not messages.
fn parse_single_line(text: &str) -> Option<ServiceMessage> {
    let line = text.trim();
    let is_sentence = line.contains(' ') && !line.contains(['\n', '\r', ',', ';', '\t', '|', '{', '[']);
    is_sentence
        .then(|| ServiceMessage { throttled: is_throttle_notice(line), message: abbreviate(line.as_bytes()) })
}

/// Title of a web page, for an error message.
fn title(text: &str) -> String {
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(String::new, |(title, _)| format!(" ({})", abbreviate(title.trim().as_bytes())))
}

/// Message that a service sends instead of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceMessage {
    pub(crate) message: String,
    /// True for a throttle notice. The same request may succeed later.
    pub(crate) throttled: bool,
}

/// Parses a JSON response that contains only a message, such as `{"error": "unknown symbol"}`; `None` for any other
/// text.
pub(crate) fn parse_service_message(text: &str) -> Option<ServiceMessage> {
    let answer = RawJson::parse(text).ok()?;
    let members = answer.members();
    let is_message = |name: &str| is_word_of("error message", &normalize_column_name(name));
    let accompanies = |name: &str| is_word_of("accompanying an error message", &normalize_column_name(name));
    let only = members.iter().all(|(name, _)| is_message(name) || accompanies(name));
    let (_, message) = members.iter().find(|(name, _)| is_message(name)).filter(|_| only)?;
    let message = message.text().unwrap_or_else(|| message.raw().into());
    let throttled = is_throttle_notice(&message);
    Some(ServiceMessage { message: shorten(&message, MAX_NOTICE_CHARS), throttled })
}

/// True if a message is a throttle notice.
pub(crate) fn is_throttle_notice(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    words_of_topic("throttle notice").iter().any(|words| message.contains(words))
}
