//! JSON values as slices of the source text. Numbers keep their digits, and only requested values are built.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Members of an object in order, with unparsed values.
pub(super) struct ObjectMembers<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for ObjectMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = ObjectMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(MemberName(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(ObjectMembers(members))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Name of a member, borrowed if it has no escapes.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Text of a JSON string; `None` for another value.
pub(super) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(value).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Value of a well-formed document.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// Validates a whole document.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::from_str::<&RawValue>(text.trim_start_matches('\u{feff}'))?.get()))
    }

    /// Source text of the value.
    pub(super) fn raw(self) -> &'a str {
        self.0
    }

    pub(super) fn is_list(self) -> bool {
        self.0.starts_with('[')
    }

    pub(super) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Members of an object; empty for another value.
    pub(super) fn members(self) -> Vec<(Cow<'a, str>, Self)> {
        let members = serde_json::from_str::<ObjectMembers<'a>>(self.0).map(|members| members.0);
        members.unwrap_or_default().into_iter().map(|(name, value)| (name, Self(value.get()))).collect()
    }

    /// Items of a list; empty for another value.
    pub(super) fn items(self) -> Vec<Self> {
        let items = serde_json::from_str::<Vec<&'a RawValue>>(self.0).unwrap_or_default();
        items.into_iter().map(|item| Self(item.get())).collect()
    }

    /// Member of an object.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.members().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Text, digits of a number, or boolean; `None` for null, lists and objects.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self.0.as_bytes().first()? {
            b'"' => string(self.0),
            b'n' | b'[' | b'{' => None,
            _ => Some(Cow::Borrowed(self.0)),
        }
    }
}
