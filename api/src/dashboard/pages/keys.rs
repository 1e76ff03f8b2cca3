//! `/dashboard/keys`: list of keys, and forms that create, replace or delete one.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};
use secrecy::ExposeSecret;

use crate::account::AccountError;
use crate::account::keys::{self, ApiKey, CreatedKey, KeyKind, NewKey, Overlap, list_keys};
use crate::app::App;
use crate::auth::KeyId;
use crate::dashboard::error::{PageError, PageResult, to_form_message};
use crate::dashboard::form::{AuthenticatedForm, Form, PageNotice};
use crate::dashboard::view::layout::{
    Section, Text, error_message, format_day, format_time, stacked_rows, success_message,
};
use crate::dashboard::visitor::AccountHolder;

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
        (stacked_rows("Table of keys", keys.iter().copied(), &[
            (Text("Name"), &|key| html! { (key.name) }),
            (Text("Key"), &|key| html! {
                code { "dds_live_…" (key.last_four) }
                @if with_actions && key.status == "active" {
                    div.actions {
                        @if !is_replaced(key) {
                            a href={ "/dashboard/keys/" (key.id) "/replace" } aria-label={ "Replace " (key.name) } { "Replace" }
                        }
                        a.danger href={ "/dashboard/keys/" (key.id) "/delete" } aria-label={ "Delete " (key.name) } { "Delete" }
                    }
                }
            }),
            (Text("Status"), &|key| html! { span.tag.off[key.status != "active"] { (key.status) } }),
            (Text("Created"), &|key| format_day(key.created_at)),
            (Text("Expires"), &|key| html! { @match key.expires_at { Some(at) => (format_time(at)), None => "never" } }),
            (Text("Last used"), &|key| format_last_use(key)),
        ]))
    }
}

const OVERLAPS: [(Overlap, &str); 4] = [
    (Overlap::Hour, "For another hour"),
    (Overlap::Day, "For another 24 hours"),
    (Overlap::Week, "For another 7 days"),
    (Overlap::None, "No longer: it ends now"),
];

/// Message for a second submission of the form that replaces a key.
const ENDED: &str = "the key has ended; if it was just replaced and the new secret is lost, replace the newer key with the same name";

/// Extracts the key id from the path.
impl FromRequestParts<App> for KeyId {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> PageResult<Self> {
        let path = Path::<Self>::from_request_parts(parts, app).await;
        path.map(|Path(id)| id).map_err(|_| PageError::NotFound)
    }
}

/// Example path of a calendar feed. The URL of the feed has `/feed/{key}` before this path.
const EXAMPLE_FEED: &str = "/calendar.ics?symbols=KO,PEP";

/// Page with a new secret. No other page shows the secret. `feeds` are API paths for programs that cannot
/// send a header. These programs put `/feed/{key}` before the path.
pub(crate) async fn show_new_secret(
    holder: &AccountHolder,
    created: &CreatedKey,
    replaced: Option<Overlap>,
    feeds: &[String],
) -> PageResult {
    let secret = created.secret.expose_secret();
    let shown = holder.visitor.example.latest_example().await;
    let call = shown.as_ref().map_or("/v1/stocks?limit=3", |shown| shown.call.as_str());
    let curl =
        format!("curl -s '{}{call}' \\\n  -H 'Authorization: Bearer {secret}'", holder.visitor.site.origin);
    let feed = |path: &String| format!("{}/feed/{secret}{path}", holder.visitor.site.origin);
    let body = html! {
        h1 { "Your key “" (created.key.name) "”" }
        p.notice role="status" { strong { "Copy it now." } " It is shown only now, and the service does not store it. If you lose it, create another key." }
        @match replaced {
            Some(Overlap::None) => p { "The old key is refused from now on." },
            Some(_) => p { "The old key still works for a while, so programs that use it do not fail at once." },
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
            h2 id="address-title" { "For a spreadsheet, a calendar program or a feed reader" }
            @for (id, path) in ["address", "address-2", "address-3"].iter().zip(feeds) {
                div.copy {
                    pre tabindex="0" aria-labelledby="address-title" { code id=(id) { (feed(path)) } }
                    (copy_button(id, "Copy address"))
                }
            }
            p.hint { "With an API path after the key, such as " code { "/v1/stocks" } ", the address returns CSV. " code { "/cell/KO/dividend_yield" } " returns one value. Deleting the key ends its addresses." }
            p.hint { "Keep the key out of pages, apps and repositories that others can read." }
        }
        p { a.button href="/dashboard/keys" { "I have copied it" } }
    };
    Ok(holder.render_page("Your new key", Section::Keys, &body))
}

