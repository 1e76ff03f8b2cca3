//! Postgres server that existed before, or that the harness starts. The harness does not stop, restart or configure a
//! server that existed before.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Url;
use rustix::process::{Pid, kill_process};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

use crate::certificate::Certificate;
use crate::folder;
use crate::process::{Daemon, Signal};
use cluster::Cluster;

mod base_backup;
mod cluster;
mod find;

pub(crate) use find::pinned;

const OLDEST: u32 = 15;
/// Maximum duration of a start. It is long enough for the recovery after a power cut.
const READY_WITHIN: Duration = Duration::from_secs(120);
const ATTEMPTS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power cut loses no acknowledged data.
    Full,
    /// The server does not wait for the disk, because its data is discarded after the test.
    Disposable,
}

/// Running Postgres server on which every test app has its own database.
#[derive(Debug)]
pub struct PostgresServer {
    url: Url,
    own: Option<Mutex<OwnPostgres>>,
}

#[derive(Debug)]
struct OwnPostgres {
    cluster: Cluster,
    process: Daemon,
}

impl PostgresServer {
    /// Connects to the existing server at `url`. Fails if the server is older than release `OLDEST`.
    pub(crate) async fn existing(url: &str) -> Result<PostgresServer> {
        let parsed = Url::parse(url).context("DATABASE_URL")?;
        let client = connect(&parsed).await.context("connecting to the server DATABASE_URL names")?;
        let number: String = client.query_one("show server_version_num", &[]).await?.get(0);
        if number.parse::<u32>()? / 10_000 < OLDEST {
            bail!("the server DATABASE_URL names is Postgres {number}; {OLDEST} or newer is needed");
        }
        Ok(PostgresServer { url: parsed, own: None })
    }

    /// Starts a server with its data in `folder`, which may contain the data of an earlier start.
    pub(crate) async fn start(folder: &Path, durability: Durability) -> Result<PostgresServer> {
        let folder = folder.to_owned();
        let programs = find::programs().await?;
        let prepare = move || Cluster::prepare(programs, &folder, durability);
        Self::serve(tokio::task::spawn_blocking(prepare).await??).await
    }

    /// Starts a streaming replica of the server.
    pub async fn replica(&self) -> Result<PostgresServer> {
        let folder = folder::ephemeral("replica")?;
        let client = connect(&self.url).await?;
        let cluster = self.own()?.lock().await.cluster.replicate(&folder, &client).await?;
        Self::serve(cluster).await
    }

