//! Content of `/methods` and `/methods/{rule}`: text, fields, parameters and worked examples of each domain rule.
//!
//! Pages that are the same for every visitor: `/methods`, `/methods/{rule}` and `/versions`. They are rendered once, when
//! the service starts.
//!
//! Worked examples of the domain rules: inputs and results of the cases in `schema/market/domain-cases.json`.
//!
//! Invariants: the texts are those of the code (see `build.rs`). The worked examples are test cases, which the tests
//! compute with the rules and request from a running service. The table of distribution types comes from the functions
//! that decide about a payment.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use market::event::{DividendType, Frequency};
use market::metrics::dividends::status::DividendClass;
use market::metrics::{RuleParameter, Rules};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::dashboard::error::PageError;
use crate::dashboard::view::layout::{
    self, Number, Section, Text, Viewer, Words, stacked_rows, stacked_table, to_sentence,
};
use crate::dashboard::view::markdown::{self, rule_link, split_at_rule};
use crate::dashboard::visitor::{Visitor, has_market_pages};
use crate::parameters::DEPRECATIONS;
use crate::routes::openapi::describe_deviation;

/// Domain rule. The text is Markdown.
struct Rule {
    id: &'static str,
    title: &'static str,
    text: &'static str,
}

const RULES: &[Rule] = &include!(concat!(env!("OUT_DIR"), "/rules.rs"));
const OVERVIEW: &str = include_str!("../../../templates/methods.md");
/// Return of capital with a stated frequency. The table lists it separately, because its class differs.
const SCHEDULED: (DividendType, Option<Frequency>) =
    (DividendType::ReturnOfCapital, Some(Frequency::Monthly));

/// Content of the overview, without its heading.
fn render_overview(fields: &FieldsByRule<'_>) -> Markup {
    html! {
        p.lead { "Each figure follows one of " (RULES.len()) " rules. The page of a rule has its text, its source, its edge cases and worked examples." }
        h2 { "Rules" }
        (stacked_rows("Rules", RULES, &[
            (Text("Rule"), &|rule| rule_link(rule.id)),
            (Words("Subject"), &|rule| html! { (rule.title) }),
            (Words("Fields"), &|rule| render_fields(fields.get(rule.id))),
        ]))
        h2 id="types" { "Types of distributions" }
        p { "The type decides which figures include a payment (" (rule_link("R3")) ")." }
        (render_types())
        (markdown::render_paragraphs(OVERVIEW))
    }
}

fn render_types() -> Markup {
    let yes_or_no = |is_included: bool| html! { @if is_included { "yes" } @else { "no" } };
    let types: Vec<_> = DividendType::ALL.iter().map(|kind| (*kind, None)).chain([SCHEDULED]).collect();
    html! {
        (stacked_rows("Types of distributions", &types, &[
            (Text("Type"), &|(kind, frequency)| html! { code { (kind) } @if frequency.is_some() { " with a number of payments a year" } }),
            (Text("TTM and its yield"), &|(kind, frequency)| yes_or_no(kind.class(*frequency).is_regular())),
            (Text("TTM with specials"), &|(kind, frequency)| yes_or_no(kind.class(*frequency).in_ttm_total())),
            (Text("Forward, growth, streak, payout"), &|(kind, frequency)| yes_or_no(kind.class(*frequency).is_regular())),
            (Text("Adjustment factor"), &|(kind, frequency)| match kind.class(*frequency) {
                DividendClass::Stock => html! { "as a split" },
                class => yes_or_no(class.in_price_factor()),
            }),
        ]))
    }
}

/// Title and content of the page of each rule.
fn render_rules(fields: &FieldsByRule<'_>) -> HashMap<&'static str, (String, String)> {
    let cases = WorkedCase::all();
    let pages = RULES.iter().map(|rule| {
        let cases: Vec<&WorkedCase> = cases.iter().filter(|case| case.rule == rule.id).collect();
        let title = format!("{}: {}", rule.id, rule.title);
        let body = render_rule(rule, &title, fields.get(rule.id), &cases).into_string();
        (rule.id, (title, body))
    });
    pages.collect()
}

fn render_rule(rule: &Rule, title: &str, fields: Option<&BTreeSet<&str>>, cases: &[&WorkedCase]) -> Markup {
    let parameters: Vec<&RuleParameter> =
        Rules::PARAMETERS.iter().filter(|parameter| parameter.rule == rule.id).collect();
    html! {
        p { a href="/methods" { "← Methods" } }
        h1 { (title) }
        section.panel { (markdown::render_paragraphs(rule.text)) }
        @if fields.is_some() {
            section { h2 { "Fields" } p { (render_fields(fields)) } }
        }
        @if !parameters.is_empty() {
            section {
                h2 { "Parameters" }
                (stacked_rows("Parameters", parameters, &[
                    (Text("Parameter"), &|parameter| html! { code { (parameter.name) } }),
                    (Number("Default"), &|parameter| html! { (parameter.default) }),
                    (Text("Unit"), &|parameter| html! { (parameter.unit) }),
                    (Words("Meaning"), &|parameter| markdown::render_inline(parameter.meaning)),
                ]))
            }
        }
        @if !cases.is_empty() {
            section {
                h2 { "Worked examples" }
                p.hint { "The tests of this service compute each example, and request it from a running service." }
                @for case in cases { (render_case(case)) }
            }
        }
    }
}

fn render_fields(fields: Option<&BTreeSet<&str>>) -> Markup {
    html! { @for (place, field) in fields.into_iter().flatten().enumerate() { @if place > 0 { ", " } code { (field) } } }
}

/// Names of the documented fields by the rules that their descriptions name.
pub(crate) type FieldsByRule<'a> = HashMap<&'a str, BTreeSet<&'a str>>;

fn fields_by_rule(document: &Value) -> FieldsByRule<'_> {
    let mut fields = FieldsByRule::new();
    let schemas = document["components"]["schemas"].as_object().into_iter().flat_map(|all| all.values());
    let parts = schemas
        .flat_map(|schema| std::iter::once(schema).chain(schema["allOf"].as_array().into_iter().flatten()));
    for (name, field) in parts.filter_map(|part| part["properties"].as_object()).flatten() {
        // The description of the flags names the rule of each flag, that of a rule an example.
        let is_figure = !["flags", "rule", "rule_page"].contains(&name.as_str());
        let mut rest = field["description"].as_str().filter(|_| is_figure).unwrap_or_default();
        while let Some((_, rule, after)) = split_at_rule(rest) {
            fields.entry(rule).or_default().insert(name);
            rest = after;
        }
    }
    fields
}

