//! Dividends received and expected, from the response of `POST /v1/portfolio/dividends`: sums, charts and tables.

use std::cmp::Ordering;

use chrono::{Datelike, Months, NaiveDate};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use super::parts::{month_name, render_gaps, round_to_cents, unconverted};
use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::block::SortHeading;
use crate::dashboard::market::values::{
    Unit, decimal_of, digits, humanize, render_converted, render_date, render_value, rows_of, str_of,
};
use crate::dashboard::view::layout::{Number, Text, list_table, stacked_table};
use crate::dashboard::view::plot::{Bar, BarChart};
use crate::dashboard::view::{format_count, format_grouped};

/// Id of the form with the transactions. The buttons of the page send it.
pub(super) const FORM: &str = "entered";
/// Order of the payments unless the reader chooses another.
pub(super) const DEFAULT_SORT: &str = "payment_date.desc";
/// Maximum number of payments in the table. The files have all payments.
const MAX_ROWS: usize = 500;
/// Number of months before the current month, and number of months from the current month on, in the chart.
const MONTHS_BEFORE: u32 = 12;
const MONTHS_AHEAD: u32 = 13;

/// Renders the response. `call` is the path and query of the API call.
pub(super) fn render_payments(answer: &Value, sort: &str, call: &str, today: NaiveDate) -> Markup {
    let (rows, meta) = (rows_of(&answer["data"]), &answer["meta"]);
    let totals = &meta["totals"];
    let sums = CurrencySums::read(totals);
    let warnings = rows_of(&meta["warnings"]).iter().filter(|warning| warning["code"] != "unknown_symbol");
    let warnings: Vec<&str> = warnings.map(|warning| str_of(&warning["message"])).collect();
    let reconciliation = rows_of(&meta["reconciliation"]);
    let accounts = rows_of(&totals["accounts"]);
    html! {
        (section("sums", "Received and expected", html! {
            @if rows.is_empty() { p { "No dividend was paid for these shares, and none is expected." } }
            @for sums in &sums { (facts(sums, today)) }
            (unconverted(&totals["converted"], &totals["converted"]["currency"]))
            @if let Some(from) = history_start(meta, rows) { p.hint { "Payments before " (render_date(from)) " are not included in this plan." } }
        }))
        (render_gaps(rows_of(&meta["gaps"]), &warnings))
        @if !reconciliation.is_empty() { (section("reconciliation", "Compared with your payments", render_reconciliation(reconciliation))) }
        @if !rows.is_empty() {
            (section("months", "By month", html! { @for sums in &sums { (months(sums, today)) } }))
            (section("years", "By year", html! { @for sums in &sums { (years(sums)) } }))
            (section("symbols", "By holding", group_table("Holding", "symbol", rows_of(&totals["symbols"]))))
            @if accounts.iter().any(|row| !row["account"].is_null()) {
                (section("accounts", "By account", group_table("Account", "account", accounts)))
            }
            (section("payments", "Payments", html! {
                (payments(rows, sort))
                div.source { details { summary { "API" span.unseen { " call of the payments" } } code { "POST " (call) } } }
            }))
        }
    }
}

/// First day of the history that the reader's plan includes; `None` if the first payment is long after that day.
fn history_start<'a>(meta: &'a Value, rows: &[Value]) -> Option<&'a str> {
    let from = meta["depth"]["from"].as_str()?;
    let first: NaiveDate = str_of(&rows.first()?["payment_date"]).parse().ok()?;
    let is_cut = first <= from.parse::<NaiveDate>().ok()?.checked_add_months(Months::new(12))?;
    is_cut.then_some(from)
}

fn section(id: &str, title: &str, body: Markup) -> Markup {
    html! { section.panel.block aria-labelledby=(id) { h2 id=(id) { (title) } (body) } }
}

/// Sums in one currency: all payments, and by month and year.
struct CurrencySums<'a> {
    currency: &'a str,
    sum: &'a Value,
    months: Vec<&'a Value>,
    years: Vec<&'a Value>,
}

impl<'a> CurrencySums<'a> {
    /// Sums in the currency that the reader chose, or in each currency of the payments.
    fn read(totals: &'a Value) -> Vec<Self> {
        let (sums, lists) = match totals.get("converted") {
            Some(converted) => (std::slice::from_ref(converted), converted),
            None => (rows_of(&totals["currencies"]), totals),
        };
        let read = |sum: &'a Value| {
            let currency = str_of(&sum["currency"]);
            let list =
                |name: &str| rows_of(&lists[name]).iter().filter(|row| row["currency"] == currency).collect();
            Self { currency, sum, months: list("months"), years: list("years") }
        };
        sums.iter().map(read).collect()
    }
}

