//! `/docs`: reference of the endpoints. Each endpoint has a form that calls it.
//!
//! The server renders the page from the OpenAPI document once, at its start. Invariants: only required parameters have
//! an initial value. The key is stored only in the browser tab. The page loads nothing from other sites.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::app::state::App;
use crate::dashboard::security_headers::CALLING_POLICY;
use crate::dashboard::session::visitor::Visitor;
use crate::dashboard::view::layout::{self, Section, Viewer, csrf_field, error_message};
use crate::dashboard::view::live_example::ApiExample;
use crate::dashboard::view::markdown;
use crate::routes::rules_notice::describe_deviation;

const TITLE: &str = "Reference";
/// Optional parameters with an initial value. Their endpoint needs at least one of several parameters.
const NEEDED: [(&str, &str); 1] = [("/v1/dividends/history", "symbols")];
/// Number of levels of response fields in the table.
const LEVELS: usize = 2;

/// Parts of the page that are equal for every reader.
#[derive(Debug)]
pub(crate) struct ReferencePage {
    introduction: String,
    contents: String,
    endpoints: String,
}

/// State of the key field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyFieldState<'a> {
    /// The field is empty, or the script fills it with the key of the browser tab.
    Empty,
    /// The field contains the secret of a new key.
    New(&'a str),
    /// The key was not created. The value is the error message.
    Failed(&'a str),
}

impl ReferencePage {
    pub(crate) fn new(document: &Value) -> Self {
        Self {
            introduction: document["info"]["description"].as_str().unwrap_or_default().to_owned(),
            contents: contents(document).into_string(),
            endpoints: endpoints(document).into_string(),
        }
    }
}

/// Page of a service with a dashboard.
pub(crate) async fn show_reference(
    Extension(reference): Extension<Arc<ReferencePage>>,
    visitor: Visitor,
) -> Response {
    render_reference(&visitor, &reference, KeyFieldState::Empty).await
}

/// Page of a service without a dashboard.
pub(crate) async fn show_reference_without_dashboard(
    Extension(reference): Extension<Arc<ReferencePage>>,
    State(app): State<App>,
) -> Response {
    let body = body(&app, &reference, &key_panel(Viewer::Reader, KeyFieldState::Empty), None);
    allow_service_calls(layout::render_page(TITLE, Viewer::Reader, Section::Other, &body).into_response())
}

/// Page for a visitor.
pub(crate) async fn render_reference(
    visitor: &Visitor,
    reference: &ReferencePage,
    key: KeyFieldState<'_>,
) -> Response {
    let shown = visitor.example.latest_sound_example().await;
    let body = body(&visitor.app, reference, &key_panel(visitor.viewer(), key), shown.as_deref());
    allow_service_calls(visitor.render_page(TITLE, Section::Other, &body))
}

/// Sets the content security policy that allows the script of the page to call this service.
fn allow_service_calls(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CALLING_POLICY));
    response
}

fn body(app: &App, reference: &ReferencePage, key: &Markup, shown: Option<&ApiExample>) -> Markup {
    let method = app.projection.served_rules();
    let value = |name: fn(&ApiExample) -> &str| shown.map(name).filter(|value| !value.is_empty());
    html! {
        h1 { (TITLE) }
        p.lead { "Every endpoint, with a form that calls it. Programs read the same as " a href="/openapi.json" { "OpenAPI document" } "." }
        (key)
        details.panel.introduction {
            summary { "Values, pages, formats and limits" }
            (markdown::render_paragraphs(&reference.introduction))
            @if !method.is_default() { (markdown::render_paragraphs(&describe_deviation(&method))) }
        }
        noscript { p.notice { "The forms call the service with JavaScript. Without it this page is for reading." } }
        (PreEscaped(&reference.contents))
        div id="reference" data-symbol=[value(|shown| &shown.symbol)] data-fund=[value(|shown| &shown.fund)] data-sector=[value(|shown| &shown.sector)] {
            (PreEscaped(&reference.endpoints))
        }
        script src="/assets/reference.js" defer {}
    }
}

