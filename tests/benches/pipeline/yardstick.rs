//! Lower bound for the time to process one new day of prices: deriving the rows of every security, and copying the
//! changed rows into Postgres.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use chrono::{Datelike, NaiveDate};
use futures::{SinkExt, TryStreamExt, pin_mut};
use harness::TestApp;
use market::history::{History, SourcePolicy};
use market::identity::Identity;
use market::metrics::{DerivationContext, ExchangeRates, Rules, derive};
use market::row::JsonColumn;
use store::history::load_histories;
use tokio_postgres::Client;

/// Read tables in which a new day changes every row. In `prices` and `bars`, it changes only rows of the current year.
const CHANGED: [&str; 4] = ["stocks", "quotes", "fundamentals", "metrics"];
/// Number of securities whose histories are loaded into memory at the same time.
const CHUNK: usize = 200;

pub(crate) struct Yardstick {
    pub derive: Duration,
    pub copy: Duration,
}

impl Yardstick {
    /// Measures `derive` and `copy` with the histories and read tables that are now in the database.
    pub(crate) async fn measure(app: &TestApp) -> Result<Self> {
        let mut client = app.servers().postgres.connect(app.database()).await?;
        client.batch_execute("set search_path = read_g1, facts").await?;
        let as_of: Option<NaiveDate> =
            client.query_one("select as_of from version", &[]).await?.try_get(0)?;
        let as_of = as_of.context("nothing is served")?;
        let derive = time_deriving(&client, as_of).await?;
        let copy = time_copying(&mut client, as_of).await?;
        Ok(Self { derive, copy })
    }

    pub(crate) fn sum(&self) -> Duration {
        self.derive + self.copy
    }
}

async fn time_deriving(client: &Client, as_of: NaiveDate) -> Result<Duration> {
    let rows = client.query("select identity from identities order by symbol", &[]).await?;
    let identities: Vec<Identity> = rows
        .iter()
        .map(|row| Ok(row.try_get::<_, JsonColumn<Identity>>(0)?.0))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let mut total = Duration::ZERO;
    for chunk in identities.chunks(CHUNK) {
        let histories = load_histories(client, &chunk.iter().collect::<Vec<_>>()).await?;
        let started = Instant::now();
        tokio::task::block_in_place(|| derive_on_all_cores(&histories, as_of));
        total += started.elapsed();
    }
    Ok(total)
}

fn derive_on_all_cores(histories: &[History], as_of: NaiveDate) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let policy = SourcePolicy::default();
    let market = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    };
    let market = &market;
    std::thread::scope(|scope| {
        for share in histories.chunks(histories.len().div_ceil(cores).max(1)) {
            scope.spawn(move || {
                share.iter().for_each(|history| drop(std::hint::black_box(derive(history, market))));
            });
        }
    });
}

async fn time_copying(client: &mut Client, as_of: NaiveDate) -> Result<Duration> {
    let mut total = Duration::ZERO;
    let of_year = |table| (table, format!("select * from {table} where year = {}", as_of.year()));
    let tables = CHANGED.iter().map(|table| (*table, format!("select * from {table}")));
    for (table, rows) in tables.chain(["prices", "bars"].map(of_year)) {
        let told = client.copy_out(&format!("copy ({rows}) to stdout binary")).await?;
        let told: Vec<Bytes> = told.try_collect().await?;
        client
            .batch_execute(&format!(
                "create table public.copied (like {table} including constraints including indexes)"
            ))
            .await?;
        let started = Instant::now();
        let sink = client.copy_in("copy public.copied from stdin binary").await?;
        pin_mut!(sink);
        for piece in told {
            sink.feed(piece).await?;
        }
        sink.as_mut().finish().await?;
        total += started.elapsed();
        client.batch_execute("drop table public.copied").await?;
    }
    Ok(total)
}
