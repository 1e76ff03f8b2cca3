//! `/link/{secret}`: page of a one-time link. The operator gives the link to a person, who sets a password on this
//! page.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::sign_in;
use crate::account::password::{self, LinkPurpose, OneTimeLink};
use crate::app::App;
use crate::app::login_throttle::AttemptCharge;
use crate::app::settings::SignUp;
use crate::dashboard::error::{PAGE_DEADLINE, PageError, PageResult, run_within, to_form_message};
use crate::dashboard::form::PublicForm;
use crate::dashboard::view::layout::{Section, error_message};
use crate::dashboard::visitor::Visitor;

/// Secret of a one-time link, from the path `/link/{secret}`.
#[derive(Debug)]
pub(crate) struct LinkSecret(String);

impl FromRequestParts<App> for LinkSecret {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> PageResult<Self> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|Path(secret)| Self(secret)).map_err(|_| PageError::NotFound)
    }
}

/// Shows the purpose of the one-time link, and a form for the new password. Opening this page does not use up the link.
pub(crate) async fn show_link(secret: LinkSecret, visitor: Visitor) -> PageResult {
    Ok(match find_usable_link(&visitor, &secret).await?.0 {
        Some(link) => page(&visitor, &secret, &link, None),
        None => expired(&visitor),
    })
}

/// Redeems the one-time link: sets the password and signs the holder in.
pub(crate) async fn redeem_link(secret: LinkSecret, PublicForm { visitor, form }: PublicForm) -> PageResult {
    let (link, charge) = find_usable_link(&visitor, &secret).await?;
    let Some(link) = link else { return Ok(expired(&visitor)) };
    let chosen = form.secret("password");
    if let Err(error) = password::check_strength(&chosen, &link.email) {
        return Ok(page(&visitor, &secret, &link, Some(&to_form_message(error)?)));
    }
    let hashed = visitor.dashboard.hashing.hash(chosen, sign_in::unknown_client(&visitor)).await;
    let hash = sign_in::or_refund(&visitor, &charge, hashed).await?;
    let mut client = visitor.dashboard.database_client().await?;
    let Some(account) = password::redeem_link(&mut client, &secret.0, &hash).await? else {
        return Ok(expired(&visitor));
    };
    let session = sign_in::renew_session(&visitor, account).await?;
    Ok(sign_in::redirect_signed_in(&visitor, &session, "/dashboard"))
}

/// Finds the unused and unexpired link with this secret. The attempt counts in the login throttle (the rate limit of
/// sign-in attempts). If sign-up is closed, links that invite new users are not found.
async fn find_usable_link(
    visitor: &Visitor,
    secret: &LinkSecret,
) -> PageResult<(Option<OneTimeLink>, AttemptCharge)> {
    let charge = visitor.dashboard.login_throttle.wait_for_hashing(visitor.client).await?;
    let find = async {
        let client = visitor.dashboard.database_client().await?;
        Ok::<_, PageError>(password::find_link(&client, &secret.0).await?)
    };
    let link = run_within(PAGE_DEADLINE, find).await?;
    let is_closed = visitor.dashboard.settings.sign_up == SignUp::Closed;
    Ok((link.filter(|link| !(is_closed && link.purpose == LinkPurpose::Invitation)), charge))
}

fn page(visitor: &Visitor, secret: &LinkSecret, link: &OneTimeLink, message: Option<&str>) -> Response {
    let (title, button) = match link.purpose {
        LinkPurpose::Invitation => ("You are invited", "Create the account"),
        LinkPurpose::Reset => ("Choose a new password", "Set the password"),
    };
    let body = html! {
        div.narrow {
            h1 { (title) }
            (error_message(message))
            p.lead { "For " strong { (link.email) } "." }
            form method="post" action={ "/link/" (secret.0) } {
                input type="hidden" name="username" autocomplete="username" value=(link.email);
                (sign_in::new_password_field("New password"))
                button type="submit" { (button) }
            }
        }
    };
    visitor.render_form(title, Section::Other, message, &body)
}

fn expired(visitor: &Visitor) -> Response {
    let body = html! {
        div.narrow {
            h1 { "This link cannot be used" }
            p { "It was used already, or it has expired. Ask the operator for another link." }
            p { a.button href="/sign-in" { "Sign in" } }
        }
    };
    (StatusCode::NOT_FOUND, visitor.render_page("This link cannot be used", Section::Other, &body))
        .into_response()
}
