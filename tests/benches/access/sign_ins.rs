//! Flood of sign-ins with wrong passwords, each from another address and for another account.

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use harness::Api;
use reqwest::Client;

const CONNECTIONS: usize = 64;

/// Sends sign-ins until the caller drops the future. Returns only if a request or a check fails.
pub(crate) async fn flood(api: &Api) -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    try_join_all((0..CONNECTIONS).map(|number| guesses(api, number))).await?;
    Ok(())
}

async fn guesses(api: &Api, number: usize) -> Result<()> {
    let client = Client::builder().no_proxy().build()?;
    for turn in 0.. {
        let address = format!("10.{number}.{}.{}", turn / 256 % 256, turn % 256);
        let page = client
            .post(format!("{}/sign-in", api.base_url))
            .header("x-forwarded-for", &address)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("email={address}%40example.com&password=wrong+horse+battery"))
            .send()
            .await?;
        let status = page.status().as_u16();
        ensure!(
            [422, 429, 503].contains(&status),
            "a sign-in was answered with {status}: {}",
            page.text().await?
        );
    }
    Ok(())
}
