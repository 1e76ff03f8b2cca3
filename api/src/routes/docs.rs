//! `/openapi.json`, `/docs` and `/plans`: the contract, for programs and for people. No key, works offline.
//!
//! The pages are made from the document and the tier table when they are served; they load nothing from elsewhere.

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::app::App;

/// No script, no frame, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEAD: &str = include_str!("../../templates/head.html");

/// Serves the document.
pub(crate) fn openapi(document: &OpenApi) -> MethodRouter<App> {
    let body = Bytes::from(document.to_json().unwrap_or_default());
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];
    get(async move || (headers, body).into_response())
}

/// Serves the reference as a page.
pub(crate) fn page(document: &OpenApi) -> MethodRouter<App> {
    let document = serde_json::to_value(document).unwrap_or_default();
    let body = Bytes::from(reference(&document));
    get(async move || html(body))
}

/// Serves the tiers as a page: where a refused client learns what it could have.
pub(crate) async fn plans(State(app): State<App>) -> Response {
    let rows: String = app
        .projection
        .tiers()
        .0
        .iter()
        .map(|plan| {
            format!(
                "<tr><td>{}</td><td>{} a minute</td><td>{}</td><td>{}</td><td>{} year{}</td></tr>",
                plan.tier,
                plan.rate_per_minute,
                plan.burst,
                grouped(plan.monthly_quota),
                plan.depth_years,
                if plan.depth_years == 1 { "" } else { "s" }
            )
        })
        .collect();
    let table = "<tr><th>Plan</th><th>Rate</th><th>Burst</th><th>Calls a month</th><th>History</th></tr>";
    let how = "<h2>Upgrade</h2><p>Fundamentals and dividend history need Starter or higher, bulk endpoints Professional. \
               To upgrade, ask the operator of this service; the change holds from the next request on, and what is used \
               of the minute and the month stays used. After a cancellation the paid plan holds until the end of its \
               period.</p>";
    html(Bytes::from(format!("{HEAD}<h1>Plans</h1><table>{table}{rows}</table>{how}</body></html>")))
}

/// A whole number with its thousands apart.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

fn html(body: Bytes) -> Response {
    let headers = [(header::CONTENT_SECURITY_POLICY, POLICY), (header::CACHE_CONTROL, "no-cache")];
    (headers, Html(body)).into_response()
}

fn reference(document: &Value) -> String {
    let mut page = format!(
        "{HEAD}<h1>{}</h1><p>{}</p>",
        text(&document["info"]["title"]),
        text(&document["info"]["description"])
    );
    page.push_str("<p>The same as an <a href=\"/openapi.json\">OpenAPI 3.1 document</a>. Send the key as <code>Authorization: Bearer …</code> or <code>X-API-Key: …</code>. <a href=\"/plans\">Plans and limits</a>.</p><nav>");
    for (path, _) in members(&document["paths"]) {
        page.push_str(&format!("<a href=\"#{0}\">{0}</a> ", escape(path)));
    }
    page.push_str("</nav>");
    for (path, item) in members(&document["paths"]) {
        page.push_str(&endpoint(path, &item["get"]));
    }
    page.push_str("<h2>Objects</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        page.push_str(&object(name, schema));
    }
    page.push_str("</body></html>");
    page
}

fn endpoint(path: &str, operation: &Value) -> String {
    let mut part = format!(
        "<h2 id=\"{0}\">GET {0}</h2><p><b>{1}</b></p><p>{2}</p>",
        escape(path),
        text(&operation["summary"]),
        text(&operation["description"])
    );
    if let Some(parameters) = operation["parameters"].as_array() {
        part.push_str("<table><tr><th>Parameter</th><th>In</th><th>Type</th><th>Meaning</th></tr>");
        for parameter in parameters {
            part.push_str(&format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                text(&parameter["name"]),
                text(&parameter["in"]),
                kind(&parameter["schema"]),
                text(&parameter["description"])
            ));
        }
        part.push_str("</table>");
    }
    part.push_str("<table><tr><th>Status</th><th>Body</th><th>Meaning</th></tr>");
    for (status, response) in members(&operation["responses"]) {
        let body = kind(&response["content"]["application/json"]["schema"]);
        part.push_str(&format!(
            "<tr><td>{}</td><td>{body}</td><td>{}</td></tr>",
            escape(status),
            text(&response["description"])
        ));
    }
    part.push_str("</table>");
    part
}

fn object(name: &str, schema: &Value) -> String {
    let mut part = format!("<h3 id=\"{0}\">{0}</h3><p>{1}</p>", escape(name), text(&schema["description"]));
    if schema["properties"].is_object() {
        part.push_str("<table><tr><th>Field</th><th>Type</th><th>Meaning</th></tr>");
        for (field, property) in members(&schema["properties"]) {
            part.push_str(&format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                escape(field),
                kind(property),
                text(&property["description"])
            ));
        }
        part.push_str("</table>");
    } else {
        part.push_str(&format!("<p>{}</p>", kind(schema)));
    }
    part
}

/// A schema in a few words, with links to the objects it names.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape(name));
    }
    for of in ["oneOf", "allOf", "anyOf"] {
        if let Some(choices) = schema[of].as_array() {
            return choices.iter().map(kind).collect::<Vec<_>>().join(if of == "allOf" {
                " with "
            } else {
                " or "
            });
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("<code>{}</code>", text(word))).collect::<Vec<_>>().join(" ");
    }
    let named = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        one => text(one),
    };
    let bounds = ["minimum", "maximum", "default", "maxLength", "pattern"]
        .iter()
        .filter(|bound| !schema[**bound].is_null());
    let bounds: String = bounds.map(|bound| format!(", {bound} {}", text(&schema[*bound]))).collect();
    let items =
        if schema["items"].is_null() { String::new() } else { format!(" of {}", kind(&schema["items"])) };
    format!("{named}{items}{bounds}")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