/// Panel with the key that all calls of the page use.
fn key_panel(viewer: Viewer<'_>, key: KeyFieldState<'_>) -> Markup {
    let (secret, message) = match key {
        KeyFieldState::Empty => (None, None),
        KeyFieldState::New(secret) => (Some(secret), None),
        KeyFieldState::Failed(message) => (None, Some(message)),
    };
    html! {
        section.panel aria-labelledby="key-title" {
            h2 id="key-title" { "Your key" }
            (error_message(message))
            label for="key" { "API key" }
            input type="password" id="key" autocomplete="off" spellcheck="false" placeholder="dds_live_…" value=[secret] data-new[secret.is_some()] aria-describedby="key-hint";
            p.hint id="key-hint" { "The key stays in this browser tab until the tab is closed, you sign out, or you press Forget. Only this service gets it." }
            div.row {
                @if let Viewer::Holder(name) = viewer {
                    form method="post" action="/dashboard/keys/reference" {
                        (csrf_field(name.secret))
                        button.second type="submit" { @if secret.is_some() { "Create another" } @else { "Use a key of my account" } }
                    }
                }
                button.second type="button" id="forget" hidden { "Forget" }
            }
            @match viewer {
                Viewer::Holder(_) => p.hint { "This creates the key “Reference page”. It ends after 12 hours, or when you sign out. " a href="/dashboard/keys" { "Your keys" } },
                Viewer::Visitor => p.hint { a href="/sign-in?next=%2Fdocs" { "Sign in" } " to use a key of your account." },
                Viewer::Reader => {},
            }
        }
    }
}

/// Endpoints of a tag, each with its path and operation.
struct EndpointGroup<'a> {
    tag: &'a str,
    meaning: &'a str,
    operations: Vec<(&'a str, &'a Value)>,
}

impl EndpointGroup<'_> {
    /// Id of the heading.
    fn id(&self) -> String {
        format!("tag-{}", self.tag.to_lowercase())
    }
}

/// Groups of endpoints, in the order of the document's tags.
fn groups(document: &Value) -> Vec<EndpointGroup<'_>> {
    let tags = document["tags"].as_array().into_iter().flatten();
    let paths = document["paths"].as_object();
    tags.map(|tag| {
        let name = text(tag, "name");
        let of_tag = paths.into_iter().flatten().filter_map(|(path, item)| {
            let operation = &item["get"];
            (operation["tags"][0] == name).then_some((path.as_str(), operation))
        });
        EndpointGroup { tag: name, meaning: text(tag, "description"), operations: of_tag.collect() }
    })
    .collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn contents(document: &Value) -> Markup {
    html! {
        nav.contents aria-label="Groups of endpoints" {
            @for group in groups(document) { a href={ "#" (group.id()) } { (group.tag) } }
        }
    }
}

fn endpoints(document: &Value) -> Markup {
    html! {
        @for group in groups(document) {
            section.tag-group aria-labelledby=(group.id()) {
                h2 id=(group.id()) { (group.tag) }
                p.muted { (group.meaning) }
                @for (path, operation) in group.operations { (endpoint(document, path, operation)) }
            }
        }
    }
}

