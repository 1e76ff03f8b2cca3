//! Isolated instance of the service for a test: its own database, stream and subjects.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use event_log::stream::StreamSettings;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Client, Row};

use crate::api::Api;
use crate::binaries::{Binaries, Program};
use crate::endpoints::Endpoints;
use crate::environment;
use crate::eventually::eventually;
use crate::folder;
use crate::port;
use crate::process::{Daemon, Output, command_bound_to_parent, output, output_unread};
use crate::servers::{Database, DatabasePair, Servers, accounts_name};

/// Maximum time until a projector follows the log.
const PROJECTOR_START: Duration = Duration::from_secs(60);
/// Longest wait for the servers when the databases and the stream of an app are removed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Environment variables that child processes inherit. All other variables are removed, so that a developer's settings
/// do not change test results.
const INHERITED: [&str; 7] =
    ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE", "RUST_BACKTRACE", "RUST_LOG", "LD_LIBRARY_PATH"];

/// Instance of the service for one test. By default, the instance uses the same servers as other tests, and has one
/// database, as the service by default. The databases and the stream of the instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub struct TestApp {
    servers: Arc<Servers>,
    database: String,
    accounts_servers: Arc<Servers>,
    accounts_database: String,
    endpoints: Endpoints,
    extra: Vec<(String, String)>,
    folder: PathBuf,
    counter: AtomicU32,
}

/// Builder of a [`TestApp`] with other options than the defaults.
#[derive(Debug, Default)]
pub struct TestAppBuilder {
    servers: Option<Arc<Servers>>,
    empty_database: bool,
    separate_accounts: bool,
    accounts_servers: Option<Arc<Servers>>,
    postgres_delay: Option<Duration>,
    extra: Vec<(String, String)>,
}

impl TestAppBuilder {
    /// Uses these servers instead of the shared servers, for tests that kill servers.
    pub fn servers(mut self, servers: &Arc<Servers>) -> Self {
        self.servers = Some(Arc::clone(servers));
        self
    }

    /// Stores the accounts in a database of their own.
    pub fn separate_accounts(mut self) -> Self {
        self.separate_accounts = true;
        self
    }

    /// Stores the accounts on another Postgres server than the market.
    pub fn accounts_servers(mut self, servers: &Arc<Servers>) -> Self {
        self.accounts_servers = Some(Arc::clone(servers));
        self.separate_accounts()
    }

    /// Leaves the databases empty, without the service's schema.
    pub fn without_migration(mut self) -> Self {
        self.empty_database = true;
        self
    }

    /// Lengthens the way of the projector and the API to Postgres by this delay in each direction. The connections of
    /// the test itself, and of commands with the owner's role, stay short.
    pub fn postgres_delay(mut self, delay: Duration) -> Self {
        self.postgres_delay = Some(delay);
        self
    }

    /// Sets an environment variable for every program of this app.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.extra.push((name.to_owned(), value.into()));
        self
    }

    /// Creates the databases and a folder, but starts none of the programs. Uses the shared servers if no other servers
    /// are set.
    pub async fn start(self) -> Result<TestApp> {
        let servers = match self.servers {
            Some(servers) => servers,
            None => Servers::shared().await?,
        };
        let suffix = folder::random_suffix();
        let database = format!("dds_test_{suffix}");
        let accounts_database =
            if self.separate_accounts { accounts_name(&database) } else { database.clone() };
        let accounts_servers = self.accounts_servers.unwrap_or_else(|| Arc::clone(&servers));
        let databases = DatabasePair {
            market: Database { server: &servers.postgres, name: &database },
            accounts: Database { server: &accounts_servers.postgres, name: &accounts_database },
        };
        if self.empty_database {
            databases.create_empty().await?;
        } else {
            servers.create_migrated_databases(databases).await?;
        }
        let (stream, prefix) = (format!("TEST_{suffix}"), format!("test_{suffix}"));
        let mut endpoints = Endpoints::new(databases, servers.nats.url(), &stream, &prefix)?;
        if let Some(delay) = self.postgres_delay {
            endpoints.delay_postgres(delay).await?;
        }
        let folder = folder::ephemeral("app")?;
        let (extra, counter) = (self.extra, AtomicU32::new(0));
        Ok(TestApp {
            servers,
            database,
            accounts_servers,
            accounts_database,
            endpoints,
            extra,
            folder,
            counter,
        })
    }
}

