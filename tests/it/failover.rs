//! Tests of failover from servers that hang. The programs use another host, and health is correct during the failover.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, PostgresServer, Program, Servers, Signal, TestApp, eventually};

const CALL: &str = "/v1/stocks?limit=1";
const PATIENCE: Duration = Duration::from_secs(120);
/// Sets the admission timeout to its default of 250 ms. The test harness sets a longer timeout for other tests.
const ADMISSION: (&str, &str) = ("API_ADMISSION_TIMEOUT_MS", "250");

/// Returns a URL that names several hosts. Clients connect to the one that accepts writes.
pub(crate) fn url_of_hosts(hosts: &[&PostgresServer], role: &str, database: &str) -> String {
    let host = |server: &&PostgresServer| {
        let url = server.url(database);
        url.rsplit('@').next().and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned()
    };
    let hosts: Vec<String> = hosts.iter().map(host).collect();
    format!("postgres://{role}@{}/{database}?target_session_attrs=read-write", hosts.join(","))
}

pub(crate) async fn serves(api: &Api, key: &str) -> Result<()> {
    let reply = api.get(CALL, Some(key)).await?;
    ensure!(reply.status == 200, "{}: {}", reply.status, reply.text());
    Ok(())
}

async fn has_status(api: &Api, path: &str, status: u16) -> Result<()> {
    let reply = api.get(path, None).await?;
    ensure!(reply.status == status, "{path}: {} {}", reply.status, reply.text());
    Ok(())
}

pub(crate) async fn wait_for_replica(
    primary: &PostgresServer,
    replica: &PostgresServer,
    database: &str,
) -> Result<()> {
    let end: String =
        primary.connect(database).await?.query_one("select pg_current_wal_lsn()::text", &[]).await?.get(0);
    let client = replica.connect(database).await?;
    eventually(PATIENCE, async || {
        let reached = "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
        ensure!(client.query_one(reached, &[&end]).await?.get::<_, bool>(0), "not replayed yet");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_hung_primary_is_left_for_the_promoted_host() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices-1.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let key = app.key("professional").await?;
    let replica = servers.postgres.replica().await?;
    let hosts = [&servers.postgres, &replica];
    let url = |role| url_of_hosts(&hosts, role, app.database());
    let (of_api, of_projector, of_owner) = (url("dds_api"), url("dds_projector"), url("postgres"));
    let env = [ADMISSION, ("API_DATABASE_URL", of_api.as_str())];
    let api = app.api_serve_with(&env).await?;
    let projector_url = [("PROJECTOR_DATABASE_URL", of_projector.as_str())];
    let _projector = app.spawn_with(Program::Projector, &["run"], &projector_url).await?;
    serves(&api, &key).await?;
    has_status(&api, "/readyz", 200).await?;
    wait_for_replica(&servers.postgres, &replica, app.database()).await?;
    let promoting = replica.connect(app.database()).await?;

    servers.postgres.freeze().await?;
    let while_frozen = async {
        eventually(PATIENCE, async || {
            let reply = api.get(CALL, Some(&key)).await?;
            ensure!(reply.status == 503, "{}", reply.status);
            Ok(())
        })
        .await?;
        for path in ["/readyz", "/v1/health"] {
            eventually(PATIENCE, async || {
                // Clients continue to send requests, which fail.
                let _ = api.get(CALL, Some(&key)).await?;
                has_status(&api, path, 503).await
            })
            .await?;
        }
        has_status(&api, "/livez", 200).await?;
        for _ in 0..20 {
            let _ = api.get(CALL, Some(&key)).await?;
        }
        let warnings = api.process.log().lines().filter(|line| line.contains("WARN")).count();
        ensure!(warnings < 15, "{warnings} warnings:\n{}", api.process.log_tail(20));

        promoting.query_one("select pg_promote()", &[]).await.context("promoting the replica")?;
        eventually(PATIENCE, async || serves(&api, &key).await).await?;
        eventually(PATIENCE, async || has_status(&api, "/readyz", 200).await).await?;

        // A new instance and the owner's commands skip the hung host too.
        let owner = [("DATABASE_URL", of_owner.as_str())];
        app.run(Program::Api, &["account", "list"], &owner).await?.success()?;
        let second = app.api_serve_with(&env).await?;
        serves(&second, &key).await?;

        // The projector goes on with the promoted host.
        app.feed("prices-2.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
        eventually(PATIENCE, async || {
            let quote = second.get("/v1/stocks/AAA/quote", Some(&key)).await?;
            ensure!(quote.json()?["data"]["price"] == 7, "{}", quote.text());
            Ok(())
        })
        .await
    };
    let outcome = while_frozen.await;
    // A frozen server would block the cleanup of the test.
    servers.postgres.thaw().await?;
    outcome
}

/// Maximum number of connections to a host that does not answer. Several parts of a program may try it at the same time.
const MOST_TRIALS: usize = 8;

/// Number of TCP connections that clients have opened to a server. The kernel keeps a connection that a frozen server
/// did not accept, even if its client has closed it.
fn connections_to(server: &PostgresServer) -> Result<usize> {
    let url = server.url("postgres");
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()).context("a port")?;
    let local = format!(":{:04X}", port.parse::<u16>()?);
    // The columns are number, local address, remote address and state. The state 0A is a listening socket.
    let sockets = std::fs::read_to_string("/proc/net/tcp")?;
    let columns = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_of_server = |columns: &Vec<&str>| columns[1].ends_with(&local) && columns[3] != "0A";
    Ok(columns.filter(is_of_server).count())
}

#[tokio::test]
async fn a_hung_standby_before_the_primary_is_tried_a_few_times() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let key = app.key("professional").await?;
    let standby = servers.postgres.replica().await?;
    let hosts = [&standby, &servers.postgres];
    let url = |role| url_of_hosts(&hosts, role, app.database());
    standby.freeze().await?;
    let while_frozen = async {
        let before = connections_to(&standby)?;
        let api = app.api_serve_with(&[("API_DATABASE_URL", &url("dds_api"))]).await?;
        serves(&api, &key).await?;
        app.run(Program::Api, &["account", "list"], &[("DATABASE_URL", &url("postgres"))])
            .await?
            .success()?;
        // Without a memory of the hung host, every new connection would try it first.
        let tried = connections_to(&standby)? - before;
        ensure!((1..=MOST_TRIALS).contains(&tried), "{tried} connections to the hung standby");
        Ok(())
    };
    let outcome = while_frozen.await;
    standby.thaw().await?;
    outcome
}

#[tokio::test]
async fn reads_leave_a_hung_replica() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let key = app.key("professional").await?;
    let replica = servers.postgres.replica().await?;
    wait_for_replica(&servers.postgres, &replica, app.database()).await?;
    let reads = replica.url(app.database()).replace("postgres@", "dds_api@");
    let api = app.api_serve_with(&[("DATABASE_READ_URLS", &reads)]).await?;
    let quote = async |number: usize| {
        let path = format!("/v1/stocks/AAA/quote?fields=price&min_version=g1.{number}");
        let reply = api.get(&path, Some(&key)).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        Ok(())
    };
    quote(0).await?;
    replica.freeze().await?;
    let while_frozen = async {
        // This request differs from the earlier one, so its response cannot come from the cache.
        eventually(PATIENCE, async || quote(1).await).await?;
        has_status(&api, "/readyz", 200).await
    };
    let outcome = while_frozen.await;
    replica.thaw().await?;
    outcome
}

