//! A generated market for tests that need many securities. Its bytes and the answers about it are the same in every
//! run.

use anyhow::Result;
use harness::{Api, TestApp, generate_market};

/// Newest day of the market, a Friday.
pub(crate) const UNTIL: &str = "2024-06-14";
/// Current date of the service, the Monday after [`UNTIL`].
pub(crate) const TODAY: &str = "2024-06-17";

pub(crate) struct Generated {
    pub(crate) app: TestApp,
    pub(crate) api: Api,
    pub(crate) key: String,
}

impl Generated {
    /// Starts a market of 60 securities with twelve years of history. A market of this size has an example of every
    /// special case, such as cuts, splits and renamed securities.
    pub(crate) async fn start() -> Result<Generated> {
        Generated::start_with("60", "12", &[]).await
    }

    pub(crate) async fn start_with(symbols: &str, years: &str, env: &[(&str, &str)]) -> Result<Generated> {
        let app = TestApp::builder()
            .env("SERVICE_DATE", TODAY)
            .env("ADDRESS_CALLS_PER_MINUTE", "1000000")
            .env("ADDRESS_CALLS_BURST", "1000000")
            .start()
            .await?;
        let market = app.folder().join("market").to_string_lossy().into_owned();
        generate_market(&market, &format!("--symbols {symbols} --years {years} --seed 7 --until {UNTIL}"))?;
        let load = ["load", &market, "--source", "demo", "--observed-at", "2024-06-15T00:00:00Z"];
        app.ingest(&load).await?.success()?;
        app.catch_up().await?;
        let unlimited =
            "update accounts.tiers set rate_per_minute = 1000000, burst = 1000000, monthly_quota = 100000000";
        app.sql(unlimited, &[]).await?;
        let api = app.api_serve_with(env).await?;
        let key = app.key("professional").await?;
        Ok(Generated { app, api, key })
    }

    pub(crate) async fn body(&self, path: &str) -> Result<Vec<u8>> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        anyhow::ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text());
        Ok(reply.body)
    }
}
