//! One account with one API key for each tier. Later starts use the same keys.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use reqwest::StatusCode;

use super::folder::StackFolder;
use super::services::Services;
use crate::api::Api;
use crate::folder::random_suffix;

const FILE: &str = "keys.json";

pub(super) const TIERS: [&str; 4] = ["free", "starter", "premium", "professional"];

/// Map from the name of a tier to the secret of its API key.
pub(super) type Keys = BTreeMap<String, String>;

/// Returns one key for each tier. This is the key of an earlier start if that key is still valid, and otherwise a new
/// key.
pub(super) async fn obtain_keys(services: &Services<'_>, api: &Api, folder: &StackFolder) -> Result<Keys> {
    let mut keys: Keys = folder.read_json(FILE).unwrap_or_default();
    for tier in TIERS {
        if let Some(secret) = keys.get(tier)
            && api.get("/v1/stocks?limit=1", Some(secret)).await?.status != StatusCode::UNAUTHORIZED
        {
            continue;
        }
        keys.insert(tier.to_owned(), create(services, tier).await?);
        folder.write_json(FILE, &keys)?;
    }
    Ok(keys)
}

async fn create(services: &Services<'_>, tier: &str) -> Result<String> {
    let email = format!("{tier}@demo.local");
    let account = services.api(&["account", "create", &email, "--tier", tier]).await?;
    // After an interrupted start, the account may already exist. Only a failure to create the key is therefore an
    // error.
    let name = format!("stack {}", random_suffix());
    let key = services.api(&["key", "create", &email, "--name", &name, "--json"]).await?;
    let key =
        key.success().with_context(|| format!("creating a key for {email}; account: {account:?}"))?.json()?;
    let secret = key.get("secret").and_then(|secret| secret.as_str());
    Ok(secret.context("api key create printed no secret")?.to_owned())
}
