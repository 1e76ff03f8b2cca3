//! Reads a request's parameters by name and collects what is wrong with them.

use std::fmt::Display;
use std::ops::RangeInclusive;

use axum::http::HeaderMap;
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::Format;
use crate::cursor::Signer;
use crate::error::{ApiError, ParameterError};

/// A request's parameters, before they have types.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    asked: Vec<&'static str>,
    errors: Vec<ParameterError>,
    pub(super) bad_cursor: bool,
    pub(super) format: Format,
    pub(super) headers: &'a HeaderMap,
    pub(super) signer: &'a Signer,
    pub(super) route: &'a str,
    today: NaiveDate,
}

/// Bounds of a decimal parameter, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bounds {
    /// 0 to 1000 percent points.
    Percent,
    /// -1000 to 1000 percent points.
    SignedPercent,
    /// 0 to 10 integer digits.
    Amount,
    /// Any number the service can hold.
    Any,
}

impl Bounds {
    fn range(self) -> (Decimal, Decimal) {
        let most = Decimal::from(9_999_999_999_999_999i64);
        match self {
            Self::Percent => (Decimal::ZERO, Decimal::ONE_THOUSAND),
            Self::SignedPercent => (-Decimal::ONE_THOUSAND, Decimal::ONE_THOUSAND),
            Self::Amount => (Decimal::ZERO, most),
            Self::Any => (-most, most),
        }
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        path: Vec<(String, String)>,
        query: &str,
        headers: &'a HeaderMap,
        signer: &'a Signer,
        route: &'a str,
        today: NaiveDate,
    ) -> Self {
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self {
            path,
            query,
            asked: vec![],
            errors: vec![],
            bad_cursor: false,
            format: Format::Json,
            headers,
            signer,
            route,
            today,
        }
    }

    /// The day that counts as today.
    pub(crate) fn today(&self) -> NaiveDate {
        self.today
    }

    /// Media type of the answer, once `output` was read.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Every mistake, or none: names nobody asked for, and names given twice, are mistakes too.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
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
            (false, _) => Err(ApiError::Parameters(self.errors)),
            (true, true) => Err(ApiError::InvalidCursor),
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

    /// A path segment, decoded.
    pub(crate) fn path(&self, name: &str) -> String {
        self.path.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// Whether a parameter is given, empty or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }

    /// The value of a parameter; empty values are mistakes.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
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

    /// The value of a parameter with a length limit, in characters.
    pub(crate) fn text_up_to(&mut self, name: &'static str, most: usize) -> Option<String> {
        let value = self.text(name)?;
        if value.chars().count() > most {
            self.refuse(name, format!("is longer than {most} characters"), None);
            return None;
        }
        Some(value)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.one_of(name, &["true", "false"]).map(|word| word == "true")
    }

    /// A calendar day.
    pub(crate) fn date(&mut self, name: &'static str) -> Option<NaiveDate> {
        let value = self.text(name)?;
        let date = parse_date(&value);
        if date.is_none() {
            self.refuse(name, "is not a date, YYYY-MM-DD", Some("YYYY-MM-DD".into()));
        }
        date
    }

    /// An integer within bounds.
    pub(crate) fn integer(&mut self, name: &'static str, bounds: RangeInclusive<i64>) -> Option<i64> {
        let value = self.text(name)?;
        let number = plain_integer(&value).filter(|number| bounds.contains(number));
        if number.is_none() {
            let (low, high) = (bounds.start(), bounds.end());
            self.refuse(
                name,
                format!("is not an integer from {low} to {high}"),
                Some(json!({ "minimum": low, "maximum": high })),
            );
        }
        number
    }

    /// A decimal within bounds, read exactly.
    pub(crate) fn decimal(&mut self, name: &'static str, bounds: Bounds) -> Option<Decimal> {
        let value = self.text(name)?;
        let (low, high) = bounds.range();
        let plain = value.len() <= 32 && value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+'));
        let number = if plain { schema::value::parse_decimal(&value).ok() } else { None };
        let number = number.map(|number| number.value).filter(|number| (low..=high).contains(number));
        if number.is_none() {
            self.refuse(
                name,
                format!("is not a number from {low} to {high}"),
                Some(json!({ "minimum": plain_number(low), "maximum": plain_number(high) })),
            );
        }
        number
    }

    /// A lower and an upper bound of one figure.
    pub(crate) fn between(
        &mut self,
        low: &'static str,
        high: &'static str,
        bounds: Bounds,
    ) -> (Option<Decimal>, Option<Decimal>) {
        let (least, most) = (self.decimal(low, bounds), self.decimal(high, bounds));
        let ordered = least.zip(most).is_none_or(|(least, most)| least <= most);
        self.require(ordered, low, &format!("is greater than {high}"));
        (least, most)
    }

    /// One of a set of words.
    pub(crate) fn one_of<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<T> {
        let value = self.text(name)?;
        let found = words.iter().copied().find(|word| word.to_string() == value);
        if found.is_none() {
            self.refuse_word(name, words);
        }
        found
    }

    /// Some of a set of words, comma-separated.
    pub(crate) fn some_of<T: Copy + Display>(&mut self, name: &'static str, words: &[T]) -> Option<Vec<T>> {
        let value = self.text(name)?;
        let named =
            value.split(',').map(|text| words.iter().copied().find(|word| word.to_string() == text.trim()));
        let found: Option<Vec<T>> = named.collect();
        if found.is_none() {
            self.refuse_word(name, words);
        }
        found
    }

    fn refuse_word<T: Display>(&mut self, name: &str, words: &[T]) {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        self.refuse(name, format!("must be one of: {}", words.join(", ")), Some(json!(words)));
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

/// A name from the client, cut so that messages stay short.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

/// A bound as a JSON number; bounds are short enough to survive as one.
fn plain_number(value: Decimal) -> Value {
    serde_json::from_str(&value.normalize().to_string()).unwrap_or(Value::Null)
}

fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
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
