//! Comparison of the API's adjusted closes and figures with the files of real vendors.
//!
//! The files are in a folder next to the workspace. If the folder is missing, the tests are recorded as skipped.

mod figures;
mod wiki;
mod yahoo;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use chrono::NaiveDate;
use harness::{Api, TestApp};
use rust_decimal::Decimal;
use serde_json::Value;

/// Two adjusted closes count as equal if their relative difference is at most this (0.05 %).
const TOLERANCE: Decimal = Decimal::from_parts(5, 0, 0, false, 4);

type Closes = BTreeMap<NaiveDate, Decimal>;

/// An app into which vendors' files are loaded. `served` contains the API and an API key, or `None` before the API is
/// started.
struct Vendors {
    app: TestApp,
    served: Option<(Api, String)>,
}

impl Vendors {
    async fn start() -> Result<Self> {
        Ok(Self { app: TestApp::start().await?, served: None })
    }

    /// Loads a file. If `symbol` is given, all rows of the file are loaded under this symbol.
    async fn load(&self, path: &Path, symbol: Option<&str>) -> Result<()> {
        let path = path.display().to_string();
        let named: Vec<&str> = symbol.map(|symbol| ["--symbol", symbol]).into_iter().flatten().collect();
        let loaded =
            self.app.ingest(&[&["load", &path, "--source", "vendor"], named.as_slice()].concat()).await?;
        ensure!([0, 1].contains(&loaded.code), "{path}: {}\n{}", loaded.stdout, loaded.stderr);
        Ok(())
    }

    async fn serve(&mut self) -> Result<()> {
        self.app.catch_up().await?;
        self.served = Some((self.app.api_serve().await?, self.app.key("professional").await?));
        Ok(())
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let (api, key) = self.served.as_ref().context("nothing is served yet")?;
        let reply = api.get(path, Some(key)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Returns the adjusted closes of a symbol between two days, and the total return of that period in percent.
    async fn prices(
        &self,
        symbol: &str,
        from: NaiveDate,
        to: NaiveDate,
    ) -> Result<(Closes, Option<Decimal>)> {
        let path = format!(
            "/v1/prices/{symbol}?start_date={from}&end_date={to}&adjustment=all&limit=5000&sort=date.asc&decimals=string"
        );
        let answer = self.get(&path).await?;
        let mut closes = Closes::new();
        for point in answer["data"].as_array().into_iter().flatten() {
            let text = |name: &str| point[name].as_str().with_context(|| format!("{name} in {point}"));
            closes.insert(text("date")?.parse()?, text("close")?.parse()?);
        }
        Ok((closes, answer["meta"]["total_return"].as_str().map(str::parse).transpose()?))
    }

    async fn flags(&self, symbol: &str, as_of: NaiveDate) -> Result<Vec<String>> {
        let metrics = self.get(&format!("/v1/stocks/{symbol}/metrics?as_of={as_of}")).await?;
        let flags = metrics["data"]["flags"].as_array().into_iter().flatten();
        Ok(flags.filter_map(|flag| flag.as_str().map(str::to_owned)).collect())
    }

    /// Returns one reason for each quarantined row of the symbol.
    async fn held(&self, symbol: &str, as_of: NaiveDate) -> Result<Vec<String>> {
        let metrics =
            self.get(&format!("/v1/stocks/{symbol}/metrics?as_of={as_of}&fields=quarantined")).await?;
        let rows = metrics["data"]["quarantined"].as_array().into_iter().flatten();
        Ok(rows.filter_map(|row| row["reason"].as_str().map(str::to_owned)).collect())
    }
}

/// Returns the greatest relative difference between two series of closes, and the day of this difference. Each series
/// is first scaled to 1 on the last common session. Fails if `ours` lacks more than two sessions of `theirs`.
fn worst(ours: &Closes, theirs: &Closes) -> Result<(Decimal, NaiveDate)> {
    let common: Vec<NaiveDate> = ours.keys().filter(|day| theirs.contains_key(day)).copied().collect();
    let last = common.last().context("no session in common")?;
    ensure!(common.len() + 2 >= theirs.len(), "{} of {} sessions are served", common.len(), theirs.len());
    let difference = |day: &NaiveDate| {
        let (mine, other) = (ours[day] / ours[last], theirs[day] / theirs[last]);
        ((mine / other - Decimal::ONE).abs().round_dp(9), *day)
    };
    common.iter().map(difference).max().context("no session")
}

/// Parses a CSV file without quotes. Each row is a map from column names to values. Column names are reduced to
/// lower-case letters and digits: `Adj Close` becomes `adjclose`.
fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let plain = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let header: Vec<String> = lines.next().unwrap_or_default().split(',').map(plain).collect();
    lines
        .filter(|line| !line.is_empty())
        .map(|line| header.iter().cloned().zip(line.split(',').map(str::to_owned)).collect())
        .collect()
}

/// Returns the prices in a column by day. Rows without a positive value are left out.
fn column(rows: &[BTreeMap<String, String>], name: &str) -> Result<Closes> {
    let mut closes = Closes::new();
    for row in rows {
        let date = row.get("date").or_else(|| row.get("datetime")).context("a row has no date")?;
        let value = row.get(name).with_context(|| format!("no column {name}"))?;
        if let Ok(value) = value.parse::<Decimal>().or_else(|_| Decimal::from_scientific(value))
            && value > Decimal::ZERO
        {
            closes.insert(date[..10].parse()?, value);
        }
    }
    Ok(closes)
}
