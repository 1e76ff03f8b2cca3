//! Least privilege: what each role may not do is refused by Postgres itself.

use anyhow::{Result, ensure};
use harness::TestApp;
use tokio_postgres::error::SqlState;

async fn refused(app: &TestApp, role: &str, statement: &str) -> Result<()> {
    let client = app.servers().postgres.connect(app.database()).await?;
    client.batch_execute(&format!("set role {role}")).await?;
    let error = client.batch_execute(statement).await.err();
    let code = error.as_ref().and_then(|error| error.code());
    ensure!(code == Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{role} was allowed: {statement} ({error:?})");
    Ok(())
}

#[tokio::test]
async fn the_api_cannot_write_facts_or_read_tables() -> Result<()> {
    let app = TestApp::start().await?;
    for statement in [
        "insert into facts.runs values ('r', 'started', 1, '{}')",
        "delete from facts.observations",
        "update facts.bars set year = 1",
        "truncate facts.rejects",
        "insert into read_g1.symbols values ('A', 'A')",
        "delete from read_g1.stocks",
        "update read_g1.version set sequence = 0",
        "drop table read_g1.quotes",
        "update control.active set generation = 1",
        "delete from control.fact_sets",
        "insert into control.source_policy values ('price', 'x', null, null, 1)",
        "update accounts.accounts set tier = 'professional'",
        "insert into accounts.tiers values ('x', 9, 1, 1, 1, 1)",
        "create schema mine",
        "create table public.mine (n int)",
    ] {
        refused(&app, "dds_api", statement).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_projector_cannot_touch_accounts() -> Result<()> {
    let app = TestApp::start().await?;
    for statement in [
        "select * from accounts.accounts",
        "select * from accounts.api_keys",
        "update accounts.tiers set rate_per_minute = 1",
        "insert into accounts.accounts (email) values ('a@b.c')",
        "drop schema accounts cascade",
    ] {
        refused(&app, "dds_projector", statement).await?;
    }
    Ok(())
}
