//! `/docs`: reference of the endpoints, with a form for each. A signed-in holder can create a key for the page.
//!
//! Invariants: the user's API key is stored only in the browser tab. The page loads nothing from other sites. The created
//! key expires after 12 hours. Signing out, or creating another key for the page, deletes it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{TimeDelta, Utc};
use maud::{Markup, PreEscaped, html};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio_postgres::Client;

use super::schema_fields::{fields, limits, text};
use crate::account::AccountError;
use crate::account::keys::{self, CreatedKey, KeyKind, NewKey, list_keys};
use crate::app::App;
use crate::dashboard::error::{PageResult, to_form_message};
use crate::dashboard::form::AuthenticatedForm;
use crate::dashboard::view::layout::{self, Section, Viewer, csrf_field, error_message};
use crate::dashboard::view::live_example::ApiExample;
use crate::dashboard::view::markdown;
use crate::dashboard::visitor::{AccountHolder, Visitor};
use crate::routes::openapi::code_samples::{WITHOUT_KEY, is_needed, plain};
use crate::routes::openapi::describe_deviation;

const TITLE: &str = "Reference";
/// Content security policy of the page `/docs`. It also allows scripts to call this service, because the page's script
/// calls the API.
const CALLING_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Parts of the reference page that are the same for every visitor.
#[derive(Debug)]
pub(crate) struct ReferencePage {
    introduction: String,
    contents: String,
    endpoints: String,
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

/// Shows the page if the dashboard is switched on.
pub(crate) async fn show_reference(
    Extension(reference): Extension<Arc<ReferencePage>>,
    visitor: Visitor,
) -> Response {
    render_reference(&visitor, &reference, None, None).await
}

/// Shows the page if the dashboard is switched off.
pub(crate) async fn show_reference_without_dashboard(
    Extension(reference): Extension<Arc<ReferencePage>>,
    State(app): State<App>,
) -> Response {
    let body = body(&app, &reference, &key_panel(Viewer::Reader, None, None), None);
    allow_service_calls(
        layout::render_page(TITLE, Viewer::Reader, Section::Other, false, &body).into_response(),
    )
}

/// Renders the page for a visitor. `secret` is the secret of a new API key. `message` is the error message if the key
/// could not be created.
async fn render_reference(
    visitor: &Visitor,
    reference: &ReferencePage,
    secret: Option<&str>,
    message: Option<&str>,
) -> Response {
    let shown = visitor.example.latest_example().await;
    let body = body(&visitor.app, reference, &key_panel(visitor.viewer(), secret, message), shown.as_deref());
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
        p.lead { "Every endpoint, with a form that calls it. Programs can use the " a href="/openapi.json" { "OpenAPI document" } "." }
        (key)
        details.panel.introduction {
            summary { "Values, pages, formats and limits" }
            (markdown::render_paragraphs(&reference.introduction))
            @if !method.is_default() { (markdown::render_paragraphs(&describe_deviation(&method))) }
        }
        noscript { p.notice { "The forms need JavaScript. Without it, you can only read this page." } }
        (PreEscaped(&reference.contents))
        div id="reference" data-symbol=[value(|shown| &shown.symbol)] data-fund=[value(|shown| &shown.fund)] data-sector=[value(|shown| &shown.sector)] {
            (PreEscaped(&reference.endpoints))
        }
        script src="/assets/reference.js" defer {}
    }
}

/// Panel with the API key for all calls of the page. `secret`, the secret of a new key, fills the field.
fn key_panel(viewer: Viewer<'_>, secret: Option<&str>, message: Option<&str>) -> Markup {
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

/// OpenAPI operation of an endpoint.
struct Operation<'a> {
    path: &'a str,
    method: &'a str,
    description: &'a Value,
}

/// Endpoints with the same OpenAPI tag.
struct EndpointGroup<'a> {
    tag: &'a str,
    meaning: &'a str,
    operations: Vec<Operation<'a>>,
}

impl EndpointGroup<'_> {
    /// HTML id of the group's heading.
    fn id(&self) -> String {
        format!("tag-{}", self.tag.to_lowercase())
    }
}

