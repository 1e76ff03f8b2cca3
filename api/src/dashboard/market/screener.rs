//! `/screener`: securities of a preset, with filters, order and CSV file.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use super::block::{Block, Choice, ListOption, SortHeading, render_choices, render_select};
use super::reader::{MarketReader, PageContent};
use super::values::{
    Unit, country_name, describe_flag, exchange_name, humanize, render_value, rows_of, str_of,
};
use crate::dashboard::form::Form;
use crate::dashboard::view::format_count;
use crate::dashboard::view::layout::{Section, error_message, list_table, to_sentence};

pub(crate) async fn show_screener(reader: MarketReader) -> Response {
    let choice = ScreenChoice::read(&reader.parameters());
    reader.respond(choice.address(), |calls| build(calls, choice.clone())).await
}

/// Responds with the rows of the page as CSV.
pub(crate) async fn show_csv(reader: MarketReader) -> Response {
    let choice = ScreenChoice::read(&reader.parameters());
    reader.respond_csv(&choice.call(), "screener.csv", "the filters cannot be read").await
}

async fn build(calls: ApiCalls, choice: ScreenChoice) -> MarketResult<PageContent> {
    let call = choice.call();
    let facets = LISTS.map(|(name, ..)| name).join(",");
    let (answer, mistake) = match calls.json(&format!("{call}&facets={facets}")).await {
        Ok(answer) => (answer, None),
        Err(MarketError::Refused(mistake)) => (serde_json::Value::Null, Some(to_sentence(&mistake))),
        Err(error) => return Err(error),
    };
    let sectors = calls.json("/v1/sectors?fields=currency").await?;
    let currency = str_of(&sectors["data"][0]["currency"]);
    let (rows, meta) = (rows_of(&answer["data"]), &answer["meta"]);
    let csv = choice.address().replacen("/screener?", "/screener.csv?", 1);
    let next = str_of(&meta["next_cursor"]);
    let heading =
        |heading: SortHeading<'_>| heading.render(choice.order(), |sort| choice.sorted_by(sort).address());
    let found = html! {
        @if rows.is_empty() { p { "No security passes all filters." } }
        @else { (render_table(rows, true, currency, heading)) }
        @if !next.is_empty() { p { a.button.second.small href=(choice.at(next).address()) { "Next page" } } }
    };
    let title = format_count(meta["total"].as_i64().unwrap_or_default(), "security", "securities");
    let body = html! {
        h1 { "Screener" }
        (presets(&choice))
        (error_message(mistake.as_deref()))
        (chips(&choice))
        (filters(&choice, &meta["facets"], currency, mistake.is_some()))
        @if mistake.is_none() { (Block { id: "found", title: &title, call: &call, csv: &csv, body: found }.render()) }
    };
    Ok(PageContent {
        title: "Dividend screener".to_owned(),
        description: "Stocks and funds by dividend yield, growth, payout and years of raises.".to_owned(),
        canonical: "/screener".to_owned(),
        section: Section::Screener,
        body,
    })
}

fn presets(choice: &ScreenChoice) -> Markup {
    let presets = PRESETS.map(|(preset, title, _)| {
        Choice::of_every_plan(title, choice.of_preset(preset).address(), preset == choice.preset)
    });
    render_choices("Presets", &presets)
}

/// Renders the filters that are set, each with a link that removes it.
fn chips(choice: &ScreenChoice) -> Markup {
    html! {
        @if !choice.filters.is_empty() {
            nav.picks aria-label="Filters that are set" {
                @for (name, value) in &choice.filters {
                    @let label = filters_of_page().find(|(known, ..)| known == name).map_or("", |(.., label)| label);
                    a href=(choice.without(name).address()) rel="nofollow" {
                        span.unseen { "Remove " } (label) " " (option_text(name, value)) " " span aria-hidden="true" { "×" }
                    }
                }
                a href=(format!("/screener?preset={}", choice.preset)) { "Clear all" }
            }
        }
    }
}

