//! Tests of `ingest watch` and `ingest freshness`. Files that arrive in a watched folder are loaded once, and a late
//! feed is reported.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Program, Signal, TestApp, eventually};
use serde_json::{Value, json};

use crate::process_kills::killed_at;

const PATIENCE: Duration = Duration::from_secs(120);
const QUICK: [&str; 6] = ["--source", "eod", "--settle", "0s", "--every", "1s"];

/// Writes a file to the watched folder. Returns the folder.
fn arrival(app: &TestApp, name: &str, text: &str) -> Result<PathBuf> {
    let folder = app.folder().join("in");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), text)?;
    Ok(folder)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

async fn runs(app: &TestApp) -> Result<Vec<Value>> {
    let output = app.ingest(&["runs", "--json"]).await?.success()?;
    output.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[tokio::test]
async fn files_that_arrive_are_loaded_and_put_away() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = arrival(&app, "prices.csv", "symbol,date,close\nKO,2024-03-14,60\n")?;
    arrival(&app, "notes.txt", "nothing of a feed")?;
    arrival(&app, ".prices.csv.part", "symbol,da")?;
    let mut watch = app.spawn(Program::Ingest, &[&["watch", text(&folder)][..], &QUICK].concat()).await?;
    eventually(PATIENCE, async || {
        ensure!(folder.join("done/prices.csv").exists() && folder.join("refused/notes.txt").exists());
        Ok(())
    })
    .await?;
    let reason = std::fs::read_to_string(folder.join("refused/notes.txt.reason.txt"))?;
    assert!(reason.contains("notes.txt"), "{reason}");
    // A second process refuses to watch the folder.
    let second = app.ingest(&[&["watch", text(&folder)][..], &QUICK].concat()).await?;
    assert!(second.code == 2 && second.stderr.contains("another process watches it"), "{}", second.stderr);
    // The next day's file has the same name, so it is moved to the folder `done` under another name.
    arrival(&app, "prices.csv", "symbol,date,close\nKO,2024-03-15,61\n")?;
    eventually(PATIENCE, async || {
        ensure!(folder.join("done/prices.csv.2").exists());
        Ok(())
    })
    .await?;
    assert!(folder.join(".prices.csv.part").exists());
    watch.stop(Signal::TERM, PATIENCE).await?;
    let completed = runs(&app).await?.into_iter().filter(|run| run["state"] == "completed").count();
    assert_eq!(completed, 2);
    Ok(())
}

/// Rows of the completed runs, in log order.
async fn rows_of_runs(app: &TestApp) -> Result<Vec<u64>> {
    let completed = runs(app).await?.into_iter().filter(|run| run["state"] == "completed");
    Ok(completed.filter_map(|run| run["rows"].as_u64()).collect())
}

#[tokio::test]
async fn a_file_that_its_sender_continues_after_the_move_is_loaded_again() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = arrival(&app, "prices.csv", "")?;
    let archive = {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        archive.start_file("prices.csv", zip::write::SimpleFileOptions::default())?;
        archive.write_all(b"symbol,date,close\nPEP,2024-03-14,170\n")?;
        archive.finish()?.into_inner()
    };
    let (beginning, rest) = archive.split_at(archive.len() / 2);
    // Two senders stop in the middle of their files, for longer than the time to settle.
    let mut prices = File::create(folder.join("prices.csv"))?;
    prices.write_all(b"symbol,date,close\nKO,2024-03-14,60\n")?;
    let mut packed = File::create(folder.join("more.zip"))?;
    packed.write_all(beginning)?;
    let mut watch = app.spawn(Program::Ingest, &[&["watch", text(&folder)][..], &QUICK].concat()).await?;
    let (done, refused) = (folder.join("done"), folder.join("refused"));
    eventually(PATIENCE, async || {
        ensure!(done.join("prices.csv").exists() && refused.join("more.zip").exists(), "{}", watch.log());
        Ok(())
    })
    .await?;
    prices.write_all(b"KO,2024-03-15,61\n")?;
    packed.write_all(rest)?;
    eventually(PATIENCE, async || {
        ensure!(watch.log().matches("it is loaded again").count() == 2, "{}", watch.log());
        ensure!(done.join("more.zip").exists(), "{}", watch.log());
        ensure!(!folder.join("prices.csv").exists() && done.join("prices.csv").exists(), "{}", watch.log());
        Ok(())
    })
    .await?;
    assert!(!refused.join("more.zip.reason.txt").exists(), "the report about the first half is removed");
    watch.stop(Signal::TERM, PATIENCE).await?;
    let mut rows = rows_of_runs(&app).await?;
    rows.sort_unstable();
    assert_eq!(rows, [1, 1, 2]);
    Ok(())
}

