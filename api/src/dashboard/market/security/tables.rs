//! Tables of a security: splits, holdings of a fund, and funds that hold it.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, humanize, render_value, str_of};
use crate::dashboard::view::table::{Number, Text, data_table, stacked_table};

/// Splits, newest first.
pub(crate) fn splits_table(rows: &[Value]) -> Markup {
    html! {
        (data_table("Table: splits", &[Text("First day"), Text("Ratio"), Text("Type"), Text("Status")], html! {
            @for row in rows {
                tr { th scope="row" { (render_value(&row["ex_date"], Unit::Date)) } td { (str_of(&row["text"])) } td { (humanize(str_of(&row["type"]))) } td { (str_of(&row["status"])) } }
            }
        }))
    }
}

/// Holdings of a fund, largest first.
pub(crate) fn holdings_table(rows: &[Value]) -> Markup {
    html! {
        (data_table("Table: holdings", &[Text("Symbol"), Text("Name"), Number("Weight")], html! {
            @for row in rows {
                tr {
                    th scope="row" { @if str_of(&row["symbol"]).is_empty() { "–" } @else { a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } } }
                    td { (str_of(&row["name"])) }
                    td.number { (render_value(&row["weight"], Unit::Percent)) }
                }
            }
        }))
    }
}

/// Funds that hold a security, largest weight first.
pub(crate) fn holders_table(rows: &[Value]) -> Markup {
    html! {
        (stacked_table("Table: funds that hold it", &[Text("Fund"), Text("Name"), Number("Weight"), Text("Snapshot")], html! {
            @for row in rows {
                tr {
                    th scope="row" { a href={ "/s/" (encode(str_of(&row["etf_symbol"]))) } { (str_of(&row["etf_symbol"])) } }
                    td data-label="Name" { (str_of(&row["etf_name"])) }
                    td.number data-label="Weight" { (render_value(&row["weight"], Unit::Percent)) }
                    td data-label="Snapshot" { (render_value(&row["as_of"], Unit::Date)) }
                }
            }
        }))
    }
}
