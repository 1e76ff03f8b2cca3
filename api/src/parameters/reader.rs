//! Parameter reader: parses parameters by name and collects validation errors. For the OpenAPI document, it records their
//! specifications.

use std::fmt::Display;
use std::sync::Arc;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use market::reference::plain;
use serde_json::{Value, json};

use super::RequestProperties;
use super::cursor::CursorSigner;
use super::facets::{FacetIndex, UnknownFacet, sort_by_similarity};
use super::served_rules::ServedRules;

/// Initial capacity of the list of accepted parameter names.
const PARAMETERS: usize = 16;
/// Parameters of a request, with the errors that were found so far.
#[derive(Debug)]
pub(crate) struct ParameterReader<'a> {
    path: &'a [(&'a str, &'a str)],
    query: Vec<(String, String)>,
    known_names: Vec<&'static str>,
    pub(super) errors: Vec<ParameterError>,
    pub(super) bad_cursor: bool,
    /// True if the endpoint offers iCalendar files.
    pub(super) offers_calendar: bool,
    /// Properties of the request, complete after all parameters are read.
    pub(crate) properties: RequestProperties,
    pub(super) headers: &'a HeaderMap,
    pub(super) signer: &'a CursorSigner,
    pub(super) route: &'a str,
    /// Current day in New York, unless the settings name another day.
    pub(crate) today: NaiveDate,
    /// Calculation rules of the served figures. While the OpenAPI document is generated, these are the default rules.
    pub(crate) served_rules: Arc<ServedRules>,
    /// Names that filters accept; `None` if names are not checked.
    pub(crate) facet_index: Option<&'a FacetIndex>,
    /// Specifications of the parameters that were read so far, for the OpenAPI document. `None` if the reader serves a
    /// request.
    pub(super) recorded_specs: Option<Vec<ParameterSpec>>,
    /// Pairs of parameters that exclude each other, for the OpenAPI document.
    pub(super) recorded_conflicts: Vec<[&'static str; 2]>,
}

impl<'a> ParameterReader<'a> {
    pub(crate) fn new(
        path: &'a [(&'a str, &'a str)],
        query: &str,
        headers: &'a HeaderMap,
        signer: &'a CursorSigner,
        route: &'a str,
        today: NaiveDate,
        served_rules: Arc<ServedRules>,
    ) -> Self {
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self {
            path,
            query,
            known_names: Vec::with_capacity(PARAMETERS),
            errors: vec![],
            bad_cursor: false,
            offers_calendar: false,
            properties: RequestProperties::default(),
            headers,
            signer,
            route,
            today,
            served_rules,
            facet_index: None,
            recorded_specs: None,
            recorded_conflicts: vec![],
        }
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }

    /// Checks for unknown and repeated parameters, and returns all errors.
    pub(crate) fn finish(mut self) -> Result<(), ParameterErrors> {
        for (place, (name, _)) in self.query.iter().enumerate() {
            let is_same = |(other, _): &(String, String)| other == name;
            if self.query[..place].iter().any(is_same) {
                continue;
            }
            let (error, allowed) = if !self.known_names.contains(&name.as_str()) {
                ("is not a parameter of this endpoint", Some(json!(self.known_names)))
            } else if self.query[place + 1..].iter().any(is_same) {
                ("is given more than once", None)
            } else {
                continue;
            };
            let param = truncate_for_message(name);
            self.errors.push(ParameterError::new(param, error, allowed));
        }
        match (self.errors.is_empty(), self.bad_cursor) {
            (false, _) => Err(ParameterErrors::Parameters(self.errors)),
            (true, true) => Err(ParameterErrors::Cursor),
            (true, false) => Ok(()),
        }
    }

    /// Records an error.
    pub(crate) fn add_error(&mut self, param: &str, error: impl Into<String>, allowed: Option<Value>) {
        self.errors.push(ParameterError::new(param, error, allowed));
    }

    /// Records an error if the condition is false.
    pub(crate) fn require(&mut self, holds: bool, param: &str, error: &str) {
        if !holds {
            self.add_error(param, error, None);
        }
    }