const CASES: &str = include_str!("../../../../schema/market/domain-cases.json");
/// A table with more rows is folded.
const FOLDED: usize = 8;

/// Worked example of a rule.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkedCase {
    id: String,
    pub(crate) rule: String,
    as_of: Option<String>,
    inputs: Map<String, Value>,
    expected: Map<String, Value>,
    /// Reason for the result.
    why: String,
}

impl WorkedCase {
    /// All examples; none if the file is not valid, which a test excludes.
    pub(crate) fn all() -> Vec<Self> {
        let mut file: Value = serde_json::from_str(CASES).unwrap_or_default();
        serde_json::from_value(file["cases"].take()).unwrap_or_default()
    }
}

fn render_case(case: &WorkedCase) -> Markup {
    let lists = ["dividends", "splits", "prices", "exchange_rates"];
    let lists = lists.iter().filter_map(|name| Some((*name, case.inputs.get(*name)?)));
    html! {
        section.panel {
            h3 { (to_sentence(&case.why)) }
            @for (name, rows) in lists { (render_rows(&case.id, name, rows)) }
            dl {
                @if let Some(day) = &case.as_of { div { dt { "as of" } dd { (day) } } }
                @for (name, value) in case.inputs.get("profile").and_then(Value::as_object).into_iter().flatten() {
                    (render_entry(&case.id, name, value))
                }
            }
            h4 { "Result" }
            dl { @for (name, value) in &case.expected { (render_entry(&case.id, name, value)) } }
        }
    }
}

/// Entry of a list of inputs or results. A list of records becomes a table.
fn render_entry(case: &str, name: &str, value: &Value) -> Markup {
    html! {
        div {
            dt { (name.replace('_', " ")) }
            dd { @if value[0].is_object() { (render_rows(case, name, value)) } @else { (plain_text(value)) } }
        }
    }
}

/// Table of records, with a column for each member.
fn render_rows(case: &str, name: &str, rows: &Value) -> Markup {
    let rows: Vec<&Map<String, Value>> =
        rows.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let mut columns: Vec<&str> = vec![];
    for column in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let name = name.replace('_', " ");
    let titles: Vec<String> = columns.iter().map(|column| column.replace('_', " ")).collect();
    let headings: Vec<_> = titles.iter().map(|title| Text(title)).collect();
    let table = stacked_table(
        &format!("{name} of example {case}"),
        &headings,
        html! {
            @for row in &rows {
                tr { @for (column, title) in columns.iter().zip(&titles) { td data-label=(title) { (plain_text(row.get(*column).unwrap_or(&Value::Null))) } } }
            }
        },
    );
    html! {
        @if rows.len() > FOLDED { details { summary { (rows.len()) " " (name) } (table) } }
        @else if !rows.is_empty() { h4 { (name) } (table) }
    }
}

/// Value as text. The items of a list are separated by commas.
fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}: {}", plain_text(value)));
            members.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

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
        let fields = fields_by_rule(document);
        Self {
            methods: render_overview(&fields).into_string(),
            rules: render_rules(&fields),
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
        (stacked_rows("Deprecated parts", &DEPRECATIONS, &[
            (Text("Part"), &|part| html! { "parameter " code { (part.parameter) } " of " code { (part.path) } }),
            (Text("Replacement"), &|part| html! { code { (part.replacement) } }),
            (Text("Deprecated"), &|part| html! { (part.announced.format("%-d %B %Y")) }),
            (Text("Removed"), &|part| html! { "not before " (part.sunset.format("%-d %B %Y")) }),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_shows_its_rows_and_its_result() {
        let cases = WorkedCase::all();
        assert!(cases.len() > 90, "{}", cases.len());
        let case = cases.iter().find(|case| case.id == "R9C").expect("an example of R9");
        let shown = render_case(case).into_string();
        for part in ["The latest raw close, not the adjusted one.", "<dt>dividend yield pct</dt><dd>4</dd>"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
