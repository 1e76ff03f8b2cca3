//! Outage of the database that the API needs to admit a call (credential, rate limit, quota). During the outage, the
//! API refuses every call at once. Afterwards, it recovers by itself.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use harness::{Api, Program, Reply, Servers, TestApp, delayed_address, eventually};
use serde_json::json;
use tokio::net::TcpListener;

use crate::api_world::check;

const CALL: &str = "/v1/stocks?limit=1";
/// Default admission timeout of the API. The test harness sets a longer timeout for other tests. The time limit of a
/// request is longer than the client waits, so only the admission timeout can end a call.
pub(crate) const PATIENCE: [(&str, &str); 2] =
    [("API_ADMISSION_TIMEOUT_MS", "250"), ("API_REQUEST_TIMEOUT_MS", "600000")];

/// Sends a call that must be refused with the status 503, by the admission timeout.
pub(crate) async fn refused_quickly(api: &Api, key: &str) -> Result<Reply> {
    let reply = api.get(CALL, Some(key)).await?;
    ensure!(reply.status == 503, "{}: {}", reply.status, reply.text());
    check(&reply.json()?, json!({ "code": "SERVICE_UNAVAILABLE" }));
    ensure!(reply.header("retry-after") == Some("1"), "{reply:?}");
    ensure!(reply.header("x-ratelimit-limit").is_some(), "{reply:?}");
    Ok(reply)
}

async fn serves_again(api: &Api, key: &str) -> Result<Reply> {
    eventually(Duration::from_secs(120), async || {
        let reply = api.get(CALL, Some(key)).await?;
        ensure!(reply.status == 200, "{}", reply.status);
        Ok(reply)
    })
    .await
}

#[tokio::test]
async fn without_its_store_the_api_answers_503_and_recovers_by_itself() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let (one, two) = (app.api_serve_with(&PATIENCE).await?, app.api_serve_with(&PATIENCE).await?);
    // This instance has enough time to connect again, even on a busy machine.
    let patient = app.api_serve().await?;
    let key = app.key("professional").await?;
    assert_eq!(one.get(CALL, Some(&key)).await?.status, 200);

    servers.postgres.kill9().await?;
    // After the server is killed, an existing database session may work for a short time, so calls may still be
    // admitted.
    eventually(Duration::from_secs(120), async || refused_quickly(&one, &key).await).await?;
    eventually(Duration::from_secs(120), async || refused_quickly(&two, &key).await).await?;
    for _ in 0..5 {
        refused_quickly(&one, &key).await?;
        refused_quickly(&two, &key).await?;
    }
    assert_eq!(patient.get(CALL, Some(&key)).await?.status, 503);
    // During the outage, a key gets a 503, because the API cannot look it up. But a text without the form of a key is
    // still refused with 401.
    assert_eq!(one.get(CALL, Some("dds_live_nonsense")).await?.status, 401);
    eventually(Duration::from_secs(120), async || {
        let health = one.get("/v1/health", None).await?;
        ensure!(health.status == 503, "{}", health.text());
        check(&health.json()?["data"], json!({ "status": "down" }));
        Ok(())
    })
    .await?;

    servers.postgres.restart().await?;
    // Every instance opens a new connection for the admission of calls before the next call arrives.
    let deciding =
        "select count(*) from pg_stat_activity where usename = 'dds_api' and query like '%accounts.limiter%'";
    eventually(Duration::from_secs(120), async || {
        let open: i64 = app.sql_value(deciding).await?;
        ensure!(open >= 3, "{open} instances have a connection");
        Ok(())
    })
    .await?;
    // The first call after the outage succeeds.
    let first = patient.get(CALL, Some(&key)).await?;
    assert_eq!(first.status, 200, "{}", patient.process.log_tail(5));
    serves_again(&one, &key).await?;
    let reply = serves_again(&two, &key).await?;
    let left: i64 = reply.header("x-quota-remaining").unwrap_or_default().parse()?;
    assert!((999_900..=999_998).contains(&left), "{left}");
    Ok(())
}

#[tokio::test]
async fn a_store_that_hangs_is_a_store_that_is_gone() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&PATIENCE).await?;
    let key = app.key("professional").await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    // A lock that is never released represents any statement that does not end.
    let holder = app.servers().postgres.connect(app.accounts_database()).await?;
    holder.batch_execute("begin; select * from accounts.limiter for update").await?;
    for _ in 0..3 {
        refused_quickly(&api, &key).await?;
    }
    holder.batch_execute("rollback").await?;
    serves_again(&api, &key).await?;
    Ok(())
}

