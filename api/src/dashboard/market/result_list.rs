//! List of securities that a search finds.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, show, text};
use crate::dashboard::view::table::{Number, Text, stacked_table};

/// Renders the rows of `/v1/search`.
pub(crate) fn render_results(rows: &[Value]) -> Markup {
    html! {
        (stacked_table("Table: securities", &[Text("Symbol"), Text("Name"), Text("Exchange"), Text("Sector"), Number("Yield")], html! {
            @for row in rows {
                tr {
                    th scope="row" { a href={ "/s/" (encode(text(&row["symbol"]))) } { (text(&row["symbol"])) } }
                    td data-label="Name" { (text(&row["name"])) @if row["is_active"] == false { " " span.tag.off { "delisted" } } }
                    td data-label="Exchange" { (text(&row["exchange"])) }
                    td data-label="Sector" { (text(&row["sector"])) }
                    td.number data-label="Yield" { (show(&row["dividend_yield"], Unit::Percent)) }
                }
            }
        }))
    }
}