/// Amount of a sum that is received, and amount that is expected: declared, or estimated from earlier payments.
fn received_and_expected(sum: &Value) -> (Decimal, Decimal) {
    let received = decimal(&sum["received"]);
    (received, decimal(&sum["gross"]) - received)
}

fn decimal(value: &Value) -> Decimal {
    decimal_of(value).unwrap_or_default()
}

fn money(amount: Decimal, currency: &str) -> Markup {
    render_value(&Value::from(amount.normalize().to_string()), Unit::Money(currency))
}

fn facts(sums: &CurrencySums<'_>, today: NaiveDate) -> Markup {
    let CurrencySums { currency, sum, .. } = sums;
    let of_year =
        |year: i32| sums.years.iter().find(|row| row["year"] == year).map(|row| received_and_expected(row));
    let (this_year, rest_of_year) = of_year(today.year()).unwrap_or_default();
    let last_year = of_year(today.year() - 1).map(|(received, _)| received);
    let (received, expected) = received_and_expected(sum);
    let declared = expected - decimal(&sum["projected"]);
    let first = sums.months.first().map_or(&Value::Null, |row| &row["month"]);
    html! {
        dl.facts {
            div {
                dt { "Received so far this year" } dd data-sum="this_year" { (money(this_year, currency)) }
                dd.hint { "and " (money(rest_of_year, currency)) " expected until December" }
            }
            div { dt { "Expected in the next 12 months" } dd data-sum="expected" { (money(expected, currency)) } dd.hint { "of it declared: " (money(declared, currency)) } }
            @if let Some(last_year) = last_year { div { dt { "Received in " (today.year() - 1) } dd data-sum="last_year" { (money(last_year, currency)) } } }
            div { dt { "Received in all" } dd data-sum="received" { (money(received, currency)) } dd.hint { "since " (month_name(first, "%b %Y")) } }
            @if !sum["net"].is_null() {
                div { dt { "After tax" } dd data-sum="net" { (render_value(&sum["net"], Unit::Money(currency))) } dd.hint { "received and expected, less " (render_value(&sum["tax"], Unit::Money(currency))) } }
            }
        }
    }
}

/// Bar of a period. The period may have no payment.
fn bar(label: String, row: Option<&&Value>) -> Bar {
    let (received, expected) = row.map(|row| received_and_expected(row)).unwrap_or_default();
    Bar { label, solid: round_to_cents(received), light: round_to_cents(expected) }
}

fn chart<'a>(sums: &'a CurrencySums<'_>, label: &'a str, bars: &'a [Bar]) -> BarChart<'a> {
    BarChart { solid: "Received", light: "Expected", unit: sums.currency, note: "", label, bars }
}

fn months(sums: &CurrencySums<'_>, today: NaiveDate) -> Markup {
    let first =
        today.with_day(1).and_then(|day| day.checked_sub_months(Months::new(MONTHS_BEFORE))).unwrap_or(today);
    let months =
        (0..MONTHS_BEFORE + MONTHS_AHEAD).filter_map(|number| first.checked_add_months(Months::new(number)));
    let months: Vec<NaiveDate> = months.collect();
    let row = |month: &NaiveDate| sums.months.iter().find(|row| row["month"] == month.to_string());
    let bars: Vec<Bar> =
        months.iter().map(|month| bar(month.format("%b %y").to_string(), row(month))).collect();
    let label = format!("Dividends by month in {}, received and expected", sums.currency);
    let rows: Vec<(String, &Value)> =
        months.iter().filter_map(|month| Some((month.format("%b %Y").to_string(), *row(month)?))).collect();
    html! {
        (chart(sums, &label, &bars).render_until(bars.len().saturating_sub(6)))
        details { summary { "Amounts by month, " (sums.currency) } (period_table("Month", sums.currency, &rows)) }
    }
}