/// Fails if calls wait for a database that accepts connections but never replies. In this test, the database does not
/// reply even when the API starts.
#[tokio::test]
async fn a_store_that_is_silent_from_the_start_keeps_no_call_waiting() -> Result<()> {
    let app = TestApp::start().await?;
    let key = app.key("professional").await?;
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("postgres://dds_api@{}/nothing", silent.local_addr()?);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
    let env = [&PATIENCE[..], &[("API_DATABASE_URL", url.as_str())]].concat();
    let _api = app.spawn_with(Program::Api, &["serve", "--listen", &address], &env).await?;
    let client = harness::client(Duration::from_secs(120))?;
    let ask = async |path: &str| {
        client.get(format!("http://{address}{path}")).header("x-api-key", &key).send().await
    };
    let health = eventually(Duration::from_secs(120), async || Ok(ask("/v1/health").await?)).await?;
    assert_eq!(health.status(), 503);
    for _ in 0..3 {
        assert_eq!(ask(CALL).await?.status(), 503);
    }
    Ok(())
}

#[tokio::test]
async fn the_health_and_the_pages_do_not_wait_for_a_frozen_store() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).env("SIGN_UP", "open").start().await?;
    let api = app.api_serve_with(&PATIENCE).await?;
    let key = app.key("professional").await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    servers.postgres.freeze().await?;
    let while_frozen = async {
        eventually(Duration::from_secs(120), async || {
            let health = api.get("/v1/health", None).await?;
            ensure!(health.status == 503, "{}", health.text());
            let components = &health.json()?["data"]["components"];
            ensure!(components["postgres"] == "down" && components["accounts"] == "down", "{components}");
            Ok(())
        })
        .await?;
        let landing = api.get("/", None).await?;
        ensure!(landing.status == 200, "{}", landing.status);
        Ok(())
    };
    let told = while_frozen.await;
    // A frozen server would block the cleanup of the test.
    servers.postgres.thaw().await?;
    told?;
    serves_again(&api, &key).await?;
    eventually(Duration::from_secs(120), async || {
        let health = api.get("/v1/health", None).await?;
        ensure!(health.status == 200, "{}", health.text());
        Ok(())
    })
    .await
}

/// Returns the host and port of a Postgres URL.
fn host_of(url: &str) -> &str {
    url.rsplit('@').next().and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default()
}

#[tokio::test]
async fn a_distant_store_decides_every_call() -> Result<()> {
    let app = TestApp::start().await?;
    let url = app.endpoints().api_database_url.clone();
    let relay = delayed_address(host_of(&url).to_owned(), Duration::from_millis(100)).await?;
    let distant_url = url.replace(host_of(&url), &relay);
    let api = app.api_serve_with(&[PATIENCE[0], ("API_DATABASE_URL", &distant_url)]).await?;
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(app.key("professional").await?);
    }
    // A busy machine may delay a decision further, so a refused call is repeated. If the distance alone exceeded the time
    // limit, all repetitions would be refused.
    let calls = (0..40).map(|number| serves_again(&api, &keys[number % keys.len()]));
    join_all(calls).await.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(())
}

/// Fails if new connections to the database wait while expensive responses are rendered. A connection needs the address
/// of its host. The API renders on threads of low priority, so it must resolve host names on other threads.
#[tokio::test]
async fn a_named_store_is_found_while_every_renderer_works() -> Result<()> {
    let app = TestApp::start().await?;
    let url = app.endpoints().api_database_url.clone();
    let (host, port) = host_of(&url).rsplit_once(':').unwrap_or(("", "5432"));
    ensure!(host == "127.0.0.1", "the server is elsewhere: {host}");
    let named = url.replace(host_of(&url), &format!("localhost:{port}"));
    let api = app.api_serve_with(&[("API_DATABASE_URL", named.as_str())]).await?;
    let (greedy, quick) = (app.key("professional").await?, app.key("professional").await?);
    let bulk = "/v1/bulk/quotes?symbols=AAA,BBB";
    for _ in 0..5 {
        let drop = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'dds_api' and datname = current_database()";
        app.sql(drop, &[]).await?;
        let expensive = (0..60).map(|_| api.get(bulk, Some(&greedy)));
        let call = async {
            eventually(Duration::from_secs(120), async || {
                let reply = api.get(CALL, Some(&quick)).await?;
                ensure!(reply.status == 200, "{}", reply.status);
                Ok(())
            })
            .await
        };
        let (_, called) = futures::join!(join_all(expensive), call);
        called?;
    }
    Ok(())
}