fn endpoint(document: &Value, path: &str, operation: &Value) -> Markup {
    let id = text(operation, "operationId");
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    let (needed, optional): (Vec<&Value>, Vec<&Value>) =
        parameters.into_iter().partition(|parameter| is_needed(path, parameter));
    let success = &operation["responses"]["200"]["content"]["application/json"];
    html! {
        details.endpoint id=(id) {
            summary { span.verb { "GET" } " " code { (path) } " " span.title { (text(operation, "summary")) } }
            div.content {
                (markdown::render_paragraphs(text(operation, "description")))
                form.call data-path=(path) data-open[path == "/v1/health"] {
                    @for parameter in &needed { (render_parameter_field(path, id, parameter, true)) }
                    @if !optional.is_empty() {
                        details.optional {
                            summary { "Optional parameters (" (optional.len()) ")" }
                            div.fields { @for parameter in &optional { (render_parameter_field(path, id, parameter, false)) } }
                        }
                    }
                    button type="submit" hidden { "Try it" }
                }
                div.reply hidden {
                    p.outcome role="status" {}
                    div.result {
                        h3 id={ (id) "-command" } { "Command" }
                        pre.command tabindex="0" aria-labelledby={ (id) "-command" } {}
                        h3 id={ (id) "-reply" } { "Answer" }
                        pre.answer tabindex="0" aria-labelledby={ (id) "-reply" } {}
                    }
                }
                (fields(document, id, &success["schema"]))
                @if !success["example"].is_null() {
                    details {
                        summary { "Example of an answer" }
                        pre tabindex="0" role="region" aria-label={ "Example of " (path) } { (serde_json::to_string_pretty(&success["example"]).unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// True if a call is refused without this parameter.
fn is_needed(path: &str, parameter: &Value) -> bool {
    parameter["required"] == true || NEEDED.contains(&(path, text(parameter, "name")))
}

/// Input field of a parameter. Only a needed parameter has an initial value.
fn render_parameter_field(path: &str, operation: &str, parameter: &Value, is_needed: bool) -> Markup {
    let (name, schema) = (text(parameter, "name"), &parameter["schema"]);
    let id = format!("{operation}-{name}");
    let hint = format!("{id}-hint");
    let example = plain(&parameter["example"]);
    let kind = match name {
        "symbol" if path.starts_with("/v1/etfs") => Some("fund"),
        "symbol" | "symbols" => Some("symbol"),
        "sector" => Some("sector"),
        _ => None,
    };
    let (value, kind) = if is_needed { (Some(&example), kind) } else { (None, None) };
    let choices: Vec<&str> = match &schema["type"] {
        Value::String(kind) if kind == "boolean" => vec!["true", "false"],
        _ => schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let place = text(parameter, "in");
    html! {
        div.field {
            label for=(id) { code { (name) } @if is_needed { " " span.tag { "required" } } }
            @if choices.is_empty() {
                input id=(id) name=(name) data-in=(place) data-kind=[kind] value=[value] autocomplete="off" spellcheck="false" placeholder=[(!is_needed && !example.is_empty()).then(|| format!("for example {example}"))] aria-describedby=(hint);
            } @else {
                select id=(id) name=(name) data-in=(place) aria-describedby=(hint) {
                    option value="" { "not set" }
                    @for choice in choices { option value=(choice) { (choice) } }
                }
            }
            p.hint id=(hint) { (markdown::render_inline(text(parameter, "description"))) @if let Some(limits) = limits(schema) { " " (limits) } }
        }
    }
}

/// Value as it is written in a query.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Allowed words, range and default of a parameter, as text.
fn limits(schema: &Value) -> Option<String> {
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
fn fields(document: &Value, operation: &str, schema: &Value) -> Markup {
    let data = &resolve(document, schema)["properties"]["data"];
    let row = data.get("items").unwrap_or(data);
    let mut rows = Vec::new();
    collect(document, row, "", LEVELS, &mut rows);
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Fields of the answer (" (rows.len()) ")" }
                div.scroll tabindex="0" role="region" aria-label={ "Fields of " (operation) } {
                    table.stack {
                        thead { tr { th scope="col" { "Field" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                        tbody {
                            @for (name, kind, meaning) in &rows {
                                tr { th scope="row" { code { (name) } } td data-label="Type" { (kind) } td data-label="Meaning" { (markdown::render_inline(meaning)) } }
                            }
                        }
                    }
                }
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

/// Schema to which a reference leads, or the non-null choice of a nullable schema.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::dashboard::pages::reference::render_parameter_field;

    #[test]
    fn only_a_needed_parameter_has_a_value_at_first() {
        let parameter = json!({ "name": "limit", "in": "query", "example": 5, "description": "Rows.",
            "schema": { "type": "integer", "minimum": 1, "maximum": 10, "default": 5 } });
        let optional = render_parameter_field("/v1/stocks", "stocks", &parameter, false).into_string();
        assert!(!optional.contains(" value="), "{optional}");
        assert!(optional.contains("1 to 10. Default 5."), "{optional}");
        let needed = render_parameter_field("/v1/stocks", "stocks", &parameter, true).into_string();
        assert!(needed.contains(" value=\"5\""), "{needed}");
    }
}
