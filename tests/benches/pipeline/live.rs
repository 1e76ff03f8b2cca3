//! Benchmark of updates after the first load, such as daily bars, a split and corrections. A measured time ends when
//! the API serves the new data.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chrono::{NaiveDate, Utc};
use harness::{Api, Daemon, Program, Signal, TestApp, eventually_every};
use market::metrics::calendar::is_session;

use crate::yardstick::Yardstick;
use crate::{Arguments, Market, database_bytes, peak_memory, per_bar};

const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(5);
/// Number of added days between two measurements of the database size.
const DISK_EVERY: usize = 50;

struct Live<'a> {
    app: &'a TestApp,
    api: &'a Api,
    market: &'a Market,
    least: Yardstick,
    day: NaiveDate,
    /// Lines of the newest exchange rates, which each further day repeats; empty for days without rates.
    rates: Vec<String>,
}

pub(crate) async fn live(
    app: &TestApp,
    arguments: &Arguments,
    market: &Market,
    [folder, rates]: [&Path; 2],
    until: NaiveDate,
) -> Result<()> {
    let least = Yardstick::measure(app).await?;
    println!(
        "{:32} {:>8.2} s derive on all cores, {:.2} s copy of the rows",
        "the least a day can take",
        least.derive.as_secs_f64(),
        least.copy.as_secs_f64()
    );
    let mut projector = app.spawn(Program::Projector, &["run"]).await?;
    let api = app.api_serve().await?;
    let key = app.key("professional").await?;
    let mut live = Live { app, api: &api, market, least, day: until, rates: Vec::new() };
    live.day("first day, nothing in memory", "bench", "").await?;
    let without = live.days(arguments.days, arguments.nights).await?;
    live.gated_days(arguments.days, without).await?;
    if rates.exists() {
        live.history_of_rates(rates).await?;
        let with = live.days(arguments.days, arguments.nights).await?;
        println!("{:32} {:>8.3} x a day without rates", "live: days with rates", with / without);
    }
    let split = market.last.keys().next().context("a symbol")?.clone();
    live.day("day with a split", "bench", &split).await?;
    live.corrections(arguments.corrections, &key).await?;
    live.repeated_sessions(arguments.days).await?;
    for name in ["second source for every symbol", "second source again"] {
        live.day(name, "second", "").await?;
    }
    memory(&projector);
    // A projector that ends normally releases its lease, so that the next projector can start at once.
    projector.signal(Signal::TERM)?;
    projector.wait(PATIENCE).await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    live.day("first day after a restart", "bench", "").await?;
    live.whole_second_history(folder).await?;
    for (name, source) in [("day with two whole histories", "bench"), ("day of the other source", "whole")] {
        live.day(name, source, "").await?;
    }
    live.held_history(folder).await
}

fn memory(projector: &Daemon) {
    let peak = peak_memory(&format!("/proc/{}/status", projector.pid()));
    println!("{:32} {peak:>8} MB at most", "projector");
}

