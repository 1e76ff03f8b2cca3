//! `/income`: expected income of the holdings that a reader enters. The input of the reader is neither stored nor logged.

mod parts;
mod payments;
mod portfolio_text;
pub(crate) mod transactions;

use axum::body::Bytes;
use axum::extract::Request;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::api_calls::{ApiCalls, MarketError, MarketResult, encode, in_currency};
use super::block::{Block, read_currency, render_currencies};
use super::calendar_events::{Calendar, income_call};
use super::reader::{MarketReader, PageContent, as_file};
use super::values::{Unit, decimal_of, render_converted, render_value, rows_of, str_of};
use crate::dashboard::form::Form;
use crate::dashboard::view::layout::{Number, Text, data_table, error_message, stacked_rows, stacked_table};
use crate::dashboard::view::plot::{Bar, BarChart};
use parts::{
    content, entry_fields, heading, month_name, render_gaps, round_to_cents, save_form, unconverted,
};
use portfolio_text::PortfolioText;

pub(crate) use parts::TRANSACTIONS_PATH;
pub(crate) use portfolio_text::{TransactionText, read_holdings};

/// Responds with the form, or with the income of the holdings in the query.
pub(crate) async fn show_form(reader: MarketReader) -> Response {
    let parameters = reader.parameters();
    let (holdings, currency) =
        (parameters.text("holdings").to_owned(), read_currency(parameters.text("currency")));
    if holdings.is_empty() {
        let address = in_currency("/income", &currency);
        return reader.respond(address, async |_| Ok(content(form("", &currency, None)))).await;
    }
    respond_income(&reader, PortfolioText { holdings, ..PortfolioText::default() }, &currency).await
}

/// Responds with the income of the submitted holdings.
pub(crate) async fn show_income(reader: MarketReader, request: Request) -> Response {
    let result = async {
        let form = Form::from_upload(request, &reader.app).await.map_err(MarketError::Refused)?;
        let portfolio = PortfolioText::read(form.file_or_text());
        Ok(respond_income(&reader, portfolio, &read_currency(form.text("currency"))).await)
    }
    .await;
    reader.respond_with(result)
}

/// Responds with the dividend events of the submitted holdings, as an iCalendar file.
pub(crate) async fn show_calendar(reader: MarketReader, body: Bytes) -> Response {
    let form = Form::read(&body);
    let calendar = Calendar::Income { holdings: form.text("holdings"), edits: 0 };
    let file = calendar.respond_to_reader(&reader).await.map(|file| as_file(file, "income.ics"));
    reader.respond_with(file)
}

/// Responds with the payments of the submitted holdings, as CSV.
pub(crate) async fn show_csv(reader: MarketReader, body: Bytes) -> Response {
    let form = Form::read(&body);
    let call = in_currency(&income_call(form.text("holdings")), &read_currency(form.text("currency")));
    reader.respond_csv(&call, "income.csv", "the holdings or the currency cannot be read").await
}

async fn respond_income(reader: &MarketReader, portfolio: PortfolioText, currency: &str) -> Response {
    let portfolio = &portfolio;
    reader.respond_once(|calls| build(calls, portfolio, currency, reader)).await
}

async fn build(
    calls: ApiCalls,
    portfolio: &PortfolioText,
    currency: &str,
    reader: &MarketReader,
) -> MarketResult<PageContent> {
    let entered = portfolio.holdings.replace(',', "\n").replace(':', " ");
    if portfolio.holdings.is_empty() {
        let mistake = "No line has a symbol and a number of shares.";
        return Ok(content(html! { (form("", currency, Some(mistake))) (unread(portfolio)) }));
    }
    let call = in_currency(&income_call(&portfolio.holdings), currency);
    match calls.json(&call).await {
        Ok(answer) => Ok(content(html! {
            (heading(false))
            (unread(portfolio))
            (render_income(&answer["data"], &call))
            (keep(&portfolio.holdings, &entered, currency, reader))
            details { summary { "Change the holdings or the currency" } (render_form(&entered, currency)) }
        })),
        Err(MarketError::Refused(mistake) | MarketError::Ambiguous(mistake, _)) => {
            Ok(content(form(&entered, currency, Some(&mistake))))
        }
        Err(error) => Err(error),
    }
}

fn form(entered: &str, currency: &str, mistake: Option<&str>) -> Markup {
    html! {
        (heading(false))
        p.lead { "Enter your shares to see their dividends of twelve months: declared payments, and estimates from earlier payments." }
        (error_message(mistake))
        section.panel aria-label="Holdings" { (render_form(entered, currency)) }
    }
}

/// Renders buttons that download the income as files. Account holders also get a form that saves the holdings.
fn keep(holdings: &str, entered: &str, currency: &str, reader: &MarketReader) -> Markup {
    html! {
        section.panel aria-labelledby="keep" {
            h2 id="keep" { "Save or download" }
            div.row {
                @for (path, title) in [("/income.csv", "Payments as CSV"), ("/income.ics", "Payments as iCalendar")] {
                    form method="post" action=(path) {
                        input type="hidden" name="holdings" value=(holdings);
                        @if !currency.is_empty() { input type="hidden" name="currency" value=(currency); }
                        button.second.small type="submit" { (title) }
                    }
                }
            }
            (save_form(reader, "holdings", entered))
        }
    }
}

