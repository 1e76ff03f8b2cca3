//! Answers of earlier data versions. After any later events, `data_version` returns the served bytes, and `known_at`
//! returns the served data.
//!
//! `REPRODUCED_SEED` repeats the run with the seed that a failure printed.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, SecondsFormat, Utc};
use harness::{Api, Daemon, Program, TestApp, eventually, number_variable};
use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::Value;

use crate::change_feed::lift_limits;
use crate::generations::{PATIENCE, answer};
use crate::random_histories::{self, RandomHistory, SOURCES};

const STEPS: usize = 20;
const ANSWERS_PER_STEP: usize = 20;
const TODAY: &str = "2026-01-02";

const PATHS: [&str; 21] = [
    "/v1/stocks/{symbol}/metrics",
    "/v1/stocks/{symbol}/metrics?explain=true",
    "/v1/stocks/{symbol}/metrics?as_of=2022-02-01&fields=dps_ttm,as_of,price",
    "/v1/stocks/{symbol}/quote",
    "/v1/stocks/{symbol}/fundamentals",
    "/v1/stocks/{symbol}/dividends?limit=2",
    "/v1/stocks/{symbol}/dividends?status=cancelled,paid&sort=amount.asc&decimals=string",
    "/v1/stocks/{symbol}/splits",
    "/v1/stocks/{symbol}/events?limit=3",
    "/v1/stocks/{symbol}/dividends?format=csv&limit=100",
    "/v1/dividends/history?symbols={symbol},S00,S01,NONE&limit=3",
    "/v1/dividends/history?symbols={symbol},S02&sort=ex_date.asc&include_projected=true",
    "/v1/prices/{symbol}?limit=30",
    "/v1/prices/{symbol}?interval=monthly&adjustment=all&sort=date.asc&limit=20",
    "/v1/prices/{symbol}/latest",
    "/v1/bulk/prices?symbols={symbol},S01,NONE",
    "/v1/bulk/prices?symbols=S00,{symbol},S02&end_date=2022-07-01&limit=2&adjustment=all",
    "/v1/compare?symbols={symbol},S01,NONE",
    "/v1/bulk/quotes?symbols=S00,{symbol},NONE,S03",
    "/v1/bulk/metrics?symbols={symbol},S00&decimals=string",
    "/v1/bulk/dividends?symbols={symbol},S01&per_symbol=2",
];

struct ServedAnswer {
    path: String,
    version: String,
    /// A time after the answer and before the next data version.
    at: DateTime<Utc>,
    body: String,
}

struct Service {
    app: TestApp,
    api: Api,
    key: String,
    live: Option<Daemon>,
}

