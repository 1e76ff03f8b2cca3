//! Parser of canonical JSON records. Numbers stay text, so they lose no digits.

use std::borrow::Cow;
use std::fmt;

use market::event::Kind;

use super::kind_layout::{ID_FIELD, KindLayout, LISTS, REASON_FIELD};
use crate::format::raw_json::{ObjectMembers, find_repeated_member, string};
use crate::normalize::{RecordCells, RowError};

/// Parses a record into its kind and its cells. `unnamed` is the kind of a record without the member `kind`.
pub(super) fn parse_cells(
    line: &[u8],
    unnamed: Option<Kind>,
    ignore_unknown: bool,
) -> Result<(Kind, RecordCells<'_>), RowError> {
    let malformed =
        |error: &dyn fmt::Display| RowError::new("malformed_row", format_args!("not a JSON object: {error}"));
    let text = std::str::from_utf8(line).map_err(|error| malformed(&error))?;
    let members: ObjectMembers<'_> = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    if let Some(name) = members.repeated_name() {
        return Err(repeated_member(name));
    }
    let ObjectMembers(members) = members;
    let kind = members.iter().find(|(name, _)| name == "kind").and_then(|(_, value)| string(value.get()));
    let named = kind.as_ref().map_or(unnamed, |kind| kind.parse().ok());
    let layout = named.and_then(KindLayout::for_kind).ok_or_else(|| {
        let found = kind.map_or_else(|| "missing".to_owned(), |kind| format!("{kind:?}"));
        let known =
            super::kind_layout::ALL.iter().map(|layout| layout.kind.as_str()).collect::<Vec<_>>().join(", ");
        RowError::new("unknown_kind", format_args!("kind is {found}: it must be one of {known}"))
    })?;
    let mut cells = RecordCells::new(layout.names);
    for (name, value) in members {
        let Some(index) = layout.names.iter().position(|known| *known == name) else {
            if ignore_unknown || [ID_FIELD, REASON_FIELD].contains(&name.as_ref()) {
                continue;
            }
            let message =
                format_args!("a {} has no field {name:?}: rename it, or add --ignore-unknown", layout.kind);
            return Err(RowError::new("unknown_field", message));
        };
        if let Some(value) = scalar(layout.names[index], value.get())? {
            cells.set(index, value);
        }
    }
    Ok((layout.kind, cells))
}

fn repeated_member(name: &str) -> RowError {
    RowError::new("malformed_row", format_args!("the member {name:?} appears twice: keep one of them"))
}

/// JSON value as the text of a table cell; `None` for null. A list is returned as JSON text.
fn scalar<'a>(name: &str, value: &'a str) -> Result<Option<Cow<'a, str>>, RowError> {
    match value.as_bytes().first() {
        Some(b'"') => Ok(string(value)),
        Some(b'n') => Ok(None),
        Some(b'[' | b'{') if !LISTS.contains(&name) => {
            Err(RowError::new("bad_value", format_args!("{name} must be one value, not a list or an object")))
        }
        Some(b'[' | b'{') => match find_repeated_member(value) {
            Some(name) => Err(repeated_member(&name)),
            None => Ok(Some(Cow::Borrowed(value))),
        },
        _ => Ok(Some(Cow::Borrowed(value))),
    }
}
