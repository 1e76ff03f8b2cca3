//! Pagination of vendor responses: address of the next page, and detection of empty and repeated pages.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use reqwest::Url;
use serde_json::{Map, Value};

use super::connector::PagingMethod;
use super::credential::set_parameter;

/// Maximum size in bytes of a response that may count as a page without records. A larger response is assumed to have
/// records.
const MAX_EMPTY_PAGE_BYTES: u64 = 64 * 1024;
/// Names of JSON members that contain the list of records. The readers of JSON feed files use the same names.
const WRAPPERS: [&str; 2] = ["results", "data"];
/// Names of JSON members that describe the page. They contain no records.
const ABOUT_PAGE: [&str; 4] = ["meta", "metadata", "pagination", "links"];
/// Names of JSON members that contain an error message.
const ERRORS: [&str; 4] = ["error", "errors", "message", "detail"];

/// Address of the next page; `None` after the last page. `is_empty` is true if the current page has no records.
///
/// # Errors
/// The paging information of the response is invalid.
pub(super) fn next_page_url(
    paging: &PagingMethod,
    url: &Url,
    page: usize,
    body: &Path,
    is_empty: bool,
) -> Result<Option<Url>, String> {
    match paging {
        PagingMethod::Number(_) if is_empty => Ok(None),
        PagingMethod::Number(parameter) => Ok(Some(set_parameter(url, parameter, &(page + 1).to_string()))),
        PagingMethod::NextUrl(pointer) => {
            let Some(text) = text_at(body, pointer, is_empty)? else { return Ok(None) };
            let next =
                url.join(&text).map_err(|error| format!("its next page has an invalid address: {error}"))?;
            if next == *url { Err("its next page is itself".to_owned()) } else { Ok(Some(next)) }
        }
        PagingMethod::Token { pointer, parameter } => {
            Ok(text_at(body, pointer, is_empty)?.map(|token| set_parameter(url, parameter, &token)))
        }
    }
}

/// True if the page `body` has no record. A later page with only the header line of the page `first` also has none.
pub(super) fn has_no_records(
    body: &Path,
    first: Option<&Path>,
    paging: Option<&PagingMethod>,
) -> io::Result<bool> {
    if std::fs::metadata(body)?.len() > MAX_EMPTY_PAGE_BYTES {
        return Ok(false);
    }
    let bytes = std::fs::read(body)?;
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return Ok(true);
    }
    let is_empty = serde_json::from_slice(text).is_ok_and(|response| match response {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() || is_empty_page(&members, paging),
        _ => false,
    });
    match first.filter(|_| !is_empty) {
        Some(first) => Ok(first_line(first)? == text),
        None => Ok(is_empty),
    }
}

/// True if the list of records is empty, and no other member looks like a record or an error. Objects that describe the
/// page, such as `meta`, are ignored.
fn is_empty_page(members: &Map<String, Value>, paging: Option<&PagingMethod>) -> bool {
    let pointer = match paging {
        Some(PagingMethod::NextUrl(pointer) | PagingMethod::Token { pointer, .. }) => {
            pointer.split('/').nth(1)
        }
        Some(PagingMethod::Number(_)) | None => None,
    };
    let about_page = |name: &str| ABOUT_PAGE.contains(&name) || pointer == Some(name);
    let matters = |(name, value): (&String, &Value)| match value {
        Value::Null => false,
        _ if name == "kind" || ERRORS.contains(&name.as_str()) => true,
        Value::Array(items) => !items.is_empty(),
        Value::Object(inner) => !inner.is_empty() && !about_page(name),
        _ => false,
    };
    let list = |name: &&str| members.get(*name).is_some_and(Value::is_array);
    WRAPPERS.iter().any(list) && !members.iter().any(matters)
}

/// True if a page has the same bytes as the previous page. In this case the vendor ignores the page number in the
/// request.
pub(super) fn is_repeated_page(body: &Path, previous: &Path) -> io::Result<bool> {
    let length = |path: &Path| std::fs::metadata(path).map(|data| data.len());
    Ok(length(body)? == length(previous)? && content_hash([body])? == content_hash([previous])?)
}

/// BLAKE3 hash of all pages of a response, as 64 hex digits.
pub(super) fn content_hash<'a>(pages: impl IntoIterator<Item = &'a Path>) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for page in pages {
        hasher.update_reader(File::open(page)?)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(MAX_EMPTY_PAGE_BYTES)).read_until(b'\n', &mut line)?;
    Ok(line.trim_ascii().to_vec())
}

