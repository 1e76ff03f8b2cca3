//! Accounts in a database of their own, on another server than the market. Each server is lost and comes back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, Servers, TestApp, eventually};

use crate::dashboard::visitor::Person;
use crate::failover::{serves, url_of_hosts, wait_for_replica};

const CALL: &str = "/v1/stocks?limit=1";
const PATIENCE: Duration = Duration::from_secs(120);
/// Default of 250 ms. The test harness sets a longer timeout for other tests.
const ADMISSION: (&str, &str) = ("API_ADMISSION_TIMEOUT_MS", "250");
/// Maximum time of a refusal. It includes delays of a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(5);

async fn is_not_ready(api: &Api, reason: &str, down: &str, up: &str) -> Result<()> {
    eventually(PATIENCE, async || {
        let ready = api.get("/readyz", None).await?;
        ensure!(ready.status == 503 && ready.text().contains(reason), "{}", ready.text());
        let health = api.get("/v1/health", None).await?.json()?;
        let components = &health["data"]["components"];
        ensure!(components[down] == "down" && components[up] == "ok", "{health}");
        Ok(())
    })
    .await
}

/// Calls that the account has used in this month.
async fn used(app: &TestApp) -> Result<i64> {
    app.sql_value("select sum(used)::bigint from accounts.limiter").await
}

#[tokio::test]
async fn without_the_accounts_no_call_is_served_until_a_host_is_promoted() -> Result<()> {
    let (market, accounts) = tokio::try_join!(Servers::private(), Servers::private())?;
    let app = TestApp::builder().servers(&market).accounts_servers(&accounts).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let key = app.key("professional").await?;
    let replica = accounts.postgres.replica().await?;
    let url = |role| url_of_hosts(&[&accounts.postgres, &replica], role, app.accounts_database());
    let (of_api, of_owner) = (url("dds_api"), url("postgres"));
    let api = app.api_serve_with(&[ADMISSION, ("API_ACCOUNTS_DATABASE_URL", &of_api)]).await?;
    wait_for_replica(&accounts.postgres, &replica, app.accounts_database()).await?;
    for _ in 0..3 {
        serves(&api, &key).await?;
    }
    accounts.postgres.freeze().await?;
    let while_frozen = async {
        // The plan of the account and the response are in the memory of the instance.
        for _ in 0..10 {
            let started = Instant::now();
            let reply = api.get(CALL, Some(&key)).await?;
            ensure!(reply.status == 503 && started.elapsed() < REFUSED_WITHIN, "{}", reply.text());
        }
        is_not_ready(&api, "the database of the accounts", "accounts", "postgres").await?;
        ensure!(api.get("/", None).await?.status == 200, "the landing page needs no account");
        replica.connect(app.accounts_database()).await?.query_one("select pg_promote()", &[]).await?;
        eventually(PATIENCE, async || serves(&api, &key).await).await?;
        app.run(Program::Api, &["account", "list"], &[("ACCOUNTS_DATABASE_URL", &of_owner)]).await?.success()
    };
    let outcome = while_frozen.await;
    // A frozen server would block the cleanup of the test.
    accounts.postgres.thaw().await?;
    outcome.map(drop)
}

#[tokio::test]
async fn each_lost_database_stops_only_what_needs_it() -> Result<()> {
    let (market, accounts) = tokio::try_join!(Servers::private(), Servers::private())?;
    let builder = TestApp::builder().servers(&market).accounts_servers(&accounts);
    let app = builder.env("SIGN_UP", "open").start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let api = app.api_serve_with(&[("API_CACHE_MIB", "0")]).await?;
    let mut holder = Person::signed_up(&api, "holder@example.com").await?;
    let key = holder.create_key("mine").await?;
    serves(&api, &key).await?;

    market.postgres.kill9().await?;
    is_not_ready(&api, "the database of the market", "postgres", "accounts").await?;
    let before = used(&app).await?;
    let started = Instant::now();
    let reply = api.get("/v1/stocks/AAA/quote", Some(&key)).await?;
    ensure!(reply.status == 503 && started.elapsed() < REFUSED_WITHIN, "{}", reply.text());
    eventually(PATIENCE, async || {
        ensure!(used(&app).await? == before, "the failed call is not refunded");
        Ok(())
    })
    .await?;
    let mut visitor = Person::signed_up(&api, "new@example.com").await?;
    for person in [&mut visitor, &mut holder] {
        for path in ["", "/keys", "/plan", "/account", "/usage", "/log", "/portfolios"]
            .map(|page| format!("/dashboard{page}"))
        {
            let page = person.get(&path).await?;
            ensure!(page.status == 200, "{path}: {} {}", page.status, page.text);
        }
    }
    let second = visitor.create_key("made without the market").await?;
    market.postgres.restart().await?;
    eventually(PATIENCE, async || serves(&api, &second).await).await?;

    accounts.postgres.kill9().await?;
    eventually(PATIENCE, async || {
        let reply = api.get(CALL, Some(&key)).await?;
        ensure!(reply.status == 503, "{}", reply.text());
        Ok(())
    })
    .await?;
    is_not_ready(&api, "the database of the accounts", "accounts", "postgres").await?;
    ensure!(holder.get("/dashboard/keys").await?.status == 503, "the page shows keys of a lost database");
    accounts.postgres.restart().await?;
    eventually(PATIENCE, async || serves(&api, &key).await).await?;
    ensure!(holder.get("/dashboard/keys").await?.status == 200, "the session is lost");
    Ok(())
}

#[tokio::test]
async fn a_program_that_is_given_the_wrong_database_says_which() -> Result<()> {
    let app = TestApp::start().await?;
    let market = app.endpoints().api_database_url.as_str();
    let [_, accounts] = app.endpoints().accounts_database_urls.as_ref().context("two databases")?;
    for (variable, url, schema) in
        [("API_ACCOUNTS_DATABASE_URL", market, "accounts"), ("API_DATABASE_URL", accounts, "control")]
    {
        let output = app.run(Program::Api, &["serve", "--listen", "127.0.0.1:0"], &[(variable, url)]).await?;
        let named = format!("{variable} names a database without the tables of {schema}");
        assert!(output.code == 1 && output.stderr.contains(&named), "{output:?}");
    }
    // The projector has no right to connect to the accounts.
    let projector = accounts.replace("dds_api@", "dds_projector@");
    let output = app.run(Program::Projector, &["status"], &[("PROJECTOR_DATABASE_URL", &projector)]).await?;
    assert!(output.code != 0 && output.stdout.contains("permission denied"), "{output:?}");
    Ok(())
}
