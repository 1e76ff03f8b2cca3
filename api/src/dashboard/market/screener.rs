//! `/screener`: securities of a preset, with filters, order and CSV file.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult, encode};
use crate::dashboard::market::block::{Block, Choice, render_choices};
use crate::dashboard::market::page::PageContent;
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::market::values::{Unit, render_value, rows_of, str_of};
use crate::dashboard::view::layout::{Section, error_message, to_sentence};

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
    let (answer, mistake) = match calls.json(&call).await {
        Ok(answer) => (answer, None),
        Err(MarketError::Refused(mistake)) => (serde_json::Value::Null, Some(to_sentence(&mistake))),
        Err(error) => return Err(error),
    };
    let rows = rows_of(&answer["data"]);
    let csv = choice.address().replacen("/screener?", "/screener.csv?", 1);
    let next = str_of(&answer["meta"]["next_cursor"]);
    let found = html! {
        @if rows.is_empty() { p { "No security passes all filters." } }
        @else { (render_table(rows, |field, title| sort_link(&choice, field, title))) }
        @if !next.is_empty() { p { a.button.second.small href=(choice.at(next).address()) { "Next page" } } }
    };
    let body = html! {
        h1 { "Screener" }
        (presets(&choice))
        (error_message(mistake.as_deref()))
        (filters(&choice))
        @if mistake.is_none() { (Block { id: "found", title: "Securities", call: &call, csv: &csv, body: found }.render()) }
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

fn filters(choice: &ScreenChoice) -> Markup {
    html! {
        details open[!choice.filters.is_empty()] { summary { "Filter" }
            form action="/screener" method="get" {
                input type="hidden" name="preset" value=(choice.preset);
                div.fields {
                    @for (name, title) in FILTERS {
                        div.field { label for=(name) { (title) } input id=(name) name=(name) value=(choice.filter(name)); }
                    }
                }
                p.actions { button.small type="submit" { "Show" } a.button.small.second href="/screener" { "Clear" } }
            }
        }
    }
}

/// Renders a column title as a link that sorts by the column. The first click sorts in descending order, the next one
/// in ascending order.
fn sort_link(choice: &ScreenChoice, field: &str, title: &str) -> Markup {
    let descending = format!("{field}.desc");
    let is_descending = choice.sort == descending;
    let sort = if is_descending { format!("{field}.asc") } else { descending };
    html! {
        a href=(choice.sorted_by(sort).address()) rel="nofollow" { (title) }
        @if is_descending { " ↓" } @else if choice.sort == format!("{field}.asc") { " ↑" }
    }
}

/// Columns that show a figure, each with its JSON field, a title and a unit.
const COLUMNS: [(&str, &str, Unit<'static>); 6] = [
    ("dividend_yield", "Yield", Unit::Percent),
    ("payout_ratio", "Payout", Unit::Percent),
    ("growth_5y", "Growth, 5 y", Unit::Percent),
    ("increase_streak_years", "Streak, years", Unit::Plain),
    ("pe_ratio", "P/E", Unit::Ratio),
    ("market_cap", "Market value", Unit::Large),
];

/// Renders the rows. `heading` renders the header cell of a column. Its arguments are the JSON field and the title.
pub(crate) fn render_table(rows: &[Value], heading: impl Fn(&str, &str) -> Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table: securities" {
            table.stack {
                thead { tr { th scope="col" { (heading("symbol", "Security")) } th.number scope="col" { "Price" } @for (field, title, _) in COLUMNS { th.number scope="col" { (heading(field, title)) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } " " span.muted { (str_of(&row["name"])) @if !str_of(&row["sector"]).is_empty() { " · " (str_of(&row["sector"])) } } }
                            td.number data-label="Price" { (render_value(&row["price"], Unit::Money(str_of(&row["currency"])))) }
                            @for (field, title, unit) in COLUMNS { td.number data-label=(title) { (render_value(&row[field], unit)) } }
                        }
                    }
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
/// Filters, each with its parameter name and a title. The parameter has the same name on the page and in the API.
pub(crate) const FILTERS: [(&str, &str); 12] = [
    ("min_yield", "Minimum yield, %"),
    ("max_yield", "Maximum yield, %"),
    ("max_payout_ratio", "Maximum payout ratio, %"),
    ("min_growth_5y", "Minimum growth a year over 5 years, %"),
    ("min_streak", "Minimum years of increases"),
    ("min_market_cap", "Minimum market value"),
    ("max_pe", "Maximum price-earnings ratio"),
    ("max_beta", "Maximum beta"),
    ("sector", "Sector"),
    ("country", "Country"),
    ("type", "Type"),
    ("index", "Index"),
];
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
        let filters = FILTERS.into_iter().map(|(name, _)| (name, value(name, LONGEST)));
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

    /// The same filters and order on the first page of another preset.
    pub(crate) fn of_preset(&self, preset: &'static str) -> Self {
        Self { preset, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the first page in the order `sort`.
    pub(crate) fn sorted_by(&self, sort: String) -> Self {
        Self { sort, cursor: String::new(), ..self.clone() }
    }

    /// The same choices on the page that begins at a cursor.
    pub(crate) fn at(&self, cursor: &str) -> Self {
        Self { cursor: cursor.to_owned(), ..self.clone() }
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        format!("/screener?preset={}{}", self.preset, self.query())
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let path = PRESETS.iter().find(|(name, ..)| *name == self.preset).map_or("", |(.., path)| *path);
        format!("{path}?limit={ROWS}{}", self.query())
    }

    fn query(&self) -> String {
        let rest = [("sort", &self.sort), ("cursor", &self.cursor)];
        let filters = self.filters.iter().map(|(name, value)| (*name, value));
        let set = filters.chain(rest).filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| format!("&{name}={}", encode(value))).collect()
    }
}
