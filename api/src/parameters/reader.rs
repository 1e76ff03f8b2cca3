//! Parameter reader: parses parameters by name and collects errors.

use std::fmt::Display;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use market::reference::plain;
use serde_json::{Value, json};

use super::accepted::{Accepted, Place, TEXT};
use super::mistake::shortened;
use super::{Format, Mistakes, ParameterError};
use crate::parameters::cursor::Signer;
use crate::parameters::facets::{Unknown, Vocabulary, nearest_first};
use crate::parameters::served_rules::Method;

/// Usual maximum number of parameters.
const PARAMETERS: usize = 16;
/// Number of JSON rows above which a response is expensive.
const MANY_ROWS: i64 = 1_000;
/// Number of CSV rows above which a response is expensive. CSV is written cell by cell.
const MANY_ROWS_OF_CSV: i64 = 500;

/// Unparsed parameters of a request.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: &'a [(&'a str, &'a str)],
    query: Vec<(String, String)>,
    asked: Vec<&'static str>,
    pub(super) errors: Vec<ParameterError>,
    pub(super) bad_cursor: bool,
    pub(super) format: Format,
    /// Maximum number of requested rows, known after `page`.
    pub(super) rows: i64,
    pub(super) headers: &'a HeaderMap,
    pub(super) signer: &'a Signer,
    pub(super) route: &'a str,
    today: NaiveDate,
    /// Rules of the served figures.
    method: Arc<Method>,
    /// Names for the filters. Without them, names are not checked.
    pub(super) vocabulary: Option<&'a Vocabulary>,
    /// True if a name was not checked.
    pub(super) needs_vocabulary: bool,
    /// Recorded parameters while the reader documents an endpoint.
    pub(super) accepted: Option<Vec<Accepted>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        path: &'a [(&'a str, &'a str)],
        query: &str,
        headers: &'a HeaderMap,
        signer: &'a Signer,
        route: &'a str,
        today: NaiveDate,
        method: Arc<Method>,
    ) -> Self {
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self {
            path,
            query,
            asked: Vec::with_capacity(PARAMETERS),
            errors: vec![],
            bad_cursor: false,
            format: Format::Json,
            rows: 0,
            headers,
            signer,
            route,
            today,
            method,
            vocabulary: None,
            needs_vocabulary: false,
            accepted: None,
        }
    }

    /// Adds the names for the filters.
    pub(crate) fn knowing(self, vocabulary: Option<&'a Vocabulary>) -> Self {
        Self { vocabulary, ..self }
    }

    /// Rules of the served figures. While the reader documents an endpoint, these are the default rules.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// True if a name was not checked for lack of a vocabulary.
    pub(crate) fn needs_vocabulary(&self) -> bool {
        self.needs_vocabulary
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }

    /// Current day of the service.
    pub(crate) fn today(&self) -> NaiveDate {
        self.today
    }

    /// Media type of the response, known after `output`.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// True if the number of requested rows makes the response expensive.
    pub(crate) fn asks_for_much(&self) -> bool {
        self.rows > if self.format == Format::Csv { MANY_ROWS_OF_CSV } else { MANY_ROWS }
    }

    /// Returns all errors, including unknown and repeated parameters.
    pub(crate) fn finish(mut self) -> Result<(), Mistakes> {
        let mut names: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for (name, _) in &self.query {
            if names.contains(&name.as_str()) {
                continue;
            }
            names.push(name);
            if !self.asked.contains(&name.as_str()) {
                let allowed = Some(json!(self.asked));
                found.push(ParameterError {
                    param: shortened(name),
                    error: "is not a parameter of this endpoint".to_owned(),
                    allowed,
                });
            } else if self.query.iter().filter(|(other, _)| other == name).count() > 1 {
                found.push(ParameterError {
                    param: name.clone(),
                    error: "is given more than once".to_owned(),
                    allowed: None,
                });
            }
        }
        self.errors.append(&mut found);
        match (self.errors.is_empty(), self.bad_cursor) {
            (false, _) => Err(Mistakes::Parameters(self.errors)),
            (true, true) => Err(Mistakes::Cursor),
            (true, false) => Ok(()),
        }
    }

    /// Records an error.
    pub(crate) fn refuse(&mut self, param: &str, error: impl Into<String>, allowed: Option<Value>) {
        self.errors.push(ParameterError { param: param.to_owned(), error: error.into(), allowed });
    }

    /// Records an error if the condition is false.
    pub(crate) fn require(&mut self, holds: bool, param: &str, error: &str) {
        if !holds {
            self.refuse(param, error, None);
        }
    }

    /// Records the accepted values of a parameter for the document.
    fn note(&mut self, place: Place, name: &'static str, schema: impl FnOnce() -> Value) {
        if let Some(accepted) = &mut self.accepted {
            accepted.push(Accepted { place, name, required: place == Place::Path, schema: schema() });
        }
    }

    /// Decoded path segment.
    pub(crate) fn path(&mut self, name: &'static str) -> String {
        self.note(Place::Path, name, || json!({ "type": "string", "minLength": 1 }));
        self.path
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
            .unwrap_or_default()
    }

    /// Records an error if the parameter, read before, is absent.
    pub(crate) fn demand(&mut self, name: &'static str) {
        self.require(self.is_given(name), name, "is required");
        let accepted = self.accepted.iter_mut().flatten().find(|accepted| accepted.name == name);
        if let Some(accepted) = accepted {
            accepted.required = true;
        }
    }

    /// Records an error if both parameters are absent.
    pub(crate) fn require_either(&mut self, name: &str, other: &str) {
        let given = self.is_given(name) || self.is_given(other);
        self.require(given, name, &format!("is required without {other}"));
    }

    /// Value of a parameter described by `schema`. An empty value is an error.
    pub(super) fn value(&mut self, name: &'static str, schema: impl FnOnce() -> Value) -> Option<String> {
        self.asked.push(name);
        self.note(Place::Query, name, schema);
        let value = self.query.iter().find(|(known, _)| known == name)?.1.clone();
        if value.trim().is_empty() {
            self.refuse(name, "is empty", None);
            return None;
        }
        // Postgres text excludes NUL, and names contain no other control characters.
        if value.chars().any(char::is_control) {
            self.refuse(name, "has control characters", None);
            return None;
        }
        Some(value)
    }

    /// Text of at most `most` characters.
    pub(crate) fn text(&mut self, name: &'static str, most: usize) -> Option<String> {
        let schema = || json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": TEXT });
        let value = self.value(name, schema)?;
        if value.chars().count() > most {
            self.refuse(name, format!("is longer than {most} characters"), None);
            return None;
        }
        Some(value)
    }

    /// Boolean, `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name, || json!({ "type": "boolean" }))?;
        let found = ["true", "false"].into_iter().find(|word| *word == value);
        if found.is_none() {
            self.refuse_word(name, &value, &["true", "false"]);
        }
        found.map(|word| word == "true")
    }

    /// Calendar day, `YYYY-MM-DD`.
    pub(crate) fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        let value = self.value(name, || json!({ "type": "string", "format": "date" }))?;
        let date = parse_date(&value);
        if date.is_none() {
            self.refuse(name, "is not a date, YYYY-MM-DD", Some("YYYY-MM-DD".into()));
        }
        date
    }

    /// One of these words.
    pub(crate) fn one_of<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<T> {
        let value = self.value(name, || json!({ "type": "string", "enum": strings(words) }))?;
        let found = words.iter().copied().find(|word| word.to_string() == value);
        if found.is_none() {
            self.refuse_word(name, &value, words);
        }
        found
    }

    /// Comma-separated words from this list, in any case.
    pub(crate) fn some_of<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<Vec<T>> {
        let items = || json!({ "type": "string", "enum": strings(words) });
        let value = self.value(name, || json!({ "type": "array", "minItems": 1, "items": items() }))?;
        let mut found = Vec::new();
        for text in value.split(',') {
            match words.iter().find(|word| plain(&word.to_string()) == plain(text)) {
                Some(word) => found.push(*word),
                None => {
                    self.refuse_word(name, text, words);
                    return None;
                }
            }
        }
        Some(found)
    }

    fn refuse_word<T: Display>(&mut self, name: &str, text: &str, words: &[T]) {
        let nearest = nearest_first(strings(words), text);
        let unknown = Unknown { word: text.trim().to_owned(), nearest };
        self.errors.push(ParameterError::unknown(name, unknown));
    }

    /// Filters that a cursor is bound to: the route and all parameters that select or sort rows.
    pub(super) fn filters(&self) -> String {
        let free = ["cursor", "limit", "format", "decimals", "fields"];
        let mut pairs: Vec<_> =
            self.query.iter().filter(|(name, _)| !free.contains(&name.as_str())).collect();
        pairs.sort();
        let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        format!("{}?{}", self.route, pairs.join("&"))
    }
}

fn strings<T: Display>(words: &[T]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// Parses `YYYY-MM-DD` only.
fn parse_date(text: &str) -> Option<NaiveDate> {
    let shaped = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(i, b)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    let date: Option<NaiveDate> = if shaped { text.parse().ok() } else { None };
    // Years below 1 are excluded, far from the limits of date arithmetic.
    date.filter(|date| chrono::Datelike::year(date) >= 1)
}
