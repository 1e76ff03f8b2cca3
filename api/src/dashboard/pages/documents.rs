//! Pages that are the same for every visitor: `/methods`, `/methods/{rule}` and `/versions`. They are rendered once, when
//! the service starts.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use crate::app::state::App;
use crate::dashboard::error::PageError;
use crate::dashboard::pages::methods;
use crate::dashboard::view::layout::{self, Section, Text, Viewer, stacked_table};
use crate::dashboard::view::markdown;
use crate::dashboard::visitor::{Visitor, has_market_pages};
use crate::parameters::DEPRECATIONS;
use crate::routes::openapi::endpoint::describe_deviation;

const VERSIONS: &str = include_str!("../../../templates/versions.md");

/// Rendered content of the pages.
#[derive(Debug)]
pub(crate) struct Documents {
    methods: String,
    /// Title and content of the page of each rule.
    rules: HashMap<&'static str, (String, String)>,
    versions: String,
}

impl Documents {
    fn new(document: &Value) -> Self {
        let fields = methods::fields_by_rule(document);
        Self {
            methods: methods::render_overview(&fields).into_string(),
            rules: methods::render_rules(&fields),
            versions: render_versions().into_string(),
        }
    }
}

pub(crate) fn document_routes(document: &Value) -> Router<App> {
    Router::new()
        .route("/methods", get(show_methods))
        .route("/methods/{rule}", get(show_rule))
        .route("/versions", get(show_versions))
        .layer(Extension(Arc::new(Documents::new(document))))
}

async fn show_methods(
    Extension(documents): Extension<Arc<Documents>>,
    State(app): State<App>,
    parts: Parts,
) -> Response {
    let method = app.projection.served_rules();
    let body = html! {
        h1 { "Methods" }
        @if !method.method_version.is_empty() { (markdown::render_paragraphs(&describe_deviation(&method))) }
        (PreEscaped(&documents.methods))
    };
    render(app, parts, "Methods", &body).await
}

async fn show_rule(
    Extension(documents): Extension<Arc<Documents>>,
    State(app): State<App>,
    rule: Result<Path<String>, PathRejection>,
    parts: Parts,
) -> Response {
    match rule.ok().and_then(|Path(rule)| documents.rules.get(rule.as_str())) {
        Some((title, body)) => render(app, parts, title, &PreEscaped(body.clone())).await,
        None => PageError::NotFound.into_response(),
    }
}

async fn show_versions(
    Extension(documents): Extension<Arc<Documents>>,
    State(app): State<App>,
    parts: Parts,
) -> Response {
    render(app, parts, "Versions and deprecation", &PreEscaped(documents.versions.clone())).await
}

/// Renders a page. If the dashboard is switched off, visitors cannot sign in, and the page needs no session.
async fn render(app: App, mut parts: Parts, title: &str, body: &Markup) -> Response {
    match Visitor::from_request_parts(&mut parts, &app).await {
        Ok(visitor) => visitor.render_page(title, Section::Other, body),
        Err(_) => {
            let has_market = has_market_pages(&app, Viewer::Reader);
            layout::render_page(title, Viewer::Reader, Section::Other, has_market, body).into_response()
        }
    }
}

fn render_versions() -> Markup {
    html! {
        h1 { "Versions and deprecation" }
        (markdown::render_paragraphs(VERSIONS))
        h2 { "Deprecated parts" }
        (stacked_table("Deprecated parts", &[Text("Part"), Text("Replacement"), Text("Deprecated"), Text("Removed")], html! {
            @for part in &DEPRECATIONS {
                tr {
                    th scope="row" { "parameter " code { (part.parameter) } " of " code { (part.path) } }
                    td data-label="Replacement" { code { (part.replacement) } }
                    td data-label="Deprecated" { (part.announced.format("%-d %B %Y")) }
                    td data-label="Removed" { "not before " (part.sunset.format("%-d %B %Y")) }
                }
            }
        }))
    }
}