impl Service {
    async fn get(&self, path: &str) -> Result<(u16, String)> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        Ok((reply.status.as_u16(), reply.text()))
    }

    /// Waits until the API serves the data version that Postgres has, and returns this version.
    async fn served_version(&self) -> Result<String> {
        eventually(PATIENCE, async || {
            let active: i32 = self.app.sql_value("select generation from control.active").await?;
            let query = format!(
                "select concat('g', generation, '.', sequence, case when is_repeated then '.' || position end)
                 from read_g{active}.version"
            );
            let expected: String = self.app.sql_value(&query).await?;
            let health: Value = serde_json::from_str(&self.get("/v1/health").await?.1)?;
            let served = &health["data"]["components"]["projection"]["data_version"];
            ensure!(*served == expected.as_str(), "{served}, not {expected}");
            Ok(expected)
        })
        .await
    }

    /// Sends some random requests and records the answers. Answers with status 404 are skipped.
    async fn record(&self, history: &mut RandomHistory, into: &mut Vec<ServedAnswer>) -> Result<()> {
        let version = self.served_version().await?;
        let first = into.len();
        for _ in 0..ANSWERS_PER_STEP {
            let path = PATHS.choose(&mut history.random).copied().unwrap_or_default();
            let symbol = history.symbols.choose(&mut history.random).cloned().unwrap_or_default();
            let path = path.replace("{symbol}", &symbol);
            let (status, body) = self.get(&path).await?;
            if status == 404 {
                continue;
            }
            ensure!(status == 200, "{path}: {status} {body}");
            ensure!(body.contains(&version) || path.contains("csv"), "{path} is not of {version}: {body}");
            into.push(ServedAnswer { path, version: version.clone(), at: Utc::now(), body });
        }
        // The data version does not change between these answers and this time. The time comes from Postgres, because
        // `known_at` is compared with times of Postgres.
        let now: DateTime<Utc> = self.app.sql_value("select clock_timestamp()").await?;
        into[first..].iter_mut().for_each(|answer| answer.at = now);
        Ok(())
    }

    async fn is_reproduced(&self, served: &ServedAnswer) -> Result<()> {
        let ServedAnswer { path, version, at, body } = served;
        let joint = if path.contains('?') { '&' } else { '?' };
        let by_version = format!("{path}{joint}data_version={version}");
        let (status, again) = self.get(&by_version).await?;
        ensure!(status == 200 && again == *body, "{by_version}: {status}\nserved {body}\nagain  {again}");
        let at = at.to_rfc3339_opts(SecondsFormat::Micros, true);
        let (status, known) = self.get(&format!("{path}{joint}known_at={at}")).await?;
        ensure!(
            status == 200 && data(&known) == data(body),
            "{path} known at {at}: {status}\n{body}\n{known}"
        );
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        match self.live.take() {
            Some(mut running) => drop(running.kill9()?),
            None => self.live = Some(self.app.spawn(Program::Projector, &["run"]).await?),
        }
        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        if self.live.is_none() {
            return self.app.catch_up().await;
        }
        let messages = i64::try_from(crate::log_copies::messages(&self.app).await?.len())?;
        eventually(PATIENCE, async || {
            let behind: i64 = self.app.sql_value("select count(*) from control.dirty d join control.generations g on g.id = d.generation and g.state = 'tailing'").await?;
            let checkpoint: i64 =
                self.app.sql_value("select checkpoint from control.fact_sets where name = 'facts'").await?;
            ensure!(behind == 0 && checkpoint >= messages, "{behind} dirty, {checkpoint} of {messages}");
            Ok(())
        })
        .await
    }

    async fn promote(&self, history: &mut RandomHistory) -> Result<()> {
        let mut arguments = vec!["rebuild"];
        if history.random.random_bool(0.5) {
            arguments.extend(["--rule", "streak.tolerated_flat_years=1"]);
        }
        let built = answer(&self.app, &arguments).await?;
        let generation = built["generation"].as_i64().context("a generation")?.to_string();
        let promote = ["promote", &generation, "--accept-diff", "--accept-rules", "--note", "A test."];
        self.app.projector(&promote).await?.success()?;
        Ok(())
    }
}

/// Returns the body of an answer without its metadata.
fn data(body: &str) -> &str {
    body.split(",\"meta\":").next().unwrap_or_default()
}

async fn run(seed: u64) -> Result<()> {
    let mut history = RandomHistory::new(seed);
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    lift_limits(&app).await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let mut service = Service { app, api, key, live: None };
    random_histories::load(&service.app, STEPS, SOURCES[0], &history.years_before()).await?;
    let mut served = Vec::new();
    for step in 0..STEPS {
        let source = SOURCES.choose(&mut history.random).copied().unwrap_or("left");
        match history.random.random_range(0..16) {
            _ if step % 5 == 4 => service.promote(&mut history).await?,
            0..3 => random_histories::load(&service.app, step, source, &history.next_day()).await?,
            3..7 => {
                let news: Vec<Value> = (0..4).flat_map(|_| history.news()).collect();
                random_histories::load(&service.app, step, source, &news).await?;
            }
            7 => random_histories::change_policy(&service.app, &mut history.random).await?,
            8 => service.restart().await?,
            12 | 13 => random_histories::change_random_run(&service.app, &mut history.random).await?,
            14 | 15 => random_histories::stage(&service.app, step, source, &history.next_day()).await?,
            9 | 10 => random_histories::decide(&service.app, &mut history.random).await?,
            // There may be no generation to roll back to.
            _ => drop(service.app.projector(&["rollback", "--stale-ok"]).await?),
        }
        service.settle().await?;
        service.record(&mut history, &mut served).await.with_context(|| format!("after step {step}"))?;
    }
    ensure!(served.len() > STEPS, "{} answers were served", served.len());
    for answer in &served {
        service.is_reproduced(answer).await?;
    }
    Ok(())
}

#[tokio::test]
async fn after_any_history_an_earlier_answer_has_the_bytes_that_were_served() -> Result<()> {
    let seed = number_variable("REPRODUCED_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    run(seed).await.with_context(|| format!("repeat with REPRODUCED_SEED={seed}"))
}
