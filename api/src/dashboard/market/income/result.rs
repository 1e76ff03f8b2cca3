//! Result of `/income`: totals, income by month as chart and table, income by holding, and holdings with missing data.

use chrono::NaiveDate;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::market::block::Block;
use crate::dashboard::market::chart::bar_chart::{Bar, BarChart};
use crate::dashboard::market::values::{Unit, digits, render_value, rows_of, str_of};
use crate::dashboard::view::table::{Number, Text, data_table, stacked_table};

/// Reason codes in the field `gaps` of the API, each with the sentence for the page. The page prints the symbol before
/// the sentence.
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
    let gaps = rows_of(&data["gaps"]);
    html! {
        (Block { id: "sums", title: "Twelve months", call, csv: "", body: sums(data) }.render())
        @if !gaps.is_empty() {
            section.notice aria-labelledby="gaps" {
                h2 id="gaps" { "What is missing" }
                ul { @for gap in gaps { li { strong { (str_of(&gap["symbol"])) } " " (reason(str_of(&gap["reason"]))) } } }
            }
        }
        (Block { id: "months", title: "By month", call, csv: "", body: months(data) }.render())
        (Block { id: "holdings", title: "By holding", call, csv: "", body: by_holding(data) }.render())
        (Block { id: "payments", title: "Payments", call, csv: "", body: payments(data) }.render())
    }
}

fn reason(word: &str) -> &str {
    REASONS.iter().find(|(known, _)| *known == word).map_or(word, |(_, sentence)| sentence)
}

fn sums(data: &Value) -> Markup {
    html! {
        p { "From " (render_value(&data["from"], Unit::Date)) " to " (render_value(&data["until"], Unit::Date)) ", with all shares owned throughout." }
        @for total in rows_of(&data["totals"]) {
            @let money = Unit::Money(str_of(&total["currency"]));
            dl.facts {
                div { dt { "Income" } dd data-sum="income" { (render_value(&total["income"], money)) } dd.hint { (render_value(&total["payments"], Unit::Plain)) " payments" } }
                div { dt { "Confirmed" } dd data-sum="confirmed" { (render_value(&total["confirmed"], money)) } dd.hint { "declared or paid" } }
                div { dt { "Estimated" } dd data-sum="estimated" { (render_value(&total["estimated"], money)) } dd.hint { "from earlier payments" } }
                div { dt { "Value" } dd data-sum="value" { (render_value(&total["value"], money)) } dd.hint { "yield " (render_value(&total["yield"], Unit::Percent)) } }
                div { dt { "Growth" } dd data-sum="growth_5y" { (render_value(&total["growth_5y"], Unit::Percent)) } dd.hint { "a year over 5 years" } }
                @if !total["cost"].is_null() {
                    div { dt { "Yield on cost" } dd data-sum="yield_on_cost" { (render_value(&total["yield_on_cost"], Unit::Percent)) } dd.hint { "of " (render_value(&total["cost"], money)) } }
                }
            }
        }
    }
}

fn months(data: &Value) -> Markup {
    let months = rows_of(&data["months"]);
    let mut currencies: Vec<&str> = months.iter().map(|month| str_of(&month["currency"])).collect();
    currencies.dedup();
    html! {
        @if months.is_empty() { p { "No payment is declared or expected in these months." } }
        @for currency in currencies {
            @let rows: Vec<&Value> = months.iter().filter(|month| str_of(&month["currency"]) == currency).collect();
            @let bars: Vec<Bar> = rows.iter().map(|month| bar(month)).collect();
            (BarChart { solid: "Confirmed", light: "Estimated", unit: currency, label: &format!("Income of twelve months in {currency}, confirmed and estimated"), bars: &bars }.render())
            (data_table(&format!("Table: income by month, {currency}"), &[Text("Month"), Number("Confirmed"), Number("Estimated"), Number(&format!("Income, {currency}"))], html! {
                @for month in rows {
                    tr {
                        th scope="row" { (month_name(&month["month"], "%b %Y")) }
                        td.number { (render_value(&month["confirmed"], Unit::Plain)) } td.number { (render_value(&month["estimated"], Unit::Plain)) } td.number { (render_value(&month["income"], Unit::Plain)) }
                    }
                }
            }))
        }
    }
}

fn month_name(value: &Value, format: &str) -> String {
    str_of(value).parse::<NaiveDate>().map(|day| day.format(format).to_string()).unwrap_or_default()
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
            @for row in rows_of(&data["holdings"]) {
                tr {
                    th scope="row" { a href={ "/s/" (encode(str_of(&row["symbol"]))) } { (str_of(&row["symbol"])) } " " span.muted { (str_of(&row["name"])) } }
                    td.number data-label="Shares" { (render_value(&row["shares"], Unit::Plain)) }
                    td.number data-label="Value" { (render_value(&row["value"], Unit::Money(str_of(&row["price_currency"])))) }
                    td.number data-label="Income" { (render_value(&row["income"], Unit::Money(str_of(&row["currency"])))) }
                    td.number data-label="Yield" { (render_value(&row["dividend_yield"], Unit::Percent)) }
                    td.number data-label="Growth" { (render_value(&row["growth_5y"], Unit::Percent)) }
                    td.number data-label="Yield on cost" { (render_value(&row["yield_on_cost"], Unit::Percent)) }
                }
            }
        }))
    }
}

fn payments(data: &Value) -> Markup {
    let payments = rows_of(&data["payments"]);
    html! {
        details { summary { (payments.len()) " payments" }
            (stacked_table("Table: payments", &[Text("Payment"), Text("Holding"), Text("Ex-date"), Number("A share"), Number("Income"), Text("Status")], html! {
                @for row in payments {
                    @let money = Unit::Money(str_of(&row["currency"]));
                    tr {
                        th scope="row" { (render_value(&row["payment_date"], Unit::Date)) }
                        td data-label="Holding" { (str_of(&row["symbol"])) }
                        td data-label="Ex-date" { (render_value(&row["ex_date"], Unit::Date)) }
                        td.number data-label="A share" { (render_value(&row["amount"], money)) }
                        td.number data-label="Income" { (render_value(&row["income"], money)) }
                        td data-label="Status" { (str_of(&row["amount_status"])) }
                    }
                }
            }))
        }
    }
}
