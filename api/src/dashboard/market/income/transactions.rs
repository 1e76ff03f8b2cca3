//! `/income/transactions`: dividends received and expected, from the purchases and sales that a reader enters. The input of
//! the reader is neither stored nor logged.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};
use serde_json::Value;

use super::parts::{TRANSACTIONS_PATH, content, entry_fields, heading, save_form};
use super::payments::{DEFAULT_SORT, FORM, render_payments};
use super::portfolio_text::TransactionText;
use crate::account::portfolios::MAX_TRANSACTION_BYTES;
use crate::answer::MAX_BODY_BYTES;
use crate::app::App;
use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{
    ApiCalls, MarketError, MarketResult, encode, in_currency, with_parameter,
};
use crate::dashboard::market::block::{read_currency, render_currencies, render_listings};
use crate::dashboard::market::reader::{MarketReader, PageContent, as_file};
use crate::dashboard::market::values::rows_of;
use crate::dashboard::view::layout::error_message;
use crate::render::icalendar::{CalendarSource, host_of};

/// Path of the endpoint.
const ENDPOINT: &str = "/v1/portfolio/dividends";
/// Fields of a payment on the page. Without the others, a long response is shorter.
const FIELDS: &str =
    "account,symbol,ex_date,payment_date,quantity,amount,gross,currency,status,net,converted";
/// Maximum size of a form, in bytes: the transactions, and the other fields.
const MAX_FORM_BYTES: usize = MAX_BODY_BYTES + 16 * 1024;

