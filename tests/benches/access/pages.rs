//! Benchmark of the public pages of securities: uncached, cached, and as a flood during API calls.

use anyhow::Result;

use super::load::Load;
use super::{Bench, UNLIMITED};

const PUBLIC: [(&str, &str); 3] =
    [("PAGES", "public"), ("PAGES_PER_MINUTE", "60000000"), ("PAGES_BURST", "60000000")];
/// API calls per second during the flood of page views.
const PACE: u32 = 500;
/// Number of connections of the flood.
const FLOOD: usize = 64;
/// Query parameters of the default page, which has five years of prices.
const FIVE_YEARS: &str = "?range=5y&prices=split";

impl Bench {
    pub(crate) async fn pages(&mut self) -> Result<()> {
        if !self.asked("page of a security") {
            return Ok(());
        }
        self.single_pages().await?;
        self.flood_of_pages("uncached pages", "0", None).await?;
        self.flood_of_pages("2,000 cached pages/s", "512", Some(2_000)).await?;
        self.flood_of_pages("cached pages", "512", None).await
    }

    async fn single_pages(&mut self) -> Result<()> {
        let settings = [&UNLIMITED[..], &PUBLIC].concat();
        let deep = [("PAGES_TIER", "professional"), ("API_CACHE_MIB", "0")];
        let uncached = self.app.api_serve_with(&[&settings[..], &deep].concat()).await?;
        for (name, parameters) in [
            ("page of a security, 5 years, not cached", FIVE_YEARS),
            ("page of a security, all years, not cached", "?range=max&prices=split"),
        ] {
            let load = Load::uncounted(&uncached.base_url, 1, self.seeded.pages(parameters));
            self.line(name, &load).await?;
        }
        drop(uncached);
        let large = [("PAGES_TIER", "professional"), ("API_CACHE_MIB", "512")];
        let cached = self.app.api_serve_with(&[&settings[..], &large].concat()).await?;
        let mut requests = self.seeded.pages(FIVE_YEARS).to_vec();
        requests.truncate(500);
        let requests = std::sync::Arc::new(requests);
        Load::uncounted(&cached.base_url, 16, std::sync::Arc::clone(&requests)).once().await?;
        for connections in [1, 64] {
            let load = Load::uncounted(&cached.base_url, connections, std::sync::Arc::clone(&requests));
            self.line("page of a security, cached", &load).await?;
        }
        Ok(())
    }

    /// Measures quotes at a fixed pace, alone and during a flood of page views. `pace` is the number of page views per
    /// second; with `None`, there are as many as possible.
    async fn flood_of_pages(&self, name: &str, cache_mib: &str, pace: Option<u32>) -> Result<()> {
        let settings = [("PAGES_TIER", "professional"), ("API_CACHE_MIB", cache_mib)];
        let api = self.app.api_serve_with(&[&UNLIMITED[..], &PUBLIC, &settings].concat()).await?;
        let quotes = Load::new(&[&api.base_url], 16, self.seeded.requests("quote")).paced(PACE);
        let mut requests = self.seeded.pages(FIVE_YEARS).to_vec();
        if cache_mib != "0" {
            requests.truncate(500);
        }
        let flood = Load::uncounted(&api.base_url, FLOOD, std::sync::Arc::new(requests));
        let flood = match pace {
            Some(pace) => flood.paced(pace),
            None => flood,
        };
        if cache_mib != "0" {
            flood.once().await?;
        }
        let alone = quotes.run(self.seconds()).await?;
        let (during, pages) = futures::try_join!(quotes.run(self.seconds()), flood.run(self.seconds()))?;
        println!(
            "{:44} p99 {:.2} ms, alone {:.2} ms: {:.1} x; p50 {:.2} and {:.2} ms; {:.0} pages/s, {} failed",
            format!("quote at a fixed pace, during {name}"),
            during.quantile(0.99),
            alone.quantile(0.99),
            during.quantile(0.99) / alone.quantile(0.99),
            during.quantile(0.5),
            alone.quantile(0.5),
            pages.rate(),
            during.failed + pages.failed
        );
        Ok(())
    }
}
