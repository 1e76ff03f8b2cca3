//! Pages of one key: its new secret, `/dashboard/keys/{id}/replace` and `/delete`.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use secrecy::ExposeSecret;

use crate::account::keys::{self, Drawn, Key, Overlap};
use crate::app::state::App;
use crate::dashboard::error::PageError;
use crate::dashboard::session::form::Sent;
use crate::dashboard::session::notice::Notice;
use crate::dashboard::session::visitor::Holder;
use crate::dashboard::view::layout::{Section, moment};

const OVERLAPS: [(Overlap, &str); 4] = [
    (Overlap::Hour, "For another hour"),
    (Overlap::Day, "For another 24 hours"),
    (Overlap::Week, "For another 7 days"),
    (Overlap::None, "No longer: it ends now"),
];

/// Message for a form that is sent twice. The first response contained the secret.
const ENDED: &str = "the key has ended; if it was just replaced and nobody kept the new secret, replace the newer key of its name";

/// Key id in the path.
#[derive(Debug)]
pub(crate) struct Id(i64);

impl FromRequestParts<App> for Id {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, PageError> {
        let path = Path::<i64>::from_request_parts(parts, app).await;
        path.map(|Path(id)| Self(id)).map_err(|_| PageError::NotFound)
    }
}

/// Page with a new secret. No other page shows the secret.
pub(crate) async fn once(
    holder: &Holder,
    drawn: &Drawn,
    replaced: Option<Overlap>,
) -> Result<Response, PageError> {
    let secret = drawn.secret.expose_secret();
    let shown = holder.visitor.example.shown().await;
    let call = shown.as_ref().map_or("/v1/stocks?limit=3", |shown| shown.call.as_str());
    let curl =
        format!("curl -s '{}{call}' \\\n  -H 'Authorization: Bearer {secret}'", holder.visitor.site.origin);
    let body = html! {
        h1 { "Your key “" (drawn.key.name) "”" }
        p.notice role="status" { strong { "Copy it now." } " It is shown this once and stored nowhere; if you lose it, create another." }
        @match replaced {
            Some(Overlap::None) => p { "The key it replaces is refused from now on." },
            Some(_) => p { "The key it replaces goes on for a while, so nothing that uses it fails meanwhile." },
            None => {},
        }
        section.panel {
            h2 id="secret-title" { "Secret" }
            div.copy {
                pre tabindex="0" aria-labelledby="secret-title" { code id="secret" { (secret) } }
                div.row {
                    (copy_button("secret", "Copy secret"))
                    a.button.second href="/docs" data-use="secret" hidden { "Use it in the reference" }
                }
            }
            h2 id="call-title" { "Try it" }
            div.copy {
                pre tabindex="0" aria-labelledby="call-title" { code id="call" { (curl) } }
                (copy_button("call", "Copy call"))
            }
            p.hint { "Keep it out of pages, apps and repositories that others can read." }
        }
        p { a.button href="/dashboard/keys" { "I have copied it" } }
    };
    Ok(holder.page("Your new key", Section::Keys, &body))
}

/// Button that copies an element's text. The script makes it visible.
fn copy_button(of: &str, title: &str) -> Markup {
    html! { button.second type="button" data-copy=(of) hidden { (title) } }
}

pub(crate) async fn ask_re_roll(Id(id): Id, holder: Holder) -> Result<Response, PageError> {
    let key = own(&holder, id).await?;
    let body = html! {
        div.narrow {
            h1 { "Replace “" (key.name) "”" }
            p { "You get a new secret with the same name and expiry. How long does the old one (…" (key.last_four) ") go on to work?" }
            form method="post" action={ "/dashboard/keys/" (id) "/replace" } {
                (holder.token())
                fieldset.choices.tall {
                    legend { "The old key works" }
                    @for (index, (overlap, title)) in OVERLAPS.iter().enumerate() {
                        label { input type="radio" name="overlap" value=(overlap) checked[index == 1]; (title) }
                    }
                }
                div.row { button type="submit" { "Replace key" } a.button.second href="/dashboard/keys" { "Back" } }
            }
        }
    };
    Ok(holder.page("Replace a key", Section::Keys, &body))
}

pub(crate) async fn re_roll(Id(id): Id, Sent { holder, form }: Sent) -> Result<Response, PageError> {
    let overlap: Overlap = form.text("overlap").parse().map_err(PageError::Refused)?;
    let client = &mut *holder.client().await?;
    let key = keys::one(client, holder.account(), id).await?.ok_or(PageError::NotFound)?;
    if key.status != "active" {
        return Err(PageError::Refused(ENDED.to_owned()));
    }
    let drawn = keys::re_roll(client, holder.party(), &key.id.to_string(), overlap).await?;
    once(&holder, &drawn, Some(overlap)).await
}

pub(crate) async fn ask_delete(Id(id): Id, holder: Holder) -> Result<Response, PageError> {
    let key = own(&holder, id).await?;
    let body = html! {
        div.narrow {
            h1 { "Delete “" (key.name) "”?" }
            p { "Whatever uses the key …" (key.last_four) " is refused from the next call on. This cannot be undone." }
            p { "Last used: " (last_used(&key)) "." }
            form.row method="post" action={ "/dashboard/keys/" (id) "/delete" } {
                (holder.token())
                button.danger type="submit" { "Delete key" }
                a.button.second href="/dashboard/keys" { "Keep it" }
            }
        }
    };
    Ok(holder.page("Delete a key", Section::Keys, &body))
}

pub(crate) async fn delete(Id(id): Id, Sent { holder, .. }: Sent) -> Result<Response, PageError> {
    let key = own(&holder, id).await?;
    keys::delete(&mut *holder.client().await?, holder.party(), &key.id.to_string()).await?;
    Ok(Redirect::to(&Notice::KeyDeleted.after("/dashboard/keys")).into_response())
}

/// Active key of the holder with this id. Other keys are not found.
async fn own(holder: &Holder, id: i64) -> Result<Key, PageError> {
    let key = keys::one(&*holder.client().await?, holder.account(), id).await?;
    key.filter(|key| key.status == "active").ok_or(PageError::NotFound)
}

/// Time of a key's last use.
pub(crate) fn last_used(key: &Key) -> Markup {
    html! { @match key.last_used { Some(at) => (moment(at)), None => "not yet" } }
}
