//! Blocks of the page of a security: dividends, splits, holdings, funds that hold it, and quality of its data.
//!
//! Figures over time on the page of a security: growth of an amount, and yield and payout ratio by quarter.

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::chart::{Close, PriceChart, PriceLine};
use crate::dashboard::market::values::{
    Unit, decimal_of, describe_flag, humanize, render_converted, render_date, render_value, rows_of, str_of,
};
use crate::dashboard::view::layout::{Number, Text, Words, data_table, stacked_rows, stacked_table};
use crate::dashboard::view::markdown::render_inline;
use crate::dashboard::view::plot::{Bar, BarChart};

/// Number of rows that are visible at first. The others are collapsed.
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
    let mut bars: Vec<Bar> =
        years.iter().map(|year| year_bar(year, "amount", year["complete"] != false)).collect();
    bars.sort_by(|a, b| a.label.cmp(&b.label));
    html! {
        (render_year_bars(["Complete year", "Incomplete year"], currency, &bars))
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

pub(super) fn year_bar(year: &Value, amount: &str, is_solid: bool) -> Bar {
    let amount = decimal_of(&year[amount]).unwrap_or_default();
    let (solid, light) = if is_solid { (amount, Decimal::ZERO) } else { (Decimal::ZERO, amount) };
    Bar { label: year["year"].to_string(), solid, light }
}

/// Renders the dividends a share by year. `kinds` names the solid and the light bars.
pub(super) fn render_year_bars(kinds: [&str; 2], currency: &str, bars: &[Bar]) -> Markup {
    let label = format!("Dividends a share of {} years, in {currency}", bars.len());
    let ([solid, light], note) = (kinds, "a share, adjusted for splits");
    BarChart { solid, light, unit: currency, note, label: &label, bars }.render()
}

/// Renders tables of the paid, declared and estimated payments, newest first. Raises and cuts are marked.
pub(crate) fn render_rows(rows: &[Value]) -> Markup {
    if rows.is_empty() {
        return html! { p { "No dividends are known for this history." } };
    }
    render_folded(&rows[..rows.len().min(MOST)], "earlier payments", table)
}

/// Renders a table of the first rows, and a collapsed table of the others.
pub(crate) fn render_folded(rows: &[Value], others: &str, table: impl Fn(&[Value]) -> Markup) -> Markup {
    let (shown, folded) = rows.split_at(rows.len().min(SHOWN));
    html! {
        (table(shown))
        @if !folded.is_empty() { details { summary { (folded.len()) " " (others) } (table(folded)) } }
    }
}

fn table(rows: &[Value]) -> Markup {
    let is_converted = rows.iter().any(|row| row.get("converted").is_some());
    let mut headings = vec![Text("Ex-date"), Text("Payment"), Number("Amount")];
    headings.extend(is_converted.then_some(Number("Declared")));
    headings.extend([Number("Change"), Number("Yield at ex-date"), Text("Status")]);
    stacked_table("Table: payments", &headings, html! { @for row in rows { (render_row(row)) } })
}

fn render_row(row: &Value) -> Markup {
    let (kind, currency, converted) = (str_of(&row["type"]), str_of(&row["currency"]), row.get("converted"));
    let status = match str_of(&row["status"]) {
        "projected" => "estimated",
        status => status,
    };
    html! {
        tr {
            th scope="row" { (render_value(&row["ex_date"], Unit::Date)) }
            td data-label="paid" { (render_value(&row["payment_date"], Unit::Date)) }
            td.number { (render_converted(&row["amount"], currency, converted, Unit::PerShare)) }
            @if converted.is_some() { td.number data-label="declared" { (render_value(&row["amount"], Unit::PerShare(currency))) } }
            td.number { (change(&row["change_percent"])) }
            td.number data-label="Yield" { (render_value(&row["yield_at_ex"], Unit::Percent)) }
            td { span.tag.off[status == "estimated"] { (status) } @if kind != "regular" { " " span.tag.off { (humanize(kind)) } } }
        }
    }
}

/// Renders a change, marked as a rise or a fall.
pub(crate) fn change(percent: &Value) -> Markup {
    html! {
        @match decimal_of(percent) {
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
        (stacked_rows("Table: funds that hold it", rows, &[
            (Text("Fund"), &|row| html! { a href={ "/s/" (encode(str_of(&row["etf_symbol"]))) } { (str_of(&row["etf_symbol"])) } }),
            (Text("Name"), &|row| html! { (str_of(&row["etf_name"])) }),
            (Number("Weight"), &|row| render_value(&row["weight"], Unit::Percent)),
            (Text("Snapshot"), &|row| render_value(&row["as_of"], Unit::Date)),
        ]))
    }
}

/// Age in days of the latest price of an active security from which on `projector audit` reports it: five sessions.
const OLD_PRICE_DAYS: i64 = 7;

/// Findings of `projector audit` that have no flag.
fn unflagged_findings(profile: &Value, metrics: &Value) -> Vec<&'static str> {
    let number = |name: &str| decimal_of(&metrics[name]);
    let day = |name: &str| str_of(&metrics[name]).parse::<NaiveDate>().ok();
    let age = day("as_of").zip(day("price_date")).map(|(now, priced)| (now - priced).num_days());
    let is_old = profile["is_active"] == true && age.is_none_or(|days| days > OLD_PRICE_DAYS);
    let is_doubled = number("dps_forward")
        .zip(number("dps_ttm"))
        .is_some_and(|(forward, trailing)| trailing > Decimal::ZERO && forward > Decimal::TWO * trailing);
    let findings = [
        (is_old, "No price of the last five sessions is known."),
        (is_doubled, "The indicated dividend is more than twice the dividend of the last 12 months."),
    ];
    findings.into_iter().filter_map(|(is_found, text)| is_found.then_some(text)).collect()
}

/// Renders the findings, flags and quarantined rows of a security.
pub(crate) fn render_quality(profile: &Value, metrics: &Value) -> Markup {
    let flags = rows_of(&metrics["flags"]);
    let rows = rows_of(&metrics["quarantined"]);
    let findings = unflagged_findings(profile, metrics);
    html! {
        @if flags.is_empty() && rows.is_empty() && findings.is_empty() { p { "Nothing is unusual in the rows behind these figures." } }
        @for finding in findings { p { (finding) } }
        @if !flags.is_empty() {
            dl.words { @for flag in flags { div { dt { code { (str_of(flag)) } } dd { (render_inline(&describe_flag(str_of(flag)))) } } } }
        }
        @if !rows.is_empty() {
            h3 { "Rows that no figure uses" }
            (stacked_rows("Table: quarantined rows", rows, &[
                (Text("Row"), &|row| html! { (str_of(&row["kind"])) }),
                (Text("Date"), &|row| render_value(&row["date"], Unit::Date)),
                (Words("Reason"), &|row| html! { (str_of(&row["message"])) }),
                (Text("Feed and line"), &|row| html! { code { (str_of(&row["source"])) } @if row["line"].as_i64().is_some_and(|line| line > 0) { ", line " (row["line"]) } }),
            ]))
        }
    }
}

/// Renders the growth of an amount. `reinvested` and `cash` are the rows with and without reinvestment of dividends.
pub(super) fn render_growth(reinvested: &Value, cash: &Value, currency: &str) -> Option<Markup> {
    let line = |name: &str, rows: &Value| line_of(name, rows, "value");
    let lines = vec![line("With reinvested dividends", reinvested), line("Dividends as cash", cash)];
    let chart = PriceChart { title: "Growth of an amount", currency, lines, ..PriceChart::default() };
    let (first, last, last_cash) =
        (rows_of(reinvested).first()?, rows_of(reinvested).last()?, rows_of(cash).last()?);
    let money = Unit::Money(currency);
    let yearly = &last["annualized_return"];
    Some(html! {
        p {
            (render_value(&last["invested"], money)) ", invested on " (render_date(str_of(&first["date"])))
            ", are " strong id="grown" { (render_value(&last["value"], money)) } " with reinvested dividends"
            @if !yearly.is_null() { " (" (render_value(yearly, Unit::Percent)) " a year)" }
            ", and " (render_value(&last_cash["value"], money)) " with dividends as cash."
        }
        (chart.render()?)
    })
}

/// Renders charts of the yield and the payout ratio. A figure that is never known has no chart.
pub(super) fn render_figures_by_quarter(points: &Value, mean_yield: &Value) -> Option<Markup> {
    let chart = |field: &str, title: &'static str| {
        let lines = vec![line_of(title, points, field)];
        PriceChart { title, currency: "%", lines, ..PriceChart::default() }.render()
    };
    let charts = [chart("dividend_yield", "Dividend yield"), chart("payout_ratio", "Payout ratio")];
    if charts.iter().all(Option::is_none) {
        return None;
    }
    Some(html! {
        @if !mean_yield.is_null() { p { "Mean yield of five years: " (render_value(mean_yield, Unit::Percent)) } }
        @for chart in charts.into_iter().flatten() { (chart) }
    })
}

fn line_of(name: &str, rows: &Value, field: &str) -> PriceLine {
    let value = |row: &Value| {
        let value = Decimal::from_str_exact(row[field].as_str()?).ok()?;
        Some(Close { date: str_of(&row["date"]).parse().ok()?, close: ExactDecimal(value) })
    };
    PriceLine { name: name.to_owned(), closes: rows_of(rows).iter().filter_map(value).collect() }
}
