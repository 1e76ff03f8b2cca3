//! A record's JSON text as its fields' names and values, so that what rows share is written once.

use std::fmt::{self, Write as _};

use chrono::NaiveDate;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bars::{date_of, day_number};

/// One value of a record as JSON text, dates apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Fragment<'a> {
    Json(&'a str),
    /// Days from 0001-01-01.
    Date(i32),
}

impl<'a> Fragment<'a> {
    /// The fragment of a value's JSON text.
    fn of(json: &'a str) -> Self {
        let text = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let day = text.filter(|text| text.len() == 10).and_then(|text| text.parse::<NaiveDate>().ok());
        let day = day.filter(|date| format!("\"{date}\"") == json);
        day.map_or(Self::Json(json), |date| Self::Date(day_number(date)))
    }

    /// Appends the JSON text.
    pub(super) fn write(self, out: &mut String) {
        match self {
            Self::Json(json) => out.push_str(json),
            // A string takes whatever is written to it.
            Self::Date(day) => write!(out, "\"{}\"", date_of(day)).unwrap_or_default(),
        }
    }
}

/// A record's field names and values in their order. A text that is no plain object is one value without a name.
pub(super) fn split(record: &str) -> (Vec<&str>, Vec<Fragment<'_>>) {
    let whole = (Vec::new(), vec![Fragment::Json(record)]);
    let Ok(fields) = serde_json::Deserializer::from_str(record).deserialize_map(Fields) else { return whole };
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let values: Vec<Fragment<'_>> = fields.iter().map(|(_, value)| Fragment::of(value.get())).collect();
    let mut again = String::with_capacity(record.len());
    join(&names, values.iter().copied(), &mut again);
    if again == record && !names.is_empty() { (names, values) } else { whole }
}

/// Writes the text that [`split`] took apart.
pub(super) fn join<'a>(names: &[&str], mut values: impl Iterator<Item = Fragment<'a>>, out: &mut String) {
    if names.is_empty() {
        return values.for_each(|value| value.write(out));
    }
    for (place, (name, value)) in names.iter().zip(&mut values).enumerate() {
        out.push(if place == 0 { '{' } else { ',' });
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        value.write(out);
    }
    out.push('}');
}

/// Reads an object's fields in their order, the values unread.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(&'de str, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object whose names need no escapes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}
