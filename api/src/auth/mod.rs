//! Authentication primitives: API keys, client addresses, throttle of unauthenticated requests, tiers, and ids of accounts.
//!
//! Subscription tiers, and their limits as read from the database.

pub(crate) mod address_throttle;
pub(crate) mod client_address;
pub(crate) mod credential;

use std::sync::Arc;

use chrono::{Datelike, Months, NaiveDate};
use market::text_enum;
use parking_lot::Mutex;
use store::{find_rows, id_type, sql_row};
use tokio_postgres::{Client, Error};

pub(crate) use credential::{GeneratedKey, redact_secrets};

id_type! {
    /// Id of an account.
    pub(crate) struct AccountId(i64);

    /// Id of an API key.
    pub(crate) struct KeyId(i64);

    /// Id of a browser session.
    pub(crate) struct SessionId(i64);
}

/// Rank higher than the rank of every tier. No account has this rank.
const ABOVE_ALL: i16 = Tier::Professional as i16 + 1;
const TIERS: &str = include_str!("../../queries/access/tiers.sql");

text_enum! {
    /// Subscription tier. The values are listed from the lowest tier to the highest.
    pub enum Tier { Free = "free", Starter = "starter", Premium = "premium", Professional = "professional" }
}

impl Tier {
    /// Position in the order of tiers, from 0.
    pub(crate) fn rank(self) -> i16 {
        self as i16
    }
}

sql_row! {
    /// Limits of a tier.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct TierLimits {
        pub(crate) tier: Tier,
        /// Calls per minute.
        pub(crate) rate_per_minute: i32,
        /// Maximum burst of calls.
        pub(crate) burst: i32,
        /// Calls per calendar month, UTC.
        pub(crate) monthly_quota: i64,
        /// Years of history that the tier includes.
        pub(crate) depth_years: i32,
    }
}

/// Tier table, as read from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TierTable(pub(crate) Vec<TierLimits>);

impl Default for TierTable {
    fn default() -> Self {
        let plan = |tier, rate_per_minute, burst, monthly_quota, depth_years| TierLimits {
            tier,
            rate_per_minute,
            burst,
            monthly_quota,
            depth_years,
        };
        Self(vec![
            plan(Tier::Free, 10, 20, 5_000, 1),
            plan(Tier::Starter, 30, 60, 50_000, 5),
            plan(Tier::Premium, 100, 200, 250_000, 30),
            plan(Tier::Professional, 300, 600, 1_000_000, 100),
        ])
    }
}

/// Newest known tier table, shared by all requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedTiers(Arc<Mutex<Arc<TierTable>>>);

impl SharedTiers {
    pub(crate) fn get(&self) -> Arc<TierTable> {
        Arc::clone(&self.0.lock())
    }

    /// Reads the tier table from the database.
    pub(crate) async fn reload(&self, client: &Client) -> Result<(), Error> {
        let limits = find_rows(client, TIERS, &[]).await?;
        *self.0.lock() = Arc::new(TierTable(limits));
        Ok(())
    }
}

impl TierTable {
    /// Years of history included in a tier.
    pub(crate) fn depth_years(&self, tier: Tier) -> i32 {
        self.0.iter().find(|plan| plan.tier == tier).map_or(0, |plan| plan.depth_years)
    }

    /// Rank of the lowest tier with a history that includes `day`. If no tier includes the day, the returned rank is
    /// higher than the rank of every tier.
    pub(crate) fn lowest_rank_including(&self, day: NaiveDate, today: NaiveDate) -> i16 {
        let reaching = self.0.iter().filter(|plan| years_before(today, plan.depth_years) <= day);
        reaching.map(|plan| plan.tier.rank()).min().unwrap_or(ABOVE_ALL)
    }
}

/// The same day `years` years earlier, but not before year 1. 29 February becomes 28 February if the earlier year is
/// not a leap year.
pub(crate) fn years_before(day: NaiveDate, years: i32) -> NaiveDate {
    let months = u32::try_from(years).ok().and_then(|years| years.checked_mul(12)).map(Months::new);
    let earlier = months.and_then(|months| day.checked_sub_months(months));
    // The earliest day is the first day of year 1. A plan with a longer history includes all days.
    earlier
        .filter(|earlier| earlier.year() >= 1)
        .unwrap_or(NaiveDate::from_ymd_opt(1, 1, 1).unwrap_or(NaiveDate::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_begins_on_the_day_years_ago() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a date");
        let today = day("2024-02-29");
        for (oldest, rank) in [
            ("2024-02-01", 0),
            ("2023-02-28", 0),
            ("2023-02-27", 1),
            ("2019-02-28", 1),
            ("2000-01-01", 2),
            ("1924-02-29", 3),
            ("1924-02-28", ABOVE_ALL),
        ] {
            assert_eq!(TierTable::default().lowest_rank_including(day(oldest), today), rank, "{oldest}");
        }
    }
}