/// Groups the endpoints by tag, in the order of the document's tags.
fn groups(document: &Value) -> Vec<EndpointGroup<'_>> {
    let tags = document["tags"].as_array().into_iter().flatten();
    let paths = document["paths"].as_object();
    tags.map(|tag| {
        let name = text(tag, "name");
        let of_tag = paths.into_iter().flatten().filter_map(|(path, item)| {
            let (method, description) = item.as_object()?.iter().next()?;
            (description["tags"][0] == name).then_some(Operation { path, method, description })
        });
        EndpointGroup { tag: name, meaning: text(tag, "description"), operations: of_tag.collect() }
    })
    .collect()
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
                @for operation in group.operations { (endpoint(document, &operation)) }
            }
        }
    }
}

fn endpoint(document: &Value, operation: &Operation<'_>) -> Markup {
    let Operation { path, method, description: operation } = operation;
    let id = text(operation, "operationId");
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    let (needed, optional): (Vec<&Value>, Vec<&Value>) =
        parameters.into_iter().partition(|parameter| is_needed(path, parameter));
    let success = &operation["responses"]["200"]["content"]["application/json"];
    html! {
        details.endpoint id=(id) {
            summary { span.verb { (method.to_uppercase()) } " " code { (path) } " " span.title { (text(operation, "summary")) } }
            div.content {
                (markdown::render_paragraphs(text(operation, "description")))
                form.call data-path=(path) data-open[WITHOUT_KEY.contains(path)] {
                    @if let Some(example) = operation.pointer("/requestBody/content/application~1json/example") {
                        div.field {
                            label for={ (id) "-body" } { "Body " span.tag { "required" } }
                            textarea id={ (id) "-body" } data-in="body" rows="8" spellcheck="false" { (serde_json::to_string_pretty(example).unwrap_or_default()) }
                        }
                    }
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
                details {
                    summary { "Samples" }
                    @for sample in operation["x-codeSamples"].as_array().into_iter().flatten() {
                        @let label = text(sample, "label");
                        h3 { (label) }
                        pre tabindex="0" role="region" aria-label={ (label) " sample of " (path) } { (text(sample, "source")) }
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

/// Renders the input field of a parameter. Only a needed parameter gets an initial value.
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
                    @for choice in choices { option value=(choice) selected[value.is_some_and(|value| value == choice)] { (choice) } }
                }
            }
            p.hint id=(hint) { (markdown::render_inline(text(parameter, "description"))) @if let Some(limits) = limits(schema) { " " (limits) } }
        }
    }
}

const NAME: &str = "Reference page";
/// Lifetime of the key in hours, equal to the maximum lifetime of a session.
const HOURS: i64 = 12;

/// Creates the key, and shows the reference page. The page's key field contains the secret of the new key.
pub(crate) async fn create_reference_key(
    Extension(reference): Extension<Arc<ReferencePage>>,
    AuthenticatedForm { holder, .. }: AuthenticatedForm,
) -> PageResult {
    let created = create(&mut *holder.database_client().await?, &holder).await;
    let (status, secret, message) = match created {
        Ok(created) => (StatusCode::OK, Some(created.secret), None),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, None, Some(to_form_message(error)?)),
    };
    let secret = secret.as_ref().map(ExposeSecret::expose_secret);
    let page = render_reference(&holder.visitor, &reference, secret, message.as_deref()).await;
    Ok((status, page).into_response())
}

async fn create(client: &mut Client, holder: &AccountHolder) -> Result<CreatedKey, AccountError> {
    delete_reference_key(client, holder).await?;
    let expires_at = Some(Utc::now() + TimeDelta::hours(HOURS));
    let new = NewKey { name: NAME, kind: KeyKind::ReferencePage, expires_at, rate_per_minute: None };
    keys::create_key(client, holder.actor(), &new).await
}

/// Deletes the holder's key for the reference page, if it exists.
pub(crate) async fn delete_reference_key(
    client: &mut Client,
    holder: &AccountHolder,
) -> Result<(), AccountError> {
    let keys = list_keys(client, holder.account_id()).await?;
    for key in keys.iter().filter(|key| key.status == "active" && key.kind == KeyKind::ReferencePage) {
        keys::delete_key(client, holder.actor(), &key.id.to_string()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::render_parameter_field;
    use serde_json::json;

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