impl TestApp {
    /// Creates an app with a migrated database on the shared servers.
    pub async fn start() -> Result<TestApp> {
        TestApp::builder().start().await
    }

    /// Returns a builder for an app with other options than the defaults.
    pub fn builder() -> TestAppBuilder {
        TestAppBuilder::default()
    }

    /// Postgres server and NATS server that the app uses.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Addresses of the app's database and stream.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Name of the app's database with the market.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Name of the app's database with the accounts.
    pub fn accounts_database(&self) -> &str {
        &self.accounts_database
    }

    /// Connects to the database of a statement: that of the accounts if the statement names their schema.
    async fn connect_for(&self, statement: &str) -> Result<Client> {
        let (servers, database) = match statement.contains("accounts.") {
            true => (&self.accounts_servers, &self.accounts_database),
            false => (&self.servers, &self.database),
        };
        servers.postgres.connect(database).await
    }

    /// Folder for the app's files, including the logs of its daemons.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `ingest` and waits until it exits.
    pub async fn ingest(&self, arguments: &[&str]) -> Result<Output> {
        self.run(Program::Ingest, arguments, &[]).await
    }

    /// Runs `ingest` with the file `input` as its standard input, and waits until it exits.
    pub async fn ingest_from(&self, input: &Path, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command(Program::Ingest, arguments, &[]).await?;
        command.stdin(File::open(input).with_context(|| input.display().to_string())?);
        output(command).await
    }

    /// Runs `projector` and waits until it exits.
    pub async fn projector(&self, arguments: &[&str]) -> Result<Output> {
        self.run(Program::Projector, arguments, &[]).await
    }

    /// Runs a command of `api` and waits until it exits. Use [`TestApp::api_serve`] to start the server.
    pub async fn api(&self, arguments: &[&str]) -> Result<Output> {
        self.run(Program::Api, arguments, &[]).await
    }

    /// Runs the projector until it has applied the whole log.
    pub async fn catch_up(&self) -> Result<()> {
        self.projector(&["run", "--until-caught-up"]).await?.success()?;
        Ok(())
    }

    /// Runs a program with additional environment variables, and waits until it exits.
    pub async fn run(&self, program: Program, arguments: &[&str], env: &[(&str, &str)]) -> Result<Output> {
        output(self.command(program, arguments, env).await?)
            .await
            .with_context(|| format!("running {program}"))
    }

    /// Runs a program and waits until it exits. Every write to standard output fails with a broken pipe.
    pub async fn run_with_unread_output(&self, program: Program, arguments: &[&str]) -> Result<Output> {
        output_unread(self.command(program, arguments, &[]).await?)
            .await
            .with_context(|| format!("running {program}"))
    }

    /// Starts a program in the background. The program is killed when the returned value is dropped.
    pub async fn spawn(&self, program: Program, arguments: &[&str]) -> Result<Daemon> {
        self.spawn_with(program, arguments, &[]).await
    }

    /// Starts the projector in the background, and waits until it follows the log.
    pub async fn start_projector(&self) -> Result<Daemon> {
        let projector = self.spawn(Program::Projector, &["run"]).await?;
        let follows = "select holder is not null from control.fact_sets where name = 'facts'";
        eventually(PROJECTOR_START, async || {
            ensure!(self.sql_value::<bool>(follows).await?, "the projector has no lease yet");
            Ok(())
        })
        .await?;
        Ok(projector)
    }

