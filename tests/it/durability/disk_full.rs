//! Tests with full disks. Errors ask for free space, no acknowledged message is lost, and programs continue afterwards.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Program, Servers, SmallDisk, TestApp, eventually};

use crate::log_copies::{market, messages, verify};
use crate::replay::{OBSERVED, digest};

const PATIENCE: Duration = Duration::from_secs(120);
const SYMBOLS: &str = "90";
const YEARS: &str = "10";

async fn load(app: &TestApp, feed: &str) -> Result<harness::Output> {
    app.ingest(&["load", feed, "--source", "test", "--observed-at", OBSERVED]).await
}

/// Loads and applies the market of these tests while the disk has enough space. Returns the digests of the tables.
async fn undisturbed() -> Result<Vec<(String, i64, String)>> {
    let app = TestApp::start().await?;
    load(&app, &market(&app, SYMBOLS, YEARS)?).await?.success()?;
    app.catch_up().await?;
    digest(&app).await
}

async fn bodies(app: &TestApp) -> Result<Vec<Vec<u8>>> {
    Ok(messages(app).await?.into_iter().map(|(.., body)| body).collect())
}

/// Loads a feed onto a full disk. The load must fail with an error that contains `said`. Returns the bodies of the
/// stored messages.
async fn fails_for_room(app: &TestApp, feed: &str, said: &str) -> Result<Vec<Vec<u8>>> {
    let failed = load(app, feed).await?;
    assert_eq!(failed.code, 3, "{}", failed.stderr);
    for words in [said, "free disk space", "restart NATS", "run the same command again to resume"] {
        assert!(failed.stderr.contains(words), "{}", failed.stderr);
    }
    let stored = bodies(app).await?;
    assert!(stored.len() > 1, "nothing was acknowledged before the disk was full");
    Ok(stored)
}

/// Fails if the status, the metrics or the health of the API do not show whether NATS stores messages.
async fn is_shown_to_fail(app: &TestApp, fails: bool) -> Result<()> {
    let status = app.projector(&["status"]).await?.success()?;
    let text = "log          NATS has stored nothing since a write failed at ";
    ensure!(status.stdout.contains(text) == fails, "{}", status.stdout);
    ensure!(status.stdout.contains("free disk space") == fails, "{}", status.stdout);
    let metrics = app.free_address()?;
    let listen = [("METRICS_LISTEN", metrics.as_str())];
    let projector = app.spawn_with(Program::Projector, &["run"], &listen).await?;
    let (api, client) = (app.api_serve().await?, harness::client(PATIENCE)?);
    eventually(PATIENCE, async || {
        let scraped = client.get(format!("http://{metrics}/metrics")).send().await?.text().await?;
        let gauge = format!("dds_log_write_failed {}\n", u8::from(fails));
        ensure!(
            scraped.contains(&gauge) && scraped.contains("dds_log_messages"),
            "{}",
            projector.log_tail(5)
        );
        let health = app.run(Program::Projector, &["health"], &listen).await?;
        ensure!(health.code == 0 && health.stdout.contains("a write failed") == fails, "{health:?}");
        let answer = api.get("/v1/health", None).await?.json()?;
        let expected = if fails { ["degraded", "full"] } else { ["ok", "ok"] };
        let found = [&answer["data"]["status"], &answer["data"]["components"]["nats"]];
        ensure!(found == expected, "{answer}");
        Ok(())
    })
    .await
}

/// Resumes and applies the load. Fails if a message in `before` is gone, or if the tables differ from those of an
/// undisturbed load.
async fn goes_on_from(app: &TestApp, before: Vec<Vec<u8>>) -> Result<()> {
    assert!(bodies(app).await?.starts_with(&before), "acknowledged messages are gone");
    app.ingest(&["resume"]).await?.success()?;
    let (code, found) = verify(app, &["--check-only"]).await?;
    assert_eq!(code, 0, "{found}");
    app.catch_up().await?;
    assert_eq!(digest(app).await?, undisturbed().await?);
    Ok(())
}

#[tokio::test]
async fn a_load_onto_a_full_disk_says_so_and_is_resumed() -> Result<()> {
    let Some(disk) = SmallDisk::mount(64)? else { return Ok(()) };
    let servers = Servers::private_with_nats_on(&disk).await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let feed = market(&app, SYMBOLS, YEARS)?;
    disk.fill_except(1 << 20)?;
    let before = fails_for_room(&app, &feed, "stores nothing").await?;
    is_shown_to_fail(&app, true).await?;
    disk.make_room()?;
    servers.nats.restart().await?;
    goes_on_from(&app, before).await?;
    is_shown_to_fail(&app, false).await
}

#[tokio::test]
async fn a_load_beyond_the_room_nats_allows_itself_says_so_and_is_resumed() -> Result<()> {
    let Some(disk) = SmallDisk::mount(64)? else { return Ok(()) };
    disk.fill_except(3 << 19)?;
    let servers = Servers::private_with_nats_on(&disk).await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let feed = market(&app, SYMBOLS, YEARS)?;
    let before = fails_for_room(&app, &feed, "no space for the log").await?;
    is_shown_to_fail(&app, true).await?;
    disk.make_room()?;
    servers.nats.restart().await?;
    is_shown_to_fail(&app, false).await?;
    goes_on_from(&app, before).await
}

