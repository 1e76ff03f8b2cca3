//! OpenAPI document of the API, with its examples and code samples, and the endpoint that serves it.
//!
//! `GET /openapi.json`: the OpenAPI document. The endpoint needs no API key. The page `/docs` shows the same document.
//!
//! A notice in the document lists the calculation rules that the operator changed from their defaults.

pub(crate) mod code_samples;
pub(crate) mod document;

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::app::App;
use crate::parameters::served_rules::ServedRules;

pub(crate) fn routes(document: &Value) -> Router<App> {
    let document = Arc::new(NoticedDocument::new(document));
    // The document changes only with the rules of the served generation, so clients may cache it for five minutes.
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=300")];
    let openapi = async move |State(app): State<App>| {
        (headers, document.text_for(&app.projection.served_rules())).into_response()
    };
    Router::new().route("/openapi.json", get(openapi))
}

/// OpenAPI document with two cached texts. One has no notice. The other has the notice for the most recent non-default
/// rules.
#[derive(Debug)]
pub(super) struct NoticedDocument {
    document: Value,
    plain: Bytes,
    marked: RwLock<(ServedRules, Bytes)>,
}

impl NoticedDocument {
    pub(super) fn new(document: &Value) -> Self {
        Self {
            document: document.clone(),
            plain: Bytes::from(document.to_string()),
            marked: RwLock::default(),
        }
    }

    /// Text of the document. If rules differ from their defaults, the text has a notice about them. The document is
    /// serialized again only if the rules have changed.
    fn text_for(&self, method: &ServedRules) -> Bytes {
        if method.is_default() {
            return self.plain.clone();
        }
        let (known, text) = self.marked.read().unwrap_or_else(PoisonError::into_inner).clone();
        if known == *method {
            return text;
        }
        let text = Bytes::from(add_notice(self.document.clone(), method).to_string());
        *self.marked.write().unwrap_or_else(PoisonError::into_inner) = (method.clone(), text.clone());
        text
    }
}

/// Adds the rules that differ from their defaults, as `info.x-method` and as a paragraph at the end of the
/// introduction.
fn add_notice(mut document: Value, method: &ServedRules) -> Value {
    let info = &mut document["info"];
    let introduction = info["description"].as_str().unwrap_or_default();
    info["description"] = format!("{introduction}\n\n{}", describe_deviation(method)).into();
    info["x-method"] = json!(method);
    document
}

pub(crate) fn describe_deviation(method: &ServedRules) -> String {
    let rules: Vec<String> =
        method.rules.iter().map(|(name, value)| format!("`{name}` is {value}")).collect();
    let mut sentences = vec![format!("**Method {}.**", method.method_version)];
    if !rules.is_empty() {
        sentences.push(format!(
            "The served figures use other rule parameters than the defaults: {}.",
            rules.join(", ")
        ));
    }
    sentences.extend(method.note.clone());
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_said_while_it_is_served() {
        let document = NoticedDocument::new(&json!({ "info": { "description": "Dividends." } }));
        let plain = ServedRules { method_version: "1".into(), ..ServedRules::default() };
        let rules = [("streak.tolerance".to_owned(), "1".to_owned())].into();
        let method =
            ServedRules { method_version: "1+streak.tolerance=1".into(), rules, note: Some("Why.".into()) };
        let said = json!({ "info": {
            "description": "Dividends.\n\n**Method 1+streak.tolerance=1.** The served figures use other rule parameters than the defaults: `streak.tolerance` is 1. Why.",
            "x-method": { "version": "1+streak.tolerance=1", "rules": { "streak.tolerance": "1" }, "note": "Why." }
        } });
        for (method, expected) in
            [(&plain, &document.document), (&method, &said), (&method, &said), (&plain, &document.document)]
        {
            assert_eq!(serde_json::from_slice::<Value>(&document.text_for(method)).unwrap(), *expected);
        }
    }
}
