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
pub struct LinkArguments {
    /// Email address of the person
    email: String,
    /// Lifetime of the link, in hours
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i32).range(1..=336))]
    hours: i32,
    /// Public address of the service, with which the link begins
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Creates an invitation link for an email address, and prints the link.
pub(super) async fn create_invitation(
    client: &mut Client,
    arguments: &LinkArguments,
    tier: Tier,
) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let made = links::create_invitation(client, &email, tier, arguments.hours).await?;
    print(arguments, &email, &made);
    Ok(())
}

/// Creates a password reset link for an account, and prints the link.
pub(super) async fn create_reset_link(client: &mut Client, arguments: &LinkArguments) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let made = links::create_reset_link(client, AccountActor::Operator(&email), arguments.hours).await?;
    print(arguments, &email, &made);
    Ok(())
}

fn print(arguments: &LinkArguments, email: &str, made: &links::CreatedLink) {
    let link = format!("{}/link/{}", arguments.url.trim_end_matches('/'), made.secret.expose_secret());
    if arguments.json {
        output::print_object(&json!({ "email": email, "link": link, "expires_at": made.expires_at }), true);
        return;
    }
    outln!("{link}");
    tracing::info!(
        "link for {email}, usable once until {}; it cannot be shown again",
        made.expires_at.format("%F %R UTC")
    );
}