    async fn serve(mut cluster: Cluster) -> Result<PostgresServer> {
        let mut attempt = 1;
        loop {
            match launch(&cluster).await {
                Ok((url, process)) => {
                    let own = Some(Mutex::new(OwnPostgres { cluster, process }));
                    return Ok(PostgresServer { url, own });
                }
                Err(_) if attempt < ATTEMPTS => {
                    // Another process may have taken the port, or an earlier server may still have the data files open.
                    attempt += 1;
                    cluster.change_port()?;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// URL of a database for the role that owns the database.
    pub fn url(&self, database: &str) -> String {
        let mut url = self.url.clone();
        url.set_path(database);
        url.into()
    }

    /// Connects to a database with the role that owns the database.
    pub async fn connect(&self, database: &str) -> Result<Client> {
        let mut url = self.url.clone();
        url.set_path(database);
        connect(&url).await.with_context(|| format!("connecting to database {database}"))
    }

    /// True if the database exists.
    pub async fn has_database(&self, name: &str) -> Result<bool> {
        let client = connect(&self.url).await?;
        let found = client.query_opt("select from pg_database where datname = $1", &[&name]).await?;
        Ok(found.is_some())
    }

    /// Creates an empty database, or a copy of the database `template`. Fails if the database exists.
    pub async fn create_database(&self, name: &str, template: Option<&str>) -> Result<()> {
        let template = template.unwrap_or("template0");
        // The harness chooses the names, which contain no quotes. An identifier cannot be a parameter.
        // By default, Postgres copies through its log, which takes three times as long.
        let statement =
            format!(r#"create database "{name}" template "{template}" encoding 'UTF8' strategy file_copy"#);
        let client = connect(&self.url).await?;
        client.batch_execute(&statement).await.with_context(|| format!("creating database {name}"))
    }

    /// Drops a database, even if clients are connected to it. Succeeds if the database does not exist.
    pub async fn drop_database(&self, name: &str) -> Result<()> {
        let statement = format!(r#"drop database if exists "{name}" with (force)"#);
        let client = connect(&self.url).await?;
        client.batch_execute(&statement).await.with_context(|| format!("dropping database {name}"))
    }

    /// Kills the server with SIGKILL. [`PostgresServer::restart`] starts it again on the same port.
    pub async fn kill9(&self) -> Result<()> {
        self.own()?.lock().await.process.kill9()?;
        Ok(())
    }

    /// Sends a signal to the main process of the server. Fails if the harness did not start the server.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.own()?.lock().await.process.signal(signal)
    }

    /// Pauses every process of the server. The server then accepts connections, but does not reply.
    pub async fn freeze(&self) -> Result<()> {
        self.signal_all(Signal::STOP).await
    }

    /// Resumes every process of a frozen server.
    pub async fn thaw(&self) -> Result<()> {
        self.signal_all(Signal::CONT).await
    }

    async fn signal_all(&self, signal: Signal) -> Result<()> {
        let mut own = self.own()?.lock().await;
        own.process.signal(signal)?;
        for child in children(own.process.pid())? {
            // A session may end before its signal arrives.
            let _ = kill_process(child, signal);
        }
        Ok(())
    }

    /// Makes the server accept the roles of the API and of the projector only with TLS and a password.
    pub async fn demand_tls(&self, certificate: &Certificate) -> Result<()> {
        self.own()?.lock().await.cluster.demand_tls(certificate)?;
        let client = connect(&self.url).await?;
        client.batch_execute("alter system set ssl = on").await?;
        client.batch_execute("select pg_reload_conf()").await?;
        Ok(())
    }

    /// Stops the server by a fast shutdown: sessions end, and all data is flushed.
    pub async fn stop(&self) -> Result<()> {
        self.own()?.lock().await.process.stop(Signal::INT, Duration::from_secs(60)).await?;
        Ok(())
    }

    /// Starts the server again with its data, on the same port. A running server is killed first.
    pub async fn restart(&self) -> Result<()> {
        let mut own = self.own()?.lock().await;
        own.process.kill9()?;
        let mut attempt = 1;
        loop {
            match launch(&own.cluster).await {
                Ok((_, process)) => {
                    own.process = process;
                    return Ok(());
                }
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                // Sessions of the killed server may still use its shared memory.
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
            attempt += 1;
        }
    }

    /// Exit status and last log lines of a server that has ended. Returns `None` if the server runs, or if the harness
    /// did not start the server.
    pub(crate) async fn exit_message(&self) -> Option<String> {
        let mut own = self.own.as_ref()?.lock().await;
        let status = own.process.exit_status().ok().flatten()?;
        Some(format!("Postgres ended ({status}); its log ends:\n{}", own.process.log_tail(20)))
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    fn own(&self) -> Result<&Mutex<OwnPostgres>> {
        self.own.as_ref().context("the Postgres server was not started here and is left alone")
    }
}

async fn connect(url: &Url) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await?;
    // The task ends with the client. The next use of the client returns its error.
    tokio::spawn(connection);
    Ok(client)
}

fn children(parent: u32) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        // After the name in parentheses, the first field is the state, and the second is the parent process.
        let Ok(status) = std::fs::read_to_string(path.join("stat")) else { continue };
        let fields = status.rsplit_once(')').map_or("", |(_, fields)| fields);
        let is_child = fields.split_whitespace().nth(1).is_some_and(|id| id.parse() == Ok(parent));
        let id = path.file_name().and_then(|name| name.to_str()?.parse().ok()).and_then(Pid::from_raw);
        found.extend(id.filter(|_| is_child));
    }
    Ok(found)
}

async fn launch(cluster: &Cluster) -> Result<(Url, Daemon)> {
    let url = Url::parse(&cluster.url())?;
    let mut process = Daemon::start("Postgres", cluster.command(), cluster.log())?;
    let started = Instant::now();
    loop {
        let Err(error) = connect(&url).await else { return Ok((url, process)) };
        if let Some(status) = process.exit_status()? {
            bail!("Postgres ended at start ({status}); its log ends:\n{}", process.log_tail(20));
        }
        if started.elapsed() > READY_WITHIN {
            return Err(error).context("Postgres does not become ready");
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}
