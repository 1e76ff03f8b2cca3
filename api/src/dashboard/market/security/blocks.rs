//! Blocks of the page of a security: dividends, splits, holdings, funds that hold it, and quality of its data.

use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::chart::{Bar, BarChart};
use crate::dashboard::market::values::{
    Unit, describe_flag, digits, humanize, render_value, rows_of, str_of,
};
use crate::dashboard::view::layout::{Number, Text, data_table, stacked_table};

/// Number of payments that are visible at first. Older payments are collapsed.
const SHOWN: usize = 12;
/// Maximum number of payments in the list. The CSV file has up to 1000 payments.
const MOST: usize = 120;

/// Bar chart and table of the split-adjusted regular dividends by year.
pub(crate) fn render_years(metrics: &Value) -> Markup {
    let years = rows_of(&metrics["annual_totals"]);
    if years.is_empty() {
        return html! { p { "No year of this history has dividends." } };
    }
    let currency = str_of(&metrics["currency"]);
    let running = str_of(&metrics["as_of"]).get(..4).and_then(|year| year.parse().ok());
    let mut bars: Vec<Bar> = years.iter().map(bar).collect();
    bars.sort_by(|a, b| a.label.cmp(&b.label));
    let label = format!("Dividends a share of {} years, in {currency}", bars.len());
    let unit = format!("{currency} a share, adjusted for splits");
    let chart = BarChart {
        solid: "Complete year",
        light: "Incomplete year",
        unit: &unit,
        label: &label,
        bars: &bars,
    };
    html! {
        (chart.render())
        details { summary { "The same as a table" }
            (data_table("Table: dividends by year", &[Text("Year"), Number("Dividends a share")], html! {
                @for year in years {
                    tr { th scope="row" { (year["year"]) @if year["complete"] == false { " " span.tag.off { (incompleteness(year, running)) } } } td.number { (render_value(&year["amount"], Unit::PerShare(currency))) } }
                }
            }))
        }
    }
}

/// Label of a year with incomplete dividends: `running` for the current year, `incomplete` for any other year.
fn incompleteness(year: &Value, running: Option<i64>) -> &'static str {
    if year["year"].as_i64() == running { "running" } else { "incomplete" }
}

fn bar(year: &Value) -> Bar {
    let amount = digits(&year["amount"]).and_then(|text| text.parse().ok()).unwrap_or_default();
    let (solid, light) =
        if year["complete"] == false { (Decimal::ZERO, amount) } else { (amount, Decimal::ZERO) };
    Bar { label: year["year"].to_string(), solid, light }
}

/// Renders tables of the paid, declared and estimated payments, newest first. Raises and cuts are marked.
pub(crate) fn render_rows(rows: &[Value]) -> Markup {
    if rows.is_empty() {
        return html! { p { "No dividends are known for this history." } };
    }
    let (shown, folded) = rows.split_at(rows.len().min(SHOWN));
    let folded = &folded[..folded.len().min(MOST - SHOWN)];
    html! {
        (table(shown))
        @if !folded.is_empty() { details { summary { (folded.len()) " earlier payments" } (table(folded)) } }
    }
}

fn table(rows: &[Value]) -> Markup {
    html! {
        (stacked_table("Table: payments", &[Text("Ex-date"), Text("Payment"), Number("Amount"), Number("Change"), Number("Yield at ex-date"), Text("Status")], html! { @for row in rows { (render_row(row)) } }))
    }
}

fn render_row(row: &Value) -> Markup {
    let kind = str_of(&row["type"]);
    let status = match str_of(&row["status"]) {
        "projected" => "estimated",
        status => status,
    };
    html! {
        tr {
            th scope="row" { (render_value(&row["ex_date"], Unit::Date)) }
            td data-label="Payment" { (render_value(&row["payment_date"], Unit::Date)) }
            td.number data-label="Amount" { (render_value(&row["amount"], Unit::PerShare(str_of(&row["currency"])))) }
            td.number data-label="Change" { (change(&row["change_percent"])) }
            td.number data-label="Yield at ex" { (render_value(&row["yield_at_ex"], Unit::Percent)) }
            td data-label="Status" { span.tag.off[status == "estimated"] { (status) } @if kind != "regular" { " " span.tag.off { (humanize(kind)) } } }
        }
    }
}

/// Renders the change from the previous payment, marked as a raise or a cut.
fn change(percent: &Value) -> Markup {
    let number: Option<Decimal> = digits(percent).and_then(|text| text.parse().ok());
    html! {
        @match number {
            Some(number) if number > Decimal::ZERO => { span.up { "▲ " } (render_value(percent, Unit::Percent)) },
            Some(number) if number < Decimal::ZERO => { span.down { "▼ " } (render_value(percent, Unit::Percent)) },
            Some(_) => span.muted { "same" },
            None => (render_value(percent, Unit::Percent)),
        }
    }
}

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
