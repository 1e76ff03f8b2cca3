//! Measurements of the capacity of one machine: processor time per call, and memory of open connections.

use anyhow::{Context, Result};
use harness::Api;

use crate::Bench;
use crate::load::{Load, OpenConnections};

/// Clock ticks per second. `/proc` gives processor time in clock ticks.
const TICKS: u64 = 100;
const OPEN_CONNECTIONS: usize = 8_000;

impl Bench {
    /// Measures the processor time per call in the API and in Postgres. The calls use all keys in turn.
    pub(crate) async fn processor_time(&mut self) -> Result<()> {
        if !self.asked("processor time") {
            return Ok(());
        }
        for (what, cache_mib) in [("cached", "64"), ("not cached", "0")] {
            let api = self.api(cache_mib).await?;
            Load::new(&[&api.base_url], 64, self.seeded.requests("quote")).once().await?;
            for connections in [64, 256] {
                let load = Load::new(&[&api.base_url], connections, self.seeded.requests("quote"));
                let before = self.ticks(&api).await?;
                let figures = load.run(self.seconds()).await?;
                let after = self.ticks(&api).await?;
                let [of_api, of_postgres] =
                    [0, 1].map(|part| microseconds(after[part] - before[part], figures.answered));
                println!(
                    "{:44} {connections:>4} {:>9.0}/s {of_api:.1} µs in the API, {of_postgres:.1} µs in Postgres",
                    format!("processor time of a quote, {what}"),
                    figures.rate()
                );
            }
        }
        Ok(())
    }

    /// Processor time that the API and Postgres have used so far, each in clock ticks.
    async fn ticks(&self, api: &Api) -> Result<[u64; 2]> {
        let mut of_postgres = 0;
        for row in self.app.sql("select pid from pg_stat_activity", &[]).await? {
            let pid: i32 = row.try_get(0)?;
            // A database session may have ended since the query.
            of_postgres += ticks_of(pid.unsigned_abs()).unwrap_or_default();
        }
        Ok([ticks_of(api.process.pid())?, of_postgres])
    }

    /// Measures the memory of many idle connections, and their effect on the request rate of other connections.
    pub(crate) async fn open_connections(&mut self) -> Result<()> {
        if !self.asked("open connections") {
            return Ok(());
        }
        let api =
            self.api_with(&[("API_ADDRESS_CONNECTIONS", "20000"), ("API_IDLE_TIMEOUT_MS", "600000")]).await?;
        let load = Load::new(&[&api.base_url], 64, self.seeded.requests("quote"));
        load.once().await?;
        let alone = load.run(self.seconds()).await?;
        let before = api.memory_kilobytes("VmRSS")?;
        let open =
            OpenConnections::open(&api.base_url, &self.seeded.requests("quote"), OPEN_CONNECTIONS).await?;
        let after = api.memory_kilobytes("VmRSS")?;
        let beside = load.run(self.seconds()).await?;
        println!(
            "{:44} {} use {} MB; quotes beside them {:.0}/s, without them {:.0}/s, {} failed",
            "open connections, idle",
            open.count(),
            after.saturating_sub(before) / 1024,
            beside.rate(),
            alone.rate(),
            beside.failed
        );
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn microseconds(ticks: u64, calls: usize) -> f64 {
    (ticks * 1_000_000 / TICKS) as f64 / calls as f64
}

/// Clock ticks that a process has used in user space and in the kernel.
pub(crate) fn ticks_of(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, after_name) = stat.rsplit_once(") ").context("no name")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    let tick = |index: usize| -> Result<u64> { Ok(fields.get(index).context("no time")?.parse()?) };
    Ok(tick(11)? + tick(12)?)
}
