//! A test of files that repeat the last five sessions every day.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use chrono::{Datelike, NaiveDate, Weekday};
use harness::TestApp;

use crate::undo::{equal_tables, load, tables, undo};

const SYMBOLS: usize = 200;
const SESSIONS: usize = 50;
const PER_FILE: usize = 5;

/// Prices of the last five sessions before the session `last`. They are the same in every file.
fn file(sessions: &[NaiveDate], last: usize) -> [(&'static str, String); 1] {
    let mut text = "symbol,date,open,high,low,close,volume\n".to_owned();
    for symbol in 0..SYMBOLS {
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
    let days = NaiveDate::from_ymd_opt(2024, 1, 2).unwrap_or_default().iter_days();
    let days = days.filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun));
    let sessions: Vec<NaiveDate> = days.take(SESSIONS).collect();
    let (app, mut runs) = (TestApp::start().await?, Vec::new());
    for last in 0..SESSIONS {
        runs.push(load(&app, &format!("a{last}"), &file(&sessions, last)).await?);
        app.catch_up().await?;
    }
    app.sql("vacuum full facts.superseded_bars", &[]).await?;
    let bytes: i64 = app.sql_value("select pg_total_relation_size('facts.superseded_bars')").await?;
    let loaded: usize = (1..=SESSIONS).map(|count| count.min(PER_FILE)).sum();
    let repeated = (loaded - SESSIONS) * SYMBOLS;
    assert!(bytes <= 8 * i64::try_from(repeated)?, "{bytes} bytes for {repeated} repeated bars");

    let undone = BTreeSet::from([20, 21, 30, SESSIONS - 1]);
    for number in &undone {
        undo(&app, &runs[*number], &[]).await?;
    }
    let expected = TestApp::start().await?;
    for last in (0..SESSIONS).filter(|last| !undone.contains(last)) {
        load(&expected, &format!("a{last}"), &file(&sessions, last)).await?;
    }
    equal_tables(&tables(&app).await?, &tables(&expected).await?, "four files were undone")
}
