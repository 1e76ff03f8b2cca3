//! State log of a connector: charges to the call budget, and bookmarks of the requests.
//!
//! Each entry is a manifest in the message log, so several machines share one budget. Calls are charged before they are
//! made. The log refuses a charge from a process that has not read all manifests.
//!
//! Call budgets: maximum number of API calls to a vendor, in sliding windows of time. A sliding window is also safe if the
//! vendor counts in fixed windows with unknown start.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use market::event::{Bookmark, Pull, RunEvent, RunManifest, RunState};
use serde::Deserialize;

use super::args::PullError;
use crate::load::publication::LoadError;
use crate::log::publisher::{encode_manifest, now};
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
    connector: &'a str,
    source: &'a str,
    /// Log sequence of the last manifest that was read.
    read_to: u64,
    charges: Vec<BudgetCharge>,
    pub bookmarks: BTreeMap<String, Bookmark>,
    /// Latest charge, with the number of its calls that are not made yet. The calls must be made before the time
    /// `until`. `None` if the next call needs a new charge.
    current_charge: Option<BudgetCharge>,
    /// Duration of the latest attempt to publish a charge, including the reading of new log entries.
    charge_duration: TimeDelta,
}

impl<'a> StateLog<'a> {
    pub(super) async fn open(log: Log, connector: &'a str, source: &'a str) -> Result<Self, LogError> {
        let mut state_log = Self {
            log,
            connector,
            source,
            read_to: 0,
            charges: Vec::new(),
            bookmarks: BTreeMap::new(),
            current_charge: None,
            charge_duration: TimeDelta::zero(),
        };
        state_log.read_new_entries().await?;
        Ok(state_log)
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
            // A charge that is older than all periods counts in no budget.
            let longest = budgets.iter().map(|budget| budget.per.length()).max().unwrap_or_default();
            self.charges.retain(|charge| charge.until + longest > begun);
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
        let identity = format!("{FORMAT} {} {published_at} {}", self.connector, std::process::id());
        let run = blake3::hash(identity.as_bytes()).to_hex()[..32].to_owned();
        let entry = RunManifest {
            state: RunState::Completed,
            new_symbols: Some(Vec::new()),
            pull: Some(Pull { connector: self.connector.to_owned(), calls, until, bookmarks }),
            ..RunManifest::started(run.clone(), self.source.to_owned(), FORMAT.to_owned(), now())
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
            let Some(pull) = run.pull.filter(|pull| pull.connector == *connector) else { return };
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

/// Number of parts in which a budget is charged. With more parts, a kill loses fewer charged calls, but the log gets
/// more entries.
const PARTS: u64 = 50;

/// Maximum number of calls to the vendor per period.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallBudget {
    pub calls: u64,
    pub per: BudgetPeriod,
}

/// Period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BudgetPeriod {
    Second,
    Minute,
    Hour,
    Day,
    /// 31 days.
    Month,
}

impl BudgetPeriod {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    fn length(self) -> TimeDelta {
        match self {
            Self::Second => TimeDelta::seconds(1),
            Self::Minute => TimeDelta::minutes(1),
            Self::Hour => TimeDelta::hours(1),
            Self::Day => TimeDelta::days(1),
            Self::Month => TimeDelta::days(31),
        }
    }
}

/// Calls that are charged to a budget. They must be made before `until`, and count as made at `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BudgetCharge {
    pub calls: u64,
    pub until: DateTime<Utc>,
}

/// Result of [`compute_allowance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BudgetAllowance {
    /// Number of calls that may be charged now.
    Calls(u64),
    /// Time at which the budgets have enough calls left for the next request.
    From(DateTime<Utc>),
}

/// Computes the calls to charge at once, for a request of `cost` calls and further requests. The number is the smallest
/// budget divided by [`PARTS`], but at least `cost`.
pub(super) fn compute_allowance(
    budgets: &[CallBudget],
    charges: &[BudgetCharge],
    cost: u64,
    now: DateTime<Utc>,
) -> BudgetAllowance {
    let part = budgets.iter().map(|budget| budget.calls / PARTS).min().unwrap_or(PARTS).max(cost);
    let left = budgets.iter().map(|budget| budget.calls_left(charges, now)).min().unwrap_or(part);
    if left >= cost {
        return BudgetAllowance::Calls(part.min(left));
    }
    let moments = budgets.iter().map(|budget| budget.time_of_calls_left(charges, cost, now));
    BudgetAllowance::From(moments.max().unwrap_or(now))
}

impl CallBudget {
    fn calls_left(&self, charges: &[BudgetCharge], now: DateTime<Utc>) -> u64 {
        let counted = charges.iter().filter(|charge| charge.until + self.per.length() > now);
        self.calls.saturating_sub(counted.map(|charge| charge.calls).sum())
    }

