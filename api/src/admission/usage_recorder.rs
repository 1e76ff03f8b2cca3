//! Usage recorder: counts calls by account, day, endpoint, key and outcome, and writes the counts in batches.
//!
//! Invariants: no request waits for a write. Limits do not depend on the statistics, which may lack calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::StatusCode;
use chrono::{DateTime, NaiveDate, Utc};
use store::db::{add_session_options, error_chain};
use store::tls::MakeRustlsConnect;
use telemetry::LogLimit;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_postgres::Config;

use super::admission_store::{StoreConnection, UsageIncrement, UsageKey};
use super::decision::{AdmissionDecision, AdmissionError, AdmissionVerdict};
use crate::account::statistics::CallOutcome;
use crate::auth::{AccountId, KeyId, SharedTiers};
use crate::concurrency::BackgroundTasks;

/// Maximum number of calls that wait to be summed up.
const QUEUE: usize = 32_768;
/// Maximum number of rows that wait to be written.
const ROWS: usize = 16_384;
/// Interval at which calls are summed up. Polling avoids one wake-up per call.
const SUMMED_EVERY: Duration = Duration::from_millis(100);
/// Write intervals: the first for at most [`FEW`] waiting rows, the second for more rows. With the longer interval,
/// more calls are summed up in each row.
const WRITTEN_EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(2_500)];
/// Maximum number of waiting rows for the first (shorter) interval in [`WRITTEN_EVERY`].
const FEW: usize = 200;
/// Maximum number of rows per write.
const CHUNK: usize = 1_000;
/// Timeout of one database reply. It is longer than the statement timeout in the session settings.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct CountedCall {
    account: AccountId,
    key: KeyId,
    endpoint: Option<MatchedPath>,
    outcome: CallOutcome,
    at: DateTime<Utc>,
}

/// Handle of the usage recorder.
#[derive(Debug, Clone)]
pub(crate) struct UsageRecorder {
    calls: mpsc::Sender<CountedCall>,
    missing: Arc<AtomicU64>,
}

impl UsageRecorder {
    /// Starts the worker. After the last handle is dropped, the worker tries once to write the remaining rows, and then
    /// ends.
    pub(crate) fn start(
        config: &Config,
        tls: &MakeRustlsConnect,
        tasks: &BackgroundTasks,
        tiers: &SharedTiers,
    ) -> Self {
        let mut config = config.clone();
        add_session_options(&mut config, &format!("-c statement_timeout={}", STATEMENT_TIMEOUT.as_millis()));
        let connection = StoreConnection::new(&config, tls, RESPONSE_TIMEOUT, tasks, tiers);
        let (calls, waiting) = mpsc::channel(QUEUE);
        let missing = Arc::new(AtomicU64::new(0));
        let writer =
            UsageWriter { connection, sums: BTreeMap::new(), missing: Arc::clone(&missing), day: None };
        tasks.spawn(writer.run(waiting));
        Self { calls, missing }
    }

