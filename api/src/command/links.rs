//! `api account invite` and `api account reset`: one-time links, printed once.

use clap::Args;
use secrecy::ExposeSecret;
use serde_json::json;
use telemetry::outln;
use tokio_postgres::Client;

use super::output;
use crate::account::{AccountActor, links, parse_email};
use crate::auth::tier::Tier;

/// Arguments of `api account invite` and `api account reset`.
#[derive(Debug, Args)]
pub(super) struct LinkArguments {
    /// Email address of the person
    email: String,
    /// Lifetime of the link, in hours
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i32).range(1..=336))]
    hours: i32,
    /// Public address of the service. The link begins with this address
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Creates and prints a one-time link: an invitation to the tier `invited`, or else a password reset.
pub(super) async fn print_link(
    client: &mut Client,
    arguments: &LinkArguments,
    invited: Option<Tier>,
) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let created = match invited {
        Some(tier) => links::create_invitation(client, &email, tier, arguments.hours).await?,
        None => links::create_reset_link(client, AccountActor::Operator(&email), arguments.hours).await?,
    };
    let (secret, expires_at) = (created.secret.expose_secret(), created.expires_at);
    let link = format!("{}/link/{secret}", arguments.url.trim_end_matches('/'));
    if arguments.json {
        output::print_object(&json!({ "email": email, "link": link, "expires_at": expires_at }), true);
        return Ok(());
    }
    outln!("{link}");
    tracing::info!(
        "link for {email}, usable once until {}; it cannot be shown again",
        expires_at.format("%F %R UTC")
    );
    Ok(())
}
