//! Tests of the dividend status (`unknown` or `non_payer`) of securities without loaded dividends. The last tests check
//! the currencies that `ingest load` assumes.

use anyhow::Result;
use harness::TestApp;
use serde_json::{Value, json};

const TODAY: &str = "2024-08-09";
/// A price file without a dividend column. The first adjusted close is lower than the close, so the security must have
/// paid dividends.
const PROOF: &str = "Date,Open,High,Low,Close,Adj Close,Volume\n\
    2000-01-03,29.0,29.0,27.625,28.1875,14.549589,10997000\n2024-08-08,68.0,68.86,67.85,68.73,68.73,14416200\n";
/// A price file with only zeros as dividends, and with a rounded reverse split (30 to 1).
const SILENT: &str = "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n\
    2024-08-06,3,3,3,3.0,3.0,100,0.0,0.0\n2024-08-08,3,3,3,3.0,3.0,100,0.0,0.033333\n";
const SECURITIES: &str = "symbol,name,type,currency\nCURX,CURX,stock,GBP\nPENX,PENX,stock,GBX\n";
const PRICES: &str = "symbol,date,close\nCURX,2024-08-08,10\nPENX,2024-08-08,1000\nABC,2024-08-08,10\n";
const DIVIDENDS: &str = "symbol,ex_date,amount\n\
    CURX,2023-06-13,0.20\nCURX,2024-06-13,0.20\nPENX,2023-06-13,20\nPENX,2024-06-13,20\n";

/// Returns one line for each security: symbol, dividend status, yield (`-` if null), currency and some flags.
async fn served(app: &TestApp) -> Result<Vec<String>> {
    let query =
        "select concat_ws(' ', symbol, dividend_status, coalesce(dividend_yield::text, '-'), currency,
        (select string_agg(flag, ',') from json_array_elements_text(flags) flag
         where flag in ('no_dividend_feed', 'dividends_missing', 'currency_mismatch')))
        from read_g1.metrics order by symbol";
    app.sql(query, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

#[tokio::test]
async fn only_a_source_with_dividends_knows_a_non_payer() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", PRICES).source("desk").today(TODAY).apply().await?;
    assert_eq!(
        served(&app).await?,
        [
            "ABC unknown - USD no_dividend_feed",
            "CURX unknown - USD no_dividend_feed",
            "PENX unknown - USD no_dividend_feed",
        ]
    );
    // The source now has dividends of CURX and PENX. ABC has prices from this source but no dividends, so ABC is a
    // non-payer.
    app.feed("securities.csv", SECURITIES).source("desk").today(TODAY).load().await?;
    app.feed("dividends.csv", DIVIDENDS).source("desk").today(TODAY).apply().await?;
    let expected = ["ABC non_payer 0.0000 USD", "CURX active 2.0000 GBP", "PENX active 2.0000 GBP"];
    let plain = |rows: Vec<String>| -> Vec<String> {
        rows.iter().map(|row| row.trim_end().replace(" 0 ", " 0.0000 ").replace(" 2 ", " 2.0000 ")).collect()
    };
    assert_eq!(plain(served(&app).await?), expected);
    // A rebuild from all facts gives the same statuses and flags.
    app.projector(&["rebuild"]).await?.success()?;
    let differing: i64 = app
        .sql_value(
            "select count(*) from read_g1.metrics a full join read_g2.metrics b using (symbol)
             where a.dividend_status is distinct from b.dividend_status or a.flags::text is distinct from b.flags::text",
        )
        .await?;
    assert_eq!(differing, 0);
    Ok(())
}

