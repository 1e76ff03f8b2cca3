//! Pages of one key: the new secret, the replacement form, and the deletion form.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use secrecy::ExposeSecret;

use crate::account::keys::{self, ApiKey, CreatedKey, Overlap};
use crate::app::state::App;
use crate::auth::ids::KeyId;
use crate::dashboard::error::{PageError, PageResult};
use crate::dashboard::session::form::AuthenticatedForm;
use crate::dashboard::session::notice::PageNotice;
use crate::dashboard::session::visitor::AccountHolder;
use crate::dashboard::view::layout::{Section, format_time};

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
pub(crate) const EXAMPLE_FEED: &str = "/calendar.ics?symbols=KO,PEP";

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
            h2 id="address-title" { "For a spreadsheet or a calendar program" }
            @for (id, path) in ["address", "address-2"].iter().zip(feeds) {
                div.copy {
                    pre tabindex="0" aria-labelledby="address-title" { code id=(id) { (feed(path)) } }
                    (copy_button(id, "Copy address"))
                }
            }
            p.hint { "With an API path after the key, such as " code { "/v1/stocks" } ", the address returns CSV. Deleting the key ends its addresses." }
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
pub(crate) fn format_last_use(key: &ApiKey) -> Markup {
    html! { @match key.last_used { Some(at) => (format_time(at)), None => "not yet" } }
}