    /// Records an error at `name` for each of `others` that the request has too. The OpenAPI document names the conflict
    /// at both parameters.
    pub(crate) fn exclude(&mut self, name: &'static str, others: &[&'static str]) {
        if self.recorded_specs.is_some() {
            self.recorded_conflicts.extend(others.iter().map(|other| [name, *other]));
        }
        let given = others.iter().filter(|other| self.is_given(name) && self.is_given(other));
        for other in given.copied().collect::<Vec<_>>() {
            self.add_error(name, format!("conflicts with {other}"), None);
        }
    }

    /// Records the accepted values of a parameter for the OpenAPI document.
    fn record_spec(&mut self, is_in_path: bool, name: &'static str, schema: impl FnOnce() -> Value) {
        if let Some(specs) = &mut self.recorded_specs {
            let (required, description) = (is_in_path, String::new());
            specs.push(ParameterSpec {
                is_in_path,
                name,
                required,
                schema: schema(),
                description,
                conflicts: vec![],
            });
        }
    }

    /// Records the description of a parameter for the OpenAPI document. Call this after reading the parameter. A
    /// description in the endpoint's parameter struct has precedence.
    pub(crate) fn describe(&mut self, name: &str, description: impl Display) {
        if let Some(spec) = self.recorded_spec(name) {
            spec.description = description.to_string();
        }
    }

    fn recorded_spec(&mut self, name: &str) -> Option<&mut ParameterSpec> {
        self.recorded_specs.iter_mut().flatten().find(|spec| spec.name == name)
    }

    /// Reads a segment of the path, decoded.
    pub(crate) fn read_path(&mut self, name: &'static str) -> String {
        self.record_spec(true, name, || json!({ "type": "string", "minLength": 1 }));
        self.path.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value).to_owned()
    }

    /// Records an error if a parameter is absent. Call this after reading the parameter.
    pub(crate) fn require_given(&mut self, name: &'static str) {
        self.require(self.is_given(name), name, "is required");
        if let Some(spec) = self.recorded_spec(name) {
            spec.required = true;
        }
    }

    /// Records an error if both parameters are absent.
    pub(crate) fn require_either(&mut self, name: &str, other: &str) {
        let given = self.is_given(name) || self.is_given(other);
        self.require(given, name, &format!("is required without {other}"));
    }

    /// Reads the text of a query parameter. `schema` describes the accepted values in the OpenAPI document and is not
    /// checked here. An empty value, or a value with control characters, is an error.
    pub(super) fn read_value(
        &mut self,
        name: &'static str,
        schema: impl FnOnce() -> Value,
    ) -> Option<String> {
        self.known_names.push(name);
        self.record_spec(false, name, schema);
        let value = self.query.iter().find(|(known, _)| known == name)?.1.clone();
        if value.trim().is_empty() {
            self.add_error(name, "is empty", None);
            return None;
        }
        // Postgres text cannot contain NUL, and no name contains another control character.
        if value.chars().any(char::is_control) {
            self.add_error(name, "has control characters", None);
            return None;
        }
        Some(value)
    }

    /// Reads a text of at most `max_length` characters.
    pub(crate) fn read_text(&mut self, name: &'static str, max_length: usize) -> Option<String> {
        let schema = || json!({ "type": "string", "minLength": 1, "maxLength": max_length, "pattern": TEXT });
        let value = self.read_value(name, schema)?;
        if value.chars().count() > max_length {
            self.add_error(name, format!("is longer than {max_length} characters"), None);
            return None;
        }
        Some(value)
    }

    /// Reads a boolean, `true` or `false`.
    pub(crate) fn read_bool(&mut self, name: &'static str) -> Option<bool> {
        let value = self.read_value(name, || json!({ "type": "boolean" }))?;
        let found = value.parse().ok();
        if found.is_none() {
            self.refuse_word(name, &value, &["true", "false"]);
        }
        found
    }

    /// Reads a boolean; returns `default` if absent.
    pub(crate) fn read_bool_or(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.read_bool(name);
        self.document_default(name, default.into());
        value.unwrap_or(default)
    }

    /// Documents the default of a parameter.
    pub(crate) fn document_default(&mut self, name: &str, default: Value) {
        if let Some(spec) = self.recorded_spec(name) {
            spec.schema["default"] = default;
        }
    }

    /// Reads a boolean by its name or by its older name `alias`. A request with both names is an error.
    pub(crate) fn read_bool_or_alias(&mut self, name: &'static str, alias: &'static str) -> Option<bool> {
        let (value, older) = (self.read_bool(name), self.read_bool(alias));
        self.describe(alias, format_args!("Older name of `{name}`, with the same effect."));
        self.exclude(alias, &[name]);
        value.or(older)
    }

    /// Reads a calendar day, `YYYY-MM-DD`.
    pub(crate) fn read_date(&mut self, name: &'static str) -> Option<NaiveDate> {
        let value = self.read_value(name, || json!({ "type": "string", "format": "date" }))?;
        let date = parse_date(&value);
        if date.is_none() {
            self.add_error(name, "is not a date, YYYY-MM-DD", Some("YYYY-MM-DD".into()));
        }
        date
    }

    /// Reads a parameter whose value must be one of `words`.
    pub(crate) fn read_word<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<T> {
        let value = self.read_value(name, || json!({ "type": "string", "enum": strings(words) }))?;
        let found = words.iter().copied().find(|word| word.to_string() == value);
        if found.is_none() {
            self.refuse_word(name, &value, words);
        }
        found
    }

    /// Reads a comma-separated list of `words`. Case and punctuation are ignored.
    pub(crate) fn read_words<T: Copy + Display>(
        &mut self,
        name: &'static str,
        words: &[T],
    ) -> Option<Vec<T>> {
        let items = || json!({ "type": "string", "enum": strings(words) });
        let value = self.read_value(name, || json!({ "type": "array", "minItems": 1, "items": items() }))?;
        let mut found = Vec::new();
        for text in value.split(',') {
            let Some(word) = words.iter().find(|word| plain(&word.to_string()) == plain(text)) else {
                self.refuse_word(name, text, words);
                return None;
            };
            found.push(*word);
        }
        Some(found)
    }

    fn refuse_word<T: Display>(&mut self, name: &str, text: &str, words: &[T]) {
        let nearest = sort_by_similarity(strings(words), text);
        let unknown = UnknownFacet { word: text.trim().to_owned(), nearest };
        self.errors.push(ParameterError::unknown_value(name, unknown));
    }

    /// Text of the route and of all parameters that select or sort rows. A cursor is valid only for requests with the
    /// same text.
    pub(super) fn filters(&self) -> String {
        let free = [
            "cursor",
            "limit",
            "format",
            "decimals",
            "fields",
            "facets",
            "min_version",
            "data_version",
            "known_at",
        ];
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

/// Parses a day in the form `YYYY-MM-DD` only.
pub(crate) fn parse_date(text: &str) -> Option<NaiveDate> {
    let is_shaped = |(i, b): (usize, u8)| if matches!(i, 4 | 7) { b == b'-' } else { b.is_ascii_digit() };
    let shaped = text.len() == 10 && text.bytes().enumerate().all(is_shaped);
    let date: Option<NaiveDate> = text.parse().ok().filter(|_| shaped);
    // Year 0 is refused. All other years of four digits are far from the limits of date arithmetic.
    date.filter(|date| chrono::Datelike::year(date) >= 1)
}

/// Error of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterError {
    /// Name of the parameter.
    pub(crate) param: String,
    /// Human-readable message.
    pub(crate) error: String,
    /// Accepted values: a list of words, or bounds; `None` if the error has neither.
    pub(crate) allowed: Option<Value>,
}