/// Renders the form with all filters. `facets` has the number of securities by value of each list.
/// Market values are in `currency`.
fn filters(choice: &ScreenChoice, facets: &Value, currency: &str, is_open: bool) -> Markup {
    html! {
        details open[is_open] { summary { "Filters" }
            form action="/screener" method="get" {
                input type="hidden" name="preset" value=(choice.preset);
                input type="hidden" name="sort" value=(choice.sort);
                div.fields {
                    @for (name, title, _) in LISTS { (render_select(name, title, choice.filter(name), "All", &options(name, &facets[name]))) }
                    @for (name, title, _) in NUMBERS {
                        div.field { label for=(name) { (title) @if name == "min_market_cap" && !currency.is_empty() { ", " (currency) } } input id=(name) name=(name) inputmode="decimal" value=(choice.filter(name)); }
                    }
                }
                p.actions { button.small type="submit" { "Show" } a.button.small.second href="/screener" { "Clear" } }
            }
        }
    }
}

/// Options of a list, in the order of their texts. `counts` has the number of securities by value.
fn options(name: &str, counts: &Value) -> Vec<ListOption> {
    let counts = counts.as_object().into_iter().flatten();
    let text = |value: &str, count: &Value| format!("{} ({count})", option_text(name, value));
    let mut options: Vec<ListOption> =
        counts.map(|(value, count)| (value.clone(), text(value, count))).collect();
    options.sort_by(|(_, a), (_, b)| a.cmp(b));
    options
}

/// Text of a filter's value for readers.
fn option_text(name: &str, value: &str) -> String {
    match name {
        "country" => country_name(value).to_owned(),
        "exchange" => exchange_name(value).to_owned(),
        "type" => humanize(value),
        _ => value.to_owned(),
    }
}

