//! The whole service on one machine, as `cargo stack` runs it.
//!
//! Invariants: a data folder has at most one running stack. A stack stops every process that it started. Other machines
//! cannot reach these processes.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use tokio::signal::unix::{SignalKind, signal};

use crate::binaries::Binaries;
use crate::endpoints::Endpoints;
use crate::environment;
use crate::port;
use crate::postgres::Durability;
use crate::servers::{Database, DatabasePair, Servers};
use contents::LoadPlan;
use folder::StackFolder;
use progress::Progress;
use report::MetricsPorts;
use running::Running;

mod contents;
mod folder;
mod keys;
mod lent;
mod pinned;
mod progress;
mod report;
mod revisions;
mod running;
mod services;

pub use lent::lend_servers;
pub use pinned::print_pinned_servers;
pub use report::print_environment;

const DEFAULT_PORT: u16 = 8080;

/// Command-line options of `cargo stack`.
#[derive(Debug, Clone, Default)]
pub struct StackOptions {
    /// Port of the API. The default is 8080 or the next free port.
    pub port: Option<u16>,
    /// True if the data of the previous run is deleted before the start.
    pub fresh: bool,
    /// True if the stack loads no data.
    pub empty: bool,
    /// Number of securities of the demo market.
    pub symbols: u32,
    /// Years of daily prices of the demo market.
    pub years: u32,
    /// Files or folders with the user's own data. They are loaded instead of the generated demo market.
    pub feeds: Vec<PathBuf>,
    /// Name of the data source of the user's feeds.
    pub source: String,
}

/// Runs the stack until Ctrl-C, SIGTERM or SIGHUP. Fails if Postgres, the projector or the API ends by itself.
pub async fn run(options: StackOptions) -> Result<()> {
    let progress = Progress::start();
    let missing = cargo_stack::missing_for_start();
    ensure!(missing.is_empty(), "{}", cargo_stack::report(&missing));
    // Errors in the arguments are reported before `--fresh` deletes data.
    let port = choose_port(options.port)?;
    if let Some(missing) = options.feeds.iter().find(|feed| !feed.exists()) {
        bail!("no feed at {}", missing.display());
    }
    let folder = StackFolder::open(options.fresh)?;
    progress.say(format_args!("data and logs are in {}", folder.path().display()));
    let plan = LoadPlan::make(&options, &folder)?;

    let mut running = Running::default();
    let ended = tokio::select! {
        ended = live(&options, port, &folder, plan, &progress, &mut running) => ended,
        asked = asked_to_stop() => asked,
    };
    progress.say(format_args!("stopping"));
    running.stop(&progress).await;
    progress.say(format_args!("stopped; the data stays in {}", folder.path().display()));
    ended
}

/// Starts the servers, the projector and the API, prints the report, and then watches these processes. Returns only if
/// there is an error.
async fn live(
    options: &StackOptions,
    port: u16,
    folder: &StackFolder,
    plan: LoadPlan,
    progress: &Progress,
    running: &mut Running,
) -> Result<()> {
    progress.say(format_args!("starting Postgres and NATS"));
    let (binaries, servers) =
        tokio::try_join!(Binaries::beside_this_program(), start_servers(folder, progress))?;
    let servers = &*running.servers.insert(servers);
    let endpoints = prepare_database(options, folder, servers).await?;
    let services = services::Services::new(&binaries, &endpoints, folder, servers, progress)?;

    services.migrate().await?;
    services.load(&plan).await?;
    services.catch_up().await?;
    services.report_effect(&plan).await?;
    let figures = MetricsPorts::on_free_ports()?;
    running.projector = Some(services.start_projector(&figures)?);
    let api = &*running.api.insert(services.start_api(port, &figures).await?);
    let keys = keys::obtain_keys(&services, api, folder).await?;
    if let LoadPlan::Demo { .. } = plan {
        progress.say(format_args!("loading corrections, a late row and further sources"));
        revisions::revise_market(&services, api, &servers.nats, &endpoints.stream, folder).await?;
        plan.done(folder)?;
    }
    let mut environment = report::environment(&endpoints, api, &figures, &keys, &binaries)?;
    environment.extend(report::own_servers(servers, &endpoints));
    environment.extend(report::first_version(folder));
    folder.remember_environment(&environment)?;
    report::print(api, &keys).await?;
    running.watch(progress).await
}

async fn start_servers(folder: &StackFolder, progress: &Progress) -> Result<Servers> {
    // A shell may have the variables that `stack env` printed for another stack, or for an earlier run of this one. Its
    // own servers end with that stack, so they are not used.
    let existing = |variable: &str| {
        let of_a_stack = environment::read_text(&format!("{}{variable}", report::OWN_SERVER));
        environment::read_text(variable).filter(|url| Some(url) != of_a_stack.as_ref())
    };
    let servers =
        Servers::find(existing("DATABASE_URL"), existing("NATS_URL"), folder.path(), Durability::Full)
            .await?;
    let whose = |own: bool| if own { "own" } else { "existing" };
    progress.say(format_args!(
        "Postgres ({}) and NATS ({}) answer",
        whose(servers.postgres.is_own()),
        whose(servers.nats.is_own())
    ));
    Ok(servers)
}

/// Creates the stack's database if it does not exist. On existing servers, each stack has its own database and stream.
async fn prepare_database(
    options: &StackOptions,
    folder: &StackFolder,
    servers: &Servers,
) -> Result<Endpoints> {
    let suffix = folder.identity();
    let database = match servers.postgres.is_own() {
        true => "dividends".to_owned(),
        false => format!("dds_stack_{suffix}"),
    };
    let (stream, prefix) = match servers.nats.is_own() {
        true => ("MARKET".to_owned(), "market".to_owned()),
        false => (format!("MARKET_{suffix}"), format!("market_{suffix}")),
    };
    if options.fresh {
        servers.postgres.drop_database(&database).await?;
        // The stream may not exist.
        let _ = servers.nats.delete_stream(&stream).await;
    }
    if !servers.postgres.has_database(&database).await? {
        servers.postgres.create_database(&database, None).await?;
    }
    let database = Database { server: &servers.postgres, name: &database };
    let databases = DatabasePair { market: database, accounts: database };
    Endpoints::new(databases, servers.nats.url(), &stream, &prefix)
}

fn choose_port(asked: Option<u16>) -> Result<u16> {
    if let Some(port) = asked {
        if !port::is_free(port) {
            bail!("port {port} is in use; stop what listens there or choose another with --port");
        }
        return Ok(port);
    }
    (DEFAULT_PORT..DEFAULT_PORT + 200)
        .find(|port| port::is_free(*port))
        .context("no port from 8080 on is free")
}

async fn asked_to_stop() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}