impl ParameterError {
    pub(crate) fn new(param: impl Into<String>, error: impl Into<String>, allowed: Option<Value>) -> Self {
        Self { param: param.into(), error: error.into(), allowed }
    }

    /// Error for an unknown filter value.
    pub(crate) fn unknown_value(param: &str, UnknownFacet { word, nearest }: UnknownFacet) -> Self {
        let error = format!(
            "has the unknown value {:?}; known are: {}",
            truncate_for_message(&word),
            nearest.join(", ")
        );
        Self::new(param, error, Some(json!(nearest)))
    }
}

/// Truncates text from the client, so that error messages stay short.
fn truncate_for_message(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Errors of a request's parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ParameterErrors {
    #[error("invalid parameter")]
    Parameters(Vec<ParameterError>),
    #[error("the cursor belongs to another request or is damaged")]
    Cursor,
}

/// Regular expression for a text without control characters that has at least one visible character.
const TEXT: &str =
    r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$";
/// Regular expression for a symbol in a comma-separated list. It accepts printable ASCII characters except the comma.
/// At least one character must not be blank.
pub(super) const ITEM: &str = r"^[ -+\x2D-~]*[!-+\x2D-~][ -+\x2D-~]*$";

/// Name, location and accepted values of a parameter, as recorded while it is read.
#[derive(Debug)]
pub(super) struct ParameterSpec {
    /// True for a segment of the path, false for a parameter of the query.
    pub(super) is_in_path: bool,
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) schema: Value,
    /// Description that the reader recorded; empty if it recorded none. A description in the endpoint's parameter
    /// struct has precedence.
    pub(super) description: String,
    /// Parameters that a request cannot have together with this one.
    pub(super) conflicts: Vec<&'static str>,
}