    /// Starts a program like [`TestApp::spawn`], with additional environment variables.
    pub async fn spawn_with(
        &self,
        program: Program,
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Result<Daemon> {
        let command = self.command(program, arguments, env).await?;
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        Daemon::start(program.name(), command, &self.folder.join(format!("{program}-{number}.log")))
    }

    /// Starts the API on a free port, and waits until it is ready.
    pub async fn api_serve(&self) -> Result<Api> {
        self.api_serve_with(&[]).await
    }

    /// Starts the API like [`TestApp::api_serve`], with additional environment variables.
    pub async fn api_serve_with(&self, env: &[(&str, &str)]) -> Result<Api> {
        let address = format!("127.0.0.1:{}", port::find_free()?);
        let process = self.spawn_with(Program::Api, &["serve", "--listen", &address], env).await?;
        Api::wait_until_ready(format!("http://{address}"), process).await
    }

    /// Returns the address 127.0.0.1 with a free port, on which a program of this app can listen.
    pub fn free_address(&self) -> Result<String> {
        Ok(format!("127.0.0.1:{}", port::find_free()?))
    }

    /// Creates an account of this tier with one API key. Returns the secret of the key.
    pub async fn key(&self, tier: &str) -> Result<String> {
        let email = format!("{tier}-{}@example.com", folder::random_suffix());
        self.create_account(&email, tier).await?;
        self.create_key(&email, "test").await
    }

    /// Creates an account of this tier without an API key.
    pub async fn create_account(&self, email: &str, tier: &str) -> Result<()> {
        self.api(&["account", "create", email, "--tier", tier]).await?.success()?;
        Ok(())
    }

    /// Creates an API key. Returns its secret, which cannot be read again later.
    pub async fn create_key(&self, email: &str, name: &str) -> Result<String> {
        let created =
            self.api(&["key", "create", email, "--name", name, "--json"]).await?.success()?.json()?;
        let secret = created.get("secret").and_then(|secret| secret.as_str());
        Ok(secret.context("api key create printed no secret")?.to_owned())
    }

    /// Runs a query as the owner of the database, which is that of the accounts for a query that names their schema.
    /// Returns the rows of the result.
    pub async fn sql(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let client = self.connect_for(query).await?;
        client.query(query, parameters).await.with_context(|| query.to_owned())
    }

    /// Runs a query like [`TestApp::sql`]. Returns the first column of the only row of the result.
    pub async fn sql_value<T: FromSqlOwned>(&self, query: &str) -> Result<T> {
        let client = self.connect_for(query).await?;
        let row = client.query_one(query, &[]).await.with_context(|| query.to_owned())?;
        Ok(row.try_get(0)?)
    }

    /// Creates the app's stream without messages. The settings of the stream are the same as if the first load had
    /// created it.
    pub async fn create_stream(&self) -> Result<()> {
        let settings = StreamSettings {
            nats_url: self.endpoints.nats_url.clone(),
            nats_stream: self.endpoints.stream.clone(),
            nats_subject_prefix: self.endpoints.subject_prefix.clone(),
            nats_replicas: 1,
        };
        settings.open(&settings.connect("tests").await?).await?;
        Ok(())
    }

    /// Connects to the NATS server of this app.
    pub async fn nats(&self) -> Result<async_nats::Client> {
        self.servers.nats.connect().await
    }

    async fn command(&self, program: Program, arguments: &[&str], env: &[(&str, &str)]) -> Result<Command> {
        let binaries = Binaries::shared().await?;
        let mut command = command_bound_to_parent(binaries.path(program), "KILL");
        command.env_clear().current_dir(&self.folder).args(arguments);
        for name in INHERITED {
            if let Some(value) = environment::read_variable(name) {
                command.env(name, value);
            }
        }
        command.envs(self.endpoints.environment()).env("CURSOR_SECRET", "0".repeat(64));
        // The timeouts are long, because other tests keep the machine busy, and a busy machine gives the low-priority
        // threads for expensive responses little time. Tests of outages set shorter timeouts.
        command.env("API_ADMISSION_TIMEOUT_MS", "5000").env("API_REQUEST_TIMEOUT_MS", "60000");
        // Loads do not wait until a projector has applied them. Tests of that wait set their own value.
        command.env("INGEST_EFFECT_WAIT", "0");
        command.envs(self.extra.iter().map(|(name, value)| (name, value)));
        command.envs(env.iter().copied());
        Ok(command)
    }
}

impl Drop for TestApp {
    /// Removes the database and the stream on another thread, because a destructor cannot await. Ignores errors,
    /// because the test may have killed the servers, and waits no longer than [`REMOVAL_TIMEOUT`].
    fn drop(&mut self) {
        let (servers, database) = (Arc::clone(&self.servers), self.database.clone());
        let (accounts_servers, accounts) =
            (Arc::clone(&self.accounts_servers), self.accounts_database.clone());
        let stream = self.endpoints.stream.clone();
        let cleaner = std::thread::spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                let removal = async {
                    let _ = servers.postgres.drop_database(&database).await;
                    let _ = accounts_servers.postgres.drop_database(&accounts).await;
                    let _ = servers.nats.delete_stream(&stream).await;
                };
                let _ = runtime.block_on(async { tokio::time::timeout(REMOVAL_TIMEOUT, removal).await });
            }
        });
        let _ = cleaner.join();
    }
}
