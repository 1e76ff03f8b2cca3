//! Rendering of the OpenAPI document for `/docs`: limits of a parameter, and a table of response fields.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::view::layout::{Text, stacked_rows};
use crate::dashboard::view::markdown;
use crate::routes::openapi::code_samples::plain;

/// Maximum nesting depth of the response fields in the table. Deeper fields are not listed.
const LEVELS: usize = 2;

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Allowed words, range and default of a parameter, as text.
pub(super) fn limits(schema: &Value) -> Option<String> {
    let words = schema["items"]["enum"]
        .as_array()
        .map(|words| words.iter().map(plain).collect::<Vec<_>>().join(", "));
    let range = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, _) | (_, Value::Null) => None,
        (least, greatest) => Some(format!("{least} to {greatest}.")),
    };
    let default = Some(plain(&schema["default"])).filter(|value| !value.is_empty());
    let said = [
        words.map(|words| format!("One or more of {words}.")),
        range,
        default.map(|value| format!("Default {value}.")),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Table of the fields of a response's rows.
pub(super) fn fields(document: &Value, operation: &str, schema: &Value) -> Markup {
    let data = &resolve(document, schema)["properties"]["data"];
    let row = data.get("items").unwrap_or(data);
    let mut rows = Vec::new();
    collect(document, row, "", LEVELS, &mut rows);
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Fields of the answer (" (rows.len()) ")" }
                (stacked_rows(&format!("Fields of {operation}"), &rows, &[
                    (Text("Field"), &|(name, ..)| html! { code { (name) } }),
                    (Text("Type"), &|(_, kind, _)| html! { (kind) }),
                    (Text("Meaning"), &|(.., meaning)| markdown::render_inline(meaning)),
                ]))
            }
        }
    }
}

/// Collects name, type and meaning of every field of a schema. The name of a nested field begins with the name of its
/// parent.
fn collect(
    document: &Value,
    schema: &Value,
    parent: &str,
    levels: usize,
    rows: &mut Vec<(String, String, String)>,
) {
    let schema = resolve(document, schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        collect(document, part, parent, levels, rows);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let target = resolve(document, property);
        let meaning = [text(property, "description"), text(target, "description")];
        let meaning = meaning.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let name = format!("{parent}{name}");
        rows.push((name.clone(), kind(document, property), meaning.to_owned()));
        if levels > 1 {
            let (child, mark) = target.get("items").map_or((target, "."), |items| (items, "[]."));
            collect(document, child, &format!("{name}{mark}"), levels - 1, rows);
        }
    }
}

/// Type of a schema, as text.
fn kind(document: &Value, schema: &Value) -> String {
    let choices = schema["anyOf"].as_array();
    let is_nullable = choices.is_some_and(|choices| choices.iter().any(|choice| choice["type"] == "null"));
    let target = resolve(document, schema);
    let words: Vec<&str> = match &target["type"] {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => vec!["object"],
    };
    let is_nullable = is_nullable || words.contains(&"null");
    let word = match (words.first().copied().unwrap_or("object"), text(target, "format")) {
        (_, "decimal") => "decimal",
        (_, "date") => "date",
        (_, "date-time") => "time",
        ("array", _) => "list",
        (word, _) => word,
    };
    if is_nullable { format!("{word} or null") } else { word.to_owned() }
}

/// Follows a `$ref`, and selects the non-null alternative of a nullable schema. Returns every other schema unchanged.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        return document.pointer(pointer).map_or(schema, |target| resolve(document, target));
    }
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    choices
        .filter(|choice| choice["type"] != "null")
        .map(|choice| resolve(document, choice))
        .next()
        .unwrap_or(schema)
}
