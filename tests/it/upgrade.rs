//! Upgrade from release 0.1.0. The database, the log and the backup of that release work with the current programs.
//!
//! That release wrote `tests/fixtures/0.1.0/` with `cargo test -p tests --test it upgrade::write_fixture -- --ignored`.
//! For each later release, add a folder that these tests also read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, Servers, TestApp, eventually};

use crate::api_world::{TODAY, World};
use crate::backup::answers;
use crate::generations::answer;
use crate::reference_projection::ReferenceProjection;

const DEADLINE: Duration = Duration::from_secs(120);
const CATALOGUE: &str = include_str!("../fixtures/catalogue.sql");
/// Prices newer than all rows of the fixture.
const NEXT: &str = "symbol,date,close\nCOLA,2024-06-17,51\nFUND,2024-06-17,51\n";
const HOLDER: &str = "holder@example.com";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/0.1.0").join(name)
}

fn key() -> Result<String> {
    Ok(fs::read_to_string(fixture("key"))?.trim().to_owned())
}

/// Starts an app with the log of the fixture. If `database` is true, the app also has the database of the fixture;
/// otherwise, it has a new database.
async fn with_log(database: bool) -> Result<TestApp> {
    let builder = TestApp::builder().env("SERVICE_DATE", TODAY);
    let app = if database { builder.without_migration() } else { builder }.start().await?;
    app.ingest(&["import", &fixture("market.log").display().to_string()]).await?.success()?;
    if database {
        let mut dump = String::from_utf8(zstd::decode_all(&fs::read(fixture("database.sql.zst"))?[..])?)?;
        // A server without lz4 cannot use this compression, so the dump must not name it.
        let lz4 = "select 'lz4' = any(enumvals) from pg_settings where name = 'default_toast_compression'";
        if !app.sql_value::<bool>(lz4).await? {
            dump = dump.replace(" SET COMPRESSION lz4", " SET COMPRESSION default");
        }
        app.servers().postgres.connect(app.database()).await?.batch_execute(&dump).await?;
    }
    Ok(app)
}

