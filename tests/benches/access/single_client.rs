//! Benchmark of a client that waits for each response. Its latency shows the round trips to Postgres (`--postgres-delay`).

use std::time::Instant;

use anyhow::{Context, Result};
use tokio_postgres::NoTls;

use super::Bench;
use super::load::Load;

/// Number of statements from which the median round trip is taken.
const STATEMENTS: usize = 51;

impl Bench {
    pub(crate) async fn single_client(&mut self) -> Result<()> {
        if !self.asked("one client") {
            return Ok(());
        }
        println!("{:44} {:>44.2} ms", "round trip to Postgres", self.round_trip_ms().await?);
        let prices = format!("/v1/prices/{}?range=10y&limit=5000", self.seeded.long);
        for (name, cache_mib, requests) in [
            ("quote, cached, one client", "64", self.seeded.requests("quote")),
            ("quote, not cached, one client", "0", self.seeded.requests("quote")),
            ("splits, not cached, one client", "0", self.seeded.requests("splits")),
            ("screener, not cached, one client", "0", self.seeded.lists()),
            ("ten years of prices, not cached, one client", "0", self.seeded.same(&prices)),
        ] {
            let api = self.api(cache_mib).await?;
            let load = Load::new(&[&api.base_url], 1, requests);
            if cache_mib != "0" {
                load.once().await?;
            }
            self.line(name, &load).await?;
        }
        Ok(())
    }

    /// Median duration of a minimal statement on the way that the API takes, in milliseconds.
    async fn round_trip_ms(&self) -> Result<f64> {
        let url = &self.app.endpoints().api_database_url;
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let mut times = Vec::with_capacity(STATEMENTS);
        for _ in 0..STATEMENTS {
            let started = Instant::now();
            client.simple_query("select 1").await?;
            times.push(started.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        times.get(STATEMENTS / 2).copied().context("a statement")
    }
}
