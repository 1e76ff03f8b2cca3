//! Benchmark of the API under load, and of simple servers for comparison. One of them is axum with a static body; its
//! rate is an upper bound. The others use the naive design with three statements per request.
//!
//! ```sh
//! cargo bench -p tests --bench access -- --symbols 10000 --accounts 2000 --seconds 3
//! cargo bench -p tests --bench access -- --symbols 1000 --soak 600
//! cargo bench -p tests --bench access -- --symbols 1000 --streams 1000
//! cargo bench -p tests --bench access -- --symbols 100 --accounts 200000 --seconds 20 --replay
//! ```
//!
//! All servers and the load generator run on the same machine, so that ratios are comparable. A refused call (4xx) ends
//! the run. A server error (5xx) is counted.

#![expect(clippy::print_stdout, reason = "the figures are the program's output")]

mod arguments;
mod capacity;
mod counts;
mod load;
mod pages;
mod peers;
mod replay;
mod rivals;
mod seed;
mod sign_ins;
mod single_client;
mod soak;
mod streams;

use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use harness::{Api, PostgresServer, Servers, TestApp};

use arguments::Arguments;
use counts::Count;
use load::{Figures, Load};
use rivals::Rival;
use seed::Seeded;

struct Bench {
    arguments: Arguments,
    app: TestApp,
    /// The synchronous standby. It is dropped after `app`, whose last change waits for it.
    standby: Option<PostgresServer>,
    seeded: Seeded,
    /// Connections and requests per second of each measurement of `static body by axum`, the upper bound of all rates.
    limits: Vec<(usize, f64)>,
}

const COUNTED_CONNECTIONS: usize = 64;
const COUNTED_CALLS: usize = 8_192;

const UNLIMITED: [(&str, &str); 6] = [
    ("API_ADDRESS_CONNECTIONS_WITHOUT_KEY", "4096"),
    ("ADDRESS_CALLS_PER_MINUTE", "60000000"),
    ("ADDRESS_CALLS_BURST", "60000000"),
    ("ADDRESS_FAILURES_PER_MINUTE", "60000000"),
    ("API_ADMISSION_TIMEOUT_MS", "5000"),
    ("SERVICE_DATE", "2024-07-01"),
];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if arguments.rival.is_asked() {
        return runtime.block_on(rivals::serve(arguments.rival));
    }
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<()> {
    let servers = Servers::private().await?;
    let mut builder = TestApp::builder().servers(&servers);
    if arguments.postgres_delay > 0 {
        builder = builder.postgres_delay(Duration::from_millis(arguments.postgres_delay));
    }
    let app = builder.start().await?;
    let seeded = seed::seed(&app, arguments.symbols, arguments.years, arguments.accounts).await?;
    println!(
        "{} symbols, {} years, {} accounts, {} s a line",
        seeded.symbols.len(),
        arguments.years,
        seeded.keys.len(),
        arguments.seconds
    );
    let mut bench = Bench { arguments, app, standby: None, seeded, limits: vec![] };
    if let (Some(count), Some(folder)) = (bench.arguments.count, bench.arguments.counts.clone()) {
        return bench.count(count, &folder).await;
    }
    if let Some(seconds) = bench.arguments.soak {
        let api = bench.api("64").await?;
        println!("{}", soak::soak(&api, &bench.seeded, Duration::from_secs(seconds)).await?);
        return Ok(());
    }
    if let Some(streams) = bench.arguments.streams {
        let limits = format!("{streams},{streams},{streams},{streams}");
        let api = bench.api_with(&[("CHANGE_STREAMS", &limits)]).await?;
        println!("{}", streams::measure(&bench.app, &api, &bench.seeded, streams).await?);
        return Ok(());
    }
    if bench.arguments.replay {
        return bench.replay().await;
    }
    bench.static_bodies().await?;
    bench.quotes().await?;
    bench.uncached().await?;
    bench.single_client().await?;
    bench.mixed().await?;
    bench.pages().await?;
    bench.sign_ins().await?;
    bench.processor_time().await?;
    bench.open_connections().await?;
    bench.naive().await?;
    bench.peers().await?;
    bench.prices().await
}

impl Bench {
    fn seconds(&self) -> Duration {
        Duration::from_secs(self.arguments.seconds)
    }

