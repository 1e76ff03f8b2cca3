//! Accounts in a database of their own, on another server than the market. Each server is lost and comes back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, Program, Requirement, Servers, TestApp, eventually, optional_program};
use tokio::process::Command;

use crate::dashboard::visitor::Person;
use crate::failover::{serves, url_of_hosts, wait_for_replica};
use crate::store_outage::{self, refused_quickly};

const PATIENCE: Duration = Duration::from_secs(120);
/// Page with the commands that move accounts, in its only block of this language.
const OPERATIONS: &str = include_str!("../../docs/operations.md");
const BLOCK: &str = "```bash\n";

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
    let [admission, request] = store_outage::PATIENCE;
    let api = app.api_serve_with(&[admission, request, ("API_ACCOUNTS_DATABASE_URL", &of_api)]).await?;
    wait_for_replica(&accounts.postgres, &replica, app.accounts_database()).await?;
    for _ in 0..3 {
        serves(&api, &key).await?;
    }
    accounts.postgres.freeze().await?;
    let while_frozen = async {
        // The plan of the account and the response are in the memory of the instance.
        for _ in 0..10 {
            refused_quickly(&api, &key).await?;
        }
        is_not_ready(&api, "the database of the accounts", "accounts", "postgres").await?;
        ensure!(api.get("/", None).await?.status == 200, "the landing page needs no account");
        let backup = app.projector(&["backup", "kept"]).await?;
        ensure!(backup.code == 3 && backup.stderr.contains("does not answer"), "{backup:?}");
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
    let reply = api.get("/v1/stocks/AAA/quote", Some(&key)).await?;
    ensure!(reply.status == 503, "{}", reply.text());
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
    eventually(PATIENCE, async || refused_quickly(&api, &key).await).await?;
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
    let of_dashboard = market.replace("dds_api@", "dds_dashboard@");
    for (variable, url, schema) in [
        ("API_ACCOUNTS_DATABASE_URL", market, "accounts"),
        ("DASHBOARD_DATABASE_URL", &of_dashboard, "accounts"),
        ("API_DATABASE_URL", accounts, "control"),
    ] {
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

#[tokio::test]
async fn existing_accounts_move_with_the_documented_commands() -> Result<()> {
    if optional_program("psql", Requirement::Psql).is_none() {
        return Ok(());
    }
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).one_database().env("SIGN_UP", "open").start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let api = app.api_serve().await?;
    let mut holder = Person::signed_up(&api, "holder@example.com").await?;
    let key = holder.create_key("mine").await?;
    serves(&api, &key).await?;
    drop(api);
    let counted = used(&app).await?;

    servers.postgres.create_database("moved", None).await?;
    let moved = servers.postgres.url("moved");
    let (_, block) = OPERATIONS.split_once(BLOCK).context("the commands")?;
    let (commands, _) = block.split_once("```").context("the end of the commands")?;
    let [.., (_, programs), _] = servers.environment().await?;
    let script = format!("set -euo pipefail; PATH={programs}:$PATH\n{commands}");
    let mut shell = Command::new("bash");
    shell.envs(app.endpoints().environment()).env("ACCOUNTS_DATABASE_URL", &moved).args(["-c", &script]);
    let output = shell.output().await?;
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(output.status.success() && text[0].contains("holder@example.com"), "{text:?}");

    // The roles of the API have the defaults: the URL of the owner with another user.
    let settings = [("ACCOUNTS_DATABASE_URL", moved.as_str()), ("DASHBOARD_DATABASE_URL", "")];
    let api = app.api_serve_with(&settings).await?;
    serves(&api, &key).await?;
    let accounts = servers.postgres.connect("moved").await?;
    let later: i64 = accounts.query_one("select used from accounts.limiter", &[]).await?.get(0);
    ensure!(later == counted + 1, "{later} calls are used, {counted} before the move");
    let mut again = Person::at(&api)?;
    again.cookie = holder.cookie;
    ensure!(again.get("/dashboard/keys").await?.has("mine"), "the session has ended");
    let left = "select (select count(*) from accounts.accounts) + (select count(*) from accounts.audit)";
    ensure!(app.sql_value::<i64>(left).await? == 0, "the old database has accounts");
    // An instance with the old settings does not decide on the old tables.
    let output = app.run(Program::Api, &["serve", "--listen", "127.0.0.1:0"], &[]).await?;
    ensure!(output.code == 1 && output.stderr.contains("without the tables of accounts"), "{output:?}");
    Ok(())
}
