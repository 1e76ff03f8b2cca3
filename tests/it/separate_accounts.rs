//! Accounts in a database of their own, on another server than the market. Each server is lost and comes back.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::{Api, Program, Requirement, Servers, TestApp, eventually, optional_program};
use tokio::process::Command;

use crate::dashboard::visitor::Person;
use crate::failover::{serves, url_of_hosts, wait_for_replica};
use crate::store_outage::{self, refused_quickly};

const PATIENCE: Duration = Duration::from_secs(120);
/// Page with the commands that move accounts, delete the old rows and move them back, in its blocks of this language.
const OPERATIONS: &str = include_str!("../../docs/operations.md");
const BLOCK: &str = "```bash\n";
/// Tables of the accounts with rows. A migration fills the table of the plans.
const TABLES_WITH_ROWS: &str = "select string_agg(table_name, ', ') from information_schema.tables
  where table_schema = 'accounts' and table_name <> 'tiers'
    and query_to_xml(format('select from accounts.%I limit 1', table_name), true, false, '')::text like '%<row%'";

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
    let app = TestApp::builder().separate_accounts().start().await?;
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
async fn an_owner_is_refused_on_a_database_whose_accounts_are_elsewhere() -> Result<()> {
    let app = TestApp::builder().separate_accounts().start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let [accounts, _] = app.endpoints().accounts_database_urls.as_ref().context("two databases")?;
    let market = app.endpoints().database_url.as_str();
    let create = ["account", "create", "ann@example.com"];
    for (program, arguments) in [
        (Program::Api, &create[..]),
        (Program::Api, &["account", "list"]),
        (Program::Api, &["key", "create", "ann@example.com", "--name", "laptop"]),
        (Program::Projector, &["migrate"]),
        (Program::Projector, &["backup", "kept"]),
    ] {
        for url in ["", market] {
            let output = app.run(program, arguments, &[("ACCOUNTS_DATABASE_URL", url)]).await?;
            let refused = "names a database without the tables of accounts";
            ensure!(output.code == 1 && output.stderr.contains(refused), "{arguments:?}: {output:?}");
        }
    }
    let exchanged = [("DATABASE_URL", accounts.as_str()), ("ACCOUNTS_DATABASE_URL", market)];
    let output = app.run(Program::Projector, &["migrate"], &exchanged).await?;
    ensure!(output.code == 1 && output.stderr.contains("without the tables of control"), "{output:?}");
    ensure!(!has_access(&app, app.database()).await?, "the old tables have access again");
    ensure!(has_access(&app, app.accounts_database()).await?, "the accounts lost their access");
    app.projector(&["migrate"]).await?.success()?;
    app.api(&create).await?.success()?;
    Ok(())
}

/// True if the API's role may use the accounts of a database.
async fn has_access(app: &TestApp, database: &str) -> Result<bool> {
    let client = app.servers().postgres.connect(database).await?;
    let grant = "select has_schema_privilege('dds_api', 'accounts', 'usage')";
    Ok(client.query_one(grant, &[]).await?.try_get(0)?)
}

#[tokio::test]
async fn two_urls_of_one_database_are_one() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let separator = if app.endpoints().database_url.contains('?') { '&' } else { '?' };
    let other = format!("{}{separator}application_name=accounts", app.endpoints().database_url);
    let setting = [("ACCOUNTS_DATABASE_URL", other.as_str())];
    app.run(Program::Projector, &["migrate"], &setting).await?.success()?;
    app.run(Program::Api, &["account", "create", "ann@example.com"], &setting).await?.success()?;
    app.run(Program::Projector, &["backup", "kept"], &setting).await?.success()?;
    // The API's role has access to the accounts and to the market.
    let key = app.key("professional").await?;
    serves(&app.api_serve().await?, &key).await
}

#[tokio::test]
async fn existing_accounts_move_with_the_documented_commands() -> Result<()> {
    if optional_program("psql", Requirement::Psql).is_none() {
        return Ok(());
    }
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).env("SIGN_UP", "open").start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let api = app.api_serve().await?;
    let mut holder = Person::signed_up(&api, "holder@example.com").await?;
    let key = holder.create_key("mine").await?;
    serves(&api, &key).await?;
    drop(api);
    let counted = used(&app).await?;

    servers.postgres.create_database("moved", None).await?;
    let moved = servers.postgres.url("moved");
    let [.., (_, programs), _] = servers.environment().await?;
    let run = async |commands: &str| {
        let script = format!("set -euo pipefail; PATH={programs}:$PATH\n{commands}");
        let mut shell = Command::new("bash");
        shell.envs(app.endpoints().environment()).env("ACCOUNTS_DATABASE_URL", &moved);
        let output = shell.args(["-c", &script]).output().await?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(output.status.success(), "{text:?}");
        anyhow::Ok(text[0].clone())
    };
    let blocks = OPERATIONS.split(BLOCK).skip(1).filter_map(|block| block.split("```").next());
    let [copy, delete, move_back, ..] = blocks.collect::<Vec<_>>()[..] else { bail!("three blocks") };
    let listed = run(copy).await?;
    ensure!(listed.contains("holder@example.com"), "{listed}");

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
    run(delete).await?;
    let left = app.sql_value::<Option<String>>(TABLES_WITH_ROWS).await?;
    ensure!(left.is_none(), "the old database has rows of {left:?}");
    // An instance with the old settings does not decide on the old tables.
    let output = app.run(Program::Api, &["serve", "--listen", "127.0.0.1:0"], &[]).await?;
    ensure!(output.code == 1 && output.stderr.contains("without the tables of accounts"), "{output:?}");

    drop(api);
    let listed = run(move_back).await?;
    ensure!(listed.contains("holder@example.com"), "{listed}");
    let api = app.api_serve().await?;
    serves(&api, &key).await?;
    ensure!(used(&app).await? == later + 1, "the calls in the other database are lost");
    let output = app.run(Program::Api, &["account", "list"], &[("ACCOUNTS_DATABASE_URL", &moved)]).await?;
    ensure!(output.code == 1 && output.stderr.contains("without the tables of accounts"), "{output:?}");
    Ok(())
}
