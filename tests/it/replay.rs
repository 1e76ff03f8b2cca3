//! Replay of the log. The read tables depend only on the set of events. Order, repetitions, batches and crashes do not
//! matter.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::{Program, TestApp, generate_market};

const TABLES: [&str; 9] =
    ["stocks", "quotes", "fundamentals", "metrics", "dividends", "splits", "quarantine", "prices", "factors"];
pub(crate) const OBSERVED: &str = "2024-07-01T00:00:00Z";

/// Returns the name, row count and digest of every read table of generation 1.
pub(crate) async fn digest(app: &TestApp) -> Result<Vec<(String, i64, String)>> {
    let mut digests = Vec::new();
    for table in TABLES {
        let query = format!(
            "select count(*), coalesce(md5(string_agg(t::text, chr(10) order by t::text)), '') from read_g1.{table} t"
        );
        let rows = app.sql(&query, &[]).await?;
        let row = rows.first().context("an aggregate has one row")?;
        digests.push((table.to_owned(), row.try_get(0)?, row.try_get(1)?));
    }
    assert!(
        digests.iter().find(|d| d.0 == "metrics").is_some_and(|d| d.1 > 10),
        "the market is there: {digests:?}"
    );
    Ok(digests)
}

fn market(app: &TestApp) -> Result<PathBuf> {
    let folder = app.folder().join("market");
    generate_market(&folder, "--symbols 40 --years 3 --seed 11 --until 2024-06-28")?;
    Ok(folder)
}

async fn load(app: &TestApp, path: &Path) -> Result<()> {
    let path = path.display().to_string();
    app.ingest(&["load", &path, "--source", "test", "--observed-at", OBSERVED]).await?.success()?;
    Ok(())
}

/// Returns the digests of the tables after the whole market is loaded at once.
async fn expected() -> Result<Vec<(String, i64, String)>> {
    let app = TestApp::start().await?;
    load(&app, &market(&app)?).await?;
    app.catch_up().await?;
    digest(&app).await
}

#[tokio::test]
async fn loading_twice_changes_nothing() -> Result<()> {
    let app = TestApp::start().await?;
    let market = market(&app)?;
    load(&app, &market).await?;
    app.catch_up().await?;
    let once = digest(&app).await?;
    load(&app, &market).await?;
    app.catch_up().await?;
    assert_eq!(digest(&app).await?, once);
    assert_eq!(once, expected().await?);
    Ok(())
}

#[tokio::test]
async fn files_in_any_order_give_the_same_tables() -> Result<()> {
    let app = TestApp::start().await?;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(market(&app)?)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files.reverse();
    for file in &files {
        load(&app, file).await?;
        // A derivation after each file must not change the final tables.
        app.catch_up().await?;
    }
    assert_eq!(digest(&app).await?, expected().await?);
    Ok(())
}

/// Splits every CSV file into files of at most 97 rows, so the batches contain other rows.
fn recut(market: &Path, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    for entry in std::fs::read_dir(market)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let kind = name.split(['.', '-']).next().unwrap_or_default().to_owned();
        let text = std::fs::read_to_string(&path)?;
        let mut lines = text.lines();
        let header = lines.next().context("a header")?;
        let rows: Vec<&str> = lines.collect();
        let pieces = rows.len().div_ceil(97).max(1);
        for piece in 0..pieces {
            let part: Vec<&str> = rows.iter().skip(piece).step_by(pieces).rev().copied().collect();
            let stem = name.trim_end_matches(".csv").replace('.', "-");
            let target = out.join(format!("{kind}-{stem}-{piece:05}.csv"));
            std::fs::write(target, format!("{header}\n{}\n", part.join("\n")))?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn rows_cut_into_other_batches_give_the_same_tables() -> Result<()> {
    let app = TestApp::start().await?;
    let pieces = app.folder().join("pieces");
    let market = market(&app)?;
    // All holdings of one date must come from one load, so this file is not split.
    let holdings = market.join("holdings.csv");
    load(&app, &holdings).await?;
    std::fs::remove_file(holdings)?;
    recut(&market, &pieces)?;
    load(&app, &pieces).await?;
    app.catch_up().await?;
    assert_eq!(digest(&app).await?, expected().await?);
    Ok(())
}

#[tokio::test]
async fn killed_anywhere_and_started_again_gives_the_same_tables() -> Result<()> {
    let app = TestApp::builder()
        .env("PROJECTOR_BATCH_BYTES", "20000")
        .env("PROJECTOR_LEASE_SECONDS", "1")
        .start()
        .await?;
    let market = market(&app)?;
    let path = market.display().to_string();
    let arguments = ["load", path.as_str(), "--source", "test", "--observed-at", OBSERVED];
    for round in 0..4u32 {
        let mut ingest = app.spawn(Program::Ingest, &arguments).await?;
        let mut projector = app.spawn(Program::Projector, &["run"]).await?;
        // Each round lasts a little longer, so the kill interrupts another step.
        let _ = ingest.wait(std::time::Duration::from_millis(40 * u64::from(round + 1))).await;
        ingest.kill9()?;
        let _ = projector.wait(std::time::Duration::from_millis(150 * u64::from(round))).await;
        projector.kill9()?;
    }
    load(&app, &market).await?;
    app.catch_up().await?;
    assert_eq!(digest(&app).await?, expected().await?);
    Ok(())
}
