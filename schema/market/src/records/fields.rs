//! A record read from its packed fields, without its JSON text in between.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Error;

use super::fragments::Fragment;
use crate::bars::date_of;
use crate::event::day::DAY;

/// A value that many rows have, told apart once.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    /// What JSON has between quotes, of which nothing is escaped.
    Text(&'a str),
    Json(&'a str),
    Date(i32),
}

impl<'a> From<&Fragment<'a>> for Value<'a> {
    fn from(fragment: &Fragment<'a>) -> Self {
        match *fragment {
            Fragment::Json(json) => plain_text(json).map_or(Self::Json(json), Self::Text),
            Fragment::Date(day) => Self::Date(day),
        }
    }
}

/// The text that JSON has between quotes, where nothing of it is escaped.
fn plain_text(json: &str) -> Option<&str> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['\\', '"'])).then_some(text)
}

/// Field names and values of one row, as the text has them.
pub(super) struct Fields<'s, 'a> {
    names: std::slice::Iter<'s, &'a str>,
    values: std::slice::Iter<'s, Value<'a>>,
}

impl<'s, 'a> Fields<'s, 'a> {
    pub(super) fn new(names: &'s [&'a str], values: &'s [Value<'a>]) -> Self {
        Self { names: names.iter(), values: values.iter() }
    }
}

impl<'de> Deserializer<'de> for Fields<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let name = self.names.next();
        name.map(|name| seed.deserialize(BorrowedStrDeserializer::<Error>::new(name))).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match *self.values.next().ok_or_else(|| Error::custom("a field has no value"))? {
            Value::Text(text) => seed.deserialize(Text(text)),
            Value::Json(json) => seed.deserialize(&mut serde_json::Deserializer::from_str(json)),
            Value::Date(day) => seed.deserialize(Date(day)),
        }
    }
}

/// A text that needs no parser.
struct Text<'de>(&'de str);

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A date, which its text stands for; its day for a field that asks by that name.
struct Date(i32);

impl<'de> Deserializer<'de> for Date {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(date_of(self.0).to_string())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == DAY { visitor.visit_i32(self.0) } else { visitor.visit_newtype_struct(self) }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