impl Live<'_> {
    /// Adds `count` days one after the other, and prints the median and 99th percentile of their times. If `nights` is
    /// true, vacuums the database after each day. Returns the median in seconds.
    async fn days(&mut self, count: u32, nights: bool) -> Result<f64> {
        let (mut seconds, before) = (Vec::new(), database_bytes(self.app).await?);
        for number in 1..=count as usize {
            seconds.push(self.day(&format!("day {number}"), "bench", "").await?);
            if nights {
                self.app
                    .servers()
                    .postgres
                    .connect(self.app.database())
                    .await?
                    .batch_execute("vacuum")
                    .await?;
            }
            if number % DISK_EVERY == 0 {
                let bytes = database_bytes(self.app).await?;
                println!(
                    "{:32} {:>8.1} MB more",
                    format!("disk after {number} days"),
                    (bytes as f64 - before as f64) / 1e6
                );
            }
        }
        let of_all = self.least.sum().as_secs_f64();
        let [half, most] = [0.5, 0.99].map(|share| percentile(&mut seconds.clone(), share));
        println!(
            "{:32} {half:>8.2} s p50 ({:.1} x), {most:.2} s p99 ({:.1} x)",
            format!("live: {count} days"),
            half / of_all,
            most / of_all
        );
        Ok(half)
    }

    /// Loads the exchange rates of all days so far. Each further day then has rates too.
    async fn history_of_rates(&mut self, file: &Path) -> Result<()> {
        let text = fs::read_to_string(file)?;
        let newest = text.lines().last().and_then(|line| line.split_once(',')).context("a rate")?.0;
        self.rates = text.lines().filter(|line| line.starts_with(newest)).map(str::to_owned).collect();
        let started = Instant::now();
        self.load(&file.display().to_string(), "rates", &[]).await?;
        self.day("  and the day after them", "bench", "").await?;
        let (seconds, count) = (started.elapsed().as_secs_f64(), text.lines().count() - 1);
        println!("{:32} {seconds:>8.2} s for {count} rates", "live: a history of rates");
        Ok(())
    }

    /// Adds the next trading day. Returns the seconds from the start of the load until the API serves this day. `split`
    /// is a symbol with a 2:1 split on this day, or empty.
    async fn day(&mut self, name: &str, source: &str, split: &str) -> Result<f64> {
        let (day, folder) = self.write_next_day(split)?;
        let started = Instant::now();
        self.load(&folder, source, &[]).await?;
        let in_log = started.elapsed();
        self.served(&day).await?;
        let seconds = started.elapsed().as_secs_f64();
        let Yardstick { derive, copy } = self.least;
        println!(
            "{:32} {seconds:>8.2} s, {:.2} s into the log; {:.1} x (derive + copy), {:.1} x derive, {:.1} x copy",
            format!("live: {name}"),
            in_log.as_secs_f64(),
            seconds / (derive + copy).as_secs_f64(),
            seconds / derive.as_secs_f64(),
            seconds / copy.as_secs_f64()
        );
        Ok(seconds)
    }

    /// Writes the files of the next trading day. Returns the day and their folder.
    fn write_next_day(&mut self, split: &str) -> Result<(String, String)> {
        let next = self.day.iter_days().skip(1).find(|day| is_session(*day));
        self.day = next.context("a next session")?;
        let day = self.day.to_string();
        let folder = self.app.folder().join(format!("day-{day}"));
        fs::create_dir_all(&folder)?;
        let lines: Vec<String> = self.market.last.values().map(|line| on_day(line, &day)).collect();
        let prices = format!("symbol,date,open,high,low,close,volume\n{}\n", lines.join("\n"));
        fs::write(folder.join("prices.csv"), prices)?;
        if !self.rates.is_empty() {
            let lines: Vec<String> = self.rates.iter().map(|line| with_date(line, &day)).collect();
            fs::write(folder.join("fx.csv"), format!("date,base,quote,rate\n{}\n", lines.join("\n")))?;
        }
        if !split.is_empty() {
            fs::write(folder.join("splits.csv"), format!("symbol,ex_date,from,to\n{split},{day},1,2\n"))?;
        }
        Ok((day, folder.display().to_string()))
    }

    /// Adds `count` days through the gate, and one that is held and released. `ungated` is the median of a day without a
    /// gate, in seconds.
    async fn gated_days(&mut self, count: u32, ungated: f64) -> Result<()> {
        // Each day has the closes of the day before, and no day has a dividend.
        for [kind, expectation] in [["price", "repeated"], ["dividend", "status"]] {
            self.app.projector(&["expect", "set", "bench", kind, expectation, "off"]).await?.success()?;
        }
        let mut seconds = Vec::new();
        for _ in 0..count {
            let (day, folder) = self.write_next_day("")?;
            let started = Instant::now();
            self.load(&folder, "bench", &["--gate"]).await?;
            self.served(&day).await?;
            seconds.push(started.elapsed().as_secs_f64());
        }
        let median = percentile(&mut seconds, 0.5);
        let ratio = median / ungated;
        println!("{:32} {median:>8.2} s p50, {ratio:.2} x a day without the gate", "live: gated days");
        let (day, folder) = self.write_next_day("")?;
        let run = self.load(&folder, "bench", &["--stage"]).await?;
        self.applied().await?;
        let started = Instant::now();
        self.app.ingest(&["release", &run]).await?.success()?;
        self.served(&day).await?;
        println!("{:32} {:>8.2} s", "live: release of a held day", started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Loads the files of the whole market as a held run of another source. Prints its size in the database.
    async fn held_history(&mut self, folder: &Path) -> Result<()> {
        let before = database_bytes(self.app).await?;
        let run = self.load(&folder.display().to_string(), "held", &["--stage"]).await?;
        self.applied().await?;
        let added = database_bytes(self.app).await?.saturating_sub(before);
        println!("{:32} {:>8.1} bytes a bar", "live: a held history", per_bar(added, self.market.bars));
        self.app.ingest(&["undo", &run]).await?.success()?;
        Ok(())
    }

    /// Adds `count` days, with files that also repeat up to four of the days before. One in 200 repeated bars is
    /// corrected. Prints the share of superseded facts.
    async fn repeated_sessions(&mut self, count: u32) -> Result<()> {
        let mut recent: Vec<NaiveDate> = Vec::new();
        for number in 0..count as usize {
            let next = self.day.iter_days().skip(1).find(|day| is_session(*day));
            self.day = next.context("a next session")?;
            recent.push(self.day);
            let (repeated, newest, last) =
                (&recent[recent.len().saturating_sub(5)..], self.day, &self.market.last);
            let lines = repeated.iter().flat_map(|day| {
                last.values().enumerate().map(move |(index, line)| {
                    let is_corrected = *day != newest && (index + number) % 200 == 0;
                    let line = on_day(line, &day.to_string());
                    if is_corrected { with_other_volume(&line, number) } else { line }
                })
            });
            let prices = format!(
                "symbol,date,open,high,low,close,volume\n{}\n",
                lines.collect::<Vec<String>>().join("\n")
            );
            let folder = self.app.folder().join(format!("repeated-{}", self.day));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("prices.csv"), prices)?;
            self.load(&folder.display().to_string(), "bench", &[]).await?;
            self.served(&self.day.to_string()).await?;
        }
        let bytes: &str = "select (sum(pg_total_relation_size(relid)) filter (where relname like 'superseded\\_%'))::bigint, \
             sum(pg_total_relation_size(relid))::bigint from pg_stat_user_tables \
             where schemaname in (select name from control.fact_sets)";
        let row = self.app.sql(bytes, &[]).await?;
        let row = row.first().context("the facts")?;
        let (superseded, facts): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        println!(
            "{:32} {:>8.2} MB of {:.1} MB of facts are superseded: {:.2} %",
            format!("  after {count} repeated days"),
            superseded as f64 / 1e6,
            facts as f64 / 1e6,
            superseded as f64 / facts as f64 * 100.0
        );
        Ok(())
    }

    /// Loads the files of the whole market again, as another source, and then a day. Prints the time until this day is
    /// served: the projector has then applied the whole history too.
    async fn whole_second_history(&mut self, folder: &Path) -> Result<()> {
        let started = Instant::now();
        self.load(&folder.display().to_string(), "whole", &[]).await?;
        let in_log = started.elapsed().as_secs_f64();
        self.day("  and the day after it", "bench", "").await?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{:32} {seconds:>8.2} s, {in_log:.2} s into the log", "live: a second whole history");
        Ok(())
    }

    async fn served(&self, day: &str) -> Result<()> {
        eventually_every(PAUSE, PATIENCE, async || {
            let answer = self.api.get("/v1/health", None).await?.json()?;
            let served = answer["data"]["components"]["projection"]["as_of"].as_str();
            anyhow::ensure!(served == Some(day), "as of {served:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the read tables have the whole log.
    async fn applied(&self) -> Result<()> {
        let context = async_nats::jetstream::new(self.app.nats().await?);
        let mut stream = context.get_stream(&self.app.endpoints().stream).await?;
        let end = i64::try_from(stream.info().await?.state.last_sequence)?;
        eventually_every(PAUSE, PATIENCE, async || {
            let at: i64 = self.app.sql_value("select sequence from read_g1.version").await?;
            anyhow::ensure!(at == end, "the tables are at {at} of {end}");
            Ok(())
        })
        .await
    }

    /// Loads files, and returns the id of the run.
    async fn load(&self, path: &str, source: &str, more: &[&str]) -> Result<String> {
        let observed = Utc::now().to_rfc3339();
        let arguments = ["load", path, "--source", source, "--observed-at", &observed, "--json"];
        let summary = self.app.ingest(&[&arguments[..], more].concat()).await?.success()?.json()?;
        Ok(summary["run"].as_str().context("a run")?.to_owned())
    }

    /// Loads `count` corrections of dividends. Prints the milliseconds from the end of a load until a response has the
    /// new amount.
    async fn corrections(&self, count: u32, key: &str) -> Result<()> {
        let symbols: Vec<&String> = self.market.last.keys().collect();
        let mut delays = Vec::new();
        for number in 0..count {
            let symbol = symbols[number as usize * 7 % symbols.len()];
            let file = self.app.folder().join(format!("dividends-correction-{number}.csv"));
            // The last digit is not 0, because responses have no trailing zeros.
            let amount = format!("0.1{number:03}1");
            // A special dividend is served with any amount. A regular one may be quarantined.
            fs::write(&file, format!("symbol,ex_date,amount,type\n{symbol},2024-06-27,{amount},special\n"))?;
            self.load(&file.display().to_string(), "bench", &[]).await?;
            let started = Instant::now();
            eventually_every(PAUSE, PATIENCE, async || {
                let path = format!("/v1/stocks/{symbol}/dividends?start_date=2024-06-27&limit=5");
                let answer = self.api.get(&path, Some(key)).await?.text();
                anyhow::ensure!(answer.contains(&amount), "{answer}");
                Ok(())
            })
            .await?;
            delays.push(started.elapsed().as_secs_f64() * 1000.0);
        }
        println!(
            "{:32} {:>8.0} ms p50, {:.0} ms p99 after the load returned",
            format!("live: {} corrections", delays.len()),
            percentile(&mut delays, 0.5),
            percentile(&mut delays, 0.99)
        );
        Ok(())
    }
}

fn on_day(line: &str, day: &str) -> String {
    let mut fields: Vec<&str> = line.split(',').collect();
    fields[1] = day;
    fields.join(",")
}

/// A line of `fx.csv` with another date.
fn with_date(line: &str, day: &str) -> String {
    let (_, rate) = line.split_once(',').unwrap_or_default();
    format!("{day},{rate}")
}

fn with_other_volume(line: &str, number: usize) -> String {
    let (rest, _) = line.rsplit_once(',').unwrap_or((line, ""));
    format!("{rest},{}", 1_000 + number)
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default()
}
