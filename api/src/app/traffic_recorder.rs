//! Traffic recorder: once a minute, adds the new calls of this instance to the database with the accounts.
//!
//! Invariants: no request waits for a write. During an outage of the database, the minutes stay in memory and are written
//! afterwards, each with its own time. If only the reply to a write is lost, its minutes are counted twice; if the database
//! crashes, the newest may be lost.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, DurationRound, NaiveDate, NaiveTime, TimeDelta, Utc};
use deadpool_postgres::{Pool, PoolError, TimeoutType};
use store::db::error_chain;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::metrics::{GroupTraffic, Traffic, TrafficCounter};

const ADD: &str = include_str!("../../queries/status/add.sql");
const FORGET: &str = include_str!("../../queries/status/forget.sql");

/// Number of days with stored traffic, including today.
pub(super) const DAYS: i32 = 90;
/// Maximum number of minutes with traffic that wait to be written: 12 hours, about 1 MiB.
const MAX_WAITING_MINUTES: usize = 720;
const WRITE_TIMEOUT: Duration = Duration::from_secs(8);

/// Recorder of the traffic of this instance.
#[derive(Debug)]
pub(super) struct TrafficRecorder {
    pool: Pool,
    counter: TrafficCounter,
    /// Traffic that is not written yet, by the start of its minute.
    waiting: BTreeMap<DateTime<Utc>, Traffic>,
    /// Day on which old traffic was deleted, in UTC; `None` before the first deletion.
    cleaned_on: Option<NaiveDate>,
}

impl TrafficRecorder {
    pub(super) fn new(pool: Pool, counter: TrafficCounter) -> Self {
        Self { pool, counter, waiting: BTreeMap::new(), cleaned_on: None }
    }

    /// Records until `stopping` is cancelled. Then tries once to write the rest.
    pub(super) async fn run(mut self, stopping: CancellationToken) {
        loop {
            let now = Utc::now();
            let minute = start_of(now, TimeDelta::minutes(1));
            let left = (minute + TimeDelta::minutes(1) - now).to_std().unwrap_or_default();
            let is_last = stopping.run_until_cancelled(sleep(left)).await.is_none();
            let new = self.counter.count_new_calls();
            if !new.is_empty() {
                let traffic = self.waiting.entry(minute).or_default();
                for (group, calls) in &new {
                    traffic.entry(group).or_default().add(calls, 1);
                }
            }
            self.write().await;
            if is_last {
                break;
            }
        }
        if !self.waiting.is_empty() {
            tracing::warn!(minutes = self.waiting.len(), "the status of the service lacks the last minutes");
        }
    }

    /// Writes the waiting minutes. After a failure, they wait for the next attempt.
    async fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let today = Utc::now().date_naive();
        let written = timeout(WRITE_TIMEOUT, self.try_write(today)).await;
        match written.unwrap_or(Err(PoolError::Timeout(TimeoutType::Wait))) {
            Ok(()) => {
                self.waiting.clear();
                self.cleaned_on = Some(today);
            }
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), minutes = self.waiting.len(), "cannot write the traffic");
                let too_many = self.waiting.len().saturating_sub(MAX_WAITING_MINUTES);
                if too_many > 0 {
                    tracing::warn!(minutes = too_many, "the status of the service lacks the oldest minutes");
                }
                for _ in 0..too_many {
                    self.waiting.pop_first();
                }
            }
        }
    }

    /// Writes all waiting minutes in one statement. Several instances may add to the same rows.
    async fn try_write(&self, today: NaiveDate) -> Result<(), PoolError> {
        let (mut minutes, mut calls, mut failures) = (vec![], vec![], vec![]);
        let mut by_hour: BTreeMap<(DateTime<Utc>, &str), GroupTraffic> = BTreeMap::new();
        for (minute, traffic) in &self.waiting {
            minutes.push(*minute);
            calls.push(traffic.values().map(GroupTraffic::calls).sum::<i64>());
            failures.push(traffic.values().map(|group| group.failures).sum::<i64>());
            for (group, added) in traffic {
                by_hour.entry((start_of(*minute, TimeDelta::hours(1)), group)).or_default().add(added, 1);
            }
        }
        let (hours, groups): (Vec<_>, Vec<_>) = by_hour.keys().copied().unzip();
        let hour_failures: Vec<i64> = by_hour.values().map(|group| group.failures).collect();
        let durations: Vec<String> = by_hour.values().map(array_text).collect();
        let client = self.pool.get().await?;
        if self.cleaned_on != Some(today) {
            client.execute(FORGET, &[&first_day(today)]).await?;
        }
        client
            .execute(ADD, &[&minutes, &calls, &failures, &hours, &groups, &hour_failures, &durations])
            .await?;
        Ok(())
    }
}

/// Start of the stored traffic on the day `today`.
pub(super) fn first_day(today: NaiveDate) -> DateTime<Utc> {
    (today - TimeDelta::days(i64::from(DAYS) - 1)).and_time(NaiveTime::MIN).and_utc()
}

/// Start of the minute or hour of a time.
pub(super) fn start_of(time: DateTime<Utc>, length: TimeDelta) -> DateTime<Utc> {
    time.duration_trunc(length).unwrap_or(time)
}

/// Calls by duration, as text of a Postgres array.
fn array_text(group: &GroupTraffic) -> String {
    let calls: Vec<String> = group.durations.map(|calls| calls.to_string()).into();
    format!("{{{}}}", calls.join(","))
}
