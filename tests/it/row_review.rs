//! Review of a load: quarantined prices, suspect amounts and assumed currencies, found from the loaded files alone. If
//! a bar is quarantined, another source's bar of the same day is served.

use anyhow::Result;
use harness::TestApp;

const TODAY: &str = "2020-12-31";
const PRICES: &str = "symbol,date,close\nEZX,2020-12-21,600.2\nEZX,2020-12-22,605.4\nEZX,2020-12-23,610.1\n\
    EZX,2020-12-24,612.2\nEZX,2020-12-28,609.6\nEZX,2020-12-29,5.854\nEZX,2020-12-30,5.872\nEZX,2020-12-31,5.73\n\
    APX,2020-02-06,325.21\nAPX,2020-08-28,499.23\nAPX,2020-08-31,129.04\nAPX,2020-12-31,132.69\n";
const DIVIDENDS: &str = "symbol,ex_date,amount\nAPX,2018-02-14,0.73\nAPX,2018-05-15,0.73\nAPX,2018-08-14,0.73\n\
    APX,2018-11-13,0.73\nAPX,2019-02-14,0.77\nAPX,2019-05-15,0.77\nAPX,2019-08-14,0.77\nAPX,2019-11-13,0.77\n\
    APX,2020-02-07,0.1925\nAPX,2020-05-08,0.205\nAPX,2020-08-07,0.205\nAPX,2020-11-06,0.205\n";
const SPLITS: &str = "symbol,ex_date,from,to\nAPX,2020-08-31,1,4\n";

fn folder(app: &TestApp, name: &str, files: &[(&str, &str)]) -> Result<String> {
    let folder = app.folder().join(name);
    std::fs::create_dir(&folder)?;
    for (file, text) in files {
        std::fs::write(folder.join(file), text)?;
    }
    Ok(folder.display().to_string())
}

fn check(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
}

#[tokio::test]
async fn a_load_shows_what_its_own_files_show() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = folder(
        &app,
        "feed",
        &[("prices.csv", PRICES), ("dividends.csv", DIVIDENDS), ("splits.csv", SPLITS)],
    )?;
    let load = ["load", feed.as_str(), "--source", "desk", "--today", TODAY];
    let shown = [
        "quarantined (judged by these files alone), price: 3 price_unit_error",
        "EZX 2020-12-29 price_unit_error: the close 5.854",
        "flagged amount_basis_suspect: 1 symbol (APX)",
        "APX as declared: growth_1y 5.4795 %",
        "APX with amount_basis = \"split_adjusted\"",
        "currency assumed for 12 dividends, from the prices of the security: 12 USD",
    ];
    let dry = app.ingest(&[&load[..], &["--dry-run"]].concat()).await?.success()?.stdout;
    check(&dry, &shown);
    let loaded = app.ingest(&[&load[..], &["--json"]].concat()).await?.success()?.json()?;
    assert_eq!(loaded["review"]["quarantined"]["price"]["price_unit_error"], 3, "{loaded}");
    assert_eq!(loaded["review"]["flags"]["amount_basis_suspect"][0], "APX", "{loaded}");
    assert_eq!(loaded["assumed_units"]["USD"], 12);
    // After the load, the same rows are quarantined for the same reason.
    app.catch_up().await?;
    let held = "select count(*) from read_g1.quarantine where symbol = 'EZX' and reason = 'price_unit_error'";
    assert_eq!(app.sql_value::<i64>(held).await?, 3);

    let file = folder(&app, "map", &[("EZX.csv", &PRICES.replace("symbol,date", "Ticker,Day"))])?;
    let map = app.ingest(&["map", &format!("{file}/EZX.csv")]).await?.success()?.stdout;
    check(&map, &["# quarantined (judged by these files alone), price: 3 price_unit_error"]);
    let sound = folder(&app, "sound", &[("prices.csv", "symbol,date,close\nEZX,2020-12-21,600\n")])?;
    let dry = app.ingest(&["load", &sound, "--source", "desk", "--dry-run"]).await?.success()?.stdout;
    assert!(!dry.contains("quarantine") && !dry.contains("flagged"), "{dry}");
    Ok(())
}

#[tokio::test]
async fn another_source_serves_the_quote_of_a_day_with_a_quarantined_bar() -> Result<()> {
    let app = TestApp::start().await?;
    let rows = "symbol,date,close\nKO,2024-06-25,60\nKO,2024-06-26,61\nKO,2024-06-27,60\n";
    let second = format!("{rows}KO,2024-06-28,61.5\n").replace("KO,2024-06-27,60\n", "");
    app.feed("prices-second.csv", second).source("second").load().await?;
    app.feed("prices.csv", format!("{rows}KO,2024-06-28,6150\n")).source("first").apply().await?;
    let quote = "select price::text || ' ' || price_date from read_g1.quotes where symbol = 'KO'";
    assert_eq!(app.sql_value::<String>(quote).await?, "61.5 2024-06-28");
    let held = "select source || ' ' || reason from read_g1.quarantine";
    assert_eq!(app.sql_value::<String>(held).await?, "first unconfirmed_price");
    Ok(())
}
