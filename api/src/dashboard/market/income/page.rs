//! Form and result of `/income`. The input of the reader is neither stored nor logged.

use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::header;
use axum::response::{Redirect, Response};
use maud::{Markup, html};

use crate::app::state::App;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, MarketResult};
use crate::dashboard::market::icalendar::{CalendarFile, as_calendar, host_of, income_calendar, income_call};
use crate::dashboard::market::income::portfolio_text::PortfolioText;
use crate::dashboard::market::income::result::render_income;
use crate::dashboard::market::page::{PageContent, as_file};
use crate::dashboard::market::reader::MarketReader;
use crate::dashboard::session::form::Form;
use crate::dashboard::view::layout::{Section, error_message};

const TITLE: &str = "My income";

/// Responds with the form, or with the income of the holdings in the query.
pub(crate) async fn show_form(reader: MarketReader) -> Response {
    let holdings = reader.parameters().text("holdings").to_owned();
    if holdings.is_empty() {
        return reader.respond("/income".to_owned(), async |_| Ok(content(form("", None)))).await;
    }
    respond_income(&reader, PortfolioText { holdings, ..PortfolioText::default() }).await
}

/// Responds with the income of the submitted holdings.
pub(crate) async fn show_income(reader: MarketReader, request: Request) -> Response {
    match read_portfolio(request, &reader.app).await {
        Ok(text) => respond_income(&reader, PortfolioText::read(&text)).await,
        Err(error) => reader.respond_error(error).await,
    }
}

/// Responds with the dividend events of the submitted holdings, as an iCalendar file.
pub(crate) async fn show_calendar(reader: MarketReader, body: Bytes) -> Response {
    match write_calendar(&reader, &holdings_of(&body)).await {
        Ok(calendar) => as_file(as_calendar(calendar, None), "income.ics"),
        Err(error) => reader.respond_error(error).await,
    }
}

async fn write_calendar(reader: &MarketReader, holdings: &str) -> MarketResult<CalendarFile> {
    let answer = reader.calls().json_at_version(&income_call(holdings)).await?;
    Ok(income_calendar(&reader.app, &answer, 0, host_of(&reader.origin)).await?)
}

/// Reads the field `holdings` of a submitted form.
fn holdings_of(body: &Bytes) -> String {
    Form::from_query(&String::from_utf8_lossy(body)).text("holdings").to_owned()
}

/// Responds with the payments of the submitted holdings, as CSV.
pub(crate) async fn show_csv(reader: MarketReader, body: Bytes) -> Response {
    let call = income_call(&holdings_of(&body));
    reader.respond_csv(&call, "income.csv", "the holdings cannot be read").await
}

pub(crate) async fn redirect_to_form() -> Redirect {
    Redirect::to("/income")
}

async fn respond_income(reader: &MarketReader, portfolio: PortfolioText) -> Response {
    let portfolio = &portfolio;
    reader.respond_once(|calls| build(calls, portfolio, reader)).await
}

async fn build(
    calls: ApiCalls,
    portfolio: &PortfolioText,
    reader: &MarketReader,
) -> MarketResult<PageContent> {
    let entered = portfolio.holdings.replace(',', "\n").replace(':', " ");
    if portfolio.holdings.is_empty() {
        let mistake = "No line has a symbol and a number of shares.";
        return Ok(content(html! { (form("", Some(mistake))) (unread(portfolio)) }));
    }
    let call = income_call(&portfolio.holdings);
    match calls.json(&call).await {
        Ok(answer) => Ok(content(html! {
            h1 { (TITLE) }
            (unread(portfolio))
            (render_income(&answer["data"], &call))
            (keep(&portfolio.holdings, &entered, reader))
            details { summary { "Change the holdings" } (render_form(&entered)) }
        })),
        Err(MarketError::Refused(mistake)) => Ok(content(form(&entered, Some(&mistake)))),
        Err(error) => Err(error),
    }
}

fn content(body: Markup) -> PageContent {
    PageContent {
        title: TITLE.to_owned(),
        description: "Dividend income of your holdings over twelve months, confirmed and estimated."
            .to_owned(),
        canonical: "/income".to_owned(),
        section: Section::Income,
        body,
    }
}

fn form(entered: &str, mistake: Option<&str>) -> Markup {
    html! {
        h1 { (TITLE) }
        p.lead { "Enter your shares to see their dividends of twelve months: declared payments, and estimates from earlier payments." }
        (error_message(mistake))
        section.panel aria-label="Holdings" { (render_form(entered)) }
    }
}

/// Renders buttons that download the income as files. Account holders also get a form that saves the holdings.
fn keep(holdings: &str, entered: &str, reader: &MarketReader) -> Markup {
    html! {
        section.panel aria-labelledby="keep" {
            h2 id="keep" { "Save or download" }
            div.row {
                @for (path, title) in [("/income.csv", "Payments as CSV"), ("/income.ics", "Payments as iCalendar")] {
                    form method="post" action=(path) {
                        input type="hidden" name="holdings" value=(holdings);
                        button.second.small type="submit" { (title) }
                    }
                }
            }
            @match reader.csrf_field() {
                Some(csrf_field) => {
                    form.fields method="post" action="/dashboard/portfolios" {
                        (csrf_field)
                        input type="hidden" name="holdings" value=(entered);
                        div.field { label for="name" { "Save to your account as" } input id="name" name="name" required maxlength="64" autocomplete="off"; }
                        p.actions { button.small type="submit" { "Save" } }
                    }
                    p.hint { "Calendar programs and spreadsheets can follow the addresses of a saved portfolio." }
                },
                None if reader.app.dashboard.is_some() => p.hint { "With an account you can save the holdings, and follow their income in a calendar or a spreadsheet." },
                None => {},
            }
        }
    }
}

fn render_form(entered: &str) -> Markup {
    html! {
        form method="post" action="/income" enctype="multipart/form-data" {
            label for="text" { "One holding per line: symbol and number of shares" }
            textarea id="text" name="text" rows="8" spellcheck="false" placeholder="KO 120\nPEP 40 5400" aria-describedby="shape" { (entered) }
            p.hint id="shape" { "An optional third value is the purchase cost of all shares. The positions of a broker as CSV work too: paste them, or choose the file." }
            label for="file" { "File, instead of the lines above" }
            input id="file" type="file" name="file" accept=".csv,.txt,.tsv,text/csv,text/plain";
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

/// Reads the submitted text: the file if it is not empty, otherwise the text field.
async fn read_portfolio(request: Request, app: &App) -> MarketResult<String> {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let refused = |error: String| MarketError::Refused(error);
    if !kind.starts_with("multipart/form-data") {
        let body = Bytes::from_request(request, app).await.map_err(|error| refused(error.body_text()))?;
        return Ok(Form::from_query(&String::from_utf8_lossy(&body)).text("text").to_owned());
    }
    let form = Multipart::from_request(request, app).await;
    let mut form = form.map_err(|error| refused(error.body_text()))?;
    let (mut text, mut file) = (String::new(), String::new());
    while let Some(field) = form.next_field().await.map_err(|error| refused(error.body_text()))? {
        let is_file = field.name() == Some("file");
        let bytes = field.bytes().await.map_err(|error| refused(error.body_text()))?;
        let part = if is_file { &mut file } else { &mut text };
        *part = String::from_utf8_lossy(&bytes).into_owned();
    }
    Ok(if file.trim().is_empty() { text } else { file })
}
