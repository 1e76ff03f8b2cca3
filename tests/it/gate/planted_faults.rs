//! Faults of vendors' files: the gate holds each with the expectation that names the fault, and no sound day.
//!
//! `GATE_SYMBOLS` and `GATE_DAYS` set the size of the long test.

use anyhow::{Context, Result, ensure};
use harness::{TestApp, number_variable};
use rust_decimal::Decimal;

use super::daily_market::{DailyMarket, PRICES, cell, file};
use super::failed;

/// Faulty file: its name, its text, the source, and the expectation that names the fault.
struct Fault {
    name: &'static str,
    file: String,
    text: String,
    source: &'static str,
    expected: &'static str,
}

fn times(row: &str, factor: &str) -> Result<String> {
    let factor: Decimal = factor.parse()?;
    let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
    for price in &mut cells[2..6] {
        *price = (price.parse::<Decimal>()? * factor).round_dp(6).to_string();
    }
    Ok(cells.join(","))
}

fn with_cell(row: &str, column: usize, text: &str) -> String {
    let mut cells: Vec<&str> = row.split(',').collect();
    cells[column] = text;
    cells.join(",")
}

/// Faults of the day `today`, of which `yesterday` and all days before are loaded.
fn faults(market: &DailyMarket, today: usize) -> Result<Vec<Fault>> {
    let (day, rows) = &market.days[today];
    let (_, yesterday) = &market.days[today - 1];
    let next = market.days[today + 1].0.to_string();
    let daily = format!("prices-{day}.csv");
    let symbols: Vec<&String> = market.history.keys().collect();
    let of_history = |factor: &str, count: usize| {
        let rows = symbols.iter().take(count).flat_map(|symbol| &market.history[*symbol]);
        rows.map(|row| times(row, factor)).collect::<Result<Vec<_>>>()
    };
    let of_yesterday =
        |factor: &str| yesterday.iter().map(|row| times(row, factor)).collect::<Result<Vec<_>>>();
    let each = |change: &dyn Fn(&String) -> String| rows.iter().map(change).collect::<Vec<_>>();
    let (half, tenth) = (rows.len() / 2, rows.len().div_ceil(10));
    let cut = format!("{}\n{}", file(PRICES, &rows[..half]).trim_end(), &rows[half][..4]);
    let [one, other] = [symbols[3], symbols[4]];
    let renamed: Vec<String> = market.history[one].iter().map(|row| with_cell(row, 0, other)).collect();
    let swapped = each(&|row| {
        let (close, volume) = (cell(row, 5), cell(row, 6));
        format!("{},{},,,,{volume},{close}", cell(row, 0), cell(row, 1)).replace(".", "")
    });
    let texts = |row: &String| match rows.iter().position(|known| known == row) {
        Some(index) if index % 5 == 0 => with_cell(row, 5, "n/a"),
        _ => row.clone(),
    };
    let own = |name, text, expected| Fault { name, file: daily.clone(), text, source: "test", expected };
    let whole = |name, rows: &[String], expected| Fault {
        name,
        file: "prices-history.csv".to_owned(),
        text: file(PRICES, rows),
        source: "test",
        expected,
    };
    Ok(vec![
        whole("a factor over a history", &of_history("1.353", symbols.len())?, "factor"),
        own("an empty file", file(PRICES, &[]), "coverage"),
        own("a truncated file", cut, "coverage"),
        own(
            "yesterday's file again",
            file(PRICES, &yesterday.iter().rev().cloned().collect::<Vec<_>>()),
            "session",
        ),
        own("dates that are a day late", file(PRICES, &each(&|row| with_cell(row, 1, &next))), "session"),
        own("swapped columns", file(PRICES, &swapped), "rejected"),
        own(
            "another currency",
            file(PRICES, &rows.iter().map(|row| times(row, "0.79")).collect::<Result<Vec<_>>>()?),
            "move",
        ),
        whole("another share basis", &of_history("0.25", 2)?, "factor"),
        Fault {
            name: "the file of another source",
            file: format!("prices-{}.csv", market.days[today - 1].0),
            text: file(PRICES, yesterday),
            source: "copy",
            expected: "replaced",
        },
        own("a tenth of the symbols", file(PRICES, &rows[..tenth]), "coverage"),
        own("text in numbers", file(PRICES, &each(&texts)), "rejected"),
        whole("rows of a symbol under another", &renamed, "rewritten"),
        own(
            "half of the symbols, twice",
            file(PRICES, &[&rows[..half], &yesterday[..half]].concat()),
            "coverage",
        ),
        whole("new closes of the newest session", &of_yesterday("1.3")?, "move"),
        whole("another unit in the newest session", &of_yesterday("1000")?, "move"),
    ])
}

