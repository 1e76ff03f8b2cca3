//! Result of `/income`: sums, months as chart and table, holdings, missing parts.

use chrono::NaiveDate;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::block::Block;
use crate::dashboard::market::chart::bar_chart::{Bar, BarChart};
use crate::dashboard::market::values::{Unit, digits, show, text};
use crate::dashboard::view::table::{Number, Text, data_table, stacked_table};

/// Sentences for the API's reasons why a part is missing. The page prints the symbol before the sentence.
const REASONS: [(&str, &str); 7] = [
    ("unknown_symbol", "is not a known symbol."),
    ("dividends_unknown", "has no source of dividends, so its income is unknown."),
    ("not_estimated", "pays dividends, but none is declared and no pattern supports an estimate."),
    ("no_payment_date", "has a declared dividend without a payment date, which no month contains."),
    ("delisted", "no longer trades."),
    ("no_price", "has no price, so it has no value and no yield."),
    ("currency_mismatch", "pays in another currency than its price, so it has no yield."),
];

/// Renders the response of `/v1/portfolio/income`.
pub(crate) fn render_income(data: &Value, call: &str) -> Markup {
    let gaps = rows(&data["gaps"]);
    html! {
        (Block { id: "sums", title: "Twelve months", call, csv: "", body: sums(data) }.render())
        @if !gaps.is_empty() {
            section.notice aria-labelledby="gaps" {
                h2 id="gaps" { "What is missing" }
                ul { @for gap in gaps { li { strong { (text(&gap["symbol"])) } " " (reason(text(&gap["reason"]))) } } }
            }
        }
        (Block { id: "months", title: "By month", call, csv: "", body: months(data) }.render())
        (Block { id: "holdings", title: "By holding", call, csv: "", body: by_holding(data) }.render())
        (Block { id: "payments", title: "Payments", call, csv: "", body: payments(data) }.render())
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn reason(word: &str) -> &str {
    REASONS.iter().find(|(known, _)| *known == word).map_or(word, |(_, sentence)| sentence)
}

fn sums(data: &Value) -> Markup {
    html! {
        p { "From " (show(&data["from"], Unit::Date)) " to " (show(&data["until"], Unit::Date)) ", with all shares owned throughout." }
        @for total in rows(&data["totals"]) {
            @let money = Unit::Money(text(&total["currency"]));
            dl.facts {
                div { dt { "Income" } dd data-sum="income" { (show(&total["income"], money)) } dd.hint { (show(&total["payments"], Unit::Plain)) " payments" } }
                div { dt { "Confirmed" } dd data-sum="confirmed" { (show(&total["confirmed"], money)) } dd.hint { "declared or paid" } }
                div { dt { "Estimated" } dd data-sum="estimated" { (show(&total["estimated"], money)) } dd.hint { "from earlier payments" } }
                div { dt { "Value" } dd data-sum="value" { (show(&total["value"], money)) } dd.hint { "yield " (show(&total["yield"], Unit::Percent)) } }
                div { dt { "Growth" } dd data-sum="growth_5y" { (show(&total["growth_5y"], Unit::Percent)) } dd.hint { "a year over 5 years" } }
                @if !total["cost"].is_null() {
                    div { dt { "Yield on cost" } dd data-sum="yield_on_cost" { (show(&total["yield_on_cost"], Unit::Percent)) } dd.hint { "of " (show(&total["cost"], money)) } }
                }
            }
        }
    }
}

fn months(data: &Value) -> Markup {
    let months = rows(&data["months"]);
    let mut currencies: Vec<&str> = months.iter().map(|month| text(&month["currency"])).collect();
    currencies.dedup();
    html! {
        @if months.is_empty() { p { "No payment is declared or expected in these months." } }
        @for currency in currencies {
            @let rows: Vec<&Value> = months.iter().filter(|month| text(&month["currency"]) == currency).collect();
            @let bars: Vec<Bar> = rows.iter().map(|month| bar(month)).collect();
            (BarChart { solid: "Confirmed", light: "Estimated", unit: currency, label: &format!("Income of twelve months in {currency}, confirmed and estimated"), bars: &bars }.render())
            (data_table(&format!("Table: income by month, {currency}"), &[Text("Month"), Number("Confirmed"), Number("Estimated"), Number(&format!("Income, {currency}"))], html! {
                @for month in rows {
                    tr {
                        th scope="row" { (month_name(&month["month"], "%b %Y")) }
                        td.number { (show(&month["confirmed"], Unit::Plain)) } td.number { (show(&month["estimated"], Unit::Plain)) } td.number { (show(&month["income"], Unit::Plain)) }
                    }
                }
            }))
        }
    }
}

fn month_name(value: &Value, format: &str) -> String {
    text(value).parse::<NaiveDate>().map(|day| day.format(format).to_string()).unwrap_or_default()
}

fn bar(month: &Value) -> Bar {
    let amount = |name: &str| -> Decimal {
        digits(&month[name]).and_then(|digits| digits.parse().ok()).unwrap_or_default()
    };
    Bar { label: month_name(&month["month"], "%b"), solid: amount("confirmed"), light: amount("estimated") }
}

fn by_holding(data: &Value) -> Markup {
    html! {
        (stacked_table("Table: income by holding", &[Text("Holding"), Number("Shares"), Number("Value"), Number("Income"), Number("Yield"), Number("Growth, 5 years"), Number("Yield on cost")], html! {
            @for row in rows(&data["holdings"]) {
                tr {
                    th scope="row" { a href={ "/s/" (encode(text(&row["symbol"]))) } { (text(&row["symbol"])) } " " span.muted { (text(&row["name"])) } }
                    td.number data-label="Shares" { (show(&row["shares"], Unit::Plain)) }
                    td.number data-label="Value" { (show(&row["value"], Unit::Money(text(&row["price_currency"])))) }
                    td.number data-label="Income" { (show(&row["income"], Unit::Money(text(&row["currency"])))) }
                    td.number data-label="Yield" { (show(&row["dividend_yield"], Unit::Percent)) }
                    td.number data-label="Growth" { (show(&row["growth_5y"], Unit::Percent)) }
                    td.number data-label="Yield on cost" { (show(&row["yield_on_cost"], Unit::Percent)) }
                }
            }
        }))
    }
}

fn payments(data: &Value) -> Markup {
    let payments = rows(&data["payments"]);
    html! {
        details { summary { (payments.len()) " payments" }
            (stacked_table("Table: payments", &[Text("Payment"), Text("Holding"), Text("Ex-date"), Number("A share"), Number("Income"), Text("Status")], html! {
                @for row in payments {
                    @let money = Unit::Money(text(&row["currency"]));
                    tr {
                        th scope="row" { (show(&row["payment_date"], Unit::Date)) }
                        td data-label="Holding" { (text(&row["symbol"])) }
                        td data-label="Ex-date" { (show(&row["ex_date"], Unit::Date)) }
                        td.number data-label="A share" { (show(&row["amount"], money)) }
                        td.number data-label="Income" { (show(&row["income"], money)) }
                        td data-label="Status" { (text(&row["amount_status"])) }
                    }
                }
            }))
        }
    }
}
