//! Description of a security's flags and quarantined rows in plain words. A quarantined row is suspect, so no figure
//! uses it.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::flag_words::describe_flag;
use crate::dashboard::market::values::{Unit, render_value, rows_of, str_of};
use crate::dashboard::view::table::{Text, stacked_table};

/// Renders the flags and the quarantined rows of the metrics.
pub(crate) fn render_quality(metrics: &Value) -> Markup {
    let flags = rows_of(&metrics["flags"]);
    let rows = rows_of(&metrics["quarantined"]);
    html! {
        @if flags.is_empty() && rows.is_empty() { p { "Nothing is unusual in the rows behind these figures." } }
        @if !flags.is_empty() {
            dl.words { @for flag in flags { div { dt { code { (str_of(flag)) } } dd { (describe_flag(str_of(flag))) } } } }
        }
        @if !rows.is_empty() {
            h3 { "Rows that no figure uses" }
            (stacked_table("Table: quarantined rows", &[Text("Row"), Text("Date"), Text("Reason"), Text("Feed and line")], html! {
                @for row in rows {
                    tr {
                        th scope="row" { (str_of(&row["kind"])) }
                        td data-label="Date" { (render_value(&row["date"], Unit::Date)) }
                        td.words data-label="Reason" { (str_of(&row["message"])) }
                        td data-label="Feed and line" { code { (str_of(&row["source"])) } @if row["line"].as_i64().is_some_and(|line| line > 0) { ", line " (row["line"]) } }
                    }
                }
            }))
        }
    }
}
