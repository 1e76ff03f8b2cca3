//! `/dashboard/portfolios`: saved portfolios (symbols and numbers of shares). Each portfolio has feed URLs for calendar
//! programs and spreadsheets. A feed lists the dividend income of the portfolio.

use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};

use crate::account::AccountError;
use crate::account::keys::{self, KeyKind, NewKey};
use crate::account::portfolios::{self, Portfolio};
use crate::dashboard::error::{PageError, PageResult, to_form_message};
use crate::dashboard::form::{AuthenticatedForm, Form, PageNotice};
use crate::dashboard::market::{encode, read_holdings};
use crate::dashboard::pages::keys::show_new_secret;
use crate::dashboard::view::layout::{Section, error_message, format_time, success_message};
use crate::dashboard::view::numbers::format_count;
use crate::dashboard::visitor::AccountHolder;

const PATH: &str = "/dashboard/portfolios";
/// Files of a portfolio. Each entry has the name of the file and the kind of program that reads it.
const FILES: [(&str, &str); 2] = [("income.ics", "calendar program"), ("income.csv", "spreadsheet")];

/// Path of a portfolio's file, such as `/portfolios/{name}/income.ics`. A feed URL is `/feed/{key}` followed by this
/// path.
fn file_path(name: &str, file: &str) -> String {
    format!("/portfolios/{}/{file}", encode(name))
}

pub(crate) async fn show_portfolios(holder: AccountHolder) -> PageResult {
    let query = Form::from_query(&holder.visitor.query);
    let mut edited = None;
    if !query.text("edit").is_empty() {
        let client = holder.database_client().await?;
        edited = portfolios::find_portfolio(&client, holder.account_id(), query.text("edit")).await?;
    }
    let typed = edited.map(|portfolio| (portfolio.name, lines(&portfolio.holdings))).unwrap_or_default();
    page(&holder, None, (&typed.0, &typed.1)).await
}

async fn page(holder: &AccountHolder, message: Option<&str>, typed: (&str, &str)) -> PageResult {
    let saved = portfolios::list_portfolios(&*holder.database_client().await?, holder.account_id()).await?;
    let body = html! {
        h1 { "Portfolios" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        @if saved.is_empty() { p.lead { "No portfolio yet. Save your holdings, and read their income in a calendar or a spreadsheet." } }
        @for portfolio in &saved { (section(holder, portfolio)) }
        section.panel aria-labelledby="save" {
            h2 id="save" { "Save a portfolio" }
            (form(holder, message, typed))
        }
    };
    Ok(holder.visitor.render_form("Portfolios", Section::Portfolios, message, &body))
}

fn section(holder: &AccountHolder, portfolio: &Portfolio) -> Markup {
    let name = portfolio.name.as_str();
    // The number of holdings in a portfolio is limited, so the conversion cannot fail.
    let count = i64::try_from(portfolio.holdings.split(',').count()).unwrap_or(i64::MAX);
    html! {
        section.panel aria-label={ "Portfolio " (name) } {
            h2 { (name) }
            p { (format_count(count, "holding", "holdings")) ", saved " (format_time(portfolio.saved_at)) }
            p.actions {
                @if holder.has_market() { a.button.small.second href={ "/income?holdings=" (encode(&portfolio.holdings)) } { "Show the income" } }
                a.button.small.second href={ (PATH) "?edit=" (encode(name)) "#save" } { "Edit" span.unseen { " " (name) } }
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

fn form(holder: &AccountHolder, message: Option<&str>, (name, holdings): (&str, &str)) -> Markup {
    html! {
        (error_message(message))
        form method="post" action=(PATH) {
            (holder.csrf_field())
            label for="name" { "Name" }
            input id="name" name="name" required maxlength="64" autocomplete="off" value=(name) aria-describedby="name-hint" autofocus[message.is_some()];
            p.hint id="name-hint" { "A portfolio of the same name is replaced." }
            label for="holdings" { "One holding per line: symbol and number of shares" }
            textarea id="holdings" name="holdings" rows="8" required spellcheck="false" placeholder="KO 120\nPEP 40 5400" aria-describedby="holdings-hint" { (holdings) }
            p.hint id="holdings-hint" { "An optional third value is the purchase cost of all shares. At most 100 holdings." }
            button type="submit" { "Save" }
        }
    }
}

/// Converts holdings in the API's format, such as `KO:120,PEP:40`, to the text of a form field. Each line of the text
/// has one holding, such as `KO 120`.
fn lines(holdings: &str) -> String {
    holdings.replace(',', "\n").replace(':', " ")
}

/// Saves the portfolio that a form sent. The form on this page has one holding per line. The form on the income page
/// has the holdings in the format of the API's parameter `holdings`.
pub(crate) async fn save_portfolio(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let typed = (form.text("name"), form.text("holdings"));
    let saved = match read_holdings(typed.1) {
        Ok(holdings) => {
            let client = &mut *holder.database_client().await?;
            portfolios::save_portfolio(client, holder.actor(), typed.0, &holdings).await
        }
        Err(message) => Err(AccountError::Refused(message)),
    };
    match saved {
        Ok(()) => Ok(Redirect::to(&PageNotice::PortfolioSaved.add_to_path(PATH)).into_response()),
        Err(error) => page(&holder, Some(&to_form_message(error)?), typed).await,
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
        Err(error) => page(&holder, Some(&to_form_message(error)?), ("", "")).await,
    }
}
