//! Tables of a security: splits, holdings of a fund, and funds that hold it.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, humanize, render_value, str_of};

/// Splits, newest first.
pub(crate) fn splits_table(rows: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table: splits" {
            table {
                thead { tr { th scope="col" { "First day" } th scope="col" { "Ratio" } th scope="col" { "Type" } th scope="col" { "Status" } } }
                tbody {
                    @for row in rows {
                        tr { th scope="row" { (render_value(&row["ex_date"], Unit::Date)) } td { (str_of(&row["text"])) } td { (humanize(str_of(&row["type"]))) } td { (str_of(&row["status"])) } }
                    }
                }
            }
        }
    }
}

/// Holdings of a fund, largest first.
pub(crate) fn holdings_table(rows: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table: holdings" {
            table {
                thead { tr { th scope="col" { "Symbol" } th scope="col" { "Name" } th.number scope="col" { "Weight" } } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { @if str_of(&row["symbol"]).is_empty() { "–" } @else { a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } } }
                            td { (str_of(&row["name"])) }
                            td.number { (render_value(&row["weight"], Unit::Percent)) }
                        }
                    }
                }
            }
        }
    }
}

/// Funds that hold a security, largest weight first.
pub(crate) fn holders_table(rows: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table: funds that hold it" {
            table.stack {
                thead { tr { th scope="col" { "Fund" } th scope="col" { "Name" } th.number scope="col" { "Weight" } th scope="col" { "Snapshot" } } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { a href={ "/s/" (encode(str_of(&row["etf_symbol"]))) } { (str_of(&row["etf_symbol"])) } }
                            td data-label="Name" { (str_of(&row["etf_name"])) }
                            td.number data-label="Weight" { (render_value(&row["weight"], Unit::Percent)) }
                            td data-label="Snapshot" { (render_value(&row["as_of"], Unit::Date)) }
                        }
                    }
                }
            }
        }
    }
}
