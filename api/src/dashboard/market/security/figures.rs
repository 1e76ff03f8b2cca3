//! Figures of a security, such as the dividend yield, and the page `/s/{symbol}/why/{figure}` that explains one.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use market::metrics::YearStatus;
use maud::{Markup, html};
use serde_json::Value;

use super::blocks::{change, render_folded, render_year_bars, year_bar};
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use crate::dashboard::market::block::Block;
use crate::dashboard::market::reader::{MarketReader, PageContent};
use crate::dashboard::market::values::{Unit, humanize, render_value, rows_of, str_of};
use crate::dashboard::view::layout::{Number, Section, Text, Words, stacked_rows, stacked_table};
use crate::dashboard::view::markdown::rule_link;
use crate::dashboard::view::plot::Bar;

/// Figures in display order. Each line has a group, a field of the API response, a title, a kind of value, and a rule.
const TABLE: &str = include_str!("figures.csv");
static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| TABLE.lines().filter_map(Figure::parse).collect());

/// Figure of a security.
#[derive(Debug)]
pub(crate) struct Figure {
    group: &'static str,
    /// Field of the API response.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Kind of value: `percent`, `ratio`, `amount`, `years`, `date` or `plain`. An amount is in the currency of the dividends.
    kind: &'static str,
    rule: &'static str,
}

impl Figure {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.split(',');
        let mut next = || cells.next();
        Some(Self { group: next()?, name: next()?, title: next()?, kind: next()?, rule: next()? })
    }

    /// Figure with this field name; `None` if the table of figures does not list the name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.name == name)
    }

    pub(crate) fn is_amount(&self) -> bool {
        self.kind == "amount"
    }

    /// Renders the value with its unit.
    pub(crate) fn render(&self, metrics: &Value) -> Markup {
        let unit = match self.kind {
            "percent" => Unit::Percent,
            "ratio" => Unit::Ratio,
            "amount" => Unit::PerShare(str_of(&metrics["currency"])),
            "years" => Unit::Years,
            "date" => Unit::Date,
            _ => Unit::Plain,
        };
        render_value(&metrics[self.name], unit)
    }
}