fn years(sums: &CurrencySums<'_>) -> Markup {
    let year = |row: &Value| row["year"].as_i64().unwrap_or_default();
    let (first, last) =
        (sums.years.first().map_or(0, |row| year(row)), sums.years.last().map_or(-1, |row| year(row)));
    let bars: Vec<Bar> = (first..=last)
        .map(|number| bar(number.to_string(), sums.years.iter().find(|row| year(row) == number)))
        .collect();
    let label = format!("Dividends by year in {}, received and expected", sums.currency);
    let rows: Vec<(String, &Value)> =
        sums.years.iter().rev().map(|row| (year(row).to_string(), *row)).collect();
    html! { (chart(sums, &label, &bars).render()) (period_table("Year", sums.currency, &rows)) }
}

fn period_table(period: &str, currency: &str, rows: &[(String, &Value)]) -> Markup {
    let headings =
        [Text(period), Number("Received"), Number("Expected"), Number(&format!("Sum, {currency}"))];
    stacked_table(
        &format!("Table: by {}, {currency}", period.to_lowercase()),
        &headings,
        html! {
            @for (name, row) in rows {
                @let (received, expected) = received_and_expected(row);
                tr {
                    th scope="row" { (name) }
                    td.number data-label="Received" { (money(received, "")) }
                    td.number data-label="Expected" { (money(expected, "")) }
                    td.number.on-wide { (render_value(&row["gross"], Unit::Money(""))) }
                }
            }
        },
    )
}

/// Renders the sums by the field `field`: by symbol with the yield on cost, or by account.
fn group_table(title: &str, field: &str, rows: &[Value]) -> Markup {
    let has_yield = field == "symbol";
    let headings = [Text(title), Number("Received"), Number("Expected"), Number("Yield on cost")];
    let headings = &headings[..headings.len() - usize::from(!has_yield)];
    stacked_table(
        &format!("Table: by {}", title.to_lowercase()),
        headings,
        html! {
            @for row in rows {
                @let (name, currency, (received, expected)) = (str_of(&row[field]), str_of(&row["currency"]), received_and_expected(row));
                tr {
                    th scope="row" { @if has_yield { a href={ "/s/" (encode(name)) } { (name) } } @else if name.is_empty() { span.muted { "without an account" } } @else { (name) } }
                    td.number data-label="Received" { (money(received, currency)) }
                    td.number data-label="Expected" { (money(expected, currency)) }
                    @if has_yield { td.number data-label="Yield on cost" { (render_value(&row["yield_on_cost"], Unit::Percent)) } }
                }
            }
        },
    )
}

/// Columns by which the payments can be sorted: field, title, and true for a number.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("symbol", "Holding", false),
    ("payment_date", "Payment", false),
    ("ex_date", "Ex-date", false),
    ("quantity", "Shares", true),
    ("amount", "A share", true),
    ("gross", "Amount", true),
    ("status", "Status", false),
];

fn payments(rows: &[Value], sort: &str) -> Markup {
    let sorted = sorted_rows(rows, sort);
    let has_net = rows.iter().any(|row| !row["net"].is_null());
    let head = html! {
        @for (field, title, is_number) in COLUMNS {
            (SortHeading { field, title, is_number }.render_button(sort, FORM))
            @if field == "gross" && has_net { th.number scope="col" { "After tax" } }
        }
    };
    let body = html! {
        @for row in sorted.iter().take(MAX_ROWS) {
            @let currency = str_of(&row["currency"]);
            tr {
                th.name scope="row" { (str_of(&row["symbol"])) @if let Some(account) = row["account"].as_str() { " " span.muted { (account) } } }
                td { (render_value(&row["payment_date"], Unit::Date)) }
                td.minor { (render_value(&row["ex_date"], Unit::Date)) }
                td.number.minor[has_net] data-label="Shares" { (render_value(&row["quantity"], Unit::Plain)) }
                td.number.minor { (render_value(&row["amount"], Unit::PerShare(currency))) }
                td.number.key { (render_converted(&row["gross"], currency, row.get("converted"), Unit::Money)) }
                @if has_net { td.number data-label="After tax" { (render_value(&row["net"], Unit::Money(currency))) } }
                td { (status(str_of(&row["status"]))) }
            }
        }
    };
    html! {
        (list_table("Table: payments", &head, body))
        @if rows.len() > MAX_ROWS { p.hint { "The first " (MAX_ROWS) " of " (format_grouped(rows.len())) " payments in this order. The files have all of them." } }
    }
}

fn status(status: &str) -> Markup {
    match status {
        "paid" => html! { "received" },
        "projected" => html! { span.tag.off { "estimated" } },
        status => html! { span.tag { (status) } },
    }
}

