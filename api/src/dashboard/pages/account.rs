//! `/dashboard/account`: sessions, password, email address and deletion of the account.
//!
//! `/dashboard/log`: audit log of the account.
//!
//! Invariant: every change except the end of a session needs the current password.

use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use serde_json::Value;
use tokio_postgres::Client;

use super::sign_in::{
    check_password, find_stored, new_password_field, or_refund, redirect_signed_in, redirect_signed_out,
};
use crate::account::audit;
use crate::account::password::{self, HashingClient, StoredPassword};
use crate::account::sessions::{self, SessionCookies, SessionSummary};
use crate::account::{AccountError, LockedAccount, accounts, parse_email};
use crate::app::login_throttle::DeviceTrust;
use crate::auth::SessionId;
use crate::dashboard::error::{PageError, PageResult};
use crate::dashboard::form::{AuthenticatedForm, Form, PageNotice};
use crate::dashboard::view::layout::{
    Section, Text, error_message, format_time, stacked_rows, stacked_table, success_message, to_sentence,
};
use crate::dashboard::visitor::AccountHolder;

const PATH: &str = "/dashboard/account";
const WRONG: &str = "That is not your present password.";

/// Form on the account page. An error message appears in the form that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccountForm {
    Password,
    Address,
    End,
}

pub(crate) async fn show_account(holder: AccountHolder) -> PageResult {
    page(&holder, None).await
}

async fn page(holder: &AccountHolder, failed_form: Option<(AccountForm, String)>) -> PageResult {
    let open = sessions::list_sessions(&*holder.database_client().await?, holder.account_id()).await?;
    let message =
        |place| failed_form.as_ref().filter(|(its, _)| *its == place).map(|(_, text)| text.as_str());
    let body = html! {
        h1 { "Account" }
        (success_message(PageNotice::message_for_query(&holder.visitor.query)))
        (open_sessions(holder, &open))
        div.columns {
            (password_form(holder, message(AccountForm::Password)))
            (address_form(holder, message(AccountForm::Address)))
        }
        (end_form(holder, message(AccountForm::End)))
    };
    let message = failed_form.as_ref().map(|(_, text)| text.as_str());
    Ok(holder.visitor.render_form("Account", Section::Account, message, &body))
}

fn open_sessions(holder: &AccountHolder, open: &[SessionSummary]) -> Markup {
    let this = holder.signed.session.id;
    html! {
        section.panel aria-labelledby="sessions" {
            h2 id="sessions" { "Sessions" }
            (stacked_table("Table of sessions", &[Text("Browser"), Text("Address"), Text("Since"), Text("Last seen"), Text("Change")], html! {
                @for session in open {
                    tr {
                        th scope="row" { (browser(&session.agent)) @if session.id == this { " " span.tag { "this one" } } }
                        td data-label="Address" { (session.address) }
                        td data-label="Since" { (format_time(session.created_at)) }
                        td data-label="Last seen" { (format_time(session.seen_at)) }
                        td {
                            @if session.id != this {
                                form method="post" action="/dashboard/sessions/end" {
                                    (holder.csrf_field())
                                    input type="hidden" name="id" value=(session.id);
                                    button.quiet.danger type="submit" aria-label={ "End the session from " (session.address) } { "End" }
                                }
                            }
                        }
                    }
                }
            }))
            p.hint { "A session ends after 30 minutes without use, and after 12 hours." }
        }
    }
}

/// Name of the browser with this `User-Agent` header.
fn browser(agent: &str) -> &str {
    const KNOWN: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    KNOWN.iter().find(|(sign, _)| agent.contains(sign)).map_or("Another program", |(_, name)| name)
}

fn password_form(holder: &AccountHolder, message: Option<&str>) -> Markup {
    html! {
        section.panel aria-labelledby="password" {
            h2 id="password" { "Password" }
            (error_message(message))
            form method="post" action="/dashboard/password" {
                (holder.csrf_field())
                (present_field("present-1", message))
                (new_password_field("New password"))
                button type="submit" { "Change password" }
            }
            p.hint { "All other sessions and all links for a new password end." }
        }
    }
}

