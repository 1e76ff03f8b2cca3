//! Reader of JSON files with a column map.

use std::borrow::Cow;

use super::map::{ColumnMap, RowSelection};
use super::map_definition::ColumnLocation;
use super::mapped_row::{RowValues, accept, push};
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_format::{FeedReadError, VendorFile};
use crate::format::raw_json::RawJson;
use crate::format::vendor_row::{read_documents, read_objects};
use crate::normalize::RowError;
use crate::source::feed_files::Encoding;

/// Reads the records of a JSON file.
pub(super) fn read_json(
    map: &ColumnMap,
    is_reject_export: bool,
    owner: Option<(&'static str, String)>,
    file: VendorFile<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let mut paths = Vec::new();
    for (name, location) in &map.columns {
        // In exported rejects, an unnamed column has its number as name.
        paths.push(match location {
            ColumnLocation::Name(path) => (*name, Cow::Borrowed(path.as_str())),
            ColumnLocation::Number(_) if !is_reject_export => {
                let message = format!("is JSON, which has no column numbers: columns.{name} must be a name");
                return Err(FeedReadError::Refused(message));
            }
            ColumnLocation::Number(number) => (*name, Cow::Owned(number.to_string())),
        });
    }
    let take = |object: RawJson<'_>, wrapper: Option<RawJson<'_>>, line: u64, rows: &mut RowAccumulator| {
        let is_selected = |selection: &&RowSelection| {
            let ColumnLocation::Name(path) = &selection.column else { return false };
            let found = member(object, path).or_else(|| member(wrapper?, path)).and_then(RawJson::text);
            found.is_some_and(|cell| selection.selects(&cell))
        };
        if let Some(selection) = map.only.iter().find(|selection| !is_selected(selection)) {
            return rows.stats.count_skipped(selection.reason.clone());
        }
        let read = object_values(map, &paths, owner.as_ref(), object, wrapper)
            .and_then(|values| accept(map, values, line, object.raw().len(), rows));
        if let Err(fault) = read {
            rows.stats.records += 1;
            rows.add_reject(line, object.raw().as_bytes(), fault);
        }
    };
    // Exported rejects are single objects, so the path `file.records` does not apply to them.
    let Some(path) = map.records.as_deref().filter(|_| !is_reject_export) else {
        return read_objects(file, rows, take);
    };
    let by_line = file.encoding == Encoding::Ndjson;
    let mut number = 0;
    read_documents(file, rows, |document, line, rows| {
        records_at(document, Some(path), None, &mut |object, page| {
            number += 1;
            take(object, page, if by_line { line } else { number }, rows);
        });
    })?;
    match number {
        0 => Err(FeedReadError::Refused(format!(
            "has no records at {path:?}, the path of the map's file.records"
        ))),
        _ => Ok(()),
    }
}

/// Calls `each` for every record at a path such as `data.rows`. The second argument of `each` is the object that
/// contains the record. Lists on the path are expanded into their items.
fn records_at<'a>(
    value: RawJson<'a>,
    path: Option<&str>,
    page: Option<RawJson<'a>>,
    each: &mut impl FnMut(RawJson<'a>, Option<RawJson<'a>>),
) {
    // A list inside a list is passed as a whole, and rejected because it is not an object.
    let items = if value.is_list() { value.items() } else { vec![value] };
    let step = path.map(|path| path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest))));
    for item in items {
        match step {
            None => each(item, page),
            Some((name, rest)) => {
                if let Some(inner) = item.get(name) {
                    records_at(inner, rest, Some(item), each);
                }
            }
        }
    }
}

/// Values of an object at the paths in the map. A value missing in the object is taken from the enclosing object.
fn object_values<'a>(
    map: &'a ColumnMap,
    paths: &[(&'static str, Cow<'_, str>)],
    owner: Option<&'a (&'static str, String)>,
    object: RawJson<'a>,
    wrapper: Option<RawJson<'a>>,
) -> Result<RowValues<'a>, RowError> {
    if !object.is_object() {
        return Err(RowError::new("malformed_row", "is not a JSON object"));
    }
    let mut values: RowValues<'a> =
        owner.into_iter().chain(&map.constants).map(|(name, value)| (*name, value.as_str().into())).collect();
    for (name, path) in paths {
        let found = member(object, path).or_else(|| member(wrapper?, path)).and_then(RawJson::text);
        if let Some(text) = found {
            let (text, currency) = map.split_currency_unit(name, &text);
            if let Some(value) = map.convert_cell(name, text)? {
                push(map, name, Cow::Owned(value.into_owned()), currency, &mut values)?;
            }
        }
    }
    Ok(values)
}

/// Finds a member by name or by path, for example `quote.close`.
fn member<'a>(object: RawJson<'a>, path: &str) -> Option<RawJson<'a>> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        member(object.get(first)?, rest)
    })
}
