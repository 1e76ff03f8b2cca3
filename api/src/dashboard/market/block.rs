//! Block of a market page: title, rows, API call and CSV link.

use axum::response::Response;
use maud::{Markup, html};

use crate::dashboard::market::api_calls::{MarketError, with_parameter};
use crate::dashboard::market::page::as_file;
use crate::dashboard::market::reader::MarketReader;

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

impl MarketReader {
    /// Responds with the rows of an API call as a CSV file. `refusal` is the message if the API refuses the call.
    pub(crate) async fn respond_csv(&self, call: &str, file: &str, refusal: &str) -> Response {
        match self.calls().respond(&with_parameter(call, "format=csv")).await {
            Ok(response) if response.status().is_success() => as_file(response, file),
            Ok(_) => self.respond_error(MarketError::Refused(refusal.to_owned())).await,
            Err(error) => self.respond_error(error).await,
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
