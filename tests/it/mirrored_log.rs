//! Projection in another region: a projector reads a mirror of the log and writes tables with the same digests.

use std::time::Duration;

use anyhow::{Result, ensure};
use async_nats::jetstream::{self, stream};
use harness::{Program, TestApp, eventually};

use crate::log_copies::market;

const PATIENCE: Duration = Duration::from_secs(120);

/// Creates the log of `region` as a mirror of the log of `home`, with the same identity.
async fn mirror(home: &TestApp, region: &TestApp) -> Result<()> {
    let context = jetstream::new(region.nats().await?);
    let origin = context.get_stream(&home.endpoints().stream).await?;
    let config = stream::Config {
        name: region.endpoints().stream.clone(),
        mirror: Some(stream::Source { name: home.endpoints().stream.clone(), ..Default::default() }),
        metadata: origin.cached_info().config.metadata.clone(),
        ..Default::default()
    };
    context.create_stream(config).await?;
    Ok(())
}

async fn last_sequence(app: &TestApp) -> Result<u64> {
    let mut stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    Ok(stream.info().await?.state.last_sequence)
}

/// Waits until the mirror in `region` has every message of `home`, then runs the projector of `region`.
async fn follow(home: &TestApp, region: &TestApp) -> Result<()> {
    let last = last_sequence(home).await?;
    eventually(PATIENCE, async || {
        let mirrored = last_sequence(region).await?;
        ensure!(mirrored == last, "{mirrored} of {last} messages");
        Ok(())
    })
    .await?;
    let prefix = home.endpoints().subject_prefix.as_str();
    let env = [("NATS_SUBJECT_PREFIX", prefix)];
    region.run(Program::Projector, &["run", "--until-caught-up"], &env).await?.success()?;
    Ok(())
}

/// Returns a pair: a digest of all read tables, and the number of securities.
async fn digest(app: &TestApp) -> Result<(String, i64)> {
    let query = "select (select md5(string_agg(symbol || tables::text, ',' order by symbol)) from read_g1.digests) \
                 || (select sum(digest)::text from read_g1.prices), (select count(*) from read_g1.stocks)";
    let rows = app.sql(query, &[]).await?;
    Ok((rows[0].try_get(0)?, rows[0].try_get(1)?))
}

#[tokio::test]
async fn a_projection_of_a_mirror_has_the_same_digests() -> Result<()> {
    let (home, region) = (TestApp::start().await?, TestApp::start().await?);
    let feed = market(&home, "60", "4")?;
    home.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    mirror(&home, &region).await?;
    home.catch_up().await?;
    follow(&home, &region).await?;
    let first = digest(&home).await?;
    assert_eq!(digest(&region).await?, first);
    assert!(first.1 > 0, "no security is served");

    home.feed("prices-1.csv", "symbol,date,close\nSPY,2024-07-01,512.25\n").apply().await?;
    assert_ne!(digest(&home).await?, first);
    follow(&home, &region).await?;
    assert_eq!(digest(&region).await?, digest(&home).await?);
    Ok(())
}
