//! List of securities that a search finds.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value, str_of};
use crate::dashboard::view::table::{Number, Text, stacked_table};

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
