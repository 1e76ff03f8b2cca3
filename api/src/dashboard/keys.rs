//! `/dashboard/keys`: made, shown once, replaced, deleted.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};
use secrecy::ExposeSecret;

use super::error::{PageError, mistake};
use super::form::{Form, Sent};
use super::layout::{Section, alert, day, done, moment};
use super::notice::Notice;
use super::visitor::Holder;
use crate::account::keys::{self, Drawn, Key, NewKey, Overlap, list};
use crate::app::App;

/// How long a key may last, in days, by the word of the form; the first is suggested.
const LIVES: [(&str, &str, i64); 3] =
    [("90", "90 days", 90), ("30", "30 days", 30), ("365", "One year", 365)];
/// The words that stand for no number of days.
const OTHER_LIVES: [(&str, &str); 2] = [("never", "Never"), ("date", "On a day")];
const OVERLAPS: [(Overlap, &str); 4] = [
    (Overlap::Hour, "For another hour"),
    (Overlap::Day, "For another 24 hours"),
    (Overlap::Week, "For another 7 days"),
    (Overlap::None, "No longer: it ends now"),
];

/// What the form that makes a key begins with: what was typed before a mistake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    name: &'a str,
    life: &'a str,
    date: &'a str,
}

impl Typed<'_> {
    /// Nothing but a name that is suggested.
    pub(crate) fn nothing(name: &'static str) -> Typed<'static> {
        Typed { name, life: LIVES[0].0, date: "" }
    }
}

/// The id of the key in an address.
#[derive(Debug)]
pub(crate) struct Id(i64);

impl FromRequestParts<App> for Id {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, PageError> {
        let path = Path::<i64>::from_request_parts(parts, app).await;
        path.map(|Path(id)| Self(id)).map_err(|_| PageError::NotFound)
    }
}

pub(crate) async fn show(holder: Holder) -> Result<Response, PageError> {
    let notice = Notice::told(&holder.visitor.query);
    page(&holder, notice, None, Typed::nothing("")).await
}

async fn page(holder: &Holder, notice: Option<&str>, message: Option<&str>) -> Result<Response, PageError> {
    let all = list(&*holder.client().await?, holder.account()).await?;
    let shown: Vec<&Key> = all.iter().filter(|key| key.status != "deleted").collect();
    let body = html! {
        h1 { "Keys" }
        (done(notice))
        @if shown.is_empty() {
            p.lead { "No key yet. Create one to make your first call." }
        } @else {
            (table(shown.into_iter(), true))
        }
        section.panel aria-labelledby="new" {
            h2 id="new" { "Create a key" }
            (form(holder, message, typed))
        }
    };
    Ok(holder.page("Keys", Section::Keys, &body))
}

/// The form that makes a key.
pub(crate) fn form(holder: &Holder, message: Option<&str>, typed: Typed<'_>) -> Markup {
    let tomorrow = (Utc::now() + TimeDelta::days(1)).format("%F");
    html! {
        (alert(message))
        form method="post" action="/dashboard/keys" {
            (holder.token())
            label for="name" { "Name" }
            input id="name" name="name" required maxlength="64" autocomplete="off" value=(typed.name) aria-describedby="name-hint";
            p.hint id="name-hint" { "For you alone: what will use the key, like “laptop” or “nightly report”." }
            fieldset.choices {
                legend { "Ends after" }
                @for (value, title) in LIVES.iter().map(|(value, title, _)| (*value, *title)).chain(OTHER_LIVES) {
                    label { input type="radio" name="life" value=(value) checked[value == typed.life]; (title) }
                }
            }
            div.only-date {
                label for="date" { "Last day" }
                input type="date" id="date" name="date" min=(tomorrow) value=(typed.date);
            }
            button type="submit" { "Create key" }
        }
    }
}

pub(crate) async fn create(Sent { holder, form }: Sent) -> Result<Response, PageError> {
    let made = match expiry(&form) {
        Ok(expires_at) => {
            let new = NewKey { name: form.text("name"), expires_at, rate_per_minute: None };
            keys::create(&mut *holder.client().await?, holder.party(), &new).await
        }
        Err(message) => Err(crate::account::AccountError::Refused(message)),
    };
    match made {
        Ok(drawn) => once(&holder, &drawn, None).await,
        Err(error) => {
            let typed = Typed { name: form.text("name"), life: form.text("life"), date: form.text("date") };
            let page = page(&holder, None, Some(&mistake(error)?), typed).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

fn expiry(form: &Form) -> Result<Option<DateTime<Utc>>, String> {
    let life = form.text("life");
    if life == "never" {
        return Ok(None);
    }
    if life == "date" {
        let day: NaiveDate = form.text("date").parse().map_err(|_| "choose the key's last day".to_owned())?;
        let end = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0));
        return end.map(|end| Some(end.and_utc())).ok_or("that day is too far off".to_owned());
    }
    let days = LIVES.iter().find(|(word, ..)| *word == life).map(|(_, _, days)| *days);
    let days = days.ok_or("choose how long the key lasts")?;
    Ok(Some(Utc::now() + TimeDelta::days(days)))
}

/// The page that shows a secret, which no other page does.
async fn once(holder: &Holder, drawn: &Drawn, replaced: Option<Overlap>) -> Result<Response, PageError> {
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
                (copy_button("secret", "Copy secret"))
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

/// A button that the script shows and that copies an element's text.
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
    let key = own(&holder, id).await?;
    let client = &mut *holder.client().await?;
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

/// The holder's own key with this id that can still be changed; others' are not there.
async fn own(holder: &Holder, id: i64) -> Result<Key, PageError> {
    let keys = list(&*holder.client().await?, holder.account()).await?;
    keys.into_iter().find(|key| key.id == id && key.status == "active").ok_or(PageError::NotFound)
}

/// Keys in a table; with what can be done to them, where asked for.
pub(crate) fn table<'a>(keys: impl Iterator<Item = &'a Key>, with_actions: bool) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of keys" {
            table {
                thead {
                    tr {
                        th scope="col" { "Name" } th scope="col" { "Key" } th scope="col" { "Status" }
                        th scope="col" { "Created" } th scope="col" { "Expires" } th scope="col" { "Last used" }
                    }
                }
                tbody { @for key in keys { (row(key, with_actions)) } }
            }
        }
    }
}

fn row(key: &Key, with_actions: bool) -> Markup {
    let is_active = key.status == "active";
    html! {
        tr {
            th scope="row" { (key.name) }
            td {
                code { "dds_live_…" (key.last_four) }
                @if with_actions && is_active {
                    div.actions {
                        a href={ "/dashboard/keys/" (key.id) "/replace" } aria-label={ "Replace " (key.name) } { "Replace" }
                        a.danger href={ "/dashboard/keys/" (key.id) "/delete" } aria-label={ "Delete " (key.name) } { "Delete" }
                    }
                }
            }
            td { span.tag.off[!is_active] { (key.status) } }
            td { (day(key.created_at)) }
            td { @match key.expires_at { Some(at) => (moment(at)), None => "never" } }
            td { (last_used(key)) }
        }
    }
}

fn last_used(key: &Key) -> Markup {
    html! { @match key.last_used { Some(at) => (moment(at)), None => "not yet" } }
}
