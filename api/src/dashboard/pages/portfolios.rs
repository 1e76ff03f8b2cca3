//! `/dashboard/portfolios`: saved portfolios, each with holdings or transactions. Each portfolio has feed URLs for calendar
//! programs and spreadsheets. A feed lists the dividend income of the portfolio.

use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};

use super::keys::show_new_secret;
use crate::account::AccountError;
use crate::account::keys::{self, KeyKind, NewKey};
use crate::account::portfolios::{self, Portfolio, PortfolioContent};
use crate::dashboard::error::{PageError, PageResult, to_form_message};
use crate::dashboard::form::{AuthenticatedForm, Form, PageNotice};
use crate::dashboard::market::{TRANSACTIONS_PATH, TransactionText, encode, read_holdings};
use crate::dashboard::view::format_count;
use crate::dashboard::view::layout::{Section, error_message, format_time, success_message};
use crate::dashboard::visitor::AccountHolder;
use crate::routes::portfolio::transactions::normalize_transactions;

const PATH: &str = "/dashboard/portfolios";
/// Files of a portfolio. Each entry has the name of the file and the kind of program that reads it.
const FILES: [(&str, &str); 3] =
    [("income.ics", "calendar program"), ("income.csv", "spreadsheet"), ("events.atom", "feed reader")];

/// Path of a portfolio's file, such as `/portfolios/{name}/income.ics`. A feed URL is `/feed/{key}` followed by this
/// path.
fn file_path(name: &str, file: &str) -> String {
    match file {
        "events.atom" => format!("/{file}?portfolio={}", encode(name)),
        _ => format!("/portfolios/{}/{file}", encode(name)),
    }
}

pub(crate) async fn show_portfolios(holder: AccountHolder) -> PageResult {
    let query = Form::read(&holder.visitor.query);
    let mut edited = None;
    if !query.text("edit").is_empty() {
        let client = holder.database_client().await?;
        edited = portfolios::find_portfolio(&client, holder.account_id(), query.text("edit")).await?;
    }
    let edited = edited.map(|portfolio| {
        let is_holdings = portfolio.transactions.is_empty();
        let text = if is_holdings { lines(&portfolio.holdings) } else { portfolio.transactions };
        TypedPortfolio { name: portfolio.name, is_holdings, text }
    });
    page(&holder, None, edited.as_ref()).await
}

/// Portfolio in a form of the page.
struct TypedPortfolio {
    name: String,
    /// True for holdings, false for transactions.
    is_holdings: bool,
    text: String,
}