/// Returns the projector's checkpoint. Fails if the facts do not come from exactly the messages up to the checkpoint.
async fn position(app: &TestApp) -> Result<i64> {
    let query = "select checkpoint, checkpoint = (select count(*) from (select sequence from facts.frames \
                 union select sequence from facts.runs) as applied) and checkpoint = (select coalesce(max(sequence), 0) \
                 from (select sequence from facts.frames union select sequence from facts.runs) as applied) \
                 from control.fact_sets where name = 'facts'";
    let rows = app.sql(query, &[]).await?;
    let row = rows.first().context("the live facts")?;
    assert_eq!(row.try_get::<_, Option<bool>>(1)?, Some(true), "the position is not what was applied");
    Ok(row.try_get(0)?)
}

#[tokio::test]
async fn a_rebuild_is_not_begun_where_its_generation_has_no_room() -> Result<()> {
    let Some(disk) = SmallDisk::mount(512)? else { return Ok(()) };
    let servers = Servers::private_with_postgres_on(&disk).await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    load(&app, &market(&app, SYMBOLS, YEARS)?).await?.success()?;
    app.catch_up().await?;
    disk.fill_except(1 << 19)?;
    let refused = app.projector(&["rebuild"]).await?;
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for words in ["1 MB are free at", "projector list, drop N", "--without-room"] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(app.sql_value::<i64>("select count(*) from control.generations").await?, 1);
    disk.make_room()?;
    let built = app.projector(&["rebuild", "--verbose"]).await?.success()?;
    assert!(built.stderr.contains("disk space of the new generation"), "{}", built.stderr);
    assert!(
        built.stderr.contains(&format!("derived {SYMBOLS} of {SYMBOLS} securities in")),
        "{}",
        built.stderr
    );
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Lacking {
    /// Postgres has no space for another segment of the write-ahead log. It soon needs one, because the current segment
    /// is nearly full.
    Segment,
    /// Postgres has no space for new pages of a table. It can still write the write-ahead log, because the current
    /// segment is nearly empty.
    Pages,
}

impl Lacking {
    async fn arrange(self, app: &TestApp, disk: &SmallDisk) -> Result<()> {
        const SPARE: &str = "select exists (select from pg_ls_waldir() where name > pg_walfile_name(pg_current_wal_insert_lsn()))";
        const NEXT: &str = "select pg_logical_emit_message(false, 'room', 'x'), pg_switch_wal()";
        // A checkpoint makes spare segments of old ones, so none follows when these are used up. The current segment is
        // then empty.
        app.sql("checkpoint", &[]).await?;
        app.sql(NEXT, &[]).await?;
        while self == Lacking::Segment && app.sql_value::<bool>(SPARE).await? {
            app.sql(NEXT, &[]).await?;
        }
        match self {
            Lacking::Segment => {
                app.sql("select pg_logical_emit_message(true, 'room', repeat('x', 14 << 20))", &[]).await?;
                disk.fill_except(8 << 20)
            }
            Lacking::Pages => {
                // This write creates the file of the new segment before the disk is full.
                app.sql("select pg_logical_emit_message(true, 'room', 'x')", &[]).await?;
                disk.fill_except(1 << 20)
            }
        }
    }
}

/// Applies a market while Postgres lacks disk space, then frees space. Fails if the tables differ from those of an
/// undisturbed load. Returns the projector's log, or `None` if the test is skipped.
async fn applied_in_spite_of_a_full_disk(lacking: Lacking) -> Result<Option<String>> {
    let Some(disk) = SmallDisk::mount(512)? else { return Ok(None) };
    let servers = Servers::private_with_postgres_on(&disk).await?;
    let app = TestApp::builder().servers(&servers).env("PROJECTOR_BATCH_BYTES", "200000").start().await?;
    let feed = market(&app, SYMBOLS, YEARS)?;
    load(&app, &format!("{feed}/dividends.csv")).await?.success()?;
    app.catch_up().await?;
    let early = position(&app).await?;
    load(&app, &feed).await?.success()?;
    lacking.arrange(&app, &disk).await?;
    let projector = app.spawn(Program::Projector, &["run"]).await?;
    // Without space for a segment, Postgres may end before it can report the full disk.
    let told = match lacking {
        Lacking::Segment => "transient failure",
        Lacking::Pages => "disk of Postgres is full; free space on it",
    };
    eventually(PATIENCE, async || {
        ensure!(projector.log().contains(told), "{}", projector.log_tail(5));
        Ok(())
    })
    .await?;
    disk.make_room()?;
    if servers.postgres.connect(app.database()).await.is_err() {
        // Postgres ends by itself if it cannot write its write-ahead log.
        servers.postgres.restart().await?;
    }
    let messages = i64::try_from(messages(&app).await?.len())?;
    assert!((early..=messages).contains(&position(&app).await?) && early > 0);
    let caught_up = format!("select coalesce(min(sequence), 0) >= {messages} from read_g1.version");
    eventually(PATIENCE, async || {
        ensure!(app.sql_value::<bool>(&caught_up).await?, "the tables are behind the log");
        Ok(())
    })
    .await?;
    assert_eq!(position(&app).await?, messages);
    assert_eq!(digest(&app).await?, undisturbed().await?);
    Ok(Some(projector.log()))
}

#[tokio::test]
async fn a_projector_goes_on_by_itself_after_postgres_could_not_write_its_own_log() -> Result<()> {
    applied_in_spite_of_a_full_disk(Lacking::Segment).await?;
    Ok(())
}

#[tokio::test]
async fn a_projector_goes_on_by_itself_after_postgres_could_not_enlarge_a_table() -> Result<()> {
    let Some(said) = applied_in_spite_of_a_full_disk(Lacking::Pages).await? else { return Ok(()) };
    assert!(said.contains("could not extend file"), "{said}");
    Ok(())
}
