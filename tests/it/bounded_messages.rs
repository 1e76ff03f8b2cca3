//! Tests of the limits on names, lists and quoted texts: a vendor's file makes no message, manifest or log line long.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use harness::TestApp;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::hostile_files::{PRICES, folder, load, watch_once};

/// Manifests of the runs, one line each.
async fn manifests(app: &TestApp) -> Result<Vec<String>> {
    let runs = app.ingest(&["runs", "--json"]).await?.success()?;
    Ok(runs.stdout.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn thousands_of_empty_entries_are_counted() -> Result<()> {
    let app = TestApp::start().await?;
    let path = folder(&app, "in")?.join("many.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path)?);
    for number in 0..20_000 {
        archive.start_file(format!("prices-{number}.csv"), SimpleFileOptions::default())?;
    }
    for number in 0..100 {
        archive.start_file(format!("notes-{number}.md"), SimpleFileOptions::default())?;
    }
    archive.finish()?;
    let refused = load(&app, &path, &[]).await?;
    let text = format!("{}{}", refused.stdout, refused.stderr);
    ensure!(refused.code == 2 && text.contains("refused: 19950 more files"), "{text}");
    ensure!(
        text.contains("notes-0.md") && text.contains(", … and 50 more\n") && text.len() < 10_000,
        "{text}"
    );
    let summary: Value = load(&app, &path, &["--json"]).await?.json()?;
    ensure!(summary["files"].as_array().map(Vec::len) == Some(50), "{summary}");
    ensure!(summary["more_files"] == 19_950 && summary["more_skipped"] == 50, "{summary}");
    // The log of a watch has the common reason once.
    let watched = watch_once(&app, &app.folder().join("in")).await?;
    ensure!(watched.stderr.contains("a header row is needed (20000 files)"), "{}", watched.stderr);
    ensure!(watched.stderr.len() < 5_000, "{}", watched.stderr);
    Ok(())
}

#[tokio::test]
async fn long_names_headers_and_cells_are_shortened() -> Result<()> {
    let app = TestApp::start().await?;
    let path = app.folder().join("long.zip");
    let long = "n".repeat(60_000);
    let mut archive = zip::ZipWriter::new(fs::File::create(&path)?);
    let mut add = |name: &str, text: &str| -> Result<()> {
        archive.start_file(name, SimpleFileOptions::default())?;
        Ok(archive.write_all(text.as_bytes())?)
    };
    add(&format!("{long}/prices.csv"), &format!("{PRICES}PEP,no date,{long}\n"))?;
    add(
        &format!("{long}/securities.csv"),
        &format!("symbol,name,type,former_symbols\nKO,Coca-Cola,{long},{long}\n"),
    )?;
    add(&format!("{long}/splits.csv"), &format!("symbol,ex_date,from,to,{long}\nKO,no date,1,2,x\n"))?;
    add(&format!("{long}.md"), "notes")?;
    add(&format!("{long}.json"), &format!(r#"{{"error":"{long}"}}"#))?;
    archive.finish()?;
    let loaded = load(&app, &path, &["--max-reject-percent", "100", "--ignore-unknown"]).await?;
    let text = format!("{}{}", loaded.stdout, loaded.stderr);
    ensure!(loaded.code == 1 && text.contains("nnn/prices.csv") && text.len() < 20_000, "{text}");
    for manifest in manifests(&app).await? {
        ensure!(manifest.len() < 5_000 && manifest.contains("…~"), "{manifest}");
    }
    let rejects = app.ingest(&["rejects", "--json"]).await?.success()?;
    ensure!(rejects.stdout.lines().count() == 3, "{}", rejects.stdout);
    for reject in rejects.stdout.lines() {
        let reject: Value = serde_json::from_str(reject)?;
        let length = |member: &str| reject[member].as_str().unwrap_or_default().len();
        ensure!(length("message") < 600 && length("file") <= 300 && length("columns") < 100, "{reject}");
    }
    Ok(())
}

#[tokio::test]
async fn a_manifest_names_fifty_files_and_counts_all() -> Result<()> {
    let app = TestApp::start().await?;
    let feeds = folder(&app, "feeds")?;
    for number in 0..60 {
        fs::write(
            feeds.join(format!("prices-{number:02}.csv")),
            PRICES.replace("60", &(number + 1).to_string()),
        )?;
    }
    for number in 0..60 {
        fs::write(feeds.join(format!("bad-{number:02}.csv")), "no table")?;
    }
    let loaded = load(&app, &feeds, &[]).await?;
    ensure!(loaded.code == 1 && loaded.stdout.contains("refused: 10 more files"), "{}", loaded.stdout);
    ensure!(loaded.stdout.contains("loaded 60 rows of 60 of 120 files"), "{}", loaded.stdout);
    let manifests = manifests(&app).await?;
    let completed: Value = serde_json::from_str(manifests.last().context("a manifest")?)?;
    let length = |member: &str| completed[member].as_array().map_or(0, Vec::len);
    ensure!(length("files") == 50 && completed["more_files"] == 10, "{completed}");
    ensure!(length("refused") == 50 && completed["more_refused"] == 10, "{completed}");
    let runs = app.ingest(&["runs"]).await?.success()?;
    let words: Vec<&str> = runs.stdout.split_whitespace().collect();
    ensure!(words.join(" ").contains("completed, 60 of 120 files refused"), "{}", runs.stdout);
    // The digests of all files are known, so another load finds all of them.
    let again = load(&app, &feeds, &[]).await?;
    ensure!(again.stdout.contains("(60 rows of 60 files)"), "{}", again.stdout);
    Ok(())
}

#[tokio::test]
async fn a_list_of_rejects_is_bounded() -> Result<()> {
    let app = TestApp::start().await?;
    let path = app.folder().join("prices.csv");
    let rows: String = (0..5).map(|number| format!("K{number},no date,{}\n", "6".repeat(2000))).collect();
    fs::write(&path, format!("symbol,date,close\n{rows}"))?;
    load(&app, &path, &["--max-reject-percent", "100"]).await?;
    let few = app.ingest(&["rejects", "--limit", "2"]).await?.success()?;
    let total = "showing 2 of 5 rejects; --limit 0 shows all";
    ensure!(few.stdout.contains(total) && few.stdout.len() < 3000, "{}", few.stdout);
    let lines = app.ingest(&["rejects", "--limit", "2", "--json"]).await?.success()?;
    ensure!(lines.stdout.lines().count() == 2 && lines.stderr.contains("total=5"), "{}", lines.stderr);
    let all = app.ingest(&["rejects"]).await?.success()?;
    ensure!(all.stdout.contains("\n5 rejects\n"), "{}", all.stdout);
    Ok(())
}
