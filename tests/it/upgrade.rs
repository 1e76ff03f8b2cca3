//! The upgrade: what an older release's own programs left comes up under today's without a loss.
//!
//! `tests/fixtures/older/` holds their database and log, of the market of `api_world.rs`; its README says how they were made.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Api, TestApp, eventually};

use crate::api_world::TODAY;
use crate::fold::Fold;
use crate::generations::answer;
use crate::kept::answers;

const PATIENCE: Duration = Duration::from_secs(30);
const OLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/older");
/// Made by the older release.
const KEY: &str = include_str!("../fixtures/older/key");
const CATALOGUE: &str = include_str!("../fixtures/catalogue.sql");
/// Newer than all that the older release loaded.
const NEXT: &str = "symbol,date,close\nCOLA,2024-06-17,51\nFUND,2024-06-17,410\n";

/// An app with the older release's log, and its database where it is not to be made anew.
async fn with_older_log(database: bool) -> Result<TestApp> {
    let builder = TestApp::builder().env("SERVICE_DATE", TODAY);
    let app = if database { builder.without_migration() } else { builder }.start().await?;
    app.ingest(&["import", &format!("{OLDER}/market.log")]).await?.success()?;
    if database {
        let dump = std::fs::read(Path::new(OLDER).join("database.sql.zst"))?;
        let dump = String::from_utf8(zstd::decode_all(&dump[..])?)?;
        app.servers().postgres.connect(app.database()).await?.batch_execute(&dump).await?;
    }
    Ok(app)
}

async fn catalogue(app: &TestApp) -> Result<Vec<String>> {
    app.sql(CATALOGUE, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Waits until what a generation of an app has is served.
async fn serves(api: &Api, generation: i32) -> Result<()> {
    eventually(PATIENCE, async || {
        let health = api.get("/v1/health", None).await?.text();
        ensure!(health.contains(&format!("\"data_version\":\"g{generation}.")), "{health}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_an_older_release_left_is_served_on_and_becomes_what_a_fresh_load_gives() -> Result<()> {
    // Roles belong to the server, so those that the dump names are there after this.
    let fresh = with_older_log(false).await?;
    // A generation has its indexes when it has rows.
    fresh.projector(&["run", "--until-caught-up"]).await?.success()?;
    let older = with_older_log(true).await?;
    older.projector(&["migrate"]).await?.success()?;
    let (upgraded, expected) = (catalogue(&older).await?, catalogue(&fresh).await?);
    let missing: Vec<_> = expected.iter().filter(|line| !upgraded.contains(line)).collect();
    let surplus: Vec<_> = upgraded.iter().filter(|line| !expected.contains(line)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nsurplus: {surplus:#?}");

    // Its prices are packed as those of today, so that a year that no day touches is never derived again for it.
    let again = "select count(*) from facts.bars b join read_g1.prices p using (symbol, year, digest)
        where get_byte(b.days, 0) = 32 and get_byte(p.days, 0) = 32";
    let years: i64 = older.sql_value("select count(*) from facts.bars").await?;
    assert!(years > 0 && older.sql_value::<i64>(again).await? == years, "of {years} years");
    let unpacked = "select count(*) from read_g1.prices p, read_g1.price_bars(p.symbol) b where b.close > 0";
    assert!(older.sql_value::<i64>(unpacked).await? > 0);

    let started = older.projector(&["run", "--until-caught-up"]).await?;
    assert!(started.stderr.contains("stands still"), "{}", started.stderr);

    // At once, to the keys that there are; then it goes on with what is loaded next.
    let api = older.api_serve().await?;
    answers(&api, KEY.trim()).await?;
    for app in [&older, &fresh] {
        app.feed("prices.csv", NEXT).today(TODAY).apply().await?;
        answer(app, &["rebuild"]).await?;
        answer(app, &["promote", "2", "--accept-diff"]).await?;
    }
    Fold::check(&older, 2).await?;
    let bars =
        "select string_agg(concat_ws(' ', symbol, source, year, digest), e'\n' order by symbol, source, year)
        from facts.bars";
    assert_eq!(older.sql_value::<String>(bars).await?, fresh.sql_value::<String>(bars).await?);
    serves(&api, 2).await?;
    let fresh_api = fresh.api_serve().await?;
    let fresh_key = fresh.key("professional").await?;
    let expected = answers(&fresh_api, &fresh_key).await?;
    for (path, (status, body)) in answers(&api, KEY.trim()).await? {
        let (expected_status, expected_body) = &expected[path];
        assert_eq!(status, *expected_status, "{path}");
        assert_eq!(undated(&body), undated(expected_body), "{path}");
    }
    Ok(())
}

/// A body without the moments at which its rows were written.
fn undated(body: &str) -> String {
    let mut parts = body.split("\"updated_at\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').map_or(part, |(_, after)| after))
}