fn render_form(entered: &str, currency: &str) -> Markup {
    html! {
        form method="post" action="/income" enctype="multipart/form-data" {
            (entry_fields(
                "One holding per line: symbol and number of shares",
                "KO 120\nPEP 40 5400",
                html! { "An optional third value is the purchase cost of all shares. The positions of a broker as CSV work too: paste them, or choose the file." },
                entered,
            ))
            (render_currencies(currency))
            p.actions { button type="submit" { "Show the income" } }
            p.hint { "At most 100 holdings. The service neither stores nor logs them." }
        }
    }
}

/// Renders the input lines that could not be parsed.
fn unread(portfolio: &PortfolioText) -> Markup {
    html! {
        @if !portfolio.unread.is_empty() {
            div.notice {
                p { "These lines are left out:" }
                ul { @for line in &portfolio.unread { li { (line) } } }
                @if portfolio.further_unread > 0 { p { "and " (portfolio.further_unread) " more." } }
            }
        }
    }
}

/// Renders the response of `/v1/portfolio/income`.
pub(crate) fn render_income(data: &Value, call: &str) -> Markup {
    html! {
        (Block { id: "sums", title: "Twelve months", call, csv: "", body: sums(data) }.render())
        (render_gaps(rows_of(&data["gaps"]), &[]))
        (Block { id: "months", title: "By month", call, csv: "", body: months(data) }.render())
        (Block { id: "holdings", title: "By holding", call, csv: "", body: by_holding(data) }.render())
        (Block { id: "payments", title: "Payments", call, csv: "", body: payments(data) }.render())
    }
}

fn sums(data: &Value) -> Markup {
    html! {
        p { "From " (render_value(&data["from"], Unit::Date)) " to " (render_value(&data["until"], Unit::Date)) ". All shares are assumed to be owned during the whole period." }
        @match data.get("converted") {
            None => { @for total in rows_of(&data["totals"]) { (total_facts(total)) } },
            Some(converted) => {
                (unconverted(converted, &converted["total"]["currency"]))
                (total_facts(&converted["total"]))
                details { summary { "As declared" } @for total in rows_of(&data["totals"]) { (total_facts(total)) } }
            },
        }
    }
}

/// Renders the sums of one currency.
fn total_facts(total: &Value) -> Markup {
    let money = Unit::Money(str_of(&total["currency"]));
    html! {
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

fn months(data: &Value) -> Markup {
    let months = rows_of(data.get("converted").map_or(&data["months"], |converted| &converted["months"]));
    let mut currencies: Vec<&str> = months.iter().map(|month| str_of(&month["currency"])).collect();
    currencies.dedup();
    html! {
        @if months.is_empty() {
            p { (if data["payments"][0].is_null() { "No payment is declared or expected in these months." } else { "No payment has an exchange rate." }) }
        }
        @for currency in currencies {
            @let rows: Vec<&Value> = months.iter().filter(|month| str_of(&month["currency"]) == currency).collect();
            @let bars: Vec<Bar> = rows.iter().map(|month| bar(month)).collect();
            (BarChart { solid: "Confirmed", light: "Estimated", unit: currency, note: "", label: &format!("Income of twelve months in {currency}, confirmed and estimated"), bars: &bars }.render())
            (data_table(&format!("Table: income by month, {currency}"), &[Text("Month"), Number("Confirmed"), Number("Estimated"), Number(&format!("Income, {currency}"))], html! {
                @for month in rows {
                    tr {
                        th scope="row" { (month_name(&month["month"], "%b %Y")) }
                        td.number { (render_value(&month["confirmed"], Unit::Money(""))) } td.number { (render_value(&month["estimated"], Unit::Money(""))) } td.number { (render_value(&month["income"], Unit::Money(""))) }
                    }
                }
            }))
        }
    }
}

/// Bar of a month, in cents: a converted amount has more decimal places than a reader needs.
fn bar(month: &Value) -> Bar {
    let amount = |name: &str| round_to_cents(decimal_of(&month[name]).unwrap_or_default());
    let solid = amount("confirmed");
    Bar { label: month_name(&month["month"], "%b"), solid, light: amount("income") - solid }
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
            (stacked_rows("Table: payments", payments, &[
                (Text("Payment"), &|row| render_value(&row["payment_date"], Unit::Date)),
                (Text("Holding"), &|row| html! { (str_of(&row["symbol"])) }),
                (Text("Ex-date"), &|row| render_value(&row["ex_date"], Unit::Date)),
                (Number("A share"), &|row| render_value(&row["amount"], Unit::PerShare(str_of(&row["currency"])))),
                (Number("Income"), &|row| render_converted(&row["income"], str_of(&row["currency"]), row.get("converted"), Unit::Money)),
                (Text("Status"), &|row| html! { (str_of(&row["amount_status"])) }),
            ]))
        }
    }
}