/// Columns that show a figure, each with its JSON field, a title, a label for narrow screens and a unit. Narrow screens
/// omit a column without a label. An empty label shows the value alone.
const COLUMNS: [(&str, &str, Option<&str>, Unit<'static>); 7] = [
    ("dividend_yield", "Yield", Some(""), Unit::Percent),
    ("price", "Price", Some(""), Unit::Money("")),
    ("payout_ratio", "Payout", Some("Payout"), Unit::Percent),
    ("growth_5y", "Growth, 5 y", None, Unit::Percent),
    ("increase_streak_years", "Streak, years", Some("Streak"), Unit::Plain),
    ("pe_ratio", "P/E", None, Unit::Ratio),
    ("market_cap", "Market value", Some("Cap"), Unit::Large("")),
];

/// Renders the rows. `currency` is the currency of the market values; `heading` renders the header cell of a column.
pub(crate) fn render_table(
    rows: &[Value],
    has_sector: bool,
    currency: &str,
    heading: impl Fn(SortHeading<'_>) -> Markup,
) -> Markup {
    let head = html! {
        (heading(SortHeading { field: "symbol", title: "Security", is_number: false }))
        @if has_sector { th scope="col" { "Sector" } }
        @for (field, title, ..) in COLUMNS { (heading(SortHeading { field, title, is_number: true })) }
    };
    html! {
        (list_table("Table: securities", &head, html! { @for row in rows { (render_row(row, has_sector)) } }))
        @if !currency.is_empty() { p.hint { "Market values are in " (currency) "." } }
    }
}

fn render_row(row: &Value, has_sector: bool) -> Markup {
    let symbol = str_of(&row["symbol"]);
    let name = str_of(&row["name"]);
    html! {
        tr {
            th.name scope="row" title=(name) { a href={ "/s/" (encode(symbol)) } { (symbol) } " " span.muted { (name) } }
            @if has_sector { td.minor { (str_of(&row["sector"])) } }
            @for (field, _, label, unit) in COLUMNS {
                // Lists are sorted by the market capitalisation in the reporting currency.
                @let shown = if field == "market_cap" { "reporting_market_cap" } else { field };
                td.number.key[field == "dividend_yield"].minor[label.is_none()] data-label=[label] {
                    @if field == "dividend_yield" && row["yield_suspect"] == true { span.tag.suspect title=(describe_flag("yield_suspect")) { "suspect" } " " }
                    (render_value(&row[shown], if field == "price" { Unit::Money(str_of(&row["currency"])) } else { unit }))
                }
            }
        }
    }
}

/// Presets, each with the value of the parameter `preset`, a title, and the path of the API endpoint.
const PRESETS: [(&str, &str, &str); 5] = [
    ("all", "All", "/v1/screener"),
    ("high-yield", "High yield", "/v1/screener/high-yield"),
    ("growth", "Dividend growth", "/v1/screener/dividend-growth"),
    ("aristocrats", "Aristocrats", "/v1/screener/dividend-aristocrats"),
    ("kings", "Kings", "/v1/screener/dividend-kings"),
];
/// Filters with a list of values: parameter name, title, and label before a chosen value. A parameter has the same name
/// on the page and in the API.
const LISTS: [(&str, &str, &str); 5] = [
    ("sector", "Sector", ""),
    ("country", "Country", ""),
    ("type", "Type", ""),
    ("index", "Index", ""),
    ("exchange", "Exchange", ""),
];
/// Filters with a number, like [`LISTS`].
const NUMBERS: [(&str, &str, &str); 8] = [
    ("min_yield", "Minimum yield, %", "Yield ≥"),
    ("max_yield", "Maximum yield, %", "Yield ≤"),
    ("max_payout_ratio", "Maximum payout ratio, %", "Payout ≤"),
    ("min_growth_5y", "Minimum growth a year over 5 years, %", "Growth ≥"),
    ("min_streak", "Minimum years of increases", "Streak ≥"),
    ("min_market_cap", "Minimum market value", "Market value ≥"),
    ("max_pe", "Maximum price-earnings ratio", "P/E ≤"),
    ("max_beta", "Maximum beta", "Beta ≤"),
];

fn filters_of_page() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    LISTS.into_iter().chain(NUMBERS)
}

/// Default order: highest yield first. Suspect yields, which are mostly errors, are last.
const DEFAULT_ORDER: &str = "yield_suspect.asc,dividend_yield.desc";
/// Number of rows per page.
const ROWS: u32 = 50;
/// Maximum length of a parameter's value, in characters.
const LONGEST: usize = 200;

/// Choices of a screener page.
#[derive(Debug, Clone)]
pub(crate) struct ScreenChoice {
    pub(crate) preset: &'static str,
    /// Filters that are set, as pairs of parameter name and value.
    pub(crate) filters: Vec<(&'static str, String)>,
    /// Value of the API's parameter `sort`; empty for the default order.
    pub(crate) sort: String,
    /// Cursor of the page; empty for the first page.
    cursor: String,
}

impl ScreenChoice {
    pub(crate) fn read(parameters: &Form) -> Self {
        let preset =
            PRESETS.iter().find(|(name, ..)| *name == parameters.text("preset")).unwrap_or(&PRESETS[0]);
        let value =
            |name: &str, most: usize| -> String { parameters.text(name).chars().take(most).collect() };
        let filters = filters_of_page().map(|(name, ..)| (name, value(name, LONGEST)));
        Self {
            preset: preset.0,
            filters: filters.filter(|(_, value)| !value.is_empty()).collect(),
            sort: value("sort", LONGEST),
            cursor: value("cursor", 4_096),
        }
    }

    /// Value of a filter; empty if it is not set.
    pub(crate) fn filter(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The same choices on the first page without a filter.
    fn without(&self, name: &str) -> Self {
        let filters = self.filters.iter().filter(|(known, _)| *known != name).cloned().collect();
        Self { filters, cursor: String::new(), ..self.clone() }
    }

    /// The same filters and order on the first page of another preset.
    fn of_preset(&self, preset: &'static str) -> Self {
        Self { preset, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the first page in the order `sort`.
    fn sorted_by(&self, sort: String) -> Self {
        Self { sort, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the page that begins at a cursor.
    pub(crate) fn at(&self, cursor: &str) -> Self {
        Self { cursor: cursor.to_owned(), ..self.clone() }
    }

    /// Order of the rows, a value of the API's parameter `sort`.
    fn order(&self) -> &str {
        if self.sort.is_empty() { DEFAULT_ORDER } else { &self.sort }
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        format!("/screener?preset={}{}", self.preset, self.query(&self.sort))
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let path = PRESETS.iter().find(|(name, ..)| *name == self.preset).map_or("", |(.., path)| *path);
        format!("{path}?limit={ROWS}{}", self.query(self.order()))
    }

    fn query(&self, sort: &str) -> String {
        let rest = [("sort", sort), ("cursor", &self.cursor)];
        let filters = self.filters.iter().map(|(name, value)| (*name, value.as_str()));
        let set = filters.chain(rest).filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| format!("&{name}={}", encode(value))).collect()
    }
}