pub(crate) fn transaction_routes() -> Router<App> {
    let form = async || Redirect::to(TRANSACTIONS_PATH);
    Router::new()
        .route(TRANSACTIONS_PATH, get(show_form).post(show_payments))
        .route("/income/transactions.csv", get(form).post(show_csv))
        .route("/income/transactions.ics", get(form).post(show_calendar))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// Transactions and settings that a reader entered.
struct Entry {
    text: String,
    currency: String,
    tax: String,
    sort: String,
}

impl Entry {
    async fn read(request: Request, app: &App) -> MarketResult<Self> {
        let form = Form::from_upload(request, app).await.map_err(MarketError::Refused)?;
        Ok(Self {
            text: form.file_or_text().to_owned(),
            currency: read_currency(form.text("currency")),
            tax: form.text("tax").to_owned(),
            sort: match form.text("sort") {
                "" => DEFAULT_SORT.to_owned(),
                sort => sort.to_owned(),
            },
        })
    }

    fn call(&self) -> String {
        let call = in_currency(ENDPOINT, &self.currency);
        if self.tax.is_empty() { call } else { with_parameter(&call, &format!("tax={}", encode(&self.tax))) }
    }

    /// Calls the API. The text of an error names the lines as the reader entered them.
    async fn respond(&self, calls: &ApiCalls, option: &str, origin: &str) -> MarketResult<Response> {
        if self.text.trim().is_empty() {
            return Err(MarketError::Refused("Enter at least one purchase.".to_owned()));
        }
        let text = TransactionText::read(&self.text);
        let source = CalendarSource { host: host_of(origin).to_owned(), edits: 0 };
        let call = with_parameter(&self.call(), option);
        let response = calls.respond_to_csv(&call, text.csv.clone(), source).await?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        Err(match ApiCalls::read_refusal(response).await? {
            MarketError::Refused(errors) => MarketError::Refused(text.explain(&errors)),
            error => error,
        })
    }
}

async fn show_form(reader: MarketReader) -> Response {
    let entry =
        Entry { text: String::new(), currency: String::new(), tax: String::new(), sort: String::new() };
    reader.respond(TRANSACTIONS_PATH.to_owned(), async |_| Ok(page(form(&entry, html! {})))).await
}

/// Responds with the payments to the reader.
async fn show_payments(reader: MarketReader, request: Request) -> Response {
    let result = async {
        let entry = &Entry::read(request, &reader.app).await?;
        Ok(reader.respond_once(|calls| build(calls, entry, &reader)).await)
    }
    .await;
    reader.respond_with(result)
}

async fn show_csv(reader: MarketReader, request: Request) -> Response {
    show_file(reader, request, "csv").await
}

async fn show_calendar(reader: MarketReader, request: Request) -> Response {
    show_file(reader, request, "ics").await
}

/// Responds with the payments as a file, unchanged from the API.
async fn show_file(reader: MarketReader, request: Request, format: &str) -> Response {
    let result = async {
        let entry = Entry::read(request, &reader.app).await?;
        let calls = reader.file_calls().await?;
        let file = entry.respond(&calls, &format!("format={format}"), &reader.origin).await?;
        Ok(as_file(file, &format!("dividends.{format}")))
    }
    .await;
    reader.respond_with(result)
}

async fn build(calls: ApiCalls, entry: &Entry, reader: &MarketReader) -> MarketResult<PageContent> {
    let option = format!("decimals=string&fields={FIELDS}");
    let mut answer: Value = match entry.respond(&calls, &option, &reader.origin).await {
        Ok(response) => ApiCalls::parse(response).await?.0,
        Err(MarketError::Refused(mistake) | MarketError::NotInPlan(mistake)) => {
            return Ok(page(form(entry, error_message(Some(&mistake)))));
        }
        Err(MarketError::Ambiguous(mistake, listings)) => {
            let message = html! { (error_message(Some(&mistake))) (render_listings(rows_of(&listings))) };
            return Ok(page(form(entry, message)));
        }
        Err(error) => return Err(error),
    };
    calls.leave_out(&mut answer)?;
    Ok(page(html! {
        (heading(true))
        section.panel aria-label="Transactions" { details { summary { "Change the transactions, the currency or the tax" } (render_form(entry)) } }
        (render_payments(&answer, &entry.sort, &entry.call(), reader.app.today()))
        (keep(entry, reader))
    }))
}

fn page(body: Markup) -> PageContent {
    PageContent {
        description: "Dividends that you received and will receive, from your purchases and sales."
            .to_owned(),
        canonical: TRANSACTIONS_PATH.to_owned(),
        ..content(body)
    }
}

fn form(entry: &Entry, message: Markup) -> Markup {
    html! {
        (heading(true))
        p.lead { "Enter what you bought and sold to see the dividends that you received, and those that you can expect." }
        (message)
        section.panel aria-label="Transactions" { (render_form(entry)) }
    }
}

fn render_form(entry: &Entry) -> Markup {
    html! {
        form id=(FORM) method="post" action=(TRANSACTIONS_PATH) enctype="multipart/form-data" {
            (entry_fields(
                "One purchase or sale per line: date, symbol and number of shares",
                "2021-03-01 KO 100\n2023-05-02 KO -25",
                html! { "A sale has a minus. Price, currency and account may follow: " code { "2021-03-01 KO 100 51.20 USD ira" } ". CSV and the transaction files of brokers work too: paste them, or choose the file." },
                &entry.text,
            ))
            div.fields {
                (render_currencies(&entry.currency))
                div.field {
                    label for="tax" { "Tax, percent by country (optional)" }
                    input id="tax" name="tax" maxlength="1024" autocomplete="off" placeholder="US:15,CH:35,*:0" value=(entry.tax) aria-describedby="tax-hint";
                    p.hint id="tax-hint" { code { "*" } " is every other country." }
                }
            }
            p.actions { button type="submit" { "Show the dividends" } }
            p.hint { "At most 10,000 lines and 1 MiB. The service neither stores nor logs them." }
        }
    }
}

/// Renders buttons that download the payments as files. Account holders also get a form that saves the transactions.
fn keep(entry: &Entry, reader: &MarketReader) -> Markup {
    html! {
        section.panel aria-labelledby="keep" {
            h2 id="keep" { "Save or download" }
            div.row {
                @for (file, title) in [("csv", "Payments as CSV"), ("ics", "Payments as iCalendar")] {
                    button.second.small type="submit" form=(FORM) formaction={ (TRANSACTIONS_PATH) "." (file) } { (title) }
                }
            }
            @if entry.text.len() > MAX_TRANSACTION_BYTES { p.hint { "The transactions are too long for a saved portfolio." } }
            @else { (save_form(reader, "transactions", &entry.text)) }
        }
    }
}
