//! `/dashboard/keys`: list of keys, and a form that creates one.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};

use crate::account::AccountError;
use crate::account::keys::{self, ApiKey, KeyKind, NewKey, list_keys};
use crate::dashboard::error::{PageResult, to_form_message};
use crate::dashboard::pages::key::{EXAMPLE_FEED, format_last_use, show_new_secret};
use crate::dashboard::session::form::{AuthenticatedForm, Form};
use crate::dashboard::session::notice::PageNotice;
use crate::dashboard::session::visitor::AccountHolder;
use crate::dashboard::view::layout::{Section, error_message, format_day, format_time, success_message};
use crate::dashboard::view::table::{Text, stacked_table};

/// Choices for the expiry of a key, each with its form value, a label and a number of days. The first choice is the
/// default.
const LIFETIMES: [(&str, &str, Option<i64>); 5] = [
    ("90", "90 days", Some(90)),
    ("30", "30 days", Some(30)),
    ("365", "One year", Some(365)),
    ("never", "Never", None),
    ("date", "On a day", None),
];

/// Values in the form that creates a key. After an error, the form shows them again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyFormValues<'a> {
    name: &'a str,
    lifetime: &'a str,
    date: &'a str,
}

impl KeyFormValues<'_> {
    /// Default values of the form, with a suggested name.
    pub(crate) fn with_name(name: &'static str) -> KeyFormValues<'static> {
        KeyFormValues { name, lifetime: LIFETIMES[0].0, date: "" }
    }
}

pub(crate) async fn show_keys(holder: AccountHolder) -> PageResult {
    let notice = PageNotice::message_for_query(&holder.visitor.query);
    page(&holder, notice, None, KeyFormValues::with_name("")).await
}

async fn page(
    holder: &AccountHolder,
    notice: Option<&str>,
    message: Option<&str>,
    typed: KeyFormValues<'_>,
) -> PageResult {
    let all = list_keys(&*holder.database_client().await?, holder.account_id()).await?;
    let shown: Vec<&ApiKey> = all.iter().filter(|key| key.status != "deleted").collect();
    let body = html! {
        h1 { "Keys" }
        (success_message(notice))
        @if shown.is_empty() {
            p.lead { "No key yet. Create one to make your first call." }
        } @else {
            (render_key_table(&shown, true))
        }
        section.panel aria-labelledby="new" {
            h2 id="new" { "Create a key" }
            (render_key_form(holder, message, typed))
        }
    };
    Ok(holder.visitor.render_form("Keys", Section::Keys, message, &body))
}

/// Form that creates a key.
pub(crate) fn render_key_form(
    holder: &AccountHolder,
    message: Option<&str>,
    typed: KeyFormValues<'_>,
) -> Markup {
    let tomorrow = (Utc::now() + TimeDelta::days(1)).format("%F");
    html! {
        (error_message(message))
        form method="post" action="/dashboard/keys" {
            (holder.csrf_field())
            label for="name" { "Name" }
            input id="name" name="name" required maxlength="64" autocomplete="off" value=(typed.name) aria-describedby="name-hint" autofocus[message.is_some()];
            p.hint id="name-hint" { "Program or device that will use the key, such as “laptop” or “nightly report”." }
            fieldset.choices {
                legend { "Ends after" }
                @for (value, title, _) in LIFETIMES {
                    label { input type="radio" name="life" value=(value) checked[value == typed.lifetime]; (title) }
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

pub(crate) async fn create_key(AuthenticatedForm { holder, form }: AuthenticatedForm) -> PageResult {
    let made = match expiry(&form) {
        Ok(expires_at) => {
            let new =
                NewKey { name: form.text("name"), kind: KeyKind::Holder, expires_at, rate_per_minute: None };
            keys::create_key(&mut *holder.database_client().await?, holder.actor(), &new).await
        }
        Err(message) => Err(AccountError::Refused(message)),
    };
    match made {
        Ok(created) => show_new_secret(&holder, &created, None, &[EXAMPLE_FEED.to_owned()]).await,
        Err(error) => {
            let [name, lifetime, date] = ["name", "life", "date"].map(|field| form.text(field));
            let typed = KeyFormValues { name, lifetime, date };
            page(&holder, None, Some(&to_form_message(error)?), typed).await
        }
    }
}

fn expiry(form: &Form) -> Result<Option<DateTime<Utc>>, String> {
    let lifetime = form.text("life");
    if lifetime == "never" {
        return Ok(None);
    }
    if lifetime == "date" {
        let day: NaiveDate = form.text("date").parse().map_err(|_| "choose the key's last day".to_owned())?;
        let end = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0));
        return end.map(|end| Some(end.and_utc())).ok_or("that day is too far off".to_owned());
    }
    let days = LIFETIMES.iter().find(|(word, ..)| *word == lifetime).and_then(|(.., days)| *days);
    let days = days.ok_or("choose how long the key lasts")?;
    Ok(Some(Utc::now() + TimeDelta::days(days)))
}

/// Table of keys. If `with_actions` is true, active keys have links to replace or delete them.
pub(crate) fn render_key_table(keys: &[&ApiKey], with_actions: bool) -> Markup {
    let is_replaced = |key: &ApiKey| {
        keys.iter().any(|other| other.id > key.id && other.name == key.name && other.status == "active")
    };
    html! {
        (stacked_table("Table of keys", &[Text("Name"), Text("Key"), Text("Status"), Text("Created"), Text("Expires"), Text("Last used")], html! { @for key in keys { (row(key, with_actions, is_replaced(key))) } }))
    }
}

fn row(key: &ApiKey, with_actions: bool, is_replaced: bool) -> Markup {
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
            td data-label="Created" { (format_day(key.created_at)) }
            td data-label="Expires" { @match key.expires_at { Some(at) => (format_time(at)), None => "never" } }
            td data-label="Last used" { (format_last_use(key)) }
        }
    }
}
