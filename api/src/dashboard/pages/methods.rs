//! Content of `/methods` and `/methods/{rule}`: text, fields, parameters and worked examples of each domain rule.
//!
//! Invariants: the texts are those of the code (see `build.rs`). The worked examples are test cases, which the tests
//! compute with the rules and request from a running service. The table of distribution types comes from the functions
//! that decide about a payment.

use std::collections::{BTreeSet, HashMap};

use market::event::{DividendType, Frequency};
use market::metrics::dividends::status::DividendClass;
use market::metrics::{RuleParameter, Rules};
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::pages::worked_cases::{WorkedCase, render_case};
use crate::dashboard::view::layout::{Number, Text, stacked_table};
use crate::dashboard::view::markdown::{self, rule_link, split_at_rule};

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
pub(crate) fn render_overview(fields: &FieldsByRule<'_>) -> Markup {
    html! {
        p.lead { "Each figure follows one of " (RULES.len()) " rules. The page of a rule has its text, its source, its edge cases and worked examples." }
        h2 { "Rules" }
        (stacked_table("Rules", &[Text("Rule"), Text("Subject"), Text("Fields")], html! {
            @for rule in RULES {
                tr { th scope="row" { (rule_link(rule.id)) } td.words data-label="Subject" { (rule.title) } td.words data-label="Fields" { (render_fields(fields.get(rule.id))) } }
            }
        }))
        h2 id="types" { "Types of distributions" }
        p { "The type decides which figures include a payment (" (rule_link("R3")) ")." }
        (render_types())
        (markdown::render_paragraphs(OVERVIEW))
    }
}

fn render_types() -> Markup {
    let headings = [
        "Type",
        "TTM and its yield",
        "TTM with specials",
        "Forward, growth, streak, payout",
        "Adjustment factor",
    ];
    let yes_or_no = |is_included: bool| if is_included { "yes" } else { "no" };
    let types = DividendType::ALL.iter().map(|kind| (*kind, None)).chain([SCHEDULED]);
    html! {
        (stacked_table("Types of distributions", &headings.map(Text), html! {
            @for (kind, frequency) in types {
                @let class = kind.class(frequency);
                tr {
                    th scope="row" { code { (kind) } @if frequency.is_some() { " with a number of payments a year" } }
                    td data-label=(headings[1]) { (yes_or_no(class.is_regular())) }
                    td data-label=(headings[2]) { (yes_or_no(class.in_ttm_total())) }
                    td data-label=(headings[3]) { (yes_or_no(class.is_regular())) }
                    td data-label=(headings[4]) { @if class == DividendClass::Stock { "as a split" } @else { (yes_or_no(class.in_price_factor())) } }
                }
            }
        }))
    }
}

/// Title and content of the page of each rule.
pub(crate) fn render_rules(fields: &FieldsByRule<'_>) -> HashMap<&'static str, (String, String)> {
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
                (stacked_table("Parameters", &[Text("Parameter"), Number("Default"), Text("Unit"), Text("Meaning")], html! {
                    @for parameter in parameters {
                        tr {
                            th scope="row" { code { (parameter.name) } }
                            td.number data-label="Default" { (parameter.default) }
                            td data-label="Unit" { (parameter.unit) }
                            td.words data-label="Meaning" { (markdown::render_inline(parameter.meaning)) }
                        }
                    }
                }))
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

pub(crate) fn fields_by_rule(document: &Value) -> FieldsByRule<'_> {
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
