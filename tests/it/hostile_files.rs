//! Tests with files whose names, links or archive structure could stop a load or lead it to other files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_nats::jetstream;
use harness::{Output, Program, Signal, TestApp, eventually};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const PRICES: &str = "symbol,date,close\nKO,2024-03-14,60\n";
const SECRET: &str = "root:x:the-secret-of-another-user";
const QUICK: [&str; 6] = ["--source", "eod", "--settle", "0s", "--every", "1s"];

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

pub(crate) fn folder(app: &TestApp, name: &str) -> Result<PathBuf> {
    let folder = app.folder().join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

pub(crate) async fn watch_once(app: &TestApp, folder: &Path) -> Result<Output> {
    tokio::time::timeout(LIMIT, app.ingest(&[&["watch", text(folder), "--once"][..], &QUICK].concat()))
        .await?
}

pub(crate) async fn load(app: &TestApp, path: &Path, more: &[&str]) -> Result<Output> {
    let arguments = [&["load", text(path), "--source", "eod", "--today", "2024-03-15"][..], more].concat();
    tokio::time::timeout(LIMIT, app.ingest(&arguments)).await?
}

fn names(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

#[tokio::test]
async fn a_watch_goes_on_after_a_file_that_it_cannot_move() -> Result<()> {
    let app = TestApp::start().await?;
    let (incoming, elsewhere) = (folder(&app, "in")?, folder(&app, "elsewhere")?);
    let long = format!("{}.csv", "n".repeat(251));
    fs::write(incoming.join(&long), "no table")?;
    fs::write(incoming.join(OsStr::from_bytes(b"\xff.csv")), PRICES)?;
    let mut watch = app.spawn(Program::Ingest, &[&["watch", text(&incoming)][..], &QUICK].concat()).await?;
    let refused = incoming.join("refused");
    eventually(LIMIT, async || {
        ensure!(refused.is_dir() && names(&refused)?.len() == 4, "{}", watch.log());
        Ok(())
    })
    .await?;
    // The report of a shortened name contains the full name. A name that is not UTF-8 also gets a report.
    let mut reports = fs::read_dir(&refused)?.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    ensure!(reports.any(|report| report.contains(&long)), "{}", watch.log());
    ensure!(watch.log().contains("file name shortened"), "{}", watch.log());
    let unnamed = fs::read_to_string(refused.join(OsStr::from_bytes(b"\xff.csv.reason.txt")))?;
    ensure!(unnamed.contains("not UTF-8: rename it"), "{unnamed}");
    // The folder of refused files is replaced by a link to another folder.
    fs::rename(&refused, app.folder().join("before"))?;
    symlink(&elsewhere, &refused)?;
    fs::write(incoming.join("a-bad.csv"), "no table")?;
    fs::write(incoming.join("z-bad.csv"), "no table")?;
    fs::write(incoming.join("prices.csv"), PRICES)?;
    eventually(LIMIT, async || {
        ensure!(incoming.join("done/prices.csv").exists(), "{}", watch.log());
        ensure!(watch.log().matches("it stays in the folder").count() >= 2, "{}", watch.log());
        Ok(())
    })
    .await?;
    ensure!(incoming.join("a-bad.csv").exists() && names(&elsewhere)?.is_empty(), "{}", watch.log());
    watch.stop(Signal::TERM, LIMIT).await?;
    // After the link is replaced by a folder, a single round of the watch moves the files that were left.
    fs::remove_file(&refused)?;
    fs::create_dir(&refused)?;
    let once = watch_once(&app, &incoming).await?;
    ensure!(once.code == 1 && names(&refused)?.contains("a-bad.csv"), "{}", once.stderr);
    Ok(())
}

#[tokio::test]
async fn a_watch_follows_no_link() -> Result<()> {
    let app = TestApp::start().await?;
    let secret = app.folder().join("secret");
    fs::write(&secret, format!("{SECRET}\n"))?;
    // In each round, one of these is a link: the folder of processed files, the folder of refused files, the lock file,
    // or the list of moved files.
    for name in ["done", "refused", ".ingest-watch.lock", ".ingest-watch.moved"] {
        let incoming = folder(&app, &format!("in-{name}"))?;
        symlink(
            if name.starts_with('.') { secret.clone() } else { folder(&app, "elsewhere")? },
            incoming.join(name),
        )?;
        fs::write(incoming.join("prices.csv"), PRICES)?;
        let refused = watch_once(&app, &incoming).await?;
        ensure!(refused.code == 2 && refused.stderr.contains("is a link"), "{name}: {}", refused.stderr);
        ensure!(incoming.join("prices.csv").exists(), "{name}");
    }
    // Some feeds are links, and the path of a report is a link.
    let (incoming, private) = (folder(&app, "in")?, folder(&app, "private")?);
    fs::write(private.join("prices.csv"), SECRET)?;
    symlink(&secret, incoming.join("linked.csv"))?;
    symlink(private.join("absent"), incoming.join("dangling.csv"))?;
    symlink(&private, incoming.join("folder"))?;
    fs::hard_link(&secret, incoming.join("hard.csv"))?;
    fs::write(incoming.join("bad.csv"), "no table")?;
    fs::create_dir(incoming.join("refused"))?;
    let victim = app.folder().join("victim");
    symlink(&victim, incoming.join("refused/bad.csv.reason.txt"))?;
    let watched = watch_once(&app, &incoming).await?;
    ensure!(watched.code == 1, "{}", watched.stderr);
    ensure!(!watched.stderr.contains("the-secret") && !victim.exists(), "{}", watched.stderr);
    let refused = incoming.join("refused");
    for name in
        names(&refused)?.iter().filter(|name| name.ends_with(".reason.txt") && *name != "bad.csv.reason.txt")
    {
        let reason = fs::read_to_string(refused.join(name))?;
        ensure!(!reason.contains("the-secret"), "{name}: {reason}");
    }
    let reason =
        |name: &str| fs::read_to_string(refused.join(format!("{name}.reason.txt"))).unwrap_or_default();
    ensure!(
        reason("linked.csv").contains("is a link") && reason("folder").contains("is a link"),
        "{}",
        watched.stderr
    );
    ensure!(
        reason("hard.csv").contains("hard links") && reason("bad.csv.2").contains("bad.csv"),
        "{}",
        watched.stderr
    );
    ensure!(fs::read_to_string(&secret)?.contains(SECRET) && private.join("prices.csv").exists());
    Ok(())
}

#[tokio::test]
async fn a_folder_and_a_map_are_read_without_their_links() -> Result<()> {
    let app = TestApp::start().await?;
    let (feeds, private) = (folder(&app, "feeds/2024")?, folder(&app, "private")?);
    let secret = private.join("prices.csv");
    fs::write(&secret, SECRET)?;
    fs::write(feeds.join("prices.csv"), PRICES)?;
    symlink(&secret, feeds.join("prices-linked.csv"))?;
    symlink(&private, feeds.join("more"))?;
    let feeds = app.folder().join("feeds");
    let loaded = load(&app, &feeds, &["--json"]).await?;
    let summary: Value = loaded.json()?;
    ensure!(loaded.code == 1 && summary["rows"] == json!({ "price": 1 }), "{summary}");
    let reasons: Vec<&str> = summary["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| file["reason"].as_str())
        .collect();
    ensure!(reasons.len() == 2 && reasons.iter().all(|reason| reason.contains("is a link")), "{summary}");
    ensure!(!format!("{}{}", loaded.stdout, loaded.stderr).contains("the-secret"), "{}", loaded.stderr);
    let map = app.folder().join("map.toml");
    symlink(&secret, &map)?;
    let refused = load(&app, &feeds, &["--map", text(&map)]).await?;
    ensure!(refused.code == 2 && refused.stderr.contains("is a link"), "{}", refused.stderr);
    ensure!(!refused.stderr.contains("the-secret"), "{}", refused.stderr);
    Ok(())
}

#[tokio::test]
async fn a_fifo_or_a_device_ends_no_load() -> Result<()> {
    let app = TestApp::start().await?;
    let feeds = folder(&app, "feeds")?;
    let fifo = feeds.join("prices-fifo.csv");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    fs::write(feeds.join("prices.csv"), PRICES)?;
    let loaded = load(&app, &feeds, &[]).await?;
    ensure!(loaded.code == 1 && loaded.stdout.contains("is a FIFO"), "{}{}", loaded.stdout, loaded.stderr);
    for path in [fifo.as_path(), Path::new("/dev/zero")] {
        let alone = load(&app, path, &[]).await?;
        ensure!(alone.code == 2 && alone.stdout.contains("not a regular file"), "{}", alone.stdout);
        let map = load(&app, &feeds, &["--map", text(path)]).await?;
        ensure!(map.code == 2 && map.stderr.contains("not a regular file"), "{}", map.stderr);
        for command in [["import", text(path)], ["map", text(path)], ["pull", text(path)]] {
            let refused = tokio::time::timeout(LIMIT, app.ingest(&command)).await??;
            ensure!(
                refused.code == 2 && refused.stderr.contains("a regular file"),
                "{command:?}: {}",
                refused.stderr
            );
        }
    }
    // In a watched folder, the FIFO is moved to the refused files.
    let watched = watch_once(&app, &feeds).await?;
    ensure!(
        watched.code == 1 && names(&feeds.join("refused"))?.contains("prices-fifo.csv"),
        "{}",
        watched.stderr
    );
    Ok(())
}

/// Fails if a load leaves a NATS consumer behind. The consumers of many loads would exhaust the server.
#[tokio::test]
async fn many_loads_leave_no_consumer() -> Result<()> {
    let app = TestApp::start().await?;
    let incoming = folder(&app, "in")?;
    let files: u32 = 60;
    for number in 0..files {
        fs::write(
            incoming.join(format!("prices-{number}.csv")),
            format!("symbol,date,close\nK{number},2024-03-14,60\n"),
        )?;
    }
    let watched = app.ingest(&[&["watch", text(&incoming), "--once"][..], &QUICK].concat()).await?;
    ensure!(watched.code == 0, "{}", watched.stderr);
    ensure!(names(&incoming.join("done"))?.len() == usize::try_from(files)?, "{}", watched.stderr);
    app.ingest(&["runs"]).await?.success()?;
    app.ingest(&["verify", "--check-only"]).await?.success()?;
    let stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    let consumers = stream.cached_info().state.consumer_count;
    ensure!(consumers == 0, "{consumers} consumers after {files} loads");
    Ok(())
}

/// Writes an archive with many entries that share the bytes of the first one.
fn overlapping_archive(path: &Path) -> Result<()> {
    let mut archive = zip::ZipWriter::new(fs::File::create(path)?);
    archive.start_file("prices-0.csv", SimpleFileOptions::default())?;
    archive.write_all(&[PRICES.as_bytes(), &vec![b'\n'; 8 << 20]].concat())?;
    for number in 1..3000 {
        archive.shallow_copy_file("prices-0.csv", &format!("prices-{number}.csv"))?;
    }
    archive.finish()?;
    Ok(())
}

/// Writes an archive whose entries are small enough individually, but too large together.
fn inflating_archive(path: &Path) -> Result<()> {
    let mut archive = zip::ZipWriter::new(fs::File::create(path)?);
    for number in 0..60 {
        archive.start_file(format!("prices-{number}.csv"), SimpleFileOptions::default())?;
        archive.write_all(&[PRICES.as_bytes(), &vec![b'\n'; 4 << 20]].concat())?;
    }
    archive.finish()?;
    Ok(())
}

#[tokio::test]
async fn an_archive_is_bounded_as_a_whole() -> Result<()> {
    let app = TestApp::start().await?;
    let incoming = folder(&app, "in")?;
    overlapping_archive(&incoming.join("overlapping.zip"))?;
    ensure!(fs::metadata(incoming.join("overlapping.zip"))?.size() < 500_000);
    inflating_archive(&incoming.join("inflating.zip"))?;
    let mut archive = zip::ZipWriter::new(fs::File::create(incoming.join("whole.zip"))?);
    for number in 0..50 {
        archive.start_file(format!("prices-{number}.csv"), SimpleFileOptions::default())?;
        write!(archive, "symbol,date,close\nK{number},2024-03-14,60\n")?;
    }
    archive.finish()?;
    let watched = watch_once(&app, &incoming).await?;
    ensure!(watched.code == 1 && incoming.join("done/whole.zip").exists(), "{}", watched.stderr);
    let reason = fs::read_to_string(incoming.join("refused/overlapping.zip.reason.txt"))?;
    ensure!(reason.contains("its entries overlap"), "{reason}");
    // Entries before the limit are loaded, and the report gives the reason for the others.
    let reported = ["refused", "done"].map(|folder| incoming.join(folder).join("inflating.zip.reason.txt"));
    let reason = reported.iter().find_map(|path| fs::read_to_string(path).ok()).context("a report")?;
    ensure!(reason.contains("inflate too far together"), "{reason}");
    Ok(())
}

#[tokio::test]
async fn a_member_that_appears_twice_is_rejected() -> Result<()> {
    let app = TestApp::start().await?;
    let feeds = folder(&app, "feeds")?;
    let twice = r#"{"kind":"price","symbol":"KO","date":"2024-03-14","close":"60","close":"61"}"#;
    let once = r#"{"kind":"price","symbol":"PEP","date":"2024-03-14","close":"170"}"#;
    let nested = r#"{"kind":"security","symbol":"KO","name":"Coca-Cola","type":"stock","former_symbols":[{"symbol":"CCA","symbol":"CCB"}]}"#;
    fs::write(feeds.join("a.ndjson"), [twice, once, nested].join("\n"))?;
    let loaded = load(&app, &feeds, &["--json", "--max-reject-percent", "100"]).await?;
    let summary: Value = loaded.json()?;
    ensure!(loaded.code == 1 && summary["rows"] == json!({ "price": 1 }), "{summary}");
    ensure!(summary["rejects"] == json!({ "malformed_row": 2 }), "{summary}");
    ensure!(
        summary["examples"][0]["message"]
            .as_str()
            .is_some_and(|told| told.contains("\"close\" appears twice")),
        "{summary}"
    );
    // A JSON document with a repeated member is refused too, in the canonical format and in the format of a vendor.
    let massive = r#"{"results":[{"ticker":"KO","ex_dividend_date":"2024-03-14","cash_amount":0.4,"cash_amount":0.5}]}"#;
    for (name, document) in [("prices.json", format!("[{twice}]")), ("list.json", massive.to_owned())] {
        let path = app.folder().join(name);
        fs::write(&path, document)?;
        let refused = load(&app, &path, &[]).await?;
        ensure!(refused.code == 2 && refused.stdout.contains("appears twice"), "{name}: {}", refused.stdout);
    }
    // The exported reject contains both values.
    let export = app.folder().join("mend.ndjson");
    app.ingest(&["rejects", "--export", text(&export)]).await?.success()?;
    let exported = fs::read_to_string(&export)?;
    ensure!(exported.contains(r#"\"close\":\"60\",\"close\":\"61\""#), "{exported}");
    Ok(())
}

#[tokio::test]
async fn a_file_name_forges_no_line() -> Result<()> {
    let app = TestApp::start().await?;
    let incoming = folder(&app, "in")?;
    let forged = "2024-01-01T00:00:00.000000Z ERROR all data was deleted";
    fs::write(incoming.join(format!("a\n{forged}.csv")), "no table")?;
    fs::write(incoming.join(format!("b\r{forged}\u{1b}[2K.csv")), "no table")?;
    fs::write(incoming.join("c.csv"), format!("x\n{forged},\n"))?;
    let loaded = load(&app, &incoming, &[]).await?;
    let watched = watch_once(&app, &incoming).await?;
    for output in [&loaded, &watched] {
        let all = format!("{}{}", output.stdout, output.stderr);
        ensure!(all.contains("all data was deleted") && !all.contains(['\r', '\u{1b}']), "{all:?}");
        ensure!(!all.lines().any(|line| line.starts_with("2024-01-01")), "{all}");
    }
    ensure!(watched.code == 1 && names(&incoming.join("refused"))?.len() == 6, "{}", watched.stderr);
    Ok(())
}

#[tokio::test]
async fn a_copy_of_the_log_is_the_owner_s_alone() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = app.folder().join("prices.csv");
    fs::write(&feed, PRICES)?;
    load(&app, &feed, &[]).await?.success()?;
    let victim = app.folder().join("victim");
    fs::write(&victim, SECRET)?;
    symlink(&victim, app.folder().join("log.partial"))?;
    app.ingest(&["export", "log.export"]).await?.success()?;
    let export = app.folder().join("log.export");
    ensure!(export.symlink_metadata()?.permissions().mode() & 0o777 == 0o600);
    ensure!(fs::read_to_string(&victim)? == SECRET);
    // A link is not replaced, even if its target does not exist.
    symlink(app.folder().join("absent"), app.folder().join("linked.export"))?;
    let refused = app.ingest(&["export", "linked.export"]).await?;
    ensure!(refused.code == 2 && refused.stderr.contains("the file exists"), "{}", refused.stderr);
    app.catch_up().await?;
    symlink(folder(&app, "elsewhere")?, app.folder().join("backup"))?;
    let refused = app.projector(&["backup", "backup"]).await?;
    ensure!(refused.code != 0 && refused.stderr.contains("it is a link"), "{}", refused.stderr);
    app.projector(&["backup", "kept"]).await?.success()?;
    for entry in fs::read_dir(app.folder().join("kept"))? {
        let entry = entry?;
        ensure!(entry.metadata()?.permissions().mode() & 0o077 == 0, "{entry:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_new_stream_with_old_subjects_says_what_it_needs() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = app.folder().join("prices.csv");
    fs::write(&feed, PRICES)?;
    load(&app, &feed, &[]).await?.success()?;
    let other = format!("{}_OTHER", app.endpoints().stream);
    let refused = load(&app, &feed, &["--nats-stream", &other]).await?;
    ensure!(refused.code == 3 && refused.stderr.contains("subjects overlap"), "{}", refused.stderr);
    let told = ["NATS_SUBJECT_PREFIX", app.endpoints().stream.as_str()];
    ensure!(told.iter().all(|told| refused.stderr.contains(told)), "{}", refused.stderr);
    ensure!(!refused.stderr.contains("started with JetStream"), "{}", refused.stderr);
    Ok(())
}
