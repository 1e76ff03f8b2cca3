//! Test data of the benchmark: a synthetic market, accounts and keys.

use std::sync::Arc;

use anyhow::{Context, Result};
use chrono::NaiveDate;
use harness::{TestApp, generate_market};
use rand::RngExt;
use sha2::{Digest, Sha256};

const TIERS: [&str; 4] = ["free", "starter", "premium", "professional"];
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const UNTIL: &str = "2024-06-28";

pub(crate) struct Seeded {
    pub(crate) symbols: Vec<String>,
    /// Identifiers of the securities, such as `isin:US1912161007`.
    pub(crate) identifiers: Vec<String>,
    /// API key of each account. The tiers of the accounts alternate, and `keys[3]` is the first key of the highest
    /// tier.
    pub(crate) keys: Vec<String>,
    /// Symbol with more than ten years of bars.
    pub(crate) long: String,
}

impl Seeded {
    /// Requests that use every symbol and every key. Each request has the key of the next account.
    pub(crate) fn requests(&self, endpoint: &str) -> Arc<Vec<Vec<u8>>> {
        self.requests_of(&self.symbols, endpoint)
    }

    /// Requests that use every address and every key.
    pub(crate) fn requests_of(&self, addresses: &[String], endpoint: &str) -> Arc<Vec<Vec<u8>>> {
        let pairs = addresses.iter().cycle().zip(self.keys.iter().cycle());
        let path = |symbol: &String| format!("/v1/stocks/{symbol}/{endpoint}");
        let count = addresses.len().max(self.keys.len());
        Arc::new(pairs.take(count).map(|(symbol, key)| request(&path(symbol), key)).collect())
    }

    /// Requests for one path, with each key of the highest tier.
    pub(crate) fn same(&self, path: &str) -> Arc<Vec<Vec<u8>>> {
        Arc::new(self.keys.iter().skip(3).step_by(4).map(|key| request(path, key)).collect())
    }

    pub(crate) fn pages(&self, parameters: &str) -> Arc<Vec<Vec<u8>>> {
        let page = |symbol: &String| {
            format!("GET /s/{symbol}{parameters} HTTP/1.1\r\nhost: bench\r\naccept: text/html\r\n\r\n")
                .into_bytes()
        };
        Arc::new(self.symbols.iter().map(page).collect())
    }

    /// Screener requests for 100 rows. Every request has a different minimum yield.
    pub(crate) fn lists(&self) -> Arc<Vec<Vec<u8>>> {
        let path = |n: usize| format!("/v1/screener?limit=100&min_yield={}.{:03}", n / 1_000, n % 1_000);
        let keys = self.keys.iter().cycle();
        Arc::new((0..5_000).zip(keys).map(|(n, key)| request(&path(n), key)).collect())
    }

    /// Bulk requests for the dividends of 300 symbols. The symbols vary, and the key is always the same.
    pub(crate) fn bulk(&self) -> Arc<Vec<Vec<u8>>> {
        let path = |n: usize| {
            let first = n * 7 % self.symbols.len().saturating_sub(300).max(1);
            let symbols: Vec<&str> = self.symbols[first..].iter().take(300).map(String::as_str).collect();
            format!("/v1/bulk/dividends?per_symbol=100&symbols={}", symbols.join(","))
        };
        Arc::new((0..200).map(|n| request(&path(n), &self.keys[3])).collect())
    }
}

fn request(path: &str, key: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n").into_bytes()
}

pub(crate) async fn seed(app: &TestApp, symbols: u32, years: u32, accounts: u32) -> Result<Seeded> {
    let long = market(app, symbols, years).await?;
    let rows = app.sql("select symbol from read_g1.quotes order by md5(symbol)", &[]).await?;
    let symbols = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<String>>>()?;
    let identifiers =
        "select symbol from read_g1.symbols where symbol ~ '^isin:[^ @]*$' order by md5(canonical)";
    let rows = app.sql(identifiers, &[]).await?;
    let identifiers = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<String>>>()?;
    let bars = "create table public.bar_rows as select $1::text as symbol, date '2024-06-28' - day as date, \
                101.25::numeric + day as open, 103.5::numeric + day as high, 99.75::numeric + day as low, \
                102.01::numeric + day as close, 1000000::bigint + day as volume from generate_series(0, 2519) day";
    app.sql(&bars.replace("$1", &format!("'{long}'")), &[]).await?;
    app.sql("alter table public.bar_rows add primary key (symbol, date)", &[]).await?;
    let keys = keys(app, accounts).await?;
    app.sql("vacuum analyze", &[]).await?;
    Ok(Seeded { symbols, identifiers, keys, long })
}

/// Loads a synthetic market: `years` years of every symbol, and 11 years of 20 symbols. Returns a symbol with more than
/// ten years of bars.
async fn market(app: &TestApp, symbols: u32, years: u32) -> Result<String> {
    let (all, years) = (symbols.to_string(), years.to_string());
    for (folder, symbols, years) in [("all", all.as_str(), years.as_str()), ("few", "20", "11")] {
        let out = app.folder().join(folder).display().to_string();
        generate_market(&out, &format!("--symbols {symbols} --years {years} --seed 7 --until {UNTIL}"))?;
        app.ingest(&["load", &out, "--source", folder]).await?.success()?;
    }
    app.catch_up().await?;
    let until: NaiveDate = UNTIL.parse()?;
    let longest = "select symbol from read_g1.prices where year <= extract(year from $1::date) - 10 group by symbol order by count(*) desc, symbol limit 1";
    let rows = app.sql(longest, &[&until]).await?;
    Ok(rows.first().context("a symbol with ten years")?.try_get(0)?)
}

/// Creates accounts of all tiers, with limits that no call reaches. Returns one key for each account.
async fn keys(app: &TestApp, accounts: u32) -> Result<Vec<String>> {
    let keys: Vec<String> = (0..accounts).map(|_| draw()).collect();
    let hashes: Vec<Vec<u8>> = keys.iter().map(|key| Sha256::digest(key.as_bytes()).to_vec()).collect();
    let tiers: Vec<&str> = TIERS.iter().copied().cycle().take(keys.len()).collect();
    app.sql("update accounts.tiers set rate_per_minute = 100000000, burst = 200000000, monthly_quota = 1000000000", &[])
        .await?;
    let insert = "with new as (insert into accounts.accounts (email, tier) \
                  select place || '@example.com', tier from unnest($1::text[]) with ordinality as t (tier, place) returning id, email) \
                  insert into accounts.api_keys (account_id, hash, name, last_four) \
                  select new.id, k.hash, 'bench', '0000' from unnest($2::bytea[]) with ordinality as k (hash, place) \
                  join new on new.email = k.place || '@example.com'";
    app.sql(insert, &[&tiers, &hashes]).await?;
    Ok(keys)
}

/// Random API key in the documented form: a prefix, 30 random characters and their checksum.
fn draw() -> String {
    let mut generator = rand::rng();
    let random: String =
        (0..30).map(|_| char::from(BASE62[generator.random_range(0..BASE62.len())])).collect();
    let mut rest = crc32fast::hash(random.as_bytes());
    let mut check = [b'0'; 6];
    for digit in check.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    format!("dds_live_{random}{}", String::from_utf8_lossy(&check))
}
