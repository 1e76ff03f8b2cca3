//! State log of a connector: charges to the call budget, and bookmarks of the requests.
//!
//! Each entry is a manifest in the message log, so several machines share one budget. Calls are charged before they are
//! made. The log refuses a charge from a process that has not read all manifests.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use market::event::{Bookmark, Pull, RunEvent, RunManifest, RunState};

use super::args::PullError;
use super::budget::{
    BudgetAllowance, BudgetCharge, CallBudget, compute_allowance, lease_duration, longest_period,
};
use super::connector::Connector;
use crate::clock::now;
use crate::load::publication::LoadError;
use crate::log::publisher::encode_manifest;
use crate::log::reader::{Log, LogError};

/// Maximum number of attempts to publish a charge. An attempt fails if another process publishes a manifest first.
const MAX_CONFLICTS: usize = 100;
/// Number of late charges after which a request fails. A charge has a lease: its calls must be made before the lease
/// ends. A charge is late if it reaches the log only after the end of its lease.
const MAX_LATE_CHARGES: usize = 2;
/// Value of the field `format` in the manifest of a state log entry.
const FORMAT: &str = "pull";

pub(super) struct StateLog<'a> {
    log: Log,
    connector: &'a Connector,
    /// Log sequence of the last manifest that was read.
    read_to: u64,
    charges: Vec<BudgetCharge>,
    bookmarks: BTreeMap<String, Bookmark>,
    /// Latest charge, with the number of its calls that are not made yet. The calls must be made before the time
    /// `until`. `None` if the next call needs a new charge.
    current_charge: Option<BudgetCharge>,
    /// Duration of the latest attempt to publish a charge, including the reading of new log entries.
    charge_duration: TimeDelta,
}

impl<'a> StateLog<'a> {
    pub(super) async fn open(log: Log, connector: &'a Connector) -> Result<Self, LogError> {
        let mut state_log = Self {
            log,
            connector,
            read_to: 0,
            charges: Vec::new(),
            bookmarks: BTreeMap::new(),
            current_charge: None,
            charge_duration: TimeDelta::zero(),
        };
        state_log.read_new_entries().await?;
        Ok(state_log)
    }

    pub(super) fn bookmarks(&self) -> &BTreeMap<String, Bookmark> {
        &self.bookmarks
    }

    /// Charges the calls of a request to the budgets. Returns `None` if the request may be sent now. Otherwise returns
    /// the time from which it may be sent.
    pub(super) async fn charge_calls(
        &mut self,
        budgets: &[CallBudget],
        cost: u64,
    ) -> Result<Option<DateTime<Utc>>, PullError> {
        let mut late_charges = 0;
        for _ in 0..MAX_CONFLICTS {
            let begun = now();
            if let Some(charge) =
                self.current_charge.as_mut().filter(|charge| charge.calls >= cost && charge.until > begun)
            {
                charge.calls -= cost;
                return Ok(None);
            }
            self.current_charge = None;
            self.charges.retain(|charge| charge.until + longest_period(budgets) > begun);
            let calls = match compute_allowance(budgets, &self.charges, cost, begun) {
                BudgetAllowance::From(moment) => return Ok(Some(moment)),
                BudgetAllowance::Calls(calls) => calls,
            };
            let until = begun + lease_duration(budgets, calls, cost, self.charge_duration);
            if self.publish_entry(calls, until, BTreeMap::new(), true).await? {
                self.current_charge = Some(BudgetCharge { calls, until });
            }
            self.read_new_entries().await?;
            let ended = now();
            self.charge_duration = ended - begun;
            late_charges += usize::from(self.current_charge.is_some_and(|charge| charge.until <= ended));
            if late_charges >= MAX_LATE_CHARGES {
                // Further charges would be late too, and would use up the budget without a call.
                let reason = "the log is too slow to charge calls: try again";
                return Err(LogError::Read(reason.into()).into());
            }
        }
        Err(LogError::Read("other runs wrote to the log before each charge of the budget: try again".into())
            .into())
    }

    /// Records new bookmarks. The rows of their requests must already be in the log.
    pub(super) async fn record_bookmarks(
        &mut self,
        bookmarks: BTreeMap<String, Bookmark>,
    ) -> Result<(), PullError> {
        if bookmarks.is_empty() {
            return Ok(());
        }
        self.publish_entry(0, now(), bookmarks, false).await?;
        Ok(self.read_new_entries().await?)
    }

    /// Publishes an entry. With `only_if_unchanged`, publishes nothing if the log has a manifest after `read_to`.
    /// Returns true if the entry was published.
    async fn publish_entry(
        &self,
        calls: u64,
        until: DateTime<Utc>,
        bookmarks: BTreeMap<String, Bookmark>,
        only_if_unchanged: bool,
    ) -> Result<bool, PullError> {
        let published_at = Utc::now().timestamp_micros();
        let identity = format!("{FORMAT} {} {published_at} {}", self.connector.name, std::process::id());
        let run = blake3::hash(identity.as_bytes()).to_hex()[..32].to_owned();
        let source = self.connector.source().to_owned();
        let entry = RunManifest {
            state: RunState::Completed,
            new_symbols: Some(Vec::new()),
            pull: Some(Pull { connector: self.connector.name.clone(), calls, until, bookmarks }),
            ..RunManifest::started(run.clone(), source, FORMAT.to_owned(), now())
        };
        let (headers, body) = encode_manifest(entry, &run, 0).map_err(LoadError::from)?;
        let after = only_if_unchanged.then_some(self.read_to);
        Ok(self.log.publish_manifest(headers, body, after).await.map_err(LoadError::from)?)
    }

    /// Reads the manifests that were published since the previous read.
    async fn read_new_entries(&mut self) -> Result<(), LogError> {
        let Self { log, connector, read_to, charges, bookmarks, .. } = self;
        let from = *read_to + 1;
        let read = log.each_run_event(from, |_, _, _, event| {
            let RunEvent::Manifest(run) = event else { return };
            let Some(pull) = run.pull.filter(|pull| pull.connector == connector.name) else { return };
            if pull.calls > 0 {
                charges.push(BudgetCharge { calls: pull.calls, until: pull.until });
            }
            for (key, bookmark) in pull.bookmarks {
                let known = bookmarks.get(&key);
                if known.is_none_or(|known| known.fetched <= bookmark.fetched) {
                    bookmarks.insert(key, bookmark);
                }
            }
        });
        // The sequence of a damaged message counts as read. Otherwise a manifest would always follow `read_to`, and the
        // log would refuse every charge.
        *read_to = read.await?.max(*read_to);
        Ok(())
    }
}
