//! A test of files that repeat the last five sessions every day.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{Datelike, NaiveDate, Weekday};
use harness::{TestApp, eventually};

use crate::undo::{equal_tables, load, tables, undo};

const SYMBOLS: usize = 200;
const SESSIONS: usize = 50;
const PER_FILE: usize = 5;
const VACUUMED_WITHIN: Duration = Duration::from_secs(60);

fn weekdays(count: usize) -> Vec<NaiveDate> {
    let days = NaiveDate::from_ymd_opt(2024, 1, 2).unwrap_or_default().iter_days();
    days.filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun)).take(count).collect()
}

/// Prices of the last five sessions before the session 'last'. They are the same in every file.
fn file(symbols: usize, sessions: &[NaiveDate], last: usize) -> [(&'static str, String); 1] {
    let mut text = "symbol,date,open,high,low,close,volume\n".to_owned();
    for symbol in 0..symbols {
        for (number, day) in (0..=last).zip(sessions).skip((last + 1).saturating_sub(PER_FILE)) {
            let close = 5_000 + symbol * 31 + number * 37 % 400;
            let cents = |price: usize| format!("{}.{:02}", price / 100, price % 100);
            let [open, high, low] = [close - 13, close + 47, close - 58].map(cents);
            let (close, volume) = (cents(close), 100_000 + symbol * 977 + number * 7_919);
            let _ = writeln!(text, "S{symbol:03},{day},{open},{high},{low},{close},{volume}");
        }
    }
    [("prices.csv", text)]
}

/// Of each bar that a later file repeats, only its record batch is stored again: at most 8 bytes with all overhead of
/// Postgres. An undo of some files still leaves no trace.
#[tokio::test]
async fn a_repeated_bar_takes_eight_bytes() -> Result<()> {
    let sessions = weekdays(SESSIONS);
    let (app, mut runs) = (TestApp::start().await?, Vec::new());
    for last in 0..SESSIONS {
        runs.push(load(&app, &format!("a{last}"), &file(SYMBOLS, &sessions, last)).await?);
        app.catch_up().await?;
    }
    let loaded: usize = (1..=SESSIONS).map(|count| count.min(PER_FILE)).sum();
    let repeated = (loaded - SESSIONS) * SYMBOLS;
    // Vacuum keeps the deleted rows that an older snapshot of the database sees, for example of an autovacuum worker.
    eventually(VACUUMED_WITHIN, async || {
        app.sql("vacuum full facts.superseded_bars", &[]).await?;
        let bytes: i64 = app.sql_value("select pg_total_relation_size('facts.superseded_bars')").await?;
        ensure!(bytes <= 8 * i64::try_from(repeated)?, "{bytes} bytes for {repeated} repeated bars");
        Ok(())
    })
    .await?;

    let undone = BTreeSet::from([20, 21, 30, SESSIONS - 1]);
    for number in &undone {
        undo(&app, &runs[*number], &[]).await?;
    }
    let expected = TestApp::start().await?;
    for last in (0..SESSIONS).filter(|last| !undone.contains(last)) {
        load(&expected, &format!("a{last}"), &file(SYMBOLS, &sessions, last)).await?;
    }
    equal_tables(&tables(&app).await?, &tables(&expected).await?, "four files were undone")
}

/// Superseded bars of a year are collected in rows of limited size. A bar in a later row may repeat one of an earlier row.
#[tokio::test]
async fn many_repeated_bars_need_a_second_row() -> Result<()> {
    let sessions = weekdays(250);
    let app = TestApp::start().await?;
    let files: Vec<(String, String)> = (0..sessions.len())
        .flat_map(|last| file(1, &sessions, last).map(|(_, text)| (format!("prices-{last:03}.csv"), text)))
        .collect();
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    load(&app, "first", &files).await?;
    let before = tables(&app).await?;
    let mut runs = Vec::new();
    for name in ["second", "third"] {
        // A file with the content of an earlier one has the same record batches.
        let [(file, mut text)] = file(1, &sessions, sessions.len() - 1);
        let _ = writeln!(text, "{name},2024-01-02,1,1,1,1,1");
        runs.push(load(&app, name, &[(file, text)]).await?);
        app.catch_up().await?;
    }
    let parts: i32 = app.sql_value("select max(part) from facts.superseded_bars").await?;
    assert_eq!(parts, 2);
    for run in &runs {
        undo(&app, run, &[]).await?;
    }
    equal_tables(&tables(&app).await?, &before, "only the first load is visible")
}
