//! A client that requests only changes has the same rows as a full download.
//!
//! To repeat a failed run, set the environment variable `SYNC_SEED` to the seed in the error message.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use harness::{eventually, number_variable};
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::{PATIENCE, Service, promote};
use crate::random_histories::{self, RandomHistory};

const STEPS: usize = 14;
const MARKET: &str = "/v1/dividends/history?limit=3";

/// A client's copy of one list. The client updates the copy with `updated_since`.
struct Copy {
    /// Path and query of the list. More parameters can be appended with `&`.
    path: String,
    rows: BTreeMap<String, Value>,
    since: String,
}

impl Copy {
    fn empty(path: &str, since: &str) -> Self {
        Self { path: path.to_owned(), rows: BTreeMap::new(), since: since.to_owned() }
    }

    async fn sync(&mut self, service: &Service) -> Result<()> {
        let path = format!("{}&updated_since={}", self.path, self.since);
        let Some((rows, sync_from)) = service.walk(&path).await? else { return Ok(()) };
        for row in rows {
            let id = row["id"].as_str().context("an id")?.to_owned();
            match row["status"].as_str() {
                Some("cancelled") => drop(self.rows.remove(&id)),
                _ => drop(self.rows.insert(id, row)),
            }
        }
        self.since = sync_from;
        Ok(())
    }

    /// Requests the changes. Fails if the copy then differs from a full download.
    async fn is_in_step(&mut self, service: &Service, download: &str) -> Result<()> {
        self.sync(service).await?;
        let Some((rows, sync_from)) = service.walk(download).await? else { return Ok(()) };
        let position = service.position().await?;
        ensure!(sync_from.ends_with(&format!(".{position}")), "served is {sync_from}, not {position} yet");
        ensure!(self.since == sync_from, "in step up to {}, served is {sync_from}", self.since);
        let id = |row: &Value| Ok((row["id"].as_str().context("an id")?.to_owned(), row.clone()));
        let whole: BTreeMap<String, Value> = rows.iter().map(id).collect::<Result<_>>()?;
        let ids = |rows: &BTreeMap<String, Value>| rows.keys().cloned().collect::<BTreeSet<_>>();
        let (held, there) = (ids(&self.rows), ids(&whole));
        ensure!(held == there, "{download}: only held {:?}, not held {:?}", &held - &there, &there - &held);
        for (id, row) in &whole {
            ensure!(self.rows[id] == *row, "{download}: held\n{}\nserved\n{row}", self.rows[id]);
        }
        Ok(())
    }
}

/// Two copies of the list of all dividends, and one copy of each symbol's splits. `dividends` begins empty. `later`
/// begins with a full download.
struct Clients {
    beginning: String,
    symbols: BTreeSet<String>,
    dividends: Copy,
    later: Option<Copy>,
    splits: BTreeMap<String, Copy>,
}

impl Clients {
    async fn start(service: &Service) -> Result<Self> {
        let (_, beginning) = service.walk("/v1/dividends/history?symbols=S00").await?.context("an answer")?;
        let dividends = Copy::empty(MARKET, &beginning);
        Ok(Self { beginning, symbols: BTreeSet::new(), dividends, later: None, splits: BTreeMap::new() })
    }

    fn whole(&self) -> String {
        let symbols: Vec<&str> = self.symbols.iter().map(String::as_str).collect();
        format!("/v1/dividends/history?limit=7&symbols={}", symbols.join(","))
    }

    async fn are_in_step(&mut self, service: &Service) -> Result<()> {
        let whole = self.whole();
        self.dividends.is_in_step(service, &whole).await?;
        match &mut self.later {
            Some(later) => later.is_in_step(service, &whole).await?,
            None => {
                let (rows, since) = service.walk(&whole).await?.context("an answer")?;
                let id = |row: Value| Ok((row["id"].as_str().context("an id")?.to_owned(), row));
                let rows = rows.into_iter().map(id).collect::<Result<_>>()?;
                self.later = Some(Copy { path: MARKET.to_owned(), rows, since });
            }
        }
        for symbol in &self.symbols {
            let path = format!("/v1/stocks/{symbol}/splits?limit=2");
            let copy =
                self.splits.entry(symbol.clone()).or_insert_with(|| Copy::empty(&path, &self.beginning));
            copy.is_in_step(service, &path).await?;
        }
        Ok(())
    }
}

async fn run(seed: u64) -> Result<()> {
    let mut sequence = RandomHistory::new(seed);
    let service = Service::start().await?;
    let mut clients = Clients::start(&service).await?;
    let first = json!({ "kind": "dividend", "symbol": "S00", "ex_date": sequence.day, "amount": "0.50" });
    random_histories::load(&service.app, STEPS, "left", &[first]).await?;
    let mut most = 0;
    for step in 0..STEPS {
        let source = random_histories::SOURCES.choose(&mut sequence.random).copied().unwrap_or("left");
        match sequence.random.random_range(0..13) {
            // Every fourth step is a promotion, so that each run serves several generations.
            _ if step % 4 == 3 => promote(&service, &mut sequence).await?,
            0..3 => random_histories::load(&service.app, step, source, &sequence.next_day()).await?,
            3..7 => {
                let news: Vec<Value> = (0..4).flat_map(|_| sequence.news()).collect();
                // A symbol that is listed and renamed in one step may still name a security of its own.
                let named = news.iter().filter_map(|row| row["symbol"].as_str());
                clients.symbols.extend(named.map(str::to_owned));
                random_histories::load(&service.app, step, source, &news).await?;
            }
            7 => random_histories::change_policy(&service.app, &mut sequence.random).await?,
            8 | 9 => random_histories::stage(&service.app, step, source, &sequence.next_day()).await?,
            10 | 11 => random_histories::change_random_run(&service.app, &mut sequence.random).await?,
            // The exit code is ignored, because there may be no earlier generation to roll back to.
            _ => drop(service.app.projector(&["rollback", "--stale-ok"]).await?),
        }
        service.app.catch_up().await?;
        clients.symbols.extend(sequence.symbols.iter().cloned());
        eventually(PATIENCE, async || clients.are_in_step(&service).await)
            .await
            .with_context(|| format!("after step {step}"))?;
        // The copy may be empty after the last step, so its largest size is checked.
        most = most.max(clients.dividends.rows.len());
    }
    ensure!(most > 0, "there was nothing to be in step with");
    Ok(())
}

#[tokio::test]
async fn who_asks_only_for_changes_holds_what_a_whole_download_has() -> Result<()> {
    let seed = number_variable("SYNC_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    run(seed).await.with_context(|| format!("repeat with SYNC_SEED={seed}"))
}
