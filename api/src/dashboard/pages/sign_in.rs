//! `/sign-up`, `/sign-in` and `/sign-out`.
//!
//! Invariants: responses and sign-in times do not reveal if an email address has an account. Redirects lead only to
//! pages in a fixed list.

use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::Client;

use super::reference;
use crate::account::password::{self, HashingClient, PasswordHashing, StoredPassword};
use crate::account::sessions::{self, SessionCookies};
use crate::account::{AccountError, LockedAccount, accounts, audit, parse_email};
use crate::app::login_throttle::{AttemptCharge, DeviceTrust};
use crate::app::settings::SignUp;
use crate::auth::Tier;
use crate::auth::client_address::ClientNetwork;
use crate::dashboard::error::{PAGE_DEADLINE, PageError, PageResult, run_within};
use crate::dashboard::form::{AuthenticatedForm, Form, PageNotice, PublicForm};
use crate::dashboard::session_cookie;
use crate::dashboard::view::layout::{Section, error_message, to_sentence};
use crate::dashboard::visitor::Visitor;

/// Allowed redirect targets after a sign-in.
const ONWARD: [&str; 8] = [
    "/dashboard",
    "/dashboard/keys",
    "/dashboard/usage",
    "/dashboard/plan",
    "/dashboard/account",
    "/dashboard/log",
    "/plans",
    "/docs",
];
const WRONG: &str = "The address or the password is wrong.";
const NOT_SIGNED_IN: &str =
    "You are not signed in yet. If the address had an account before, sign in with that account's password.";

pub(crate) async fn show_sign_up(visitor: Visitor) -> Response {
    if visitor.signed.is_some() {
        return Redirect::to("/dashboard").into_response();
    }
    sign_up_page(&visitor, "", None)
}

pub(crate) async fn show_sign_in(visitor: Visitor) -> Response {
    let query = Form::read(&visitor.query);
    if visitor.signed.is_some() {
        return Redirect::to(allowed_target(query.text("next"))).into_response();
    }
    sign_in_page(&visitor, "", query.text("next"), None)
}

/// Creates an account and signs its holder in. If an account with this email address exists, no account is created. The
/// response then looks the same, but the cookies in the response belong to no session.
pub(crate) async fn sign_up(PublicForm { visitor, form }: PublicForm) -> PageResult {
    if visitor.dashboard.settings.sign_up != SignUp::Open {
        return Err(PageError::Refused("sign-up needs an invitation from the operator".to_owned()));
    }
    let given = form.text("email");
    match create(&visitor, given, form.secret("password")).await {
        Ok(cookies) => {
            Ok(redirect_signed_in(&visitor, &cookies, &PageNotice::SignedUp.add_to_path("/dashboard")))
        }
        Err(PageError::Refused(message)) => Ok(sign_up_page(&visitor, given, Some(&to_sentence(&message)))),
        Err(error) => Err(error),
    }
}

async fn create(visitor: &Visitor, given: &str, secret: SecretString) -> PageResult<SessionCookies> {
    let address = parse_email(given)?;
    password::check_strength(&secret, &address)?;
    let charge = visitor.dashboard.login_throttle.wait_for_hashing(visitor.client).await?;
    let hashed = visitor.dashboard.hashing.hash(secret, unknown_client(visitor)).await;
    let hash = or_refund(visitor, &charge, hashed).await?;
    let mut client = visitor.dashboard.database_client().await?;
    match create_account(&mut client, visitor, &address, &hash).await {
        Err(AccountError::Taken(_)) => Ok(SessionCookies::without_session()),
        created => Ok(created?),
    }
}

async fn create_account(
    client: &mut Client,
    visitor: &Visitor,
    address: &str,
    hash: &str,
) -> Result<SessionCookies, AccountError> {
    let account =
        accounts::create_account(client.transaction().await?, address, Tier::Free, None, true).await?;
    password::store_hash(&account, hash).await?;
    let session = sessions::begin_session(&account, &visitor.origin).await?;
    account.commit().await?;
    Ok(session)
}

/// Client of the password hasher whose device is not known.
pub(crate) fn unknown_client(visitor: &Visitor) -> HashingClient {
    HashingClient::Network(ClientNetwork::containing(visitor.client).0)
}

/// Returns the result of hashing a password. If hashing failed, for example because too many passwords wait, the attempt no
/// longer counts in the login throttle.
pub(crate) async fn or_refund<T, E>(
    visitor: &Visitor,
    charge: &AttemptCharge,
    hashed: Result<T, E>,
) -> Result<T, E> {
    if hashed.is_err() {
        visitor.dashboard.login_throttle.refund(charge).await;
    }
    hashed
}