#[tokio::test]
async fn a_price_file_is_evidence_of_dividends() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("PRX.csv", PROOF).source("proof").today(TODAY).load().await?;
    app.feed("FRX.csv", SILENT).source("silent").today(TODAY).apply().await?;
    let found = served(&app).await?;
    assert!(found[0].starts_with("FRX non_payer 0"), "{found:?}");
    assert!(
        found[1].starts_with("PRX unknown - USD ") && found[1].contains("dividends_missing"),
        "{found:?}"
    );
    let ratio: String = app.sql_value("select text from read_g1.splits where symbol = 'FRX'").await?;
    assert_eq!(ratio, "1:30");
    let explained = app.projector(&["explain", "PRX", "dividend_status"]).await?.success()?.stdout;
    assert!(explained.contains("step by 0.516172 up to 2024-08-08 without a payment"), "{explained}");
    let audit = app.projector(&["audit", "--json"]).await?.json()?;
    let counted = |check: &str| {
        let findings = audit["findings"].as_array().expect("findings");
        findings.iter().find(|finding| finding["check"] == check).map(|finding| finding["count"].clone())
    };
    assert_eq!(counted("missing_dividends"), Some(1.into()));
    let agreement = serde_json::json!([{ "source": "proof", "ex_dates": 1, "agreeing": 0 }]);
    assert_eq!(audit["adjusted_closes"], agreement);

    // After an undo of the load of `SILENT`, the dividends of FRX are unknown.
    let run: String =
        app.sql_value("select run from facts.runs where manifest ->> 'source' = 'silent' limit 1").await?;
    app.ingest(&["undo", &run]).await?.success()?;
    app.feed("prices.csv", "symbol,date,close\nFRX,2024-08-08,3\n")
        .source("desk")
        .today(TODAY)
        .apply()
        .await?;
    let found = served(&app).await?;
    assert!(found[0].starts_with("FRX unknown - USD no_dividend_feed"), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_names_assumed_currencies() -> Result<()> {
    let app = TestApp::start().await?;
    let path = app.folder().join("dividends.csv");
    std::fs::write(&path, DIVIDENDS)?;
    let path = path.display().to_string();
    let load = ["load", path.as_str(), "--source", "desk", "--today", TODAY, "--dry-run"];
    let shown = app.ingest(&load).await?.success()?.stdout;
    let assumed = "currency assumed for 4 dividends, from the prices of the security: ";
    assert!(shown.contains(&format!("{assumed}4 USD")), "{shown}");
    // After a load of the securities, their currencies are assumed for the dividends.
    app.feed("securities.csv", SECURITIES).source("other").today(TODAY).load().await?;
    let shown = app.ingest(&load).await?.success()?.stdout;
    assert!(shown.contains(&format!("{assumed}2 GBP, 2 GBX")), "{shown}");
    Ok(())
}

/// Prices never have a currency. Without a security record, they are taken as US dollars, and a load says so.
#[tokio::test]
async fn a_load_names_prices_and_securities_that_are_taken_as_dollars() -> Result<()> {
    let app = TestApp::start().await?;
    let path = app.folder().join("prices.csv");
    std::fs::write(&path, "symbol,date,close\nAAA,2024-03-14,60\nBBB,2024-03-14,61\nCCC,2024-03-14,62\n")?;
    let path = path.display().to_string();
    let load = ["load", path.as_str(), "--source", "desk", "--today", TODAY];
    let dry = [&load[..], &["--dry-run"]].concat();
    let assumed =
        "currency assumed for the prices of 3 symbols without a security record: USD (AAA, BBB, CCC)";
    let shown = app.ingest(&dry).await?.success()?.stdout;
    assert!(shown.contains(assumed), "{shown}");
    // BBB was called CCC. The row of AAA has no currency, so it is taken as dollars as well.
    let securities = app.folder().join("securities.csv");
    let rows = "symbol,name,type,currency,former_symbols\nAAA,A,stock,,\nBBB,B,stock,EUR,CCC\n";
    std::fs::write(&securities, rows)?;
    let securities = ["load", &securities.display().to_string(), "--source", "other"];
    let loaded = app.ingest(&securities).await?.success()?.stdout;
    assert!(loaded.contains("currency assumed for 1 security row without one: USD (AAA)\n"), "{loaded}");
    let shown = app.ingest(&dry).await?.success()?.stdout;
    assert!(!shown.contains("currency assumed"), "{shown}");
    // A load with prices of another symbol names only this symbol.
    std::fs::write(&path, "symbol,date,close\nBBB,2024-03-15,61\nDDD,2024-03-15,62\n")?;
    let loaded: Value = app.ingest(&[&load[..], &["--json"]].concat()).await?.success()?.json()?;
    assert_eq!(loaded["assumed_price_currencies"], json!({ "count": 1, "first": ["DDD"] }));
    Ok(())
}