/// Number or non-empty text at a JSON pointer of a response; `None` if it is missing. Fails if a page with records is
/// not JSON.
fn text_at(body: &Path, pointer: &str, is_empty: bool) -> Result<Option<String>, String> {
    let file = File::open(body).map_err(|error| error.to_string())?;
    let response: Value = match serde_json::from_reader(BufReader::new(file)) {
        Ok(response) => response,
        Err(_) if is_empty => return Ok(None),
        Err(error) => return Err(format!("is not JSON, but its paging needs JSON: {error}")),
    };
    Ok(match response.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_of(paging: &PagingMethod, body: &str) -> Result<Option<String>, String> {
        let path = std::env::temp_dir().join(format!("ingest-paging-{}-{}", std::process::id(), body.len()));
        std::fs::write(&path, body).unwrap();
        let url = Url::parse("https://example.com/list?limit=2&page=1").unwrap();
        let is_empty = has_no_records(&path, None, Some(paging)).unwrap();
        let found = next_page_url(paging, &url, 1, &path, is_empty).map(|next| next.map(String::from));
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn answers_lead_to_their_next_page() {
        let next_url = PagingMethod::NextUrl("/next_url".to_owned());
        let found = next_of(&next_url, r#"{"results":[],"next_url":"/list?cursor=x"}"#).unwrap();
        assert_eq!(found.as_deref(), Some("https://example.com/list?cursor=x"));
        assert_eq!(next_of(&next_url, r#"{"results":[]}"#), Ok(None));
        assert!(next_of(&next_url, r#"{"next_url":"/list?limit=2&page=1"}"#).is_err());
        assert!(next_of(&next_url, "date,close\n").is_err());
        let token = PagingMethod::Token { pointer: "/meta/next".to_owned(), parameter: "after".to_owned() };
        let found = next_of(&token, r#"{"meta":{"next":"a b"}}"#).unwrap();
        assert_eq!(found.as_deref(), Some("https://example.com/list?limit=2&page=1&after=a+b"));
        let number = next_of(&PagingMethod::Number("page".to_owned()), "[1]").unwrap();
        assert_eq!(number.as_deref(), Some("https://example.com/list?limit=2&page=2"));
        assert_eq!(next_of(&PagingMethod::Number("page".to_owned()), r#"{"data":[],"page":7}"#), Ok(None));
        assert_eq!(next_of(&next_url, ""), Ok(None));
    }

    #[test]
    fn an_answer_without_records_is_blank() {
        let folder = std::env::temp_dir();
        let [page, first] =
            ["page", "first"].map(|name| folder.join(format!("ingest-blank-{}-{name}", std::process::id())));
        std::fs::write(&first, "date,close\r\n2024-03-14,1\r\n").unwrap();
        let is_empty = |text: &str, first: Option<&Path>| {
            std::fs::write(&page, text).unwrap();
            has_no_records(&page, first, Some(&PagingMethod::NextUrl("/page/next".to_owned()))).unwrap()
        };
        for text in [
            "",
            " \n",
            "[]",
            "{}",
            "null",
            r#"{"data":[],"total":0}"#,
            r#"{"data":[],"error":null}"#,
            r#"{"results":[],"symbol":"KO","meta":{"total":0},"page":{"next":null},"warnings":[]}"#,
        ] {
            assert!(is_empty(text, None), "{text}");
        }
        for text in [
            "[1]",
            r#"{"data":[1]}"#,
            r#"{"a":1}"#,
            r#"{"data":[],"error":"no such page"}"#,
            "date,close\n",
            r#"{"kind":"security","symbol":"KO","name":"Coca-Cola","type":"stock","indexes":[]}"#,
            r#"{"data":{"date":"2024-03-14"},"warnings":[]}"#,
            r#"{"data":[],"quote":{"date":"2024-03-14"}}"#,
        ] {
            assert!(!is_empty(text, None), "{text}");
        }
        assert!(is_empty("date,close\n", Some(&first)) && !is_empty("date,open\n", Some(&first)));
        assert!(!is_repeated_page(&page, &first).unwrap() && is_repeated_page(&first, &first).unwrap());
        [page, first].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
