//! JSON values as slices of the source text. Numbers keep their digits, and only requested values are parsed.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Error, MapAccess, Visitor};
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

/// Text of a JSON string; `None` for a value of another type.
pub(super) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(value).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// A name that occurs twice in the list of an object's member names.
fn find_repeated<'a>(mut names: Vec<Cow<'a, str>>) -> Option<Cow<'a, str>> {
    names.sort_unstable();
    let at = names.windows(2).position(|pair| pair[0] == pair[1])?;
    Some(names.swap_remove(at))
}

impl ObjectMembers<'_> {
    /// A name that occurs twice.
    pub(super) fn repeated_name(&self) -> Option<Cow<'_, str>> {
        find_repeated(self.0.iter().map(|(name, _)| Cow::Borrowed(name.as_ref())).collect())
    }
}

/// Member name that occurs twice in the same object. Nested objects are searched too. `None` if no object repeats a
/// name. The text must be well-formed.
pub(crate) fn find_repeated_member(text: &str) -> Option<Cow<'_, str>> {
    // Member names of each open object; `None` for an open list.
    let mut open: Vec<Option<Vec<Cow<'_, str>>>> = Vec::new();
    let (mut rest, mut is_name) = (text, false);
    while let Some(at) =
        rest.bytes().position(|byte| matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':' | b'"'))
    {
        let sign = rest.as_bytes()[at];
        let mut end = at + 1;
        match sign {
            b'{' => open.push(Some(Vec::new())),
            b'[' => open.push(None),
            b'}' | b']' => {
                if let Some(name) = open.pop().flatten().and_then(find_repeated) {
                    return Some(name);
                }
            }
            b'"' => end = string_end(rest, at),
            _ => {}
        }
        if sign == b'"'
            && is_name
            && let Some(Some(names)) = open.last_mut()
        {
            names.push(string(&rest[at..end]).unwrap_or_default());
        }
        is_name = matches!(sign, b'{' | b',') && matches!(open.last(), Some(Some(_)));
        rest = &rest[end..];
    }
    None
}

/// Byte position after the string whose opening quote is at `begin`.
fn string_end(text: &str, begin: usize) -> usize {
    let (bytes, mut at) = (text.as_bytes(), begin + 1);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// JSON value, as a part of the text of a well-formed document.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// Validates a whole document. A repeated member name in an object is an error, because the value is ambiguous.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let value = serde_json::from_str::<&RawValue>(text.trim_start_matches('\u{feff}'))?.get();
        match find_repeated_member(value) {
            Some(name) => Err(Error::custom(format_args!("the member {name:?} appears twice"))),
            None => Ok(Self(value)),
        }
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

    /// Members of an object; empty for a value of another type.
    pub(super) fn members(self) -> Vec<(Cow<'a, str>, Self)> {
        let members = serde_json::from_str::<ObjectMembers<'a>>(self.0).map(|members| members.0);
        members.unwrap_or_default().into_iter().map(|(name, value)| (name, Self(value.get()))).collect()
    }

    /// Items of a list; empty for a value of another type.
    pub(super) fn items(self) -> Vec<Self> {
        let items = serde_json::from_str::<Vec<&'a RawValue>>(self.0).unwrap_or_default();
        items.into_iter().map(|item| Self(item.get())).collect()
    }

    /// Member of an object by name.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.members().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Value of a string, number or boolean as text; `None` for null, lists and objects.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self.0.as_bytes().first()? {
            b'"' => string(self.0),
            b'n' | b'[' | b'{' => None,
            _ => Some(Cow::Borrowed(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_member_that_appears_twice_is_found_at_any_depth() {
        for (text, expected) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, None),
            (r#"{"a":"a","b":"a","c":["a","a"]}"#, None),
            (r#"{"a":"\"a\",{\"a","b":1}"#, None),
            (r#"{"a":1,"b":2,"a":1}"#, Some("a")),
            (r#"[1,{"x":{"é":1,"\u00e9":2}}]"#, Some("é")),
            (r#"{"k":[{"a":1,"b":[],"a":1}],"a":2}"#, Some("a")),
        ] {
            assert_eq!(find_repeated_member(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_number_of_distinct_members_is_accepted(names in proptest::collection::btree_set("[a-z\"\\\\{},:]{0,4}", 0..80)) {
            let pairs: Vec<String> =
                names.iter().map(|name| format!("{}:[{{}}]", serde_json::to_string(name).unwrap())).collect();
            let whole = format!("{{{}}}", pairs.join(","));
            prop_assert!(RawJson::parse(&whole).is_ok(), "{}", whole);
            if let Some(first) = pairs.first() {
                let twice = format!("[{{{},{first}}}]", pairs.join(","));
                prop_assert!(RawJson::parse(&twice).is_err(), "{}", twice);
            }
        }
    }
}