/// Fails if reads through one URL with two hosts use both hosts. The heartbeat of a URL checks only one host, so all
/// reads must use that host.
#[tokio::test]
async fn all_reads_of_a_url_are_on_the_host_of_its_heartbeat() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let key = app.key("professional").await?;
    let replicas = [servers.postgres.replica().await?, servers.postgres.replica().await?];
    for replica in &replicas {
        wait_for_replica(&servers.postgres, replica, app.database()).await?;
    }
    let reads = url_of_hosts(&[&replicas[0], &replicas[1]], "dds_api", app.database())
        .replace("target_session_attrs=read-write", "load_balance_hosts=random");
    let api = app.api_serve_with(&[("DATABASE_READ_URLS", &reads), ("API_CACHE_MIB", "0")]).await?;
    let series = (1..=24).map(async |limit: usize| {
        let reply = api.get(&format!("/v1/prices/AAA?limit={limit}"), Some(&key)).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        Ok(())
    });
    futures::future::try_join_all(series).await?;
    let mut sessions = [0; 2];
    for (count, replica) in sessions.iter_mut().zip(&replicas) {
        let query = "select count(*) from pg_stat_activity where usename = 'dds_api'";
        *count = replica.connect(app.database()).await?.query_one(query, &[]).await?.get::<_, i64>(0);
    }
    assert!(sessions.contains(&0), "{sessions:?} sessions on the replicas");
    assert!(sessions.iter().sum::<i64>() > 2, "{sessions:?} sessions do not show it");
    Ok(())
}

#[tokio::test]
async fn the_health_does_not_wait_for_a_frozen_log() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let api = app.api_serve().await?;
    let has_health = async |status: &str| {
        eventually(PATIENCE, async || {
            let health = api.get("/v1/health", None).await?;
            ensure!(health.status == 200 && health.json()?["data"]["status"] == status, "{}", health.text());
            Ok(())
        })
        .await
    };
    has_health("ok").await?;
    servers.nats.signal(Signal::STOP).await?;
    has_health("degraded").await?;
    has_status(&api, "/readyz", 200).await?;
    servers.nats.signal(Signal::CONT).await?;
    has_health("ok").await
}