/// Signs the holder of an account in.
pub(crate) async fn sign_in(PublicForm { visitor, form }: PublicForm) -> PageResult {
    let (given, next) = (form.text("email"), form.text("next"));
    let stored = find_stored(&visitor, given).await?;
    let (trust, client) = trust(&visitor, stored.as_ref());
    let charge = visitor.dashboard.login_throttle.wait_for_sign_in(given, visitor.client, trust).await?;
    let hashing = &visitor.dashboard.hashing;
    let checked = check_password(hashing, form.secret("password"), stored.as_ref(), client).await;
    let is_right = or_refund(&visitor, &charge, checked).await?;
    let begun = match stored.as_ref().filter(|_| is_right) {
        Some(known) => run_within(PAGE_DEADLINE, begin(&visitor, known)).await?,
        None => None,
    };
    if let Some(cookies) = begun {
        return Ok(redirect_signed_in(&visitor, &cookies, allowed_target(next)));
    }
    tracing::info!(address = %visitor.client, "a sign-in was refused");
    record_refusal(&visitor, stored.as_ref());
    Ok(sign_in_page(&visitor, given, next, Some(WRONG)))
}

/// Finds the stored password for this email address. `None` if no account has this address, or if the account is
/// disabled or has no password.
pub(crate) async fn find_stored(visitor: &Visitor, given: &str) -> PageResult<Option<StoredPassword>> {
    let Ok(address) = parse_email(given) else { return Ok(None) };
    let find = async {
        let client = visitor.dashboard.database_client().await?;
        Ok::<_, PageError>(password::find_password(&client, &address, &visitor.origin.devices).await?)
    };
    run_within(PAGE_DEADLINE, find).await
}

/// True if the password is correct. The caller must first charge the attempt to the login throttle.
pub(crate) async fn check_password(
    hashing: &PasswordHashing,
    secret: SecretString,
    stored: Option<&StoredPassword>,
    client: HashingClient,
) -> PageResult<bool> {
    // Passwords have at most 1,024 bytes. A longer text cannot be correct, but hashing it would take more work. An
    // empty text is hashed instead, so that the refusal takes the usual time.
    let is_short = secret.expose_secret().len() <= 1_024;
    let secret = if is_short { secret } else { SecretString::default() };
    Ok(hashing.verify(secret, stored, client).await?)
}

/// Trust in the visitor's device, and the client of the password hasher.
fn trust(visitor: &Visitor, stored: Option<&StoredPassword>) -> (DeviceTrust, HashingClient) {
    match (stored, visitor.origin.devices.browser) {
        (Some(stored), Some(browser)) if stored.knows_browser => {
            (DeviceTrust::Browser(browser), HashingClient::Known(stored.account_id))
        }
        (Some(stored), _) if stored.knows_network => {
            (DeviceTrust::Network, HashingClient::Known(stored.account_id))
        }
        _ => (DeviceTrust::Unknown, unknown_client(visitor)),
    }
}

/// Records a refused sign-in in the account's audit log. The record is written in the background, so that the response
/// time does not reveal if the account exists.
fn record_refusal(visitor: &Visitor, stored: Option<&StoredPassword>) {
    let Some(account_id) = stored.map(|stored| stored.account_id) else { return };
    let (dashboard, address) = (Arc::clone(&visitor.dashboard), visitor.origin.address.clone());
    tokio::spawn(async move {
        let recording = async {
            let client = dashboard.database_client().await?;
            Ok::<_, PageError>(audit::record_refused_sign_in(&client, account_id, &address).await?)
        };
        if let Err(error) = run_within(PAGE_DEADLINE, recording).await {
            tracing::warn!(%error, "cannot record a refused sign-in");
        }
    });
}

/// Starts a session. Returns `None` if the account changed after the password check.
async fn begin(visitor: &Visitor, known: &StoredPassword) -> PageResult<Option<SessionCookies>> {
    let mut client = visitor.dashboard.database_client().await?;
    let Some(account) = password::begin_verified(&mut client, known).await? else { return Ok(None) };
    Ok(Some(renew_session(visitor, account).await?))
}

/// Starts a session for the account, and commits the transaction that locks the account's row. If the visitor is
/// already signed in to this account, the new session replaces the current one.
pub(crate) async fn renew_session(
    visitor: &Visitor,
    account: LockedAccount<'_>,
) -> Result<SessionCookies, AccountError> {
    if let Some(signed) = &visitor.signed
        && signed.session.account_id == account.id
    {
        sessions::end_replaced_session(&account, signed.session.id).await?;
    }
    let session = sessions::begin_session(&account, &visitor.origin).await?;
    account.commit().await?;
    Ok(session)
}

