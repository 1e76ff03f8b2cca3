//! Where the next page of an answer is.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use reqwest::Url;
use serde_json::Value;

use super::connector::Paging;

/// Longest answer that may hold no record.
const BLANK_BYTES: u64 = 64;

/// The address of the page after the one in a file; `None` when there is none.
///
/// # Errors
/// What is wrong with what the answer says.
pub(super) fn next(paging: &Paging, url: &Url, page: usize, body: &Path) -> Result<Option<Url>, String> {
    match paging {
        Paging::Number(parameter) => Ok(Some(with(url, parameter, &(page + 1).to_string()))),
        Paging::NextUrl(pointer) => {
            let Some(text) = text_at(body, pointer)? else { return Ok(None) };
            let next = url.join(&text).map_err(|error| format!("its next page has no address: {error}"))?;
            if next == *url { Err("its next page is itself".to_owned()) } else { Ok(Some(next)) }
        }
        Paging::Token { pointer, parameter } => {
            Ok(text_at(body, pointer)?.map(|token| with(url, parameter, &token)))
        }
    }
}

/// Whether an answer holds nothing: no text, or an empty list or object.
pub(super) fn is_blank(body: &Path) -> io::Result<bool> {
    if std::fs::metadata(body)?.len() > BLANK_BYTES {
        return Ok(false);
    }
    let text: Vec<u8> = std::fs::read(body)?.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
    Ok(matches!(text.as_slice(), b"" | b"[]" | b"{}" | b"null"))
}

/// The text or number at a place of a JSON answer; absent, null and empty are none.
fn text_at(body: &Path, pointer: &str) -> Result<Option<String>, String> {
    let file = File::open(body).map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_reader(BufReader::new(file))
        .map_err(|error| format!("is no JSON, which its paging needs: {error}"))?;
    Ok(match answer.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    })
}

fn with(url: &Url, parameter: &str, value: &str) -> Url {
    let mut next = url.clone();
    let others = url.query_pairs().filter(|(name, _)| name != parameter);
    next.query_pairs_mut().clear().extend_pairs(others).append_pair(parameter, value);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_of(paging: &Paging, body: &str) -> Result<Option<String>, String> {
        let path = std::env::temp_dir().join(format!("ingest-paging-{}-{}", std::process::id(), body.len()));
        std::fs::write(&path, body).unwrap();
        let url = Url::parse("https://example.com/list?limit=2&page=1").unwrap();
        let found = next(paging, &url, 1, &path).map(|next| next.map(String::from));
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn answers_lead_to_their_next_page() {
        let next_url = Paging::NextUrl("/next_url".to_owned());
        let found = next_of(&next_url, r#"{"results":[],"next_url":"/list?cursor=x"}"#).unwrap();
        assert_eq!(found.as_deref(), Some("https://example.com/list?cursor=x"));
        assert_eq!(next_of(&next_url, r#"{"results":[]}"#), Ok(None));
        assert!(next_of(&next_url, r#"{"next_url":"/list?limit=2&page=1"}"#).is_err());
        assert!(next_of(&next_url, "date,close\n").is_err());
        let token = Paging::Token { pointer: "/meta/next".to_owned(), parameter: "after".to_owned() };
        let found = next_of(&token, r#"{"meta":{"next":"a b"}}"#).unwrap();
        assert_eq!(found.as_deref(), Some("https://example.com/list?limit=2&page=1&after=a+b"));
        let number = next_of(&Paging::Number("page".to_owned()), "[1]").unwrap();
        assert_eq!(number.as_deref(), Some("https://example.com/list?limit=2&page=2"));
    }
}
