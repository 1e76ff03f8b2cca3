//! API key of a signed-in holder for `/docs`.
//!
//! The service stores hashes of keys, so it cannot show an existing one, and `/v1` reads no cookie. The holder
//! therefore creates a key for the page with one click. It is an ordinary key: listed, logged, and revocable. It
//! expires after 12 hours, like a session. A newer key or a sign-out deletes it.

use std::sync::Arc;

use axum::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{TimeDelta, Utc};
use secrecy::ExposeSecret;
use tokio_postgres::Client;

use crate::account::AccountError;
use crate::account::keys::{self, Drawn, NewKey, list};
use crate::dashboard::error::{PageError, mistake};
use crate::dashboard::pages::reference::{KeyBox, Reference, page};
use crate::dashboard::session::form::Sent;
use crate::dashboard::session::visitor::Holder;

const NAME: &str = "Reference page";
/// Lifetime of the key, equal to the longest session.
const HOURS: i64 = 12;

/// Creates the key and shows the reference with it.
pub(crate) async fn create(
    Extension(reference): Extension<Arc<Reference>>,
    Sent { holder, .. }: Sent,
) -> Result<Response, PageError> {
    let mut client = holder.client().await?;
    match draw(&mut client, &holder).await {
        Ok(drawn) => {
            let key_box = KeyBox::New(drawn.secret.expose_secret());
            Ok(page(&holder.visitor, &reference, key_box).await)
        }
        Err(error) => {
            let message = mistake(error)?;
            let page = page(&holder.visitor, &reference, KeyBox::Failed(&message)).await;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

async fn draw(client: &mut Client, holder: &Holder) -> Result<Drawn, AccountError> {
    delete(client, holder).await?;
    let expires_at = Some(Utc::now() + TimeDelta::hours(HOURS));
    let new = NewKey { name: NAME, expires_at, rate_per_minute: None };
    keys::create(client, holder.party(), &new).await
}

/// Deletes the key, if it exists.
pub(crate) async fn delete(client: &mut Client, holder: &Holder) -> Result<(), AccountError> {
    let keys = list(client, holder.account()).await?;
    for key in keys.iter().filter(|key| key.status == "active" && key.name == NAME) {
        keys::delete(client, holder.party(), &key.id.to_string()).await?;
    }
    Ok(())
}
