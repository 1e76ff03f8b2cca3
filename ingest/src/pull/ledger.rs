//! The ledger of a connector: calls charged to its budget, and how far its requests came.
//!
//! It is kept in the log, as manifests of runs that load nothing, so that a new machine goes on where the old one was.
//! Invariant: calls are charged before they are made. A charge is only accepted when no manifest came since the ledger
//! was read, so that pulls on several machines share one budget.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::frame::{Body, Frame, FrameId, schema_name};
use market::event::{Bookmark, Kind, Pull, RunManifest, RunState};

use super::budget::{Allowance, Budget, Charge, allowance, lease, longest};
use super::error::PullError;
use crate::clock::now;
use crate::load::error::LoadError;
use crate::log::reader::{Log, LogError};

/// How often a charge gives way to other manifests of the log.
const MOST_CONFLICTS: usize = 100;
/// How often a request's charge may run out before it is in the log.
const MOST_LATE: usize = 2;
/// The format a manifest names for an entry.
const FORMAT: &str = "pull";

/// A connector's ledger.
pub(super) struct Ledger {
    log: Log,
    connector: String,
    source: String,
    /// Sequence of the newest manifest that was read.
    read_to: u64,
    charges: Vec<Charge>,
    bookmarks: BTreeMap<String, Bookmark>,
    /// Calls that may be made.
    held: Option<Charge>,
    /// How long the latest charge took to be in the log.
    took: TimeDelta,
}

impl Ledger {
    /// Reads the ledger of a connector.
    pub(super) async fn read(log: Log, connector: &str, source: &str) -> Result<Self, LogError> {
        let mut ledger = Self {
            log,
            connector: connector.to_owned(),
            source: source.to_owned(),
            read_to: 0,
            charges: Vec::new(),
            bookmarks: BTreeMap::new(),
            held: None,
            took: TimeDelta::zero(),
        };
        ledger.refresh().await?;
        Ok(ledger)
    }

    /// How far requests came.
    pub(super) fn bookmarks(&self) -> &BTreeMap<String, Bookmark> {
        &self.bookmarks
    }

    /// Charges the calls of a request; a moment when they are not allowed before it.
    pub(super) async fn charge(
        &mut self,
        budgets: &[Budget],
        cost: u64,
    ) -> Result<Option<DateTime<Utc>>, PullError> {
        let mut late = 0;
        for _ in 0..MOST_CONFLICTS {
            let begun = now();
            if let Some(held) = self.held.as_mut().filter(|held| held.calls >= cost && held.until > begun) {
                held.calls -= cost;
                return Ok(None);
            }
            self.held = None;
            self.charges.retain(|charge| charge.until + longest(budgets) > begun);
            match allowance(budgets, &self.charges, cost, begun) {
                Allowance::From(moment) => return Ok(Some(moment)),
                Allowance::Calls(calls) => {
                    let charge = Charge { calls, until: begun + lease(budgets, calls, cost, self.took) };
                    if self.publish(self.entry(charge.calls, charge.until, BTreeMap::new()), true).await? {
                        self.held = Some(charge);
                    }
                    self.refresh().await?;
                    let ended = now();
                    self.took = ended - begun;
                    late += usize::from(self.held.is_some_and(|held| held.until <= ended));
                    if late >= MOST_LATE {
                        // Each further charge would spend the budget without a call.
                        return Err(
                            LogError::Read("the log is too slow to charge calls: try again".into()).into()
                        );
                    }
                }
            }
        }
        Err(LogError::Read("other loads come before every charge of the budget: try again".into()).into())
    }

    /// Notes how far requests came whose rows are in the log.
    pub(super) async fn note(&mut self, bookmarks: BTreeMap<String, Bookmark>) -> Result<(), PullError> {
        if bookmarks.is_empty() {
            return Ok(());
        }
        self.publish(self.entry(0, now(), bookmarks), false).await?;
        Ok(self.refresh().await?)
    }

    fn entry(&self, calls: u64, until: DateTime<Utc>, bookmarks: BTreeMap<String, Bookmark>) -> RunManifest {
        let moment = Utc::now().timestamp_nanos_opt().unwrap_or_default();
        let identity = format!("{FORMAT} {} {moment} {}", self.connector, std::process::id());
        let run = blake3::hash(identity.as_bytes()).to_hex()[..32].to_owned();
        RunManifest {
            state: RunState::Completed,
            new_symbols: Some(Vec::new()),
            pull: Some(Pull { connector: self.connector.clone(), calls, until, bookmarks }),
            ..RunManifest::started(run, self.source.clone(), FORMAT.to_owned(), now())
        }
    }

    /// Publishes an entry; false when another manifest came before it and that matters.
    async fn publish(&self, entry: RunManifest, alone: bool) -> Result<bool, PullError> {
        let (run, source) = (entry.run.clone(), entry.source.clone());
        let id = FrameId::of(&source, &run, 0, &schema_name(Kind::Run));
        let body = Body::Run(Box::new(entry));
        let frame = Frame { id, source, run, chunk: 0, file: String::new(), line: 0, body };
        let (headers, body) = frame.encode().map_err(LoadError::from)?;
        let after = alone.then_some(self.read_to);
        Ok(self.log.publish_manifest(headers, body, after).await.map_err(LoadError::from)?)
    }

    /// Reads the manifests that came since.
    async fn refresh(&mut self) -> Result<(), LogError> {
        let Self { log, connector, read_to, charges, bookmarks, .. } = self;
        let from = *read_to + 1;
        log.each_manifest(from, |sequence, _, run| {
            *read_to = sequence;
            let Some(pull) = run.pull.filter(|pull| pull.connector == *connector) else { return };
            if pull.calls > 0 {
                charges.push(Charge { calls: pull.calls, until: pull.until });
            }
            for (key, bookmark) in pull.bookmarks {
                let known = bookmarks.get(&key);
                if known.is_none_or(|known| known.fetched <= bookmark.fetched) {
                    bookmarks.insert(key, bookmark);
                }
            }
        })
        .await
    }
}
