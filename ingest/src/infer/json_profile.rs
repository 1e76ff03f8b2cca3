//! Table layout of a JSON document: path of the records, and names and values of their members.

use serde_json::{Map, Value};

use super::table_profile::{ColumnProfile, TableLayout, TableProfile};

/// Maximum nesting depth. Objects that are nested deeper are not examined.
const MAX_DEPTH: usize = 4;

struct RecordList<'a> {
    path: Vec<&'a str>,
    records: Vec<&'a Map<String, Value>>,
    /// Object that contains the list; `None` for a list at the top level. The scalar members of this object apply to
    /// every record.
    page: Option<&'a Map<String, Value>>,
}

/// Infers the layout of a JSON document, or of a text with one JSON document per line.
pub(super) fn infer(text: &str) -> Result<TableProfile, String> {
    let text = text.trim_start_matches('\u{feff}');
    let document = match serde_json::from_str::<Value>(text) {
        Ok(document) => document,
        Err(error) => {
            let lines: Option<Vec<Value>> = text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(|line| serde_json::from_str(line).ok())
                .collect();
            let lines = lines.ok_or_else(|| format!("is not a whole JSON document: {error}"))?;
            Value::Array(lines)
        }
    };
    let mut lists = Vec::new();
    find_lists(&document, &mut Vec::new(), None, &mut lists);
    // A document without lists is one record, if it has several scalar members.
    let scalars =
        |members: &Map<String, Value>| members.values().filter(|value| scalar(value).is_some()).count();
    if let (true, Some(record)) =
        (lists.is_empty(), document.as_object().filter(|record| scalars(record) > 1))
    {
        lists.push(RecordList { path: Vec::new(), records: vec![record], page: None });
    }
    let list = lists.into_iter().max_by_key(|list| list.records.len()).ok_or_else(|| {
        "is JSON without a list of records: a map needs a list of objects, one for each row".to_owned()
    })?;
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for (row, record) in list.records.iter().enumerate() {
        add_members(record, "", MAX_DEPTH, row, &mut columns);
    }
    let known: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    for (name, value) in list.page.into_iter().flatten().filter(|(name, _)| !known.contains(name)) {
        columns.extend(scalar(value).map(|text| (name.clone(), vec![text; list.records.len()])));
    }
    columns.iter_mut().for_each(|(_, cells)| cells.resize(list.records.len(), String::new()));
    let columns = columns.into_iter().map(|(name, cells)| ColumnProfile::new(name, cells)).collect();
    // A column map needs no path for a list at the top, or under `results` or `data`: readers look there by default.
    let path = match list.path.as_slice() {
        [] | ["results" | "data"] => None,
        path => Some(path.join(".")),
    };
    Ok(TableProfile::of_columns(TableLayout::Json(path), columns, false, None))
}

/// Finds all lists of objects in a document. `path` contains the member names that lead to `value`.
fn find_lists<'a>(
    value: &'a Value,
    path: &mut Vec<&'a str>,
    page: Option<&'a Map<String, Value>>,
    found: &mut Vec<RecordList<'a>>,
) {
    match value {
        Value::Array(items) => {
            let records: Vec<_> = items.iter().filter_map(Value::as_object).collect();
            if !records.is_empty() {
                found.push(RecordList { path: path.clone(), records, page });
            }
        }
        Value::Object(members) if path.len() < MAX_DEPTH => {
            for (name, inner) in members {
                path.push(name);
                find_lists(inner, path, Some(members), found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Adds the scalar members of a record to the columns. A member of an inner object is named by its path: `price.close`.
fn add_members(
    record: &Map<String, Value>,
    prefix: &str,
    depth: usize,
    row: usize,
    columns: &mut Vec<(String, Vec<String>)>,
) {
    for (name, value) in record {
        let path = format!("{prefix}{name}");
        if let Value::Object(inner) = value
            && depth > 0
        {
            add_members(inner, &format!("{path}."), depth - 1, row, columns);
        } else if let Some(text) = scalar(value) {
            let place = columns.iter().position(|(known, _)| *known == path).unwrap_or_else(|| {
                columns.push((path, Vec::new()));
                columns.len() - 1
            });
            // The record before may lack the member.
            let cells = &mut columns[place].1;
            cells.resize(row, String::new());
            cells.push(text);
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(word) => Some(word.to_string()),
        _ => None,
    }
}