fn address_form(holder: &AccountHolder, message: Option<&str>) -> Markup {
    html! {
        section.panel aria-labelledby="address" {
            h2 id="address" { "Address" }
            p { "You sign in as " strong { (holder.email()) } "." }
            (error_message(message))
            form method="post" action="/dashboard/address" {
                (holder.csrf_field())
                (present_field("present-2", message))
                label for="email" { "New email address" }
                input type="email" id="email" name="email" required maxlength="254" autocomplete="off";
                button type="submit" { "Change address" }
            }
        }
    }
}

fn end_form(holder: &AccountHolder, message: Option<&str>) -> Markup {
    html! {
        section.panel aria-labelledby="end" {
            h2 id="end" { "Delete the account" }
            p { "All keys are refused from the next call on, every session ends, and a paid plan is lost. This cannot be undone. A new account with the same address starts with the calls already used this month." }
            (error_message(message))
            form method="post" action="/dashboard/delete" {
                (holder.csrf_field())
                (present_field("present-3", message))
                button.danger type="submit" { "Delete the account" }
            }
        }
    }
}

/// Input field for the current password. If the form has an error, the field gets the focus, so that the browser
/// scrolls to the form.
fn present_field(id: &str, message: Option<&str>) -> Markup {
    let is_wrong = message == Some(WRONG);
    html! {
        label for=(id) { "Present password" }
        input type="password" id=(id) name="present" required autocomplete="current-password" maxlength="128" aria-invalid=[is_wrong.then_some("true")] autofocus[message.is_some()];
    }
}

/// Checks the current password that the holder entered in the form. Returns the stored password. A wrong password is
/// refused with the message [`WRONG`]. Attempts are throttled like sign-ins.
async fn verify_password(holder: &AccountHolder, form: &Form) -> PageResult<StoredPassword> {
    let (visitor, account_id) = (&holder.visitor, holder.account_id());
    let throttle = &visitor.dashboard.login_throttle;
    // Attempts for the same account from other networks do not delay the confirmation. Networks of one IPv6 /48 count as
    // one here.
    let charge = throttle.wait_for_sign_in(holder.email(), visitor.client, DeviceTrust::Network).await?;
    let known = find_stored(visitor, holder.email()).await?;
    let hashing = &visitor.dashboard.hashing;
    let client = HashingClient::Known(account_id);
    let checked = check_password(hashing, form.secret("present"), known.as_ref(), client).await;
    let is_right = or_refund(visitor, &charge, checked).await?;
    let known = known.filter(|known| is_right && known.account_id == account_id);
    known.ok_or_else(|| PageError::Refused(WRONG.to_owned()))
}

/// Begins a transaction and locks the account. Fails if the password was changed after [`verify_password`] checked it.
async fn begin_if_current<'t>(
    client: &'t mut Client,
    known: &StoredPassword,
) -> Result<LockedAccount<'t>, AccountError> {
    let account = password::begin_verified(client, known).await?;
    account.ok_or_else(|| AccountError::Refused(WRONG.to_owned()))
}

pub(crate) async fn end_session(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let id: SessionId = form.text("id").parse().map_err(|_| PageError::NotFound)?;
    sessions::end_session(&mut *holder.database_client().await?, holder.actor(), id).await?;
    Ok(Redirect::to(&PageNotice::SessionEnded.add_to_path(PATH)).into_response())
}

pub(crate) async fn change_password(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let changed = set_password(&holder, &form).await;
    show_change(&holder, AccountForm::Password, changed, PageNotice::PasswordChanged).await
}

pub(crate) async fn change_address(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let changed = set_address(&holder, &form).await;
    show_change(&holder, AccountForm::Address, changed, PageNotice::AddressChanged).await
}

/// Responds to a change of the account: with a redirect and new cookies, or with the refusal on the page.
async fn show_change(
    holder: &AccountHolder,
    form: AccountForm,
    changed: PageResult<SessionCookies>,
    notice: PageNotice,
) -> PageResult {
    match changed {
        Ok(session) => Ok(redirect_signed_in(&holder.visitor, &session, &notice.add_to_path(PATH))),
        Err(PageError::Refused(message)) => page(holder, Some((form, to_sentence(&message)))).await,
        Err(error) => Err(error),
    }
}