/// Button that copies the text of the element with the id `of`. The script of the page makes the button visible.
fn copy_button(of: &str, title: &str) -> Markup {
    html! { button.second type="button" data-copy=(of) hidden { (title) } }
}

pub(crate) async fn show_replace_form(id: KeyId, holder: AccountHolder) -> PageResult {
    let key = find_own_key(&holder, id).await?;
    let body = html! {
        div.narrow {
            h1 { "Replace “" (key.name) "”" }
            p { "You get a new secret with the same name and expiry. How long should the old key (…" (key.last_four) ") keep working?" }
            form method="post" action={ "/dashboard/keys/" (id) "/replace" } {
                (holder.csrf_field())
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
    Ok(holder.render_page("Replace a key", Section::Keys, &body))
}

pub(crate) async fn replace_key(
    id: KeyId,
    AuthenticatedForm { holder, form }: AuthenticatedForm,
) -> PageResult {
    let overlap: Overlap = form.text("overlap").parse().map_err(PageError::Refused)?;
    let client = &mut *holder.database_client().await?;
    let key = keys::find_key(client, holder.account_id(), id).await?.ok_or(PageError::NotFound)?;
    if key.status != "active" {
        return Err(PageError::Refused(ENDED.to_owned()));
    }
    let created = keys::replace_key(client, holder.actor(), &key.id.to_string(), overlap).await?;
    show_new_secret(&holder, &created, Some(overlap), &[EXAMPLE_FEED.to_owned()]).await
}

pub(crate) async fn show_delete_form(id: KeyId, holder: AccountHolder) -> PageResult {
    let key = find_own_key(&holder, id).await?;
    let body = html! {
        div.narrow {
            h1 { "Delete “" (key.name) "”?" }
            p { "Programs with the key …" (key.last_four) " are refused from the next call on. This cannot be undone." }
            p { "Last used: " (format_last_use(&key)) "." }
            form.row method="post" action={ "/dashboard/keys/" (id) "/delete" } {
                (holder.csrf_field())
                button.danger type="submit" { "Delete key" }
                a.button.second href="/dashboard/keys" { "Keep it" }
            }
        }
    };
    Ok(holder.render_page("Delete a key", Section::Keys, &body))
}

pub(crate) async fn delete_key(id: KeyId, AuthenticatedForm { holder, .. }: AuthenticatedForm) -> PageResult {
    let key = find_own_key(&holder, id).await?;
    keys::delete_key(&mut *holder.database_client().await?, holder.actor(), &key.id.to_string()).await?;
    Ok(Redirect::to(&PageNotice::KeyDeleted.add_to_path("/dashboard/keys")).into_response())
}

/// Finds the holder's active key with this id. A key of another holder is treated as unknown.
async fn find_own_key(holder: &AccountHolder, id: KeyId) -> PageResult<ApiKey> {
    let key = keys::find_key(&*holder.database_client().await?, holder.account_id(), id).await?;
    key.filter(|key| key.status == "active").ok_or(PageError::NotFound)
}

/// Time at which a key was last used, as text.
fn format_last_use(key: &ApiKey) -> Markup {
    html! { @match key.last_used { Some(at) => (format_time(at)), None => "not yet" } }
}
