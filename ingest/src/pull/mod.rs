//! `ingest pull`: fetches data from vendors, once or on a schedule. A connector is a TOML file (the manifest) with the
//! requests to one vendor. A sync run sends the due requests of one connector.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use event_log::stream::StreamSettings;
use market::symbol::Symbol;
use telemetry::{Shutdown, outln};

use crate::log::reader::Log;
use crate::source::file_access::FolderHandle;

mod args;
mod batch;
mod client;
mod connector;
mod credential;
mod http_client;
mod paging;
mod plan;
mod report;
mod state_log;
mod sync;

use args::parse_symbols;
pub use args::{PullArgs, PullError};
use client::VendorClient;
use connector::{Connector, SHIPPED};
use credential::Credential;
use http_client::HttpClient;
use plan::{SyncScope, newest_day, plan_requests, select_templates};
use report::DryRunRequest;
pub use report::PullReport;
use state_log::StateLog;
use sync::SyncRun;

/// Minimum pause between two sync runs of a connector. A sync run that could not reach the log is repeated after this
/// pause.
const MIN_SYNC_PAUSE: Duration = Duration::from_secs(5);

/// Runs the connectors that the command line names, and returns the exit code. Calls `report` after each sync run. A
/// scheduled sync run that cannot reach the log is repeated.
pub async fn pull(
    args: &PullArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    report: impl Fn(Result<&PullReport, &PullError>),
) -> Result<u8, PullError> {
    if args.show {
        return print_manifests(args);
    }
    let connectors =
        args.manifests.iter().map(|name| Connector::read(name)).collect::<Result<Vec<_>, _>>()?;
    if args.dry_run {
        return report_dry_run(args, &connectors, settings, report).await;
    }
    // A missing credential is reported at start, not at the scheduled time.
    let credentials = connectors.iter().map(read_credential).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<ConnectorRun<'_>> = connectors
        .iter()
        .zip(&credentials)
        .map(|(connector, credential)| ConnectorRun { args, connector, credential, settings, shutdown })
        .collect();
    if args.once || connectors.iter().all(|connector| connector.schedule.is_none()) {
        let mut code = 0;
        for run in runs {
            let pulled = run.run_once().await?;
            report(Ok(&pulled));
            code = code.max(pulled.exit_code());
        }
        return Ok(code);
    }
    futures::future::try_join_all(runs.iter().map(|run| run.run_on_schedule(&report))).await?;
    Ok(0)
}

fn print_manifests(args: &PullArgs) -> Result<u8, PullError> {
    for name in &args.manifests {
        Connector::read(name)?;
        match SHIPPED.iter().find(|(shipped, _)| shipped == name) {
            Some((_, text)) => outln!("{}", text.trim_end()),
            None => outln!("# {name} is a valid manifest"),
        }
    }
    Ok(0)
}

/// Prints the requests that a sync run would send. If the log is reachable, the requests are planned from their
/// bookmarks, which say what was already fetched. Otherwise, they are planned as if nothing had been fetched before.
async fn report_dry_run(
    args: &PullArgs,
    connectors: &[Connector],
    settings: &StreamSettings,
    report: impl Fn(Result<&PullReport, &PullError>),
) -> Result<u8, PullError> {
    for connector in connectors {
        let bookmarks = match Log::open_existing(settings).await {
            Ok(log) => StateLog::open(log, &connector.name, connector.source()).await?.bookmarks.clone(),
            Err(error) => {
                tracing::warn!(%error, "cannot read the bookmarks: planning without them");
                BTreeMap::new()
            }
        };
        let scope = SyncScope {
            symbols: &symbols_to_fetch(args, connector)?,
            since: args.since,
            today: args.today.unwrap_or_else(|| newest_day(Utc::now())),
            bookmarks: &bookmarks,
            fresh_since: None,
        };
        let mut pulled = PullReport { dry_run: true, ..PullReport::new(connector) };
        for template in select_templates(args, connector)? {
            let requests = plan_requests(connector, template, &scope)?;
            pulled.requests += requests.len();
            pulled.planned.extend(requests.into_iter().map(|request| DryRunRequest {
                request: request.key,
                url: request.url.into(),
                cost: template.cost,
            }));
        }
        report(Ok(&pulled));
    }
    Ok(0)
}

fn read_credential(connector: &Connector) -> Result<Credential, PullError> {
    Credential::read_secrets(connector.credential.as_ref()).map_err(|reason| connector.unusable(reason))
}

/// Symbols to fetch: from the command line if it has symbols, otherwise from the manifest.
fn symbols_to_fetch(args: &PullArgs, connector: &Connector) -> Result<Vec<Symbol>, PullError> {
    let symbols =
        if args.symbols.is_empty() { parse_symbols(&connector.symbols) } else { args.parse_symbols() };
    symbols.map_err(|reason| connector.unusable(reason))
}

/// Inputs of the sync runs of one connector.
struct ConnectorRun<'a> {
    args: &'a PullArgs,
    connector: &'a Connector,
    credential: &'a Credential,
    settings: &'a StreamSettings,
    shutdown: &'a Shutdown,
}

impl ConnectorRun<'_> {
    async fn run_once(&self) -> Result<PullReport, PullError> {
        let Self { args, connector, credential, settings, shutdown } = *self;
        let path = args.folder.join(&connector.name);
        let in_folder = |source| PullError::Folder { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(in_folder)?;
        let folder = Arc::new(FolderHandle::open_unlinked(&path).map_err(in_folder)?);
        let lock = folder.try_lock(".lock").map_err(in_folder)?;
        let _lock = lock.ok_or_else(|| PullError::Locked { folder: path.clone() })?;
        let symbols = symbols_to_fetch(args, connector)?;
        let state_log =
            StateLog::open(Log::open(settings).await?, &connector.name, connector.source()).await?;
        let http =
            HttpClient::new(args, connector, credential).map_err(|reason| connector.unusable(reason))?;
        let client = VendorClient { shutdown, state_log, http, calls: 0 };
        let pulled = PullReport::new(connector);
        SyncRun { client, symbols: &symbols, settings, folder, pulled }.run().await
    }

    /// Starts a sync run immediately, and then at every scheduled time until shutdown. Without a schedule, there is
    /// only one sync run.
    async fn run_on_schedule(
        &self,
        report: impl Fn(Result<&PullReport, &PullError>),
    ) -> Result<(), PullError> {
        loop {
            let again = match self.run_once().await {
                Ok(pulled) => {
                    report(Ok(&pulled));
                    let Some(schedule) = &self.connector.schedule else { return Ok(()) };
                    // After an exhausted call budget, the next run starts as soon as calls are allowed again.
                    schedule.next_after(Utc::now()).into_iter().chain(pulled.again_at).min()
                }
                Err(PullError::Interrupted) => return Ok(()),
                Err(error) if error.exit_code() == 3 => {
                    report(Err(&error));
                    tracing::warn!(%error, "sync run failed: fetched answers are kept");
                    Some(Utc::now() + MIN_SYNC_PAUSE)
                }
                Err(error) => return Err(error),
            };
            let Some(again) = again else { return Ok(()) };
            tracing::info!(
                connector = self.connector.name,
                at = %again.format("%Y-%m-%d %H:%M:%S UTC"),
                "next sync run scheduled"
            );
            let wait = (again - Utc::now()).to_std().unwrap_or_default().max(MIN_SYNC_PAUSE);
            if self.shutdown.or_stop(tokio::time::sleep(wait)).await.is_none() {
                return Ok(());
            }
        }
    }
}
