//! Tables of a security: splits, holdings of a fund, and funds that hold it.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, plain, show, text};
use crate::dashboard::view::table::{Number, Text, data_table, stacked_table};

/// Splits, newest first.
pub(crate) fn splits_table(rows: &[Value]) -> Markup {
    html! {
        (data_table("Table: splits", &[Text("First day"), Text("Ratio"), Text("Type"), Text("Status")], html! {
            @for row in rows {
                tr { th scope="row" { (show(&row["ex_date"], Unit::Date)) } td { (text(&row["text"])) } td { (plain(text(&row["type"]))) } td { (text(&row["status"])) } }
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
                    th scope="row" { @if text(&row["symbol"]).is_empty() { "–" } @else { a href={ "/s/" (encode(text(&row["symbol"]))) } { (text(&row["symbol"])) } } }
                    td { (text(&row["name"])) }
                    td.number { (show(&row["weight"], Unit::Percent)) }
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
                    th scope="row" { a href={ "/s/" (encode(text(&row["etf_symbol"]))) } { (text(&row["etf_symbol"])) } }
                    td data-label="Name" { (text(&row["etf_name"])) }
                    td.number data-label="Weight" { (show(&row["weight"], Unit::Percent)) }
                    td data-label="Snapshot" { (show(&row["as_of"], Unit::Date)) }
                }
            }
        }))
    }
}
