//! Elements of market pages: blocks, choices that are shown as links, and the list of securities that a search finds.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value, str_of};
use crate::dashboard::view::layout::{Number, Text, stacked_table};

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
                p.source {
                    code { "GET " (self.call) }
                    @if !self.csv.is_empty() { a href=(self.csv) { "CSV" span.unseen { " of " (self.title) } } }
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
                    @for field in ["exchange", "currency"] {
                        @if let Some(word) = listing[field].as_str() { " · " (word) }
                    }
                }
            }
        }
    }
}

/// Renders the rows of `/v1/search`.
pub(crate) fn render_results(rows: &[Value]) -> Markup {
    html! {
        (stacked_table("Table: securities", &[Text("Symbol"), Text("Name"), Text("Exchange"), Text("Sector"), Number("Yield")], html! {
            @for row in rows {
                tr {
                    th scope="row" { a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } }
                    td data-label="Name" { (str_of(&row["name"])) @if row["is_active"] == false { " " span.tag.off { "delisted" } } }
                    td data-label="Exchange" { (str_of(&row["exchange"])) }
                    td data-label="Sector" { (str_of(&row["sector"])) }
                    td.number data-label="Yield" { (render_value(&row["dividend_yield"], Unit::Percent)) }
                }
            }
        }))
    }
}