async fn catalogue(app: &TestApp) -> Result<Vec<String>> {
    app.sql(CATALOGUE, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Waits until the API serves the generation.
async fn serves(api: &Api, generation: i32) -> Result<()> {
    eventually(DEADLINE, async || {
        let health = api.get("/v1/health", None).await?.text();
        ensure!(health.contains(&format!("\"data_version\":\"g{generation}.")), "{health}");
        Ok(())
    })
    .await
}

/// Loads the prices `NEXT`, creates generation 2 from all facts, and promotes it.
async fn advance(app: &TestApp) -> Result<()> {
    app.feed("prices.csv", NEXT).today(TODAY).apply().await?;
    answer(app, &["rebuild"]).await?;
    answer(app, &["promote", "2", "--accept-diff"]).await?;
    Ok(())
}

/// Returns the response bodies by path, without the values of `updated_at`.
async fn undated_answers(api: &Api, key: &str) -> Result<BTreeMap<&'static str, String>> {
    let answers = answers(api, key).await?;
    Ok(answers.into_iter().map(|(path, (_, body))| (path, undated(&body))).collect())
}

fn undated(body: &str) -> String {
    let mut parts = body.split("\"updated_at\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').map_or(part, |(_, after)| after))
}

#[tokio::test]
async fn a_released_database_is_served_at_once_and_becomes_what_a_fresh_load_gives() -> Result<()> {
    // The dump names roles of the Postgres server. The start of this app creates these roles.
    let fresh = with_log(false).await?;
    // The projector must write rows first, because a generation gets its indexes with its first rows.
    fresh.projector(&["run", "--until-caught-up"]).await?.success()?;
    let released = with_log(true).await?;
    released.projector(&["migrate"]).await?.success()?;
    let (upgraded, expected) = (catalogue(&released).await?, catalogue(&fresh).await?);
    let missing: Vec<_> = expected.iter().filter(|line| !upgraded.contains(line)).collect();
    let surplus: Vec<_> = upgraded.iter().filter(|line| !expected.contains(line)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nsurplus: {surplus:#?}");

    // Before a new load, the released database agrees with the log, and the API accepts the key of that release.
    released.projector(&["run", "--until-caught-up"]).await?.success()?;
    ReferenceProjection::check(&released, 1).await?;
    let api = released.api_serve().await?;
    undated_answers(&api, &key()?).await?;

    // After a load of the next day, the facts and the API's responses equal those of a database that the current
    // programs created.
    advance(&released).await?;
    advance(&fresh).await?;
    ReferenceProjection::check(&released, 2).await?;
    let facts = "select string_agg(concat_ws(' ', symbol, kind, source, md5(packed)), e'\n' order by symbol, kind, source)
        from facts.records";
    assert_eq!(released.sql_value::<String>(facts).await?, fresh.sql_value::<String>(facts).await?);
    serves(&api, 2).await?;
    let fresh_api = fresh.api_serve().await?;
    let expected = undated_answers(&fresh_api, &fresh.key("professional").await?).await?;
    assert_eq!(undated_answers(&api, &key()?).await?, expected);
    Ok(())
}

#[tokio::test]
async fn a_released_backup_is_restored_with_its_accounts_and_every_answer() -> Result<()> {
    let servers = Servers::private().await?;
    let builder = TestApp::builder().servers(&servers).without_migration().env("SERVICE_DATE", TODAY);
    let app = builder.start().await?;
    let restored = app.projector(&["restore", &fixture("backup").display().to_string(), "--json"]).await?;
    // If the current rules differ from those of the release, figures may differ, and the restore reports this.
    let outcome = restored.json()?;
    assert!(restored.code == 0 || outcome["other_rules"].is_string(), "{}", restored.stdout);
    ReferenceProjection::check(&app, 1).await?;
    let account = "select count(*) from accounts.accounts where email = $1 and tier = 'professional'";
    let count: i64 = app.sql(account, &[&HOLDER]).await?.first().context("a count")?.try_get(0)?;
    assert_eq!(count, 1);
    let api = app.api_serve().await?;
    let fresh = with_log(false).await?;
    fresh.projector(&["run", "--until-caught-up"]).await?.success()?;
    let fresh_api = fresh.api_serve().await?;
    let expected = undated_answers(&fresh_api, &fresh.key("professional").await?).await?;
    assert_eq!(undated_answers(&api, &key()?).await?, expected);
    Ok(())
}

/// Writes the fixture with the current programs. The version of `pg_dump` must be that of the Postgres server. The
/// variable `PG_BIN` names the folder of `pg_dump`; without `PG_BIN`, the folders of `PATH` are searched.
#[tokio::test]
#[ignore = "writes tests/fixtures/0.1.0, once a release"]
async fn write_fixture() -> Result<()> {
    let world = World::start().await?;
    let app = &world.app;
    app.create_account(HOLDER, "professional").await?;
    let key = app.create_key(HOLDER, "released").await?;
    let folder = fixture("");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(fixture("key"), key + "\n")?;
    let path = |name: &str| fixture(name).display().to_string();
    app.ingest(&["export", &path("market.log")]).await?.success()?;
    app.projector(&["backup", &path("backup")]).await?.success()?;
    let url = app.servers().postgres.url(app.database());
    fs::write(fixture("database.sql.zst"), zstd::encode_all(dump(&url)?.as_bytes(), 19)?)?;
    Ok(())
}

/// Returns the database as SQL statements, without comments and `psql` commands. Statements `OWNER TO` are left out
/// unless the owner is a role of the service (`dds_…`).
fn dump(url: &str) -> Result<String> {
    #[expect(clippy::disallowed_methods, reason = "only who writes a fixture names the folder of pg_dump")]
    let program =
        std::env::var_os("PG_BIN").map_or("pg_dump".into(), |folder| Path::new(&folder).join("pg_dump"));
    let dumped = Command::new(program).args(["--inserts", "--rows-per-insert=100", url]).output()?;
    ensure!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let is_kept = |line: &&str| {
        let is_of_superuser = line.contains(" OWNER TO ") && !line.contains(" OWNER TO dds_");
        !(is_of_superuser || line.starts_with("--") || line.starts_with('\\'))
    };
    Ok(String::from_utf8(dumped.stdout)?.lines().filter(is_kept).collect::<Vec<_>>().join("\n"))
}
