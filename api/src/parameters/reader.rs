//! Reads a request's parameters by name and collects what is wrong with them.

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

/// Parameters of an endpoint, seldom more.
const PARAMETERS: usize = 16;
/// Rows of an answer above which it costs much.
const MANY_ROWS: i64 = 1_000;
/// The same of CSV, which is written cell by cell.
const MANY_ROWS_OF_CSV: i64 = 500;

/// A request's parameters, before they have types.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: &'a [(&'a str, &'a str)],
    query: Vec<(String, String)>,
    asked: Vec<&'static str>,
    pub(super) errors: Vec<ParameterError>,
    pub(super) bad_cursor: bool,
    pub(super) format: Format,
    /// Rows asked for at most, once `page` was read.
    pub(super) rows: i64,
    pub(super) headers: &'a HeaderMap,
    pub(super) signer: &'a Signer,
    pub(super) route: &'a str,
    today: NaiveDate,
    /// By which rules the served figures were derived.
    method: Arc<Method>,
    /// The names filters choose by; without them, names are left unread.
    pub(super) vocabulary: Option<&'a Vocabulary>,
    /// True if a name was left unread.
    pub(super) needs_vocabulary: bool,
    /// What was asked for, when the reader is run to document an endpoint.
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

    /// Reads names too, once they are there.
    pub(crate) fn knowing(self, vocabulary: Option<&'a Vocabulary>) -> Self {
        Self { vocabulary, ..self }
    }

    /// By which rules the served figures were derived; the rules as they stand, when the reader documents an endpoint.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// True if a name was left unread, for want of the names there are.
    pub(crate) fn needs_vocabulary(&self) -> bool {
        self.needs_vocabulary
    }

    /// True if a parameter is given.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }

    /// The day that counts as today.
    pub(crate) fn today(&self) -> NaiveDate {
        self.today
    }

    /// Media type of the answer, once `output` was read.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// True if so many rows are asked for that the answer costs much.
    pub(crate) fn asks_for_much(&self) -> bool {
        self.rows > if self.format == Format::Csv { MANY_ROWS_OF_CSV } else { MANY_ROWS }
    }

    /// Every mistake, or none: names nobody asked for, and names given twice, are mistakes too.
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

    /// Notes a mistake.
    pub(crate) fn refuse(&mut self, param: &str, error: impl Into<String>, allowed: Option<Value>) {
        self.errors.push(ParameterError { param: param.to_owned(), error: error.into(), allowed });
    }

    /// Notes a mistake unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, param: &str, error: &str) {
        if !holds {
            self.refuse(param, error, None);
        }
    }

    /// Notes, for the document, what a parameter may be.
    fn note(&mut self, place: Place, name: &'static str, schema: impl FnOnce() -> Value) {
        if let Some(accepted) = &mut self.accepted {
            accepted.push(Accepted { place, name, required: place == Place::Path, schema: schema() });
        }
    }

    /// A path segment, decoded.
    pub(crate) fn path(&mut self, name: &'static str) -> String {
        self.note(Place::Path, name, || json!({ "type": "string", "minLength": 1 }));
        self.path
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
            .unwrap_or_default()
    }

    /// Notes a mistake unless the parameter, which was read before, is given.
    pub(crate) fn demand(&mut self, name: &'static str) {
        self.require(self.is_given(name), name, "is required");
        let accepted = self.accepted.iter_mut().flatten().find(|accepted| accepted.name == name);
        if let Some(accepted) = accepted {
            accepted.required = true;
        }
    }

    /// Notes a mistake unless one of two parameters is given.
    pub(crate) fn require_either(&mut self, name: &str, other: &str) {
        let given = self.is_given(name) || self.is_given(other);
        self.require(given, name, &format!("is required without {other}"));
    }

    /// The value of a parameter that `schema` describes; empty values are mistakes.
    pub(super) fn value(&mut self, name: &'static str, schema: impl FnOnce() -> Value) -> Option<String> {
        self.asked.push(name);
        self.note(Place::Query, name, schema);
        let value = self.query.iter().find(|(known, _)| known == name)?.1.clone();
        if value.trim().is_empty() {
            self.refuse(name, "is empty", None);
            return None;
        }
        // Postgres holds no NUL, and no name has any other control character.
        if value.chars().any(char::is_control) {
            self.refuse(name, "has control characters", None);
            return None;
        }
        Some(value)
    }

    /// A text of at most this many characters.
    pub(crate) fn text(&mut self, name: &'static str, most: usize) -> Option<String> {
        let schema = || json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": TEXT });
        let value = self.value(name, schema)?;
        if value.chars().count() > most {
            self.refuse(name, format!("is longer than {most} characters"), None);
            return None;
        }
        Some(value)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name, || json!({ "type": "boolean" }))?;
        let found = ["true", "false"].into_iter().find(|word| *word == value);
        if found.is_none() {
            self.refuse_word(name, &value, &["true", "false"]);
        }
        found.map(|word| word == "true")
    }

    /// A calendar day.
    pub(crate) fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        let value = self.value(name, || json!({ "type": "string", "format": "date" }))?;
        let date = parse_date(&value);
        if date.is_none() {
            self.refuse(name, "is not a date, YYYY-MM-DD", Some("YYYY-MM-DD".into()));
        }
        date
    }

    /// One of a set of words.
    pub(crate) fn one_of<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<T> {
        let value = self.value(name, || json!({ "type": "string", "enum": strings(words) }))?;
        let found = words.iter().copied().find(|word| word.to_string() == value);
        if found.is_none() {
            self.refuse_word(name, &value, words);
        }
        found
    }

    /// Some of a set of words, comma-separated, in any case.
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

    /// The filters a cursor is bound to: the route and every parameter that chooses or orders rows.
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

/// `YYYY-MM-DD` and nothing else.
fn parse_date(text: &str) -> Option<NaiveDate> {
    let shaped = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(i, b)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    let date: Option<NaiveDate> = if shaped { text.parse().ok() } else { None };
    // Postgres' and the calendar's arithmetic stay far from their ends.
    date.filter(|date| chrono::Datelike::year(date) >= 1)
}
