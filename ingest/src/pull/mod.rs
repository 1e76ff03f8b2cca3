//! `ingest pull`: fetches data from vendors according to manifests, once or on a schedule.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use chrono::Utc;
use event_log::stream::StreamSettings;
use telemetry::{Shutdown, outln};

use crate::log::reader::Log;
use crate::source::dir_lock;

mod args;
mod ask;
mod aws;
mod batch;
mod budget;
mod call;
mod connector;
mod credential;
mod error;
mod ledger;
mod paging;
mod plan;
mod report;
mod retry;
mod round;
mod schedule;
mod wanted;

pub use args::PullArgs;
use ask::Asker;
use call::{Caller, Limits};
use connector::{Connector, SHIPPED};
use credential::Credential;
pub use error::PullError;
use ledger::Ledger;
pub use report::Pulled;
use round::Round;
use wanted::would_ask;

/// Minimum pause between rounds, and pause after the log was unreachable.
const AWAY: Duration = Duration::from_secs(5);

/// Runs the pulls of the command line, and reports each round at its end. A round that did not reach the log is
/// reported too, and repeated. Returns the exit code.
pub async fn pull(
    args: &PullArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    report: impl Fn(Result<&Pulled, &PullError>),
) -> Result<u8, PullError> {
    if args.show {
        return show(args);
    }
    let connectors =
        args.manifests.iter().map(|name| Connector::open(name)).collect::<Result<Vec<_>, _>>()?;
    if args.dry_run {
        return dry_run(args, &connectors, settings, report).await;
    }
    // A missing credential is reported at start, not at the scheduled time.
    let credentials = connectors.iter().map(credential_of).collect::<Result<Vec<_>, _>>()?;
    let pullings: Vec<Pulling<'_>> = connectors
        .iter()
        .zip(&credentials)
        .map(|(connector, credential)| Pulling { args, connector, credential, settings, shutdown })
        .collect();
    if args.once || connectors.iter().all(|connector| connector.schedule.is_none()) {
        let mut code = 0;
        for pulling in pullings {
            let pulled = pulling.once().await?;
            report(Ok(&pulled));
            code = code.max(pulled.exit_code());
        }
        return Ok(code);
    }
    futures::future::try_join_all(pullings.iter().map(|pulling| pulling.on_schedule(&report))).await?;
    Ok(0)
}

fn show(args: &PullArgs) -> Result<u8, PullError> {
    for name in &args.manifests {
        Connector::open(name)?;
        match SHIPPED.iter().find(|(shipped, _)| shipped == name) {
            Some((_, text)) => outln!("{}", text.trim_end()),
            None => outln!("# {name} is a valid manifest"),
        }
    }
    Ok(0)
}

/// Prints the planned requests. Bookmarks are used if the log is reachable.
async fn dry_run(
    args: &PullArgs,
    connectors: &[Connector],
    settings: &StreamSettings,
    report: impl Fn(Result<&Pulled, &PullError>),
) -> Result<u8, PullError> {
    for connector in connectors {
        let bookmarks = match Log::existing(settings).await {
            Ok(log) => Ledger::read(log, &connector.name, connector.source()).await?.bookmarks().clone(),
            Err(error) => {
                tracing::warn!("the bookmarks cannot be read: {error}");
                BTreeMap::new()
            }
        };
        report(Ok(&would_ask(args, connector, &symbols(args, connector)?, &bookmarks)?));
    }
    Ok(0)
}

fn credential_of(connector: &Connector) -> Result<Credential, PullError> {
    Credential::read(connector.credential.as_ref()).map_err(|reason| unusable(connector, reason))
}

fn unusable(connector: &Connector, reason: String) -> PullError {
    PullError::Unusable { connector: connector.name.clone(), reason }
}

/// Symbols to fetch: from the command line, or else from the manifest.
fn symbols(args: &PullArgs, connector: &Connector) -> Result<Vec<market::symbol::Symbol>, PullError> {
    let symbols = if args.symbols.is_empty() { connector.symbols() } else { args.symbols() };
    symbols.map_err(|reason| unusable(connector, reason))
}

/// Connector with everything that its rounds need.
struct Pulling<'a> {
    args: &'a PullArgs,
    connector: &'a Connector,
    credential: &'a Credential,
    settings: &'a StreamSettings,
    shutdown: &'a Shutdown,
}

impl Pulling<'_> {
    /// Runs one round.
    async fn once(&self) -> Result<Pulled, PullError> {
        let Self { args, connector, credential, settings, shutdown } = *self;
        let folder = args.folder.join(&connector.name);
        let in_folder = |source| PullError::Folder { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(in_folder)?;
        let held = dir_lock::hold(&folder.join(".lock")).map_err(in_folder)?;
        let _lock = held.ok_or_else(|| PullError::Locked { folder: folder.clone() })?;
        let symbols = symbols(args, connector)?;
        let ledger = Ledger::read(Log::open(settings).await?, &connector.name, connector.source()).await?;
        let limits = Limits { idle: args.timeout, bytes: args.max_bytes };
        let caller =
            Caller::new(connector, credential, limits).map_err(|reason| unusable(connector, reason))?;
        let pulled = Pulled {
            connector: connector.name.clone(),
            source: connector.source().to_owned(),
            ..Pulled::default()
        };
        let symbols = symbols.as_slice();
        let asker = Asker { args, connector, shutdown, ledger, caller, calls: 0 };
        Round { asker, symbols, settings, folder, pulled }.run().await
    }

    /// Runs rounds until shutdown. The first one starts at once, for requests that the last scheduled time left over.
    /// Others follow at every scheduled time, and when an exhausted budget allows more calls. Without a schedule, it
    /// runs one round.
    async fn on_schedule(&self, report: impl Fn(Result<&Pulled, &PullError>)) -> Result<(), PullError> {
        loop {
            let again = match self.once().await {
                Ok(pulled) => {
                    report(Ok(&pulled));
                    let Some(schedule) = &self.connector.schedule else { return Ok(()) };
                    schedule.after(Utc::now()).into_iter().chain(pulled.again_at).min()
                }
                Err(PullError::Interrupted) => return Ok(()),
                Err(error) if error.exit_code() == 3 => {
                    report(Err(&error));
                    tracing::warn!("{error}; what was fetched is kept meanwhile");
                    Some(Utc::now() + AWAY)
                }
                Err(error) => return Err(error),
            };
            let Some(again) = again else { return Ok(()) };
            tracing::info!(
                "{}: pulls again at {}",
                self.connector.name,
                again.format("%Y-%m-%d %H:%M:%S UTC")
            );
            let mut shutdown = self.shutdown.clone();
            let wait = (again - Utc::now()).to_std().unwrap_or_default().max(AWAY);
            tokio::select! { () = tokio::time::sleep(wait) => {}, () = shutdown.wait() => return Ok(()) }
        }
    }
}
