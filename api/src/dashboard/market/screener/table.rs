//! Table of securities with the screener's figures.

use maud::{Markup, html};
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::values::{Unit, render_value, str_of};

/// Columns that show a figure, each with its JSON field, a title and a unit.
const COLUMNS: [(&str, &str, Unit<'static>); 6] = [
    ("dividend_yield", "Yield", Unit::Percent),
    ("payout_ratio", "Payout", Unit::Percent),
    ("growth_5y", "Growth, 5 y", Unit::Percent),
    ("increase_streak_years", "Streak, years", Unit::Plain),
    ("pe_ratio", "P/E", Unit::Plain),
    ("market_cap", "Market value", Unit::Plain),
];

/// Renders the rows. `heading` renders the header cell of a column. Its arguments are the JSON field and the title.
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
                            @for (field, title, unit) in COLUMNS { td.number data-label=(title) { (render_value(&row[field], unit)) } }
                        }
                    }
                }
            }
        }
    }
}
