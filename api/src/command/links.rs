//! `api account invite` and `api account reset`: one-time links, printed once.

use clap::Args;
use secrecy::ExposeSecret;
use serde_json::json;
use telemetry::outln;
use tokio_postgres::Client;

use super::report;
use crate::account::{Party, email, links};
use crate::auth::tier::Tier;

/// A link for a person.
#[derive(Debug, Args)]
pub struct Linking {
    /// Email address
    email: String,
    /// How long the link can be used
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i32).range(1..=336))]
    hours: i32,
    /// Address of the service that the link begins with
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Creates an invitation link for an address, and prints it.
pub(super) async fn invite(client: &Client, it: &Linking, tier: Tier) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let made = links::invite(client, &email, tier, it.hours).await?;
    print(it, &email, &made);
    Ok(())
}

/// Creates a password reset link for an account, and prints it.
pub(super) async fn reset(client: &mut Client, it: &Linking) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let made = links::reset(client, Party::Operator(&email), it.hours).await?;
    print(it, &email, &made);
    Ok(())
}

fn print(it: &Linking, email: &str, made: &links::Made) {
    let link = format!("{}/link/{}", it.url.trim_end_matches('/'), made.secret.expose_secret());
    if it.json {
        report::object(&json!({ "email": email, "link": link, "expires_at": made.expires_at }), true);
        return;
    }
    outln!("{link}");
    tracing::info!(
        "for {email}, usable once until {}; it cannot be shown again",
        made.expires_at.format("%F %R UTC")
    );
}