async fn page(holder: &AccountHolder, message: Option<&str>, typed: Option<&TypedPortfolio>) -> PageResult {
    let saved = portfolios::list_portfolios(&*holder.database_client().await?, holder.account_id()).await?;
    let body = html! {
        h1 { "Portfolios" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        @if saved.is_empty() { p.lead { "No portfolio yet. Save your holdings, and read their income in a calendar or a spreadsheet." } }
        @for portfolio in &saved { (section(holder, portfolio)) }
        @for fields in [&HOLDINGS, &TRANSACTIONS] {
            @let typed = typed.filter(|typed| typed.is_holdings == (fields.name == HOLDINGS.name));
            (form(holder, fields, message.filter(|_| typed.is_some()), typed))
        }
    };
    Ok(holder.visitor.render_form("Portfolios", Section::Portfolios, message, &body))
}

fn section(holder: &AccountHolder, portfolio: &Portfolio) -> Markup {
    let name = portfolio.name.as_str();
    let is_holdings = portfolio.transactions.is_empty();
    let (count, one, many) = match is_holdings {
        true => (portfolio.holdings.split(',').count(), "holding", "holdings"),
        // The first line has the names of the columns.
        false => (portfolio.transactions.lines().skip(1).count(), "transaction", "transactions"),
    };
    let edit = if is_holdings { HOLDINGS.name } else { TRANSACTIONS.name };
    html! {
        section.panel aria-label={ "Portfolio " (name) } {
            h2 { (name) }
            p { (format_count(count, one, many)) ", saved " (format_time(portfolio.saved_at)) }
            div.actions {
                @if holder.has_market() {
                    @if is_holdings { a.button.small.second href={ "/income?holdings=" (encode(&portfolio.holdings)) } { "Show the income" } }
                    @else {
                        form method="post" action=(TRANSACTIONS_PATH) {
                            input type="hidden" name="text" value=(portfolio.transactions);
                            button.small.second type="submit" { "Show the dividends" }
                        }
                    }
                }
                a.button.small.second href={ (PATH) "?edit=" (encode(name)) "#" (edit) } { "Edit" span.unseen { " " (name) } }
            }
            dl.words {
                @for (file, program) in FILES {
                    div { dt { "For a " (program) } dd { code { (holder.visitor.site.origin) "/feed/YOUR-KEY" (file_path(name, file)) } } }
                }
            }
            form.row method="post" action={ (PATH) "/link" } {
                (holder.csrf_field())
                input type="hidden" name="name" value=(name);
                button.small type="submit" { "Create a key for these addresses" }
            }
            details {
                summary { "Delete" span.unseen { " " (name) } }
                form.row method="post" action={ (PATH) "/delete" } {
                    (holder.csrf_field())
                    input type="hidden" name="name" value=(name);
                    p { "Its addresses then answer with 404. This cannot be undone." }
                    button.small.danger type="submit" { "Delete “" (name) "”" }
                }
            }
        }
    }
}

/// Texts of a form that saves a portfolio.
struct FormTexts {
    /// Name of the form field with the lines, and id of the form's heading.
    name: &'static str,
    title: &'static str,
    label: &'static str,
    placeholder: &'static str,
    hint: &'static str,
}

const HOLDINGS: FormTexts = FormTexts {
    name: "holdings",
    title: "Save what you own",
    label: "One holding per line: symbol and number of shares",
    placeholder: "KO 120\nPEP 40 5400",
    hint: "An optional third value is the purchase cost of all shares. At most 100 holdings.",
};
const TRANSACTIONS: FormTexts = FormTexts {
    name: "transactions",
    title: "Save what you bought and sold",
    label: "One purchase or sale per line: date, symbol and number of shares",
    placeholder: "2021-03-01 KO 100\n2023-05-02 KO -25",
    hint: "Price, currency and account may follow. CSV and the transaction files of brokers work too. At most 128 KiB.",
};

fn form(
    holder: &AccountHolder,
    fields: &FormTexts,
    message: Option<&str>,
    typed: Option<&TypedPortfolio>,
) -> Markup {
    let (name, text) = typed.map_or(("", ""), |typed| (typed.name.as_str(), typed.text.as_str()));
    let id = |part: &str| format!("{}-{part}", fields.name);
    html! {
        section.panel aria-labelledby=(fields.name) {
            h2 id=(fields.name) { (fields.title) }
            (error_message(message))
            form method="post" action=(PATH) {
                (holder.csrf_field())
                label for=(id("name")) { "Name" }
                input id=(id("name")) name="name" required maxlength="64" autocomplete="off" value=(name) aria-describedby=(id("name-hint")) autofocus[message.is_some()];
                p.hint id=(id("name-hint")) { "A portfolio of the same name is replaced." }
                label for=(id("lines")) { (fields.label) }
                textarea id=(id("lines")) name=(fields.name) rows="8" required spellcheck="false" placeholder=(fields.placeholder) aria-describedby=(id("hint")) { (text) }
                p.hint id=(id("hint")) { (fields.hint) }
                button type="submit" { "Save" }
            }
        }
    }
}

/// Converts holdings in the API's format, such as `KO:120,PEP:40`, to the text of a form field. Each line of the text
/// has one holding, such as `KO 120`.
fn lines(holdings: &str) -> String {
    holdings.replace(',', "\n").replace(':', " ")
}

/// Saves the portfolio that a form sent. The forms on this page have one holding or transaction per line. The form on the
/// income page has the holdings in the format of the API's parameter `holdings`.
pub(crate) async fn save_portfolio(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let (name, transactions) = (form.text("name"), form.text("transactions"));
    let is_holdings = transactions.is_empty();
    let content = match is_holdings {
        true => read_holdings(form.text("holdings")).map(PortfolioContent::Holdings),
        false => read_transactions(&holder, transactions).await,
    };
    let saved = match content {
        Ok(content) => {
            let client = &mut *holder.database_client().await?;
            portfolios::save_portfolio(client, holder.actor(), name, &content).await
        }
        Err(message) => Err(AccountError::Refused(message)),
    };
    match saved {
        Ok(()) => Ok(Redirect::to(&PageNotice::PortfolioSaved.add_to_path(PATH)).into_response()),
        Err(error) => {
            let text = form.text(if is_holdings { "holdings" } else { "transactions" }).to_owned();
            let typed = TypedPortfolio { name: name.to_owned(), is_holdings, text };
            page(&holder, Some(&to_form_message(error)?), Some(&typed)).await
        }
    }
}

/// Reads transactions. An error is a message for the holder, with one line for each error.
async fn read_transactions(holder: &AccountHolder, text: &str) -> Result<PortfolioContent, String> {
    let text = TransactionText::read(text);
    let generation = holder.visitor.app.projection.pin().map_err(|error| error.to_string())?;
    match normalize_transactions(text.csv.clone(), &generation).await {
        Ok((csv, count)) => Ok(PortfolioContent::Transactions { csv, count }),
        Err(errors) => Err(text.explain(&errors)),
    }
}

pub(crate) async fn delete_portfolio(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let client = &mut *holder.database_client().await?;
    portfolios::delete_portfolio(client, holder.actor(), form.text("name")).await?;
    Ok(Redirect::to(&PageNotice::PortfolioDeleted.add_to_path(PATH)).into_response())
}

/// Creates a key for the feed URLs of a portfolio, and shows the URLs with this key.
pub(crate) async fn create_link(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let client = &mut *holder.database_client().await?;
    let found = portfolios::find_portfolio(client, holder.account_id(), form.text("name")).await?;
    let name = found.ok_or(PageError::NotFound)?.name;
    let label: String = format!("Portfolio {name}").chars().take(64).collect();
    let new = NewKey { name: &label, kind: KeyKind::Holder, expires_at: None, rate_per_minute: None };
    match keys::create_key(client, holder.actor(), &new).await {
        Ok(drawn) => {
            let paths = FILES.map(|(file, _)| file_path(&name, file));
            show_new_secret(&holder, &drawn, None, &paths).await
        }
        Err(error) => page(&holder, Some(&to_form_message(error)?), None).await,
    }
}
