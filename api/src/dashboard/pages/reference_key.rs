//! API key of a signed-in holder for `/docs`. Existing keys cannot be shown, because only hashes are stored.
//!
//! The key expires after 12 hours. Signing out, or creating another key for the page, deletes it.

use std::sync::Arc;

use axum::Extension;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use chrono::{TimeDelta, Utc};
use secrecy::ExposeSecret;
use tokio_postgres::Client;

use crate::account::AccountError;
use crate::account::keys::{self, CreatedKey, KeyKind, NewKey, list_keys};
use crate::dashboard::error::{PageResult, to_form_message};
use crate::dashboard::pages::reference::{ReferencePage, render_reference};
use crate::dashboard::session::form::AuthenticatedForm;
use crate::dashboard::session::visitor::AccountHolder;

const NAME: &str = "Reference page";
/// Lifetime of the key in hours, equal to the maximum lifetime of a session.
const HOURS: i64 = 12;

/// Creates the key, and shows the reference page. The page's key field contains the secret of the new key.
pub(crate) async fn create_reference_key(
    Extension(reference): Extension<Arc<ReferencePage>>,
    AuthenticatedForm { holder, .. }: AuthenticatedForm,
) -> PageResult {
    let created = create(&mut *holder.database_client().await?, &holder).await;
    let (status, secret, message) = match created {
        Ok(created) => (StatusCode::OK, Some(created.secret), None),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, None, Some(to_form_message(error)?)),
    };
    let secret = secret.as_ref().map(ExposeSecret::expose_secret);
    let page = render_reference(&holder.visitor, &reference, secret, message.as_deref()).await;
    Ok((status, page).into_response())
}

async fn create(client: &mut Client, holder: &AccountHolder) -> Result<CreatedKey, AccountError> {
    delete_reference_key(client, holder).await?;
    let expires_at = Some(Utc::now() + TimeDelta::hours(HOURS));
    let new = NewKey { name: NAME, kind: KeyKind::ReferencePage, expires_at, rate_per_minute: None };
    keys::create_key(client, holder.actor(), &new).await
}

/// Deletes the holder's key for the reference page, if it exists.
pub(crate) async fn delete_reference_key(
    client: &mut Client,
    holder: &AccountHolder,
) -> Result<(), AccountError> {
    let keys = list_keys(client, holder.account_id()).await?;
    for key in keys.iter().filter(|key| key.status == "active" && key.kind == KeyKind::ReferencePage) {
        keys::delete_key(client, holder.actor(), &key.id.to_string()).await?;
    }
    Ok(())
}
