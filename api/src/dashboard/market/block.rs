//! Elements of market pages: blocks, choices that are shown as links, lists of choices, headings that sort, and the list
//! of securities that a search finds.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, exchange_name, render_value, str_of};
use crate::dashboard::view::layout::list_table;

/// Block of a market page.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    /// Id of the heading, unique on the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// Path and query of the API call that returns the rows.
    pub(crate) call: &'a str,
    /// Path of a CSV file with the same rows; empty if the block has no CSV file.
    pub(crate) csv: &'a str,
    pub(crate) body: Markup,
}

impl Block<'_> {
    pub(crate) fn render(&self) -> Markup {
        html! {
            section.panel.block aria-labelledby=(self.id) {
                h2 id=(self.id) { (self.title) }
                (self.body)
                div.source {
                    @if !self.csv.is_empty() { a href=(self.csv) { "CSV" span.unseen { " of " (self.title) } } }
                    details { summary { "API" span.unseen { " call of " (self.title) } } code { "GET " (self.call) } }
                }
            }
        }
    }
}

/// Renders choices as links, and marks the current choice.
pub(crate) fn render_choices(label: &str, choices: &[Choice<'_>]) -> Markup {
    html! {
        nav.picks aria-label=(label) {
            @for choice in choices {
                @match &choice.address {
                    Some(address) => a href=(address) aria-current=[choice.is_current.then_some("true")] { (choice.title) },
                    None => span.muted title=(choice.hint) { (choice.title) },
                }
            }
        }
    }
}

/// One of several choices that are shown as links, for example a time range or a preset.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) title: &'a str,
    /// Path of the page with this choice; `None` if the reader's plan excludes the choice.
    pub(crate) address: Option<String>,
    pub(crate) is_current: bool,
    /// Reason why the choice is excluded, shown as a tooltip.
    pub(crate) hint: &'a str,
}

impl<'a> Choice<'a> {
    /// Choice that every plan includes.
    pub(crate) fn of_every_plan(title: &'a str, address: String, is_current: bool) -> Self {
        Self { title, address: Some(address), is_current, hint: "" }
    }
}

/// Renders links to listings, each with its market and currency.
pub(crate) fn render_listings(listings: &[Value]) -> Markup {
    html! {
        ul {
            @for listing in listings {
                @let symbol = str_of(&listing["symbol"]);
                li {
                    a href={ "/s/" (encode(symbol)) } { (symbol) }
                    @if let Some(mic) = listing["exchange"].as_str() { " · " abbr title=(mic) { (exchange_name(mic)) } }
                    @if let Some(currency) = listing["currency"].as_str() { " · " (currency) }
                }
            }
        }
    }
}

/// Option of a list: its value, and the text that the reader sees.
pub(crate) type ListOption = (String, String);

/// Renders a list of which one option can be chosen. The first option has the text `default` and an empty value. A chosen
/// value that is not an option is added.
pub(crate) fn render_select(
    name: &str,
    title: &str,
    chosen: &str,
    default: &str,
    options: &[ListOption],
) -> Markup {
    let is_known = chosen.is_empty() || options.iter().any(|(value, _)| value == chosen);
    html! {
        div.field {
            label for=(name) { (title) }
            select id=(name) name=(name) {
                option value="" { (default) }
                @if !is_known { option value=(chosen) selected { (chosen) } }
                @for (value, text) in options { option value=(value) selected[value == chosen] { (text) } }
            }
        }
    }
}

/// Currencies that a reader can choose from a list. A link may have any other currency.
const CURRENCIES: [&str; 10] = ["USD", "EUR", "JPY", "GBP", "CNY", "AUD", "CAD", "CHF", "HKD", "SGD"];
/// Maximum length of the parameter `currency`, in characters. The API rejects a text that is not a currency.
const LONGEST_CURRENCY: usize = 16;

/// Currency in the text of the parameter `currency`; empty if the amounts are shown as declared.
pub(crate) fn read_currency(text: &str) -> String {
    text.trim().to_uppercase().chars().take(LONGEST_CURRENCY).collect()
}

/// Renders the list of currencies to which amounts can be converted.
pub(crate) fn render_currencies(chosen: &str) -> Markup {
    let options = CURRENCIES.map(|code| (code.to_owned(), code.to_owned()));
    render_select("currency", "Currency", chosen, "As declared", &options)
}

/// Heading of a column by which a list can be sorted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortHeading<'a> {
    /// Field of the API, which is also a key of its parameter `sort`.
    pub(crate) field: &'a str,
    pub(crate) title: &'a str,
    pub(crate) is_number: bool,
}

impl SortHeading<'_> {
    /// Direction of the field in `sort`, a value of the API's parameter.
    fn direction<'s>(&self, sort: &'s str) -> Option<&'s str> {
        sort.split(',').find_map(|key| key.strip_prefix(self.field)?.strip_prefix('.'))
    }

    /// Renders the heading as a link that sorts by the column, or reverses the order of the column by which the list is
    /// sorted. Numbers begin with the largest. `address` is the path of the page in another order.
    pub(crate) fn render(&self, sort: &str, address: impl Fn(String) -> String) -> Markup {
        self.render_control(sort, |next, text| html! { a href=(address(next)) rel="nofollow" { (text) } })
    }

    /// Renders the heading like [`Self::render`], as a button that sends the form with the id `form` and the new order.
    pub(crate) fn render_button(&self, sort: &str, form: &str) -> Markup {
        let button =
            |next, text| html! { button.quiet type="submit" form=(form) name="sort" value=(next) { (text) } };
        self.render_control(sort, button)
    }

    fn render_control(&self, sort: &str, control: impl Fn(String, Markup) -> Markup) -> Markup {
        let direction = self.direction(sort);
        let (state, arrow) = match direction {
            Some("desc") => (Some("descending"), " ↓"),
            Some(_) => (Some("ascending"), " ↑"),
            None => (None, ""),
        };
        let is_descending = direction.map_or(self.is_number, |direction| direction == "asc");
        let next = format!("{}.{}", self.field, if is_descending { "desc" } else { "asc" });
        html! {
            th.number[self.is_number] scope="col" aria-sort=[state] {
                (control(next, html! { (self.title) span aria-hidden="true" { (arrow) } }))
            }
        }
    }
}

/// Renders the rows of `/v1/search`.
pub(crate) fn render_results(rows: &[&Value]) -> Markup {
    let head = html! {
        @for title in ["Security", "Exchange", "Sector"] { th scope="col" { (title) } }
        th.number scope="col" { "Yield" }
    };
    let rows = html! {
        @for row in rows {
            tr {
                th.name scope="row" title=(str_of(&row["name"])) {
                    a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } " "
                    @if row["is_active"] == false { span.tag.off { "delisted" } " " }
                    span.muted { (str_of(&row["name"])) }
                }
                td { (exchange_name(str_of(&row["exchange"]))) }
                td { (str_of(&row["sector"])) }
                td.number.key { (render_value(&row["dividend_yield"], Unit::Percent)) }
            }
        }
    };
    list_table("Table: securities", &head, rows)
}
