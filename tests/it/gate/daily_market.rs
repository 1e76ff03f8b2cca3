//! Synthetic market whose history is loaded at once, and whose last sessions arrive as daily files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use chrono::NaiveDate;
use harness::{TestApp, generate_market};

pub(crate) const PRICES: &str = "symbol,date,open,high,low,close,volume";
const LAST: &str = "2024-06-28";

/// Market with its daily rows. Each row is a line of a CSV file.
pub(crate) struct DailyMarket {
    /// Prices of the loaded history, by symbol.
    pub(crate) history: BTreeMap<String, Vec<String>>,
    /// Sessions after the history, with their prices.
    pub(crate) days: Vec<(NaiveDate, Vec<String>)>,
    /// Dividends after the history, by declaration date.
    pub(crate) dividends: BTreeMap<String, Vec<String>>,
}

impl DailyMarket {
    /// Generates a market, and loads all rows from before the last `days` sessions without a gate.
    pub(crate) async fn load(app: &TestApp, symbols: u32, years: u32, days: usize) -> Result<Self> {
        let folder = app.folder().join("generated");
        generate_market(&folder, &format!("--symbols {symbols} --years {years} --seed 7 --until {LAST}"))?;
        let (mut history, mut dated) =
            (BTreeMap::<String, Vec<String>>::new(), BTreeMap::<String, Vec<String>>::new());
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
            if name.starts_with("prices") {
                for row in lines(&path)?.into_iter().skip(1) {
                    dated.entry(cell(&row, 1).to_owned()).or_default().push(row);
                }
                fs::remove_file(&path)?;
            }
        }
        let sessions: Vec<String> = dated.keys().rev().take(days).cloned().collect();
        let first = sessions.last().context("a session")?.clone();
        for (_, rows) in dated.range(..first.clone()) {
            for row in rows {
                history.entry(cell(row, 0).to_owned()).or_default().push(row.clone());
            }
        }
        let days = dated.range(first.clone()..).map(|(day, rows)| Ok((day.parse()?, rows.clone())));
        let days = days.collect::<Result<_>>()?;
        // Rows of the last days arrive with the daily files.
        let mut dividends = BTreeMap::<String, Vec<String>>::new();
        for (name, column) in
            [("dividends.csv", 6), ("splits.csv", 4), ("fundamentals.csv", 1), ("etfs.csv", 1), ("fx.csv", 0)]
        {
            let path = folder.join(name);
            if !path.exists() {
                continue;
            }
            let all = lines(&path)?;
            let is_earlier = |row: &&String| cell(row, column) < first.as_str();
            let earlier: Vec<String> = all.iter().skip(1).filter(is_earlier).cloned().collect();
            fs::write(&path, [vec![all[0].clone()], earlier].concat().join("\n"))?;
            if name == "dividends.csv" {
                for row in all.iter().skip(1).filter(|row| !is_earlier(row)) {
                    dividends.entry(cell(row, column).to_owned()).or_default().push(row.clone());
                }
                dividends.insert(String::new(), vec![all[0].clone()]);
            }
        }
        let rows: Vec<String> = history.values().flatten().cloned().collect();
        fs::write(folder.join("prices.csv"), file(PRICES, &rows))?;
        let folder = folder.display().to_string();
        let observed = ["--observed-at", "2020-01-01T00:00:00Z"];
        app.ingest(&[&["load", &folder, "--source", "test", "--today", LAST][..], &observed].concat())
            .await?
            .success()?;
        app.catch_up().await?;
        Ok(Self { history, days, dividends })
    }

    /// Files of a day: its prices, and the dividends that were declared since the day before.
    pub(crate) fn day_folder(&self, app: &TestApp, index: usize) -> Result<String> {
        let (day, prices) = &self.days[index];
        let folder = app.folder().join(format!("day-{day}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("prices-{day}.csv")), file(PRICES, prices))?;
        let since = index.checked_sub(1).map_or("0001".to_owned(), |before| self.days[before].0.to_string());
        let declared = self.dividends.iter().filter(|(on, _)| **on > since && **on <= day.to_string());
        let declared: Vec<String> = declared.flat_map(|(_, rows)| rows).cloned().collect();
        if !declared.is_empty() {
            fs::write(folder.join(format!("dividends-{day}.csv")), file(&self.dividends[""][0], &declared))?;
        }
        Ok(folder.display().to_string())
    }
}

/// Writes the price file of a day, and returns its path.
pub(crate) fn day_file(app: &TestApp, day: NaiveDate, rows: &[String]) -> Result<String> {
    let path = app.folder().join(format!("prices-{day}.csv"));
    fs::write(&path, file(PRICES, rows))?;
    Ok(path.display().to_string())
}

pub(crate) fn file(head: &str, rows: &[String]) -> String {
    format!("{head}\n{}\n", rows.join("\n"))
}

pub(crate) fn cell(row: &str, column: usize) -> &str {
    row.split(',').nth(column).unwrap_or_default()
}

fn lines(path: &Path) -> Result<Vec<String>> {
    Ok(fs::read_to_string(path)?.lines().map(str::to_owned).collect())
}