/// Redirect after a sign-in, with the cookies of the session and the device.
pub(crate) fn redirect_signed_in(visitor: &Visitor, cookies: &SessionCookies, next: &str) -> Response {
    let mut response = Redirect::to(next).into_response();
    let is_local = visitor.site.is_local;
    let session = session_cookie::SESSION.header(Some(cookies.session.expose_secret()), is_local);
    let device = session_cookie::DEVICE.header(Some(cookies.device.expose_secret()), is_local);
    for cookie in [session, device].into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Signs the holder out. The session ends in the database, so that it cannot be used even if the browser keeps its
/// cookie. The holder's key for `/docs` is deleted.
pub(crate) async fn sign_out(AuthenticatedForm { holder, .. }: AuthenticatedForm) -> PageResult {
    let mut client = holder.database_client().await?;
    reference::delete_reference_key(&mut client, &holder).await?;
    sessions::end_session_of_cookie(&mut client, &holder.signed.secret).await?;
    Ok(redirect_signed_out(&holder.visitor, "/"))
}

/// Redirect to a public page. The response deletes the session cookie.
pub(crate) fn redirect_signed_out(visitor: &Visitor, page: &str) -> Response {
    let mut response = Redirect::to(page).into_response();
    if let Some(cookie) = session_cookie::SESSION.header(None, visitor.site.is_local) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Path of `next` if it is in [`ONWARD`], else the path of the dashboard.
fn allowed_target(next: &str) -> &'static str {
    let (path, _) = split_query(next);
    ONWARD.into_iter().find(|known| *known == path).unwrap_or("/dashboard")
}

/// Path and query of a target.
fn split_query(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

fn sign_up_page(visitor: &Visitor, given: &str, message: Option<&str>) -> Response {
    let body = html! {
        div.narrow {
            h1 { "Sign up" }
            (error_message(message))
            (needs_https(visitor))
            @if visitor.dashboard.settings.sign_up == SignUp::Open {
                p.lead { "Free, without a card: a key is two clicks away." }
                form method="post" action="/sign-up" {
                    (address_field(given))
                    (new_password_field("Password"))
                    button type="submit" { "Sign up" }
                }
                p.below { "You have an account? " a href="/sign-in" { "Sign in" } }
            } @else {
                p { "The operator of this service creates accounts: ask for an invitation." }
                p { a.button href="/sign-in" { "Sign in" } }
            }
        }
    };
    visitor.render_form("Sign up", Section::Other, message, &body)
}

fn sign_in_page(visitor: &Visitor, given: &str, next: &str, message: Option<&str>) -> Response {
    // After a sign-up, only a visitor without a session gets here.
    let has_signed_up = PageNotice::find(split_query(next).1) == Some(PageNotice::SignedUp);
    let body = html! {
        div.narrow {
            h1 { "Sign in" }
            (error_message(message))
            @if has_signed_up { p.notice role="status" { (NOT_SIGNED_IN) } }
            (needs_https(visitor))
            form method="post" action="/sign-in" {
                input type="hidden" name="next" value=(allowed_target(next));
                (address_field(given))
                label for="password" { "Password" }
                input type="password" id="password" name="password" required autocomplete="current-password" maxlength="128";
                button type="submit" { "Sign in" }
            }
            p.below {
                @if visitor.dashboard.settings.sign_up == SignUp::Open { "No account yet? " a href="/sign-up" { "Sign up" } ". " }
                "Forgot the password? Ask the operator for a reset link."
            }
        }
    };
    visitor.render_form("Sign in", Section::Other, message, &body)
}

fn address_field(given: &str) -> Markup {
    html! {
        label for="email" { "Email address" }
        input type="email" id="email" name="email" required autocomplete="username" maxlength="254" value=(given);
    }
}

/// Field for a new password.
pub(crate) fn new_password_field(title: &str) -> Markup {
    html! {
        label for="new-password" { (title) }
        input type="password" id="new-password" name="password" required autocomplete="new-password" minlength="12" maxlength="128" aria-describedby="new-password-hint";
        p.hint id="new-password-hint" { "At least 12 characters; any characters, spaces too." }
    }
}

/// Alert for a page that was loaded without HTTPS. Without HTTPS, the browser would refuse the session cookie, so the
/// visitor would not stay signed in. Loopback addresses need neither HTTPS nor the alert.
fn needs_https(visitor: &Visitor) -> Markup {
    let message = "This page was reached without HTTPS, so your browser will not keep you signed in. Open it over HTTPS.";
    let is_open = !visitor.site.is_secure && !visitor.site.is_local;
    error_message(is_open.then_some(message))
}