/// Changes the password and ends every session, because a session cookie may have been stolen. Starts a new session
/// for the holder.
async fn set_password(holder: &AccountHolder, form: &Form) -> PageResult<SessionCookies> {
    let known = verify_password(holder, form).await?;
    let chosen = form.secret("password");
    password::check_strength(&chosen, holder.email())?;
    let hashing = &holder.visitor.dashboard.hashing;
    let hash = hashing.hash(chosen, HashingClient::Known(holder.account_id())).await?;
    let mut client = holder.database_client().await?;
    let account = begin_if_current(&mut client, &known).await?;
    password::change_password(&account, &hash).await?;
    let session = sessions::begin_session(&account, &holder.visitor.origin).await?;
    account.commit().await?;
    Ok(session)
}

async fn set_address(holder: &AccountHolder, form: &Form) -> PageResult<SessionCookies> {
    let known = verify_password(holder, form).await?;
    let mut client = holder.database_client().await?;
    let address = parse_email(form.text("email"))?;
    let account = begin_if_current(&mut client, &known).await?;
    accounts::change_address(&account, &address).await?;
    sessions::end_sessions(&account).await?;
    let session = sessions::begin_session(&account, &holder.visitor.origin).await?;
    account.commit().await?;
    Ok(session)
}

pub(crate) async fn delete_account(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    match verify_password(&holder, &form).await {
        Err(PageError::Refused(message)) => return page(&holder, Some((AccountForm::End, message))).await,
        verified => verified?,
    };
    accounts::delete_account(&mut *holder.database_client().await?, holder.actor()).await?;
    Ok(redirect_signed_out(&holder.visitor, &PageNotice::AccountDeleted.add_to_path("/")))
}

/// Actions in the audit log with their display names.
const ACTIONS: &str = include_str!("audit_actions.csv");

pub(crate) async fn show_audit_log(holder: AccountHolder) -> PageResult {
    let entries = audit::list_recent_entries(&*holder.database_client().await?, holder.account_id()).await?;
    let body = html! {
        h1 { "Log" }
        p.lead { "Changes of this account, its keys and its plan. The log cannot be changed." }
        (stacked_rows("Log", &entries, &[
            (Text("What"), &|entry| html! { (action_text(&entry.action)) }),
            (Text("When"), &|entry| format_time(entry.at)),
            (Text("By"), &|entry| html! { (actor_text(&entry.actor)) }),
            (Text("Details"), &|entry| html! { (describe_details(&entry.details)) }),
        ]))
        p.hint { "The newest " (entries.len()) " entries." }
    };
    Ok(holder.render_page("Log", Section::Log, &body))
}

fn actor_text(actor: &str) -> &'static str {
    match actor {
        "account" => "you",
        "visitor" => "a visitor",
        _ => "the operator",
    }
}

/// Display name of an action. An unknown action is shown by its stored name.
fn action_text(action: &str) -> &str {
    let mut known = ACTIONS.lines().filter_map(|line| line.split_once(','));
    known.find(|(name, _)| *name == action).map_or(action, |(_, text)| text)
}

/// Describes those details of an audit log entry that are useful to the holder.
fn describe_details(details: &Value) -> String {
    let text = |pointer: &str| details.pointer(pointer).and_then(Value::as_str);
    let shown = [
        ("", text("/name")),
        ("…", text("/last_four")),
        ("from ", text("/address")),
        ("", text("/tier")),
        ("from ", text("/before/tier").or(text("/before"))),
        ("to ", text("/after/tier").or(text("/after"))),
        ("then ", text("/after/next_tier").filter(|_| text("/after/paid_until").is_some())),
        ("old key works for ", text("/overlap").filter(|overlap| *overlap != "0")),
    ];
    let shown: Vec<String> =
        shown.into_iter().filter_map(|(before, text)| Some(format!("{before}{}", text?))).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::describe_details;

    #[test]
    fn details_are_words() {
        let key = json!({ "id": 7, "name": "laptop", "last_four": "a1b2", "overlap": "24h" });
        assert_eq!(describe_details(&key), "laptop, …a1b2, old key works for 24h");
        let plan =
            json!({ "before": { "tier": "free" }, "after": { "tier": "starter", "paid_until": null } });
        assert_eq!(describe_details(&plan), "from free, to starter");
    }
}
