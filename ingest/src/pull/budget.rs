//! Call budgets: maximum number of API calls to a vendor, in sliding windows of time.
//!
//! A sliding window is also safe if the vendor counts in fixed windows with unknown start.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

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

/// Longest period of the budgets. Charges that are older than this period count in none of the budgets.
pub(super) fn longest_period(budgets: &[CallBudget]) -> TimeDelta {
    budgets.iter().map(|budget| budget.per.length()).max().unwrap_or_default()
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