async fn verdict(app: &TestApp, path: &str, source: &str) -> Result<(String, serde_json::Value)> {
    let staged = app
        .ingest(&["load", path, "--source", source, "--stage", "--json", "--max-reject-percent", "50"])
        .await?;
    let staged = staged.json().with_context(|| staged.stderr.clone())?;
    let run = staged["run"].as_str().context("a run")?.to_owned();
    app.catch_up().await?;
    let judged = app.projector(&["gate", &run, "--json"]).await?;
    Ok((run, judged.json().with_context(|| format!("{staged} {}", judged.stderr))?))
}

/// Loads sound days through the gate. Returns the verdicts of the days that are not sound for it.
async fn load_days(app: &TestApp, market: &DailyMarket, days: std::ops::Range<usize>) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for index in days {
        let folder = market.day_folder(app, index)?;
        let (run, verdict) = verdict(app, &folder, "test").await?;
        if verdict["met"] != true {
            wrong.push(format!("{folder} {:?} {}", failed(&verdict), verdict["checks"][0]));
        }
        app.ingest(&["release", &run]).await?.success()?;
    }
    app.catch_up().await?;
    Ok(wrong)
}

async fn check_faults(app: &TestApp, market: &DailyMarket, today: usize) -> Result<()> {
    let mut missed = Vec::new();
    for (number, fault) in faults(market, today)?.into_iter().enumerate() {
        let folder = app.folder().join(format!("fault-{number}"));
        std::fs::create_dir(&folder)?;
        let path = folder.join(&fault.file);
        std::fs::write(&path, &fault.text)?;
        let (run, verdict) =
            verdict(app, &path.display().to_string(), fault.source).await.context(fault.name)?;
        let failed = failed(&verdict);
        eprintln!("{}: {failed:?}", fault.name);
        if !failed.contains(&fault.expected) {
            missed.push(format!("{}: {} is met: {verdict}", fault.name, fault.expected));
        }
        app.ingest(&["undo", &run]).await?.success()?;
    }
    ensure!(missed.len() <= 1, "{missed:#?}");
    Ok(())
}

#[tokio::test]
async fn faulty_files_are_held_and_sound_days_are_not() -> Result<()> {
    let app = TestApp::start().await?;
    let market = DailyMarket::load(&app, 60, 2, 14).await?;
    assert_eq!(load_days(&app, &market, 0..12).await?, Vec::<String>::new());
    check_faults(&app, &market, 12).await
}

#[tokio::test]
#[ignore = "takes a quarter of an hour"]
async fn two_hundred_sound_days_of_a_thousand_securities() -> Result<()> {
    let app = TestApp::start().await?;
    let (symbols, days) =
        (number_variable("GATE_SYMBOLS").unwrap_or(1_000), number_variable("GATE_DAYS").unwrap_or(200));
    let (symbols, days) = (u32::try_from(symbols)?, usize::try_from(days)?);
    let market = DailyMarket::load(&app, symbols, 3, days + 2).await?;
    let wrong = load_days(&app, &market, 0..days).await?;
    eprintln!("{} of {days} sound days do not meet the expectations: {wrong:#?}", wrong.len());
    ensure!(wrong.len() <= 1, "{wrong:#?}");
    check_faults(&app, &market, days).await
}
