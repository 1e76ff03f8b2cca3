//! Least privilege: a database role can do only what its program needs, and Postgres refuses everything else.

use anyhow::{Result, ensure};
use harness::TestApp;
use tokio_postgres::error::SqlState;

async fn refused(app: &TestApp, role: &str, statement: &str) -> Result<()> {
    let is_of_accounts = statement.contains("accounts.");
    let database = if is_of_accounts { app.accounts_database() } else { app.database() };
    refused_in(app, database, role, statement).await
}

async fn refused_in(app: &TestApp, database: &str, role: &str, statement: &str) -> Result<()> {
    let client = app.servers().postgres.connect(database).await?;
    client.batch_execute(&format!("set role {role}")).await?;
    let error = client.batch_execute(statement).await.err();
    let code = error.as_ref().and_then(|error| error.code());
    ensure!(code == Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{role} was allowed: {statement} ({error:?})");
    Ok(())
}

#[tokio::test]
async fn the_api_cannot_write_facts_or_read_tables() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    for statement in [
        "insert into facts.runs values ('r', 'started', 1, '{}')",
        "delete from facts.records",
        "insert into facts.record_ids values (1, 'A')",
        "update facts.bars set year = 1",
        "truncate facts.rejects",
        "insert into read_g1.symbols values ('A', 'A')",
        "delete from read_g1.stocks",
        "update read_g1.version set sequence = 0",
        "drop table read_g1.quotes",
        "update control.active set generation = 1",
        "update control.versions set sequence = 0",
        "delete from control.version_inputs",
        "delete from facts.superseded_records",
        "insert into facts.superseded_bars values ('A', 's', 2024, 1, '')",
        "delete from facts.symbol_links",
        "delete from control.fact_sets",
        "insert into control.source_licences (source, licence, redistribution) values ('x', 'x', true)",
        "insert into control.source_policy values ('price', 'x', null, null, 1)",
        "update accounts.accounts set tier = 'professional'",
        "update accounts.accounts set paid_until = null",
        "insert into accounts.accounts (email) values ('a@b.c')",
        "delete from accounts.accounts",
        "insert into accounts.tiers values ('x', 9, 1, 1, 1, 1)",
        "update accounts.tiers set monthly_quota = 1",
        "insert into accounts.api_keys (account_id, hash, name, last_four) values (1, 'x', 'x', 'x')",
        "update accounts.api_keys set revoked_at = null",
        "update accounts.api_keys set rate_per_minute = null",
        "delete from accounts.api_keys",
        "delete from accounts.limiter",
        "insert into accounts.limiter (account_id, tokens, cap) values (1, 1, 1)",
        "update accounts.audit set action = 'nothing'",
        "delete from accounts.audit",
        "truncate accounts.audit",
        "alter table accounts.audit disable trigger append_only",
        "select * from accounts.passwords",
        "select * from accounts.sessions",
        "select * from accounts.links",
        "select * from accounts.portfolios",
        "select * from accounts.spent",
        "insert into accounts.maintenance (starts_at, ends_at, description) values (now(), now(), 'x')",
        "delete from accounts.maintenance",
        "truncate accounts.traffic_minutes",
        "create schema mine",
        "create table public.mine (n int)",
        "create temporary table limiter (account_id bigint, month date, used bigint)",
    ] {
        refused(&app, "dds_api", statement).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_projector_cannot_touch_accounts() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    for statement in [
        "select * from accounts.accounts",
        "select * from accounts.api_keys",
        "select * from accounts.limiter",
        "select * from accounts.audit",
        "select * from accounts.passwords",
        "select * from accounts.calls",
        "insert into accounts.audit (account_id, action) values (1, 'x')",
        "update accounts.tiers set rate_per_minute = 1",
        "insert into accounts.accounts (email) values ('a@b.c')",
        "drop schema accounts cascade",
    ] {
        refused(&app, "dds_projector", statement).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_dashboard_sees_nothing_of_the_market() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    for statement in [
        "select * from read_g1.stocks",
        "select * from read_g1.quotes",
        "select * from facts.records",
        "select * from facts.bars",
        "select * from control.active",
        "select * from control.generations",
        "update accounts.tiers set monthly_quota = 1",
        "delete from accounts.accounts",
        "update accounts.accounts set disabled_at = null",
        "insert into accounts.accounts (email, disabled_at) values ('a@b.c', null)",
        "update accounts.limiter set used = 0",
        "update accounts.limiter set tokens = 1",
        "insert into accounts.limiter (account_id, tokens, cap) values (1, 1, 1)",
        "delete from accounts.api_keys",
        "update accounts.api_keys set hash = 'x'",
        "update accounts.api_keys set account_id = 1",
        "insert into accounts.links (hash, purpose, email, expires_at) values ('x', 'reset', 'a@b.c', now())",
        "select * from accounts.spent",
        "update accounts.calls set calls = 0",
        "select * from accounts.traffic_minutes",
        "select * from accounts.maintenance",
        "update accounts.audit set action = 'x'",
        "delete from accounts.audit",
        "create schema mine",
        "create table public.mine (n int)",
        "create temporary table limiter (account_id bigint, month date, used bigint)",
    ] {
        refused(&app, "dds_dashboard", statement).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_role_has_no_access_to_a_database_that_its_program_does_not_use() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    for role in ["dds_api", "dds_dashboard"] {
        refused_in(&app, app.database(), role, "select * from accounts.tiers").await?;
    }
    refused_in(&app, app.accounts_database(), "dds_api", "select * from control.active").await?;
    let connects = "select string_agg(name, ' ' order by name)
                    from unnest('{dds_analyst, dds_api, dds_dashboard, dds_projector}'::text[]) name
                    where has_database_privilege(name, current_database(), 'connect')";
    let accounts = app.servers().postgres.connect(app.accounts_database()).await?;
    let roles: String = accounts.query_one(connects, &[]).await?.get(0);
    assert_eq!(roles, "dds_api dds_dashboard");
    Ok(())
}

/// A function that runs with its owner's rights must not use a temporary table of the caller.
#[tokio::test]
async fn what_runs_as_the_owner_looks_at_temporary_tables_last() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    let loose: i64 = app
        .sql_value(
            "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
             where p.prosecdef and n.nspname in ('accounts', 'control', 'public')
               and coalesce(array_to_string(p.proconfig, ';'), '') not like '%search_path=%, pg_temp'",
        )
        .await?;
    assert_eq!(loose, 0);
    let who = "spent@example.com";
    app.create_account(who, "free").await?;
    app.sql("update accounts.limiter set used = 41", &[]).await?;
    let client = app.servers().postgres.connect(app.accounts_database()).await?;
    client
        .batch_execute(
            "create temporary table limiter (account_id bigint, month date, used bigint);
             create temporary table spent (address bytea, month date, used bigint, primary key (address, month));
             update accounts.accounts set deleted_at = now();",
        )
        .await?;
    assert_eq!(app.sql_value::<i64>("select used from accounts.spent").await?, 41);
    app.create_account(who, "free").await?;
    let used: i64 =
        app.sql_value("select used from accounts.limiter order by account_id desc limit 1").await?;
    assert_eq!(used, 41);
    Ok(())
}

#[tokio::test]
async fn nobody_rewrites_the_audit_log() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    app.create_account("kept@example.com", "free").await?;
    let entry = "insert into accounts.audit (account_id, action) select id, 'test' from accounts.accounts";
    let client = app.servers().postgres.connect(app.accounts_database()).await?;
    client.batch_execute(&format!("set role dds_api; {entry}; reset role")).await?;
    for statement in
        ["update accounts.audit set action = 'x'", "delete from accounts.audit", "truncate accounts.audit"]
    {
        let error = client.batch_execute(statement).await.err();
        ensure!(
            error.as_ref().and_then(|error| error.code()) == Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{statement}: {error:?}"
        );
    }
    assert_eq!(app.sql_value::<i64>("select count(*) from accounts.audit").await?, 2);
    Ok(())
}