/// Renders all figures. If `has_explanations` is true, each has a link to its explanation.
pub(crate) fn render_figures(symbol: &str, metrics: &Value, has_explanations: bool) -> Markup {
    html! {
        div.columns {
            @for figures in FIGURES.chunk_by(|one, next| one.group == next.group) {
                div {
                    h3 { (figures[0].group) }
                    dl {
                        @for figure in figures {
                            div { dt { (figure.title) } dd id=(figure.name) { (figure.render(metrics)) span.label { @if has_explanations { " " (why_link(symbol, figure)) } " " (method_link(figure)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Link to the explanation of a figure.
fn why_link(symbol: &str, figure: &Figure) -> Markup {
    html! { a.why href={ "/s/" (encode(symbol)) "/why/" (figure.name) } rel="nofollow" { "why" span.unseen { ": " (figure.title) } } }
}

/// Link to the rule of a figure.
fn method_link(figure: &Figure) -> Markup {
    html! { a.method href={ "/methods/" (figure.rule) } { (figure.rule) span.unseen { ": method of " (figure.title) } } }
}

pub(crate) async fn show_explanation(
    reader: MarketReader,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    let result = async {
        let Path((symbol, figure)) = path?;
        let unknown = || MarketError::not_found("No figure has this name");
        let figure = Figure::find(&figure).ok_or_else(unknown)?;
        let target = format!("/s/{}/why/{}", encode(&symbol), figure.name);
        Ok(reader.respond(target, |calls| explain(calls, &symbol, figure)).await)
    }
    .await;
    reader.respond_with(result)
}

async fn explain(calls: ApiCalls, symbol: &str, figure: &'static Figure) -> MarketResult<PageContent> {
    let Figure { name, title, .. } = figure;
    let call = format!("/v1/stocks/{}/metrics?explain=true&fields={name}", encode(symbol));
    let metrics = calls.json(&format!("/v1/stocks/{}/metrics", encode(symbol))).await;
    let metrics = metrics.map_err(|error| error.for_symbol(symbol))?;
    let explained = match calls.json(&call).await {
        Ok(mut answer) => Some(answer["data"]["explanation"].take()),
        Err(MarketError::NotInPlan(_)) => None,
        Err(error) => return Err(error),
    };
    let canonical = str_of(&metrics["data"]["symbol"]);
    if canonical != symbol {
        return Err(MarketError::Redirect(format!("/s/{}/why/{name}", encode(canonical))));
    }
    let derivation = explained.as_ref().map(|explanation| derivation(&metrics["data"], explanation));
    let body = html! {
        p { a href={ "/s/" (encode(symbol)) } { "← " (symbol) } }
        h1 { (title) " of " (symbol) }
        p.figure { strong { (figure.render(&metrics["data"])) } }
        @match derivation {
            Some(body) => (Block { id: "why", title: "How this figure is computed", call: &call, csv: "", body }.render()),
            None => p.hint { "The rule is " (rule_link(figure.rule)) ". " "The formula and the rows behind this figure are part of a " a href="/plans" { "higher plan" } "." },
        }
    };
    Ok(PageContent {
        title: format!("{title} of {symbol}"),
        description: String::new(),
        canonical: String::new(),
        section: Section::Security,
        body,
    })
}

fn derivation(metrics: &Value, explanation: &Value) -> Markup {
    let entry = &explanation["metrics"][0];
    let (years, older) = (rows_of(&entry["years"]), entry["older_years"].as_i64().unwrap_or_default());
    let newest_first = |rows: &Value| rows_of(rows).iter().rev().cloned().collect::<Vec<Value>>();
    let (used, unused) = (newest_first(&entry["observations"]), newest_first(&explanation["unused"]));
    html! {
        @if !years.is_empty() { (render_years(years, older, str_of(&metrics["currency"]))) }
        @if entry.is_null() { p { "This figure is read from a feed and needs no rule." } } @else {
            dl {
                div { dt { "Rule" } dd { (rule_link(str_of(&entry["rule"]))) } }
                div { dt { "Formula" } dd.formula { (str_of(&entry["formula"])) } }
                div { dt { "Rounding" } dd { (str_of(&entry["rounding"])) } }
                div { dt { "As of" } dd { (render_value(&explanation["as_of"], Unit::Date)) } }
                div { dt { "Method" } dd { (str_of(&explanation["method_version"])) } }
            }
            @if !used.is_empty() { h3 { "Rows behind this figure" } (render_folded(&used, "earlier rows", rows)) }
            @if let Some(older) = entry["older_observations"].as_i64().filter(|older| *older > 0) {
                p.hint { (older) " older rows are not listed; a plan with a longer history lists them." }
            }
            @if !unused.is_empty() { h3 { "Rows that are not used" } (render_folded(&unused, "earlier rows", rows)) }
        }
    }
}

/// Chart and table of the dividend years from which a figure was computed. `older` is the number of counted years that
/// are not listed.
fn render_years(years: &[Value], older: i64, currency: &str) -> Markup {
    let bars: Vec<Bar> = years.iter().map(|year| year_bar(year, "total", year["counted"] == true)).collect();
    let newest_first: Vec<Value> = years.iter().rev().cloned().collect();
    html! {
        (render_year_bars(["Counted", "Not counted"], currency, &bars))
        (render_folded(&newest_first, "earlier years", |years| year_table(years, currency)))
        @if older > 0 { p.hint { (older) " more years count. They are not listed, because an operator entered them or because they are before the history of the plan." } }
    }
}

fn year_table(years: &[Value], currency: &str) -> Markup {
    html! {
        (stacked_table("Table: years behind the figure", &[Text("Year"), Number("Dividends a share"), Number("Change"), Text("Counted")], html! {
            @for year in years {
                tr {
                    th scope="row" { (year["year"]) }
                    td.number { (render_value(&year["total"], Unit::PerShare(currency))) }
                    td.number { (change(&year["change_percent"])) }
                    td data-label="Counted" { @if year["counted"] == true { "yes" } @else { "no" (reason_not_counted(&year["status"])) } }
                }
            }
        }))
    }
}

/// Reason why a year is not counted.
fn reason_not_counted(status: &Value) -> &'static str {
    match str_of(status).parse() {
        Ok(YearStatus::Flat) => ": equal to the year before",
        Ok(YearStatus::Lower) => ": not above the year before",
        Ok(YearStatus::SpinOff) => ": a spin-off, and not above the year before",
        Ok(YearStatus::Unknown) => ": an amount is unknown",
        Ok(YearStatus::First) => ": no complete year is known before it",
        Ok(YearStatus::Running) => ": the year is not over",
        Ok(YearStatus::Increased) | Err(_) => "",
    }
}

/// Table of the data rows from which a figure was computed, for example the dividends of a year. Each data row is shown
/// with the feed, the file and the line from which it was read.
fn rows(observations: &[Value]) -> Markup {
    html! {
        (stacked_rows("Table: rows behind the figure", observations, &[
            (Text("Row"), &|row| html! { (humanize(str_of(&row["kind"]))) }),
            (Text("Date"), &|row| render_value(&row["date"], Unit::Date)),
            (Number("Value"), &|row| render_value(&row["amount"], Unit::PerShare(str_of(&row["currency"])))),
            (Words("Use"), &|row| html! { (humanize(str_of(&row["outcome"]))) @if !str_of(&row["reason"]).is_empty() { ": " (str_of(&row["reason"])) } }),
            (Text("Feed and line"), &|row| html! { code { (str_of(&row["source"])) } @if !str_of(&row["file"]).is_empty() { ", " (str_of(&row["file"])) } @if row["line"].as_i64().is_some_and(|line| line > 0) { ", line " (row["line"]) } }),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_figure_of_a_known_kind() {
        assert_eq!(FIGURES.len(), TABLE.lines().count());
        for figure in FIGURES.iter() {
            assert!(
                ["percent", "amount", "ratio", "years", "date", "plain"].contains(&figure.kind),
                "{figure:?}"
            );
        }
    }
}