#[tokio::test]
async fn a_file_that_grows_between_two_watches_is_loaded_again_once() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = arrival(&app, "prices.csv", "")?;
    let once = [&["watch", text(&folder), "--once"][..], &QUICK].concat();
    let mut prices = File::create(folder.join("prices.csv"))?;
    prices.write_all(b"symbol,date,close\nKO,2024-03-14,60\n")?;
    app.ingest(&once).await?.success()?;
    prices.write_all(b"KO,2024-03-15,61\n")?;
    // The file of the next day has the same name. It is loaded first, and the grown file then gets its name back.
    arrival(&app, "prices.csv", "symbol,date,close\nKO,2024-03-18,62\nKO,2024-03-19,62\nKO,2024-03-20,62\n")?;
    let again = app.ingest(&once).await?.success()?;
    assert!(again.stderr.contains("it is loaded again"), "{}", again.stderr);
    assert_eq!(rows_of_runs(&app).await?, [1, 3, 2]);
    // A new mode is no new content, and a file that is unchanged is not loaded again.
    let stored = std::fs::read_dir(folder.join("done"))?.collect::<std::io::Result<Vec<_>>>()?;
    assert_eq!(stored.len(), 2);
    for file in &stored {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o400))?;
    }
    let quiet = app.ingest(&once).await?.success()?;
    assert!(!quiet.stderr.contains("loaded again"), "{}", quiet.stderr);
    assert_eq!(rows_of_runs(&app).await?, [1, 3, 2]);
    Ok(())
}

#[tokio::test]
async fn the_exit_code_says_that_a_watch_refused_files_or_rows() -> Result<()> {
    let app = TestApp::start().await?;
    let refused = "symbol,date,close\nKO,2024-03-32,60\n";
    let folder = arrival(&app, "prices.csv", refused)?;
    let once = [&["watch", text(&folder), "--once"][..], &QUICK].concat();
    assert_eq!(app.ingest(&once).await?.code, 1, "a refused file");
    assert_eq!(app.ingest(&once).await?.code, 0, "an empty folder");
    arrival(&app, "prices.csv", &format!("{refused}KO,2024-03-14,60\n"))?;
    let tolerant = [&once[..], &["--", "--max-reject-percent", "50"]].concat();
    assert_eq!(app.ingest(&tolerant).await?.code, 1, "a loaded file with a rejected row");
    assert!(folder.join("refused/prices.csv").exists() && folder.join("done/prices.csv").exists());
    arrival(&app, "prices.csv", "symbol,date,close\nKO,2024-03-15,60\n")?;
    assert_eq!(app.ingest(&once).await?.code, 0, "a loaded file");
    Ok(())
}

#[tokio::test]
async fn a_file_survives_kills_and_the_absence_of_the_log() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = arrival(&app, "prices.csv", "symbol,date,close\nKO,2024-03-14,60\n")?;
    let once = [&["watch", text(&folder), "--once"][..], &QUICK].concat();
    for step in ["ingest.begun", "ingest.acknowledged", "ingest.drained", "ingest.completed", "watch.loaded"]
    {
        assert!(killed_at(&app, Program::Ingest, &once, step, 1).await?, "{step}");
        assert!(folder.join("prices.csv").exists(), "{step}");
    }
    let absent = [&once[..], &["--nats-url", "nats://127.0.0.1:1"]].concat();
    let mut away = app.spawn(Program::Ingest, &absent).await?;
    eventually(PATIENCE, async || {
        ensure!(away.log().contains("files stay in the folder"), "{}", away.log());
        Ok(())
    })
    .await?;
    away.stop(Signal::TERM, PATIENCE).await?;
    app.ingest(&once).await?.success()?;
    assert!(folder.join("done/prices.csv").exists());
    let states: Vec<Value> = runs(&app).await?.iter().map(|run| run["state"].clone()).collect();
    assert_eq!(states, [json!("started"), json!("completed")], "nothing is doubled");
    Ok(())
}

#[tokio::test]
async fn a_feed_is_late_by_sessions_and_not_by_days() -> Result<()> {
    let app = TestApp::start().await?;
    let load = async |name: &str, rows: &str| -> Result<Value> {
        let path = app.folder().join(name);
        std::fs::write(&path, format!("symbol,date,close\n{rows}"))?;
        let load = ["load", text(&path), "--source", "eod", "--today", "2024-03-18", "--json"];
        app.ingest(&load).await?.success()?.json()
    };
    let at = async |moment: &str| -> Result<(i32, String)> {
        let output = app.ingest(&["freshness", "--source", "eod", "--at", moment]).await?;
        Ok((output.code, output.stdout + &output.stderr))
    };
    let (code, told) = at("2024-03-18T00:00:00Z").await?;
    assert!(code == 2 && told.contains("the log is empty"), "{code} {told}");
    load("prices.csv", "KO,2024-03-15,60\n").await?;
    // The newest close is of Friday. The checks are on Sunday, late on Monday, at noon on Tuesday and at noon on
    // Wednesday, in New York's time.
    for (moment, expected) in [
        ("2024-03-17T20:00:00Z", 0),
        ("2024-03-19T03:59:00Z", 0),
        ("2024-03-19T16:00:00Z", 1),
        ("2024-03-20T16:00:00Z", 2),
    ] {
        let (code, told) = at(moment).await?;
        assert_eq!(code, expected, "{moment}: {told}");
    }
    // A load of Tuesday's close makes the feed fresh (code 0). After an undo, the feed is too late again (code 2).
    let newer = load("prices-new.csv", "KO,2024-03-19,61\n").await?;
    assert_eq!(at("2024-03-20T16:00:00Z").await?.0, 0);
    app.ingest(&["undo", newer["run"].as_str().unwrap_or_default()]).await?.success()?;
    assert_eq!(at("2024-03-20T16:00:00Z").await?.0, 2);
    let other = app.ingest(&["freshness", "--source", "eodd"]).await?;
    assert!(other.code == 2 && other.stdout.contains("known: eod"), "{}", other.stdout);
    Ok(())
}