    pub(crate) fn record_call(
        &self,
        decision: &AdmissionDecision,
        status: StatusCode,
        endpoint: Option<&MatchedPath>,
    ) {
        let call = CountedCall {
            account: decision.account,
            key: decision.key,
            endpoint: endpoint.cloned(),
            outcome: outcome(status, decision.verdict == AdmissionVerdict::Quota),
            at: decision.usage.now,
        };
        if self.calls.try_send(call).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn outcome(status: StatusCode, quota_refused: bool) -> CallOutcome {
    match status {
        StatusCode::NOT_FOUND => CallOutcome::NotFound,
        StatusCode::FORBIDDEN => CallOutcome::Plan,
        StatusCode::TOO_MANY_REQUESTS if quota_refused => CallOutcome::Quota,
        StatusCode::TOO_MANY_REQUESTS => CallOutcome::Rate,
        status if status.is_client_error() => CallOutcome::ClientError,
        status if status.is_server_error() => CallOutcome::Failed,
        _ => CallOutcome::Answered,
    }
}

/// Worker that sums up calls and writes the sums.
struct UsageWriter {
    connection: StoreConnection,
    sums: BTreeMap<UsageKey, UsageIncrement>,
    missing: Arc<AtomicU64>,
    /// Day of the last attempt to delete old statistics, in UTC; `None` before the first attempt.
    day: Option<NaiveDate>,
}

impl UsageWriter {
    async fn run(mut self, mut waiting: mpsc::Receiver<CountedCall>) {
        let (mut due, mut written) = (interval(SUMMED_EVERY), Instant::now());
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            let may_come = self.sum_up(&mut waiting);
            let [few, many] = WRITTEN_EVERY;
            let rest = if self.sums.len() > FEW { many } else { few };
            if written.elapsed() >= rest || self.sums.len() >= ROWS / 2 {
                self.write().await;
                written = Instant::now();
            }
            if !may_come {
                break;
            }
        }
        self.write().await;
    }

    /// Sums up the calls in the queue. Returns `false` after the last sender is dropped.
    fn sum_up(&mut self, waiting: &mut mpsc::Receiver<CountedCall>) -> bool {
        loop {
            match waiting.try_recv() {
                Ok(call) => self.add(call),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn add(&mut self, call: CountedCall) {
        let endpoint = call.endpoint.as_ref().map_or("other", MatchedPath::as_str).to_owned();
        let CountedCall { account, key, outcome, at, .. } = call;
        let row = UsageKey { account, day: at.date_naive(), endpoint, key, outcome };
        if self.sums.len() >= ROWS && !self.sums.contains_key(&row) {
            self.missing.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let sum = self.sums.entry(row).or_insert(UsageIncrement { calls: 0, last_at: at });
        sum.calls += 1;
        sum.last_at = sum.last_at.max(at);
    }

    /// Writes the sums. The rows of a failed write stay in the sums for the next attempt.
    async fn write(&mut self) {
        let missing = self.missing.swap(0, Ordering::Relaxed);
        if missing > 0 {
            tracing::warn!(
                calls = missing,
                "the statistics lack calls, because calls arrived faster than they could be written"
            );
        }
        if self.sums.is_empty() {
            return;
        }
        while !self.sums.is_empty() {
            let mut chunk = take_rows(&mut self.sums, CHUNK);
            let writing = async { self.connection.open_store().await?.add_usage(&chunk).await };
            let written = timeout(RESPONSE_TIMEOUT, writing).await;
            if let Err(error) = written.unwrap_or(Err(AdmissionError::Timeout)) {
                // These rows are written again. Only a completed write with a lost reply then counts calls twice.
                self.sums.append(&mut chunk);
                self.connection.close();
                static LIMIT: LogLimit = LogLimit::new();
                if let Some(suppressed) = LIMIT.admit() {
                    tracing::warn!(error = %error_chain(&error), suppressed, "cannot write the usage statistics");
                }
                return;
            }
        }
        let today = Utc::now().date_naive();
        if self.day.replace(today) == Some(today) {
            return;
        }
        let deleting = async { self.connection.open_store().await?.delete_old_usage(today).await };
        let deleted = timeout(RESPONSE_TIMEOUT, deleting).await;
        if let Err(error) = deleted.unwrap_or(Err(AdmissionError::Timeout)) {
            // The deletion of old statistics is tried again on the next day.
            self.connection.close();
            tracing::warn!(error = %error_chain(&error), "cannot delete old usage statistics");
        }
    }
}

/// Removes the first `rows` rows from `sums`, and returns them. If `sums` has fewer rows, all are removed.
fn take_rows(
    sums: &mut BTreeMap<UsageKey, UsageIncrement>,
    rows: usize,
) -> BTreeMap<UsageKey, UsageIncrement> {
    let rest = sums.keys().nth(rows).cloned().map(|next| sums.split_off(&next)).unwrap_or_default();
    std::mem::replace(sums, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_their_order_and_none_is_lost() {
        let (day, at) = (NaiveDate::from_ymd_opt(2026, 1, 2).unwrap(), Utc::now());
        let row = |account| UsageKey {
            account: AccountId(account),
            day,
            endpoint: "e".to_owned(),
            key: KeyId(1),
            outcome: CallOutcome::Rate,
        };
        let mut sums: BTreeMap<_, _> =
            (0..5).map(|account| (row(account), UsageIncrement { calls: account, last_at: at })).collect();
        let mut taken = vec![];
        while !sums.is_empty() {
            taken.push(take_rows(&mut sums, 2).values().map(|sum| sum.calls).collect::<Vec<_>>());
        }
        assert_eq!(taken, [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn every_status_has_its_outcome() {
        for (status, outcome_expected) in [
            (200, CallOutcome::Answered),
            (304, CallOutcome::Answered),
            (400, CallOutcome::ClientError),
            (403, CallOutcome::Plan),
            (404, CallOutcome::NotFound),
            (405, CallOutcome::ClientError),
            (429, CallOutcome::Rate),
            (500, CallOutcome::Failed),
            (503, CallOutcome::Failed),
        ] {
            assert_eq!(outcome(StatusCode::from_u16(status).unwrap(), false), outcome_expected, "{status}");
        }
        assert_eq!(outcome(StatusCode::TOO_MANY_REQUESTS, true), CallOutcome::Quota);
    }
}