    fn asked(&self, name: &str) -> bool {
        self.arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Measures a load and prints its figures as one line, with the rate as a share of the rate in `limits`. Returns
    /// `None` if `--only` excludes the line.
    async fn line(&mut self, name: &str, load: &Load) -> Result<Option<Figures>> {
        if !self.asked(name) && !name.starts_with("static") {
            return Ok(None);
        }
        let mut rounds = Vec::new();
        for _ in 0..self.arguments.rounds.max(1) {
            let before = self.used().await?;
            let figures = load.run(self.seconds()).await.with_context(|| name.to_owned())?;
            if load.is_counted {
                let counted = usize::try_from(self.used().await? - before)?;
                let answered = figures.answered..=figures.answered + figures.failed;
                ensure!(answered.contains(&counted), "{name}: {answered:?} answered, {counted} counted");
            }
            rounds.push(figures);
        }
        rounds.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let figures = rounds.swap_remove(rounds.len() / 2);
        if name.starts_with("static") {
            self.limits.push((load.connections, figures.rate()));
        }
        let limit = self.limits.iter().find(|(connections, _)| *connections == load.connections);
        let share = limit.map_or_else(String::new, |(_, limit)| format!("{:.2}", figures.rate() / limit));
        println!(
            "{name:44} {:>4} {:>9.0}/s {share:>6} {:>8.2} ms {:>8.2} ms {:>8.2} ms {:>5}",
            load.connections,
            figures.rate(),
            figures.quantile(0.5),
            figures.quantile(0.99),
            figures.quantile(0.999),
            figures.failed
        );
        Ok(Some(figures))
    }

    async fn api(&self, cache_mib: &str) -> Result<Api> {
        self.api_with(&[("API_CACHE_MIB", cache_mib)]).await
    }

    async fn api_with(&self, settings: &[(&str, &str)]) -> Result<Api> {
        self.app.api_serve_with(&[&UNLIMITED, settings].concat()).await
    }

    /// Prints the number of instructions or system calls per request. There are three lines: static body, cached quote
    /// and uncached quote.
    async fn count(&self, count: Count, folder: &Path) -> Result<()> {
        let requests = self.seeded.requests("quote");
        let under = if count == Count::Instructions { counts::callgrind(folder) } else { vec![] };
        let rival = Rival::start_under(&under, &self.app, &["--static-bytes", "1000"]).await?;
        let load = Load::uncounted(&rival.address, COUNTED_CONNECTIONS, requests.clone());
        let limit = count.of(rival.pid(), folder, &load, COUNTED_CALLS).await?;
        println!("{count:?} a call at {COUNTED_CONNECTIONS} connections");
        println!("{:44} {limit:>9.1}", "static body by axum");
        drop(rival);
        for (name, cache_mib) in [("quote, cached", "64"), ("quote, not cached", "0")] {
            let api = self.api(cache_mib).await?;
            let load = Load::new(&[&api.base_url], COUNTED_CONNECTIONS, requests.clone());
            load.once().await?;
            let figure = count.of(api.process.pid(), folder, &load, COUNTED_CALLS).await?;
            println!("{name:44} {figure:>9.1} {:>6.2}", figure / limit);
        }
        Ok(())
    }

    async fn static_bodies(&mut self) -> Result<()> {
        let api = self.api("64").await?;
        let path = format!("/v1/stocks/{}/quote", self.seeded.symbols[0]);
        let reply = api.get(&path, Some(&self.seeded.keys[0])).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        println!(
            "a quote has {} bytes, a process idles at {} MB",
            reply.body.len(),
            api.memory_kilobytes("VmRSS")? / 1024
        );
        drop(api);
        println!(
            "{:44} {:>4} {:>11} {:>6} {:>11} {:>11} {:>11} {:>5}",
            "", "con.", "requests", "share", "p50", "p99", "p99.9", "5xx"
        );
        let rival = Rival::start(&self.app, &["--static-bytes", &reply.body.len().to_string()]).await?;
        for connections in [64, 256] {
            let load = Load::uncounted(&rival.address, connections, self.seeded.requests("quote"));
            self.line("static body by axum", &load).await?;
        }
        Ok(())
    }

    async fn quotes(&mut self) -> Result<()> {
        let one = self.api("64").await?;
        for (what, endpoint) in [("quote, cached", "quote"), ("metrics, cached", "metrics")] {
            let requests = self.seeded.requests(endpoint);
            Load::new(&[&one.base_url], 64, requests.clone()).once().await?;
            for connections in [64, 256] {
                let load = Load::new(&[&one.base_url], connections, requests.clone());
                self.line(what, &load).await?;
            }
        }
        println!("{:44} {} MB at most", "  memory of the process", one.memory_kilobytes("VmHWM")? / 1024);
        drop(one);
        // The three instances share the processor cores, so each gets a third of them.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let workers = cores.div_ceil(3).to_string();
        let settings = [("API_CACHE_MIB", "64"), ("API_WORKERS", &workers)];
        let instance = || self.api_with(&settings);
        let three = [instance().await?, instance().await?, instance().await?];
        let addresses = [&three[0].base_url, &three[1].base_url, &three[2].base_url];
        for address in addresses {
            Load::new(&[address], 64, self.seeded.requests("quote")).once().await?;
        }
        for connections in [64, 256] {
            let load = Load::new(&addresses, connections, self.seeded.requests("quote"));
            self.line("quote, cached, 3 instances", &load).await?;
        }
        Ok(())
    }

    async fn uncached(&mut self) -> Result<()> {
        let api = self.api("0").await?;
        for (what, endpoint) in [("quote, not cached", "quote"), ("metrics, not cached", "metrics")] {
            for connections in [64, 256] {
                let load = Load::new(&[&api.base_url], connections, self.seeded.requests(endpoint));
                self.line(what, &load).await?;
            }
        }
        let by_isin = self.seeded.requests_of(&self.seeded.identifiers, "quote");
        let load = Load::new(&[&api.base_url], 64, by_isin);
        self.line("quote by ISIN, not cached", &load).await?;
        println!("{:44} {} MB at most", "  memory of the process", api.memory_kilobytes("VmHWM")? / 1024);
        Ok(())
    }

    /// Measures small responses on 51 connections, first alone, then together with other requests. The other requests
    /// use 10 connections for lists and 3 for bulk responses.
    async fn mixed(&mut self) -> Result<()> {
        if !self.asked("mixed") {
            return Ok(());
        }
        let api = self.api("64").await?;
        let small = Load::new(&[&api.base_url], 51, self.seeded.requests("quote"));
        small.once().await?;
        let lists = Load::new(&[&api.base_url], 10, self.seeded.lists());
        let bulk = Load::new(&[&api.base_url], 3, self.seeded.bulk());
        let alone = small.run(self.seconds()).await?;
        let seconds = self.seconds();
        let (beside, lists, bulk) =
            futures::try_join!(small.run(seconds), lists.run(seconds), bulk.run(seconds))?;
        println!(
            "{:44} p99 {:.2} ms, alone {:.2} ms: {:.1} x; {:.0} lists/s, {:.1} bulk/s, {} failed",
            "quote, cached, mixed with lists and bulk",
            beside.quantile(0.99),
            alone.quantile(0.99),
            beside.quantile(0.99) / alone.quantile(0.99),
            lists.rate(),
            bulk.rate(),
            beside.failed + lists.failed + bulk.failed
        );
        Ok(())
    }

    /// Measures small responses at a fixed pace, alone and during a flood of sign-ins. Each password check costs 19 MiB
    /// and about 20 ms.
    async fn sign_ins(&mut self) -> Result<()> {
        if !self.asked("sign-ins") {
            return Ok(());
        }
        let mut env = UNLIMITED.to_vec();
        env.extend([("API_CACHE_MIB", "64"), ("TRUSTED_PROXIES", "127.0.0.1/32")]);
        let api = self.app.api_serve_with(&env).await?;
        let small = Load::new(&[&api.base_url], 64, self.seeded.requests("quote"));
        small.once().await?;
        let small = small.paced(2_000);
        let alone = small.run(self.seconds()).await?;
        let beside = tokio::select! {
            figures = small.run(self.seconds()) => figures?,
            ended = sign_ins::flood(&api) => return ended,
        };
        println!(
            "{:44} p99 {:.2} ms, alone {:.2} ms: {:.1} x; {:.0} and {:.0} calls/s, {} failed",
            "quote at a fixed pace, under sign-ins",
            beside.quantile(0.99),
            alone.quantile(0.99),
            beside.quantile(0.99) / alone.quantile(0.99),
            beside.rate(),
            alone.rate(),
            beside.failed
        );
        Ok(())
    }

    async fn used(&self) -> Result<i64> {
        self.app.sql_value("select coalesce(sum(used), 0)::bigint from accounts.limiter").await
    }

    async fn naive(&mut self) -> Result<()> {
        let database = self.app.endpoints().database_url.clone();
        let rival = Rival::start(&self.app, &["--naive-database", &database]).await?;
        for connections in [64, 256] {
            let load = Load::uncounted(&rival.address, connections, self.seeded.requests("quote"));
            self.line("quote, naive: three statements a request", &load).await?;
        }
        let path = format!("/rows/{}", self.seeded.long);
        for connections in [1, 16] {
            let load = Load::uncounted(&rival.address, connections, self.seeded.same(&path));
            self.line("ten years of prices, bar rows through serde", &load).await?;
        }
        Ok(())
    }

    async fn peers(&mut self) -> Result<()> {
        if !self.asked("quote, naive") {
            return Ok(());
        }
        let database = self.app.endpoints().database_url.clone();
        for starting in peers::installed(self.app.folder()).await? {
            let peer = starting.start(&database).await?;
            for connections in [64, 256] {
                let load = Load::uncounted(&peer.address, connections, self.seeded.requests("quote"));
                self.line(peer.name, &load).await?;
            }
        }
        Ok(())
    }

    async fn prices(&mut self) -> Result<()> {
        let api = self.api("0").await?;
        let path = format!("/v1/prices/{}?range=10y&limit=5000", self.seeded.long);
        let reply = api.get(&path, Some(&self.seeded.keys[3])).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        let points = reply.json()?["data"].as_array().map_or(0, Vec::len);
        for connections in [1, 16] {
            let load = Load::new(&[&api.base_url], connections, self.seeded.same(&path));
            if let Some(figures) = self.line("ten years of prices, not cached", &load).await? {
                #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
                let megabytes = reply.body.len() as f64 * figures.rate() / 1e6;
                println!("{:44} {megabytes:.0} MB/s, {points} points a page, {} bytes", "", reply.body.len());
            }
        }
        Ok(())
    }
}