    /// Earliest time at which the budget has `calls` calls left.
    fn time_of_calls_left(&self, charges: &[BudgetCharge], calls: u64, now: DateTime<Utc>) -> DateTime<Utc> {
        let mut ends: Vec<DateTime<Utc>> =
            charges.iter().map(|charge| charge.until + self.per.length()).collect();
        ends.push(now);
        ends.sort_unstable();
        let enough = |moment: &DateTime<Utc>| *moment >= now && self.calls_left(charges, *moment) >= calls;
        ends.into_iter().find(enough).unwrap_or(now)
    }
}

/// Time within which the calls of a charge must be made; unused calls are lost. `charge_duration` is the time that the
/// previous charge needed to reach the log.
pub(super) fn lease_duration(
    budgets: &[CallBudget],
    calls: u64,
    cost: u64,
    charge_duration: TimeDelta,
) -> TimeDelta {
    const MIN_LEASE: TimeDelta = TimeDelta::seconds(1);
    const MAX_LEASE: TimeDelta = TimeDelta::seconds(10);
    let shortest = budgets.iter().map(|budget| budget.per.length()).min().unwrap_or(MAX_LEASE);
    // The charge must reach the log before its lease ends.
    let shortest_lease = MIN_LEASE.max(charge_duration * 2);
    if calls == cost {
        shortest_lease
    } else {
        (shortest / 10).clamp(MIN_LEASE, MAX_LEASE).max(shortest_lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    fn charge(calls: u64, seconds: i64) -> BudgetCharge {
        BudgetCharge { calls, until: at(seconds) }
    }

    const FIVE_A_MINUTE: CallBudget = CallBudget { calls: 5, per: BudgetPeriod::Minute };

    #[test]
    fn calls_come_back_when_the_window_has_passed_them() {
        let charges = [charge(3, 0), charge(2, 20)];
        let allowed = |seconds, cost| compute_allowance(&[FIVE_A_MINUTE], &charges, cost, at(seconds));
        assert_eq!(allowed(30, 1), BudgetAllowance::From(at(60)));
        assert_eq!(allowed(59, 4), BudgetAllowance::From(at(80)));
        assert_eq!(allowed(60, 1), BudgetAllowance::Calls(1));
        assert_eq!(allowed(60, 3), BudgetAllowance::Calls(3));
        assert_eq!(compute_allowance(&[FIVE_A_MINUTE], &charges[..1], 1, at(1)), BudgetAllowance::Calls(1));
    }

    #[test]
    fn the_tightest_budget_decides() {
        let budgets = [FIVE_A_MINUTE, CallBudget { calls: 6, per: BudgetPeriod::Day }];
        let charges = [charge(5, 0)];
        assert_eq!(compute_allowance(&budgets, &charges, 1, at(61)), BudgetAllowance::Calls(1));
        let spent = [charge(5, 0), charge(1, 61)];
        assert_eq!(compute_allowance(&budgets, &spent, 1, at(200)), BudgetAllowance::From(at(86_400)));
    }

    #[test]
    fn a_small_budget_is_not_spent_on_waiting() {
        let day = CallBudget { calls: 1000, per: BudgetPeriod::Day };
        let seconds = |budgets: &[CallBudget], calls| {
            lease_duration(budgets, calls, 1, TimeDelta::zero()).num_seconds()
        };
        assert_eq!((seconds(&[FIVE_A_MINUTE], 1), seconds(&[FIVE_A_MINUTE], 2)), (1, 6));
        assert_eq!((seconds(&[day], 20), seconds(&[day, FIVE_A_MINUTE], 20)), (10, 6));
        assert_eq!(seconds(&[CallBudget { calls: 500, per: BudgetPeriod::Second }], 10), 1);
        let slow = |calls| lease_duration(&[FIVE_A_MINUTE], calls, 1, TimeDelta::seconds(4)).num_seconds();
        assert_eq!((slow(1), slow(2)), (8, 8), "a log that takes four seconds is waited for");
    }

    #[test]
    fn large_budgets_are_charged_in_parts() {
        let large = CallBudget { calls: 1000, per: BudgetPeriod::Minute };
        assert_eq!(compute_allowance(&[large], &[], 1, at(0)), BudgetAllowance::Calls(20));
        assert_eq!(compute_allowance(&[large], &[], 100, at(0)), BudgetAllowance::Calls(100));
        assert_eq!(compute_allowance(&[large], &[charge(995, 0)], 1, at(1)), BudgetAllowance::Calls(5));
        assert_eq!(compute_allowance(&[], &[], 1, at(0)), BudgetAllowance::Calls(50));
    }
}
