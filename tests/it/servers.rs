//! The servers of the test harness. They start and answer, and tests that share them are isolated from each other.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use async_nats::jetstream::{self, stream};
use harness::{Servers, TestApp, eventually, free_port};

#[tokio::test]
async fn postgres_answers_and_is_new_enough() -> Result<()> {
    let servers = Servers::shared().await?;
    let client = servers.postgres.connect("postgres").await?;
    let version: String = client.query_one("select version()", &[]).await?.get(0);
    let major: u32 = version.split([' ', '.']).nth(1).unwrap_or_default().parse()?;
    assert!(major >= 15, "{version}");
    Ok(())
}

#[tokio::test]
async fn postgres_has_trigrams_and_counts_characters_in_utf8() -> Result<()> {
    let app = TestApp::builder().without_migration().start().await?;
    app.sql("create extension if not exists pg_trgm", &[]).await?;
    assert_eq!(app.sql_value::<i32>("select length('Nestlé')").await?, 6);
    Ok(())
}

#[tokio::test]
async fn jetstream_acknowledges_what_it_stores() -> Result<()> {
    let app = TestApp::builder().without_migration().start().await?;
    let context = jetstream::new(app.nats().await?);
    let subject = format!("{}.price", app.endpoints().subject_prefix);
    let configuration = stream::Config {
        name: app.endpoints().stream.clone(),
        subjects: vec![subject.clone()],
        ..stream::Config::default()
    };
    let log = context.create_stream(configuration).await?;
    let acknowledged = context.publish(subject, "frame".into()).await?.await?;
    assert_eq!(acknowledged.sequence, 1);
    assert_eq!(log.get_raw_message(1).await?.payload, "frame");
    Ok(())
}

#[tokio::test]
async fn databases_are_private_and_vanish_with_their_app() -> Result<()> {
    let servers = Servers::shared().await?;
    let (one, two) = tokio::try_join!(
        TestApp::builder().without_migration().start(),
        TestApp::builder().without_migration().start()
    )?;
    one.sql("create table mine (n int)", &[]).await?;
    assert_eq!(two.sql_value::<i64>("select count(*) from pg_tables where tablename = 'mine'").await?, 0);
    let name = one.database().to_owned();
    assert!(servers.postgres.has_database(&name).await?);
    drop(one);
    assert!(!servers.postgres.has_database(&name).await?);
    Ok(())
}

#[tokio::test]
async fn private_servers_keep_what_they_acknowledged_through_a_power_cut() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).without_migration().start().await?;
    let context = jetstream::new(app.nats().await?);
    let configuration = stream::Config {
        name: "KEPT".to_owned(),
        subjects: vec!["kept".to_owned()],
        ..stream::Config::default()
    };
    context.create_stream(configuration).await?;
    context.publish("kept", "frame".into()).await?.await?;
    app.sql("create table kept as select 42 as answer", &[]).await?;

    servers.postgres.kill9().await?;
    servers.nats.kill9().await?;
    assert!(app.sql("select 1", &[]).await.is_err());
    servers.postgres.restart().await?;
    servers.nats.restart().await?;

    assert_eq!(app.sql_value::<i32>("select answer from kept").await?, 42);
    let mut log = jetstream::new(app.nats().await?).get_stream("KEPT").await?;
    assert_eq!(log.info().await?.state.messages, 1);
    Ok(())
}

#[tokio::test]
async fn waiting_ends_with_the_answer_or_with_the_last_reason() -> Result<()> {
    let mut calls = 0;
    let answer = eventually(Duration::from_secs(120), async || {
        calls += 1;
        ensure!(calls == 3, "not yet");
        Ok(calls)
    });
    assert_eq!(answer.await?, 3);
    let never: Result<()> = eventually(Duration::from_millis(60), async || anyhow::bail!("the reason")).await;
    let told = format!("{:#}", never.err().unwrap_or_else(|| anyhow::anyhow!("nothing")));
    assert!(told.contains("the reason"), "{told}");
    Ok(())
}

#[test]
fn no_port_is_given_twice() -> Result<()> {
    let find = || (0..50).map(|_| free_port()).collect::<Result<Vec<u16>>>();
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(find)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect::<Result<Vec<_>>>()
    })?;
    assert_eq!(found.iter().flatten().collect::<HashSet<_>>().len(), 200);
    Ok(())
}
