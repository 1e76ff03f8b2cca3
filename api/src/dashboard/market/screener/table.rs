//! Table of securities with the screener's figures.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value, str_of};

/// Columns with a figure: JSON field, title, and true if the value is a percentage.
pub(crate) const COLUMNS: [(&str, &str, bool); 6] = [
    ("dividend_yield", "Yield", true),
    ("payout_ratio", "Payout", true),
    ("growth_5y", "Growth, 5 y", true),
    ("increase_streak_years", "Streak, years", false),
    ("pe_ratio", "P/E", false),
    ("market_cap", "Market value", false),
];

/// Renders the rows. `heading` renders a column title from the JSON field and the title.
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
                            @for (field, title, is_percent) in COLUMNS { td.number data-label=(title) { (render_value(&row[field], if is_percent { Unit::Percent } else { Unit::Plain })) } }
                        }
                    }
                }
            }
        }
    }
}
