//! `/dashboard/keys`: list of keys, and a form that creates one.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};

use crate::account::AccountError;
use crate::account::keys::{self, Key, NewKey, list};
use crate::dashboard::error::{PageError, mistake};
use crate::dashboard::pages::key::{last_used, once};
use crate::dashboard::session::form::{Form, Sent};
use crate::dashboard::session::notice::Notice;
use crate::dashboard::session::visitor::Holder;
use crate::dashboard::view::layout::{Section, alert, day, done, moment};

/// Lifetimes of a key: form value, label and days. The first is the default.
const LIVES: [(&str, &str, i64); 3] =
    [("90", "90 days", 90), ("30", "30 days", 30), ("365", "One year", 365)];
/// Lifetimes that are not a number of days: form value and label.
const OTHER_LIVES: [(&str, &str); 2] = [("never", "Never"), ("date", "On a day")];
/// Values of the form that creates a key, kept after a mistake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    name: &'a str,
    life: &'a str,
    date: &'a str,
}

impl Typed<'_> {
    /// Default values, with a suggested name.
    pub(crate) fn nothing(name: &'static str) -> Typed<'static> {
        Typed { name, life: LIVES[0].0, date: "" }
    }
}

pub(crate) async fn show(holder: Holder) -> Result<Response, PageError> {
    let notice = Notice::told(&holder.visitor.query);
    page(&holder, notice, None, Typed::nothing("")).await
}

async fn page(
    holder: &Holder,
    notice: Option<&str>,
    message: Option<&str>,
    typed: Typed<'_>,
) -> Result<Response, PageError> {
    let all = list(&*holder.client().await?, holder.account()).await?;
    let shown: Vec<&Key> = all.iter().filter(|key| key.status != "deleted").collect();
    let body = html! {
        h1 { "Keys" }
        (done(notice))
        @if shown.is_empty() {
            p.lead { "No key yet. Create one to make your first call." }
        } @else {
            (table(&shown, true))
        }
        section.panel aria-labelledby="new" {
            h2 id="new" { "Create a key" }
            (form(holder, message, typed))
        }
    };
    Ok(holder.page("Keys", Section::Keys, &body))
}

/// Form that creates a key.
pub(crate) fn form(holder: &Holder, message: Option<&str>, typed: Typed<'_>) -> Markup {
    let tomorrow = (Utc::now() + TimeDelta::days(1)).format("%F");
    html! {
        (alert(message))
        form method="post" action="/dashboard/keys" {
            (holder.token())
            label for="name" { "Name" }
            input id="name" name="name" required maxlength="64" autocomplete="off" value=(typed.name) aria-describedby="name-hint" autofocus[message.is_some()];
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
        Err(message) => Err(AccountError::Refused(message)),
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

/// Table of keys, optionally with their actions.
pub(crate) fn table(keys: &[&Key], with_actions: bool) -> Markup {
    let is_replaced = |key: &Key| {
        keys.iter().any(|other| other.id > key.id && other.name == key.name && other.status == "active")
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Table of keys" {
            table.stack {
                thead {
                    tr {
                        th scope="col" { "Name" } th scope="col" { "Key" } th scope="col" { "Status" }
                        th scope="col" { "Created" } th scope="col" { "Expires" } th scope="col" { "Last used" }
                    }
                }
                tbody { @for key in keys { (row(key, with_actions, is_replaced(key))) } }
            }
        }
    }
}

fn row(key: &Key, with_actions: bool, is_replaced: bool) -> Markup {
    let is_active = key.status == "active";
    html! {
        tr {
            th scope="row" { (key.name) }
            td data-label="Key" {
                code { "dds_live_…" (key.last_four) }
                @if with_actions && is_active {
                    div.actions {
                        @if !is_replaced {
                            a href={ "/dashboard/keys/" (key.id) "/replace" } aria-label={ "Replace " (key.name) } { "Replace" }
                        }
                        a.danger href={ "/dashboard/keys/" (key.id) "/delete" } aria-label={ "Delete " (key.name) } { "Delete" }
                    }
                }
            }
            td data-label="Status" { span.tag.off[!is_active] { (key.status) } }
            td data-label="Created" { (day(key.created_at)) }
            td data-label="Expires" { @match key.expires_at { Some(at) => (moment(at)), None => "never" } }
            td data-label="Last used" { (last_used(key)) }
        }
    }
}