/// Payments in the order of `sort`, such as `gross.desc`. Payments with equal values are ordered by payment date.
fn sorted_rows<'a>(rows: &'a [Value], sort: &str) -> Vec<&'a Value> {
    let (field, direction) = sort.split_once('.').unwrap_or((sort, "asc"));
    let is_number = COLUMNS.iter().any(|(known, _, is_number)| *known == field && *is_number);
    let number = |row: &Value| match row.get("converted").filter(|_| field == "gross") {
        Some(converted) => decimal(&converted["amount"]),
        None => decimal(&row[field]),
    };
    let compare = |one: &&Value, other: &&Value| -> Ordering {
        if is_number {
            number(one).cmp(&number(other))
        } else {
            str_of(&one[field]).cmp(str_of(&other[field]))
        }
    };
    let mut sorted: Vec<&Value> = rows.iter().collect();
    match direction {
        "desc" => sorted.sort_by(|one, other| compare(other, one)),
        _ => sorted.sort_by(compare),
    }
    sorted
}

/// Renders the comparison of the expected payments with the received payments among the entered lines.
fn render_reconciliation(entries: &[Value]) -> Markup {
    let (matched, others): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| entry["result"] == "matched");
    let headings = [
        Text("Holding"),
        Text("Payment"),
        Number("Expected"),
        Number("Received"),
        Text("Result"),
        Text("Reason"),
    ];
    let rows = html! {
        @for entry in &others {
            @let date = if entry["payment_date"].is_null() { &entry["received_date"] } else { &entry["payment_date"] };
            tr {
                th scope="row" { (str_of(&entry["symbol"])) @if let Some(account) = entry["account"].as_str() { " " span.muted { (account) } } }
                td data-label="Payment" { (render_value(date, Unit::Date)) }
                td.number data-label="Expected" { (render_value(&entry["expected"], Unit::Money(str_of(&entry["expected_currency"])))) }
                td.number data-label="Received" { (render_value(&entry["received"], Unit::Money(str_of(&entry["received_currency"])))) }
                td data-label="" { span.tag.suspect { (str_of(&entry["result"])) } }
                td data-label="Reason" { (describe_difference(entry)) }
            }
        }
    };
    html! {
        p { (format_count(matched.len(), "payment", "payments")) " as expected." }
        @if !others.is_empty() { (stacked_table("Table: compared payments", &headings, rows)) }
    }
}

/// Probable reason of a difference, with the figure that fits.
fn describe_difference(entry: &Value) -> String {
    let of = |field: &str| digits(&entry[field]).unwrap_or_default();
    match str_of(&entry["reason"]) {
        "tax_rate" => format!("tax of {}%", of("tax_rate")),
        "exchange_rate" => format!("exchange rate of {}", of("exchange_rate")),
        "date" => format!("{} days from the payment date", of("days")),
        "quantity" => format!("{} shares", of("quantity")),
        reason => humanize(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn payments_are_sorted_by_text_or_number() {
        let rows = [
            json!({ "symbol": "B", "gross": "9" }),
            json!({ "symbol": "A", "gross": "10" }),
            json!({ "symbol": "C", "gross": "90", "converted": { "amount": "1" } }),
        ];
        let symbols = |sort: &str| -> String {
            sorted_rows(&rows, sort).into_iter().map(|row| str_of(&row["symbol"])).collect()
        };
        let orders = ["symbol.asc", "symbol.desc", "gross.desc", "gross.asc", "x"].map(symbols);
        assert_eq!(orders, ["ABC", "CBA", "ABC", "CBA", "BAC"]);
    }

    #[test]
    fn only_payments_that_differ_are_listed() {
        let entry = |result: &str, reason: Option<&str>| {
            json!({ "symbol": "KO", "result": result, "reason": reason, "payment_date": "2024-04-01", "expected": "10",
                    "expected_currency": "USD", "received": "8.5", "received_currency": "USD", "tax_rate": "15" })
        };
        let entries = [entry("matched", None), entry("different", Some("tax_rate"))];
        let shown = render_reconciliation(&entries).into_string();
        for text in ["1 payment as expected.", ">different<", ">tax of 15%<", "8.50"] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        assert_eq!(shown.matches("<tr>").count(), 2, "{shown}");
        assert!(!render_reconciliation(&entries[..1]).into_string().contains("<table"));
    }
}
