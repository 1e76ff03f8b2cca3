//! Decides on calls, many at a time: while one statement is in flight, arrivals queue; then one statement decides on
//! the whole queue.
//!
//! Invariants: limits are exact over all instances, because Postgres decides; no call waits for another account's
//! statement longer than the time-out; on time-out the answer is "cannot decide", never "yes".

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Row, Statement};

use super::Tier;
use super::bucket::{Bucket, Usage};
use super::ledger::Charge;
use crate::error::ApiError;

const ADMIT: &str = include_str!("../../queries/access/admit.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");
/// A queue is looked up key by key in indexes: planned once, and never by reading a whole table of accounts, however
/// small it looks. Losing less than a second of counts in a crash is worth not waiting for the disk.
const SESSION: &str = "-c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off \
                       -c enable_mergejoin=off -c jit=off";
/// Calls that may wait; more are refused at once.
const QUEUE: usize = 16_384;
/// Calls decided by one statement at most.
const BATCH: usize = 4_096;

/// A call to decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Call {
    /// SHA-256 of the key.
    pub(super) hash: [u8; 32],
    /// Least rank of the tier.
    pub(super) need: i16,
    /// Whether it counts against the quota.
    pub(super) counted: bool,
}

/// How a call of a known key is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Tier,
    Rate,
    Quota,
}

/// A decision on a call of a known key.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) account: i64,
    pub(crate) tier: Tier,
    pub(crate) verdict: Verdict,
    /// Whether the quota was charged.
    pub(crate) counted: bool,
    pub(crate) usage: Usage,
}

#[derive(Debug)]
struct Waiting {
    call: Call,
    decision: oneshot::Sender<Result<Option<Admitted>, String>>,
}

/// The queue to the store.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    calls: mpsc::Sender<Waiting>,
    refunds: mpsc::Sender<Refund>,
    patience: Duration,
}

impl Admission {
    /// Starts the worker with a connection of its own, so that slow reads cannot starve it.
    pub(crate) fn start(mut config: Config, patience: Duration) -> Self {
        let (calls, waiting) = mpsc::channel(QUEUE);
        let (refunds, refunding) = mpsc::channel(1_024);
        let options = format!(
            "{} {SESSION} -c statement_timeout={}",
            config.get_options().unwrap_or_default(),
            patience.as_millis()
        );
        config.options(options.trim()).connect_timeout(patience.max(Duration::from_secs(1)));
        tokio::spawn(Worker { config, patience, store: None, connecting: None }.run(waiting, refunding));
        Self { calls, refunds, patience }
    }

    /// Decides on one call; `None` for a key that is not valid.
    pub(super) async fn decide(&self, call: Call) -> Result<Option<Admitted>, ApiError> {
        let unavailable = |why: &str| ApiError::Unavailable(format!("admission: {why}"));
        let (decision, decided) = oneshot::channel();
        self.calls.try_send(Waiting { call, decision }).map_err(|_| unavailable("the queue is full"))?;
        // The statement before this one may take its full time too.
        match timeout(self.patience * 2, decided).await {
            Ok(Ok(decision)) => decision.map_err(|why| unavailable(&why)),
            Ok(Err(_)) => Err(unavailable("the worker ended")),
            Err(_) => Err(unavailable("the store does not answer")),
        }
    }

    /// Gives an account a counted call back, best effort.
    pub(crate) fn refund(&self, charge: &Charge) {
        let refund = Refund { account: charge.account, month_start: charge.usage.month_start };
        let _ = self.refunds.try_send(refund);
    }
}

/// A counted call to give back, in the month it was counted in.
#[derive(Debug)]
struct Refund {
    account: i64,
    month_start: f64,
}

struct Store {
    client: Client,
    admit: Statement,
    refund: Statement,
}

struct Worker {
    config: Config,
    patience: Duration,
    store: Option<Store>,
    /// Goes on beyond one batch's patience, so that a slow server is reached in the end.
    connecting: Option<JoinHandle<Result<Store, tokio_postgres::Error>>>,
}

impl Worker {
    async fn run(mut self, mut waiting: mpsc::Receiver<Waiting>, mut refunding: mpsc::Receiver<Refund>) {
        let mut batch = Vec::with_capacity(BATCH);
        // The first calls find the connection open.
        let _ = self.store().await;
        loop {
            tokio::select! {
                received = waiting.recv_many(&mut batch, BATCH) => {
                    if received == 0 {
                        return;
                    }
                    self.settle(std::mem::take(&mut batch)).await;
                }
                Some(refund) = refunding.recv() => self.give_back(refund).await,
            }
        }
    }

    async fn settle(&mut self, batch: Vec<Waiting>) {
        // A client that has gone away is not charged.
        let batch: Vec<Waiting> = batch.into_iter().filter(|waiting| !waiting.decision.is_closed()).collect();
        let groups = Groups::of(batch.iter().map(|waiting| waiting.call));
        let rows = match timeout(self.patience, self.execute(&groups)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(schema::db::error_chain(&error)),
            Err(_) => Err("the store does not answer in time".to_owned()),
        };
        match rows {
            Ok(rows) => groups.deliver(batch, &rows),
            Err(why) => {
                // The connection may still be at work on the statement; the next batch gets a fresh one.
                self.store = None;
                tracing::warn!("admission: {why}");
                for waiting in batch {
                    let _ = waiting.decision.send(Err(why.clone()));
                }
            }
        }
    }

    async fn execute(&mut self, groups: &Groups) -> Result<Vec<Row>, tokio_postgres::Error> {
        let store = self.store().await?;
        let hashes: Vec<&[u8]> = groups.calls.iter().map(|call| call.hash.as_slice()).collect();
        let needs: Vec<i16> = groups.calls.iter().map(|call| call.need).collect();
        let counted: Vec<bool> = groups.calls.iter().map(|call| call.counted).collect();
        let sizes: Vec<i32> =
            groups.members.iter().map(|members| i32::try_from(members.len()).unwrap_or(i32::MAX)).collect();
        store.client.query(&store.admit, &[&hashes, &needs, &counted, &sizes]).await
    }

    async fn give_back(&mut self, refund: Refund) {
        let patience = self.patience;
        let giving = async {
            let store = self.store().await?;
            store.client.execute(&store.refund, &[&refund.account, &refund.month_start]).await
        };
        let _ = timeout(patience, giving).await;
    }

    /// The open connection, or the one being opened.
    async fn store(&mut self) -> Result<&Store, tokio_postgres::Error> {
        let open = self.store.take().filter(|store| !store.client.is_closed());
        let store = match open {
            Some(store) => store,
            None => {
                let config = self.config.clone();
                let connecting = self.connecting.get_or_insert_with(|| tokio::spawn(connect(config)));
                let connected = connecting.await;
                self.connecting = None;
                connected.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?
            }
        };
        Ok(self.store.insert(store))
    }
}

async fn connect(config: Config) -> Result<Store, tokio_postgres::Error> {
    let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let (admit, refund) = (client.prepare(ADMIT).await?, client.prepare(REFUND).await?);
    Ok(Store { client, admit, refund })
}

/// A queue with equal calls put together: a flood from one key is one row.
#[derive(Debug, Default)]
struct Groups {
    calls: Vec<Call>,
    /// Positions in the queue, in arrival order.
    members: Vec<Vec<usize>>,
}

impl Groups {
    fn of(calls: impl Iterator<Item = Call>) -> Self {
        let (mut groups, mut known) = (Self::default(), HashMap::new());
        for (position, call) in calls.enumerate() {
            match known.entry(call) {
                Entry::Occupied(entry) => {
                    let index: &usize = entry.get();
                    groups.members[*index].push(position);
                }
                Entry::Vacant(entry) => {
                    entry.insert(groups.calls.len());
                    groups.calls.push(call);
                    groups.members.push(vec![position]);
                }
            }
        }
        groups
    }

    /// Tells every waiting call its own decision; those without a row have no valid key.
    fn deliver(&self, batch: Vec<Waiting>, rows: &[Row]) {
        let mut decisions: Vec<Result<Option<Admitted>, String>> = batch.iter().map(|_| Ok(None)).collect();
        for row in rows {
            match Outcome::of(row) {
                Ok(outcome) => {
                    let members = self.members.get(outcome.group).map_or(&[][..], Vec::as_slice);
                    let counted = self.calls.get(outcome.group).is_some_and(|call| call.counted);
                    for (turn, position) in members.iter().enumerate() {
                        decisions[*position] =
                            Ok(Some(outcome.decide(i32::try_from(turn).unwrap_or(i32::MAX), counted)));
                    }
                }
                // A row that cannot be read must not look like an unknown key.
                Err(error) => {
                    decisions.iter_mut().for_each(|decision| *decision = Err(schema::db::error_chain(&error)))
                }
            }
        }
        for (waiting, decision) in batch.into_iter().zip(decisions) {
            let _ = waiting.decision.send(decision);
        }
    }
}

/// What the store decided on one group of equal calls.
#[derive(Debug, Clone)]
struct Outcome {
    group: usize,
    account: i64,
    tier: Tier,
    included: bool,
    /// Calls the rate lets through.
    granted: i32,
    /// Calls the quota lets through.
    passed: i32,
    /// Usage before the group's first call, by the account's bucket.
    before: Usage,
    /// The key's own bucket before the group's first call.
    key: Option<Bucket>,
}

impl Outcome {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let place: i64 = row.try_get("place")?;
        let bucket = Bucket {
            rate_per_minute: row.try_get("rate_per_minute")?,
            burst: row.try_get("burst")?,
            tokens: row.try_get("tokens")?,
        };
        let key = match row.try_get::<_, Option<i32>>("key_rate")? {
            Some(rate) => {
                Some(Bucket { rate_per_minute: rate, burst: rate, tokens: row.try_get("key_tokens")? })
            }
            None => None,
        };
        Ok(Self {
            group: usize::try_from(place - 1).unwrap_or(usize::MAX),
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
            included: row.try_get("included")?,
            granted: row.try_get("granted")?,
            passed: row.try_get("passed")?,
            before: Usage {
                bucket,
                now: row.try_get("now")?,
                quota: row.try_get("monthly_quota")?,
                used: row.try_get("used")?,
                month_start: row.try_get("month_start")?,
                month_end: row.try_get("month_end")?,
            },
            key,
        })
    }

    /// The decision on the group's call number `turn`, from 0.
    fn decide(&self, turn: i32, counted: bool) -> Admitted {
        let counts = counted && self.included;
        let verdict = match () {
            () if !self.included => Verdict::Tier,
            () if turn >= self.granted => Verdict::Rate,
            () if counts && turn >= self.passed => Verdict::Quota,
            () => Verdict::Passed,
        };
        let counted = counts && verdict == Verdict::Passed;
        let usage = self.usage(turn, counts);
        Admitted { account: self.account, tier: self.tier, verdict, counted, usage }
    }

    /// What is left after the group's call number `turn`.
    fn usage(&self, turn: i32, counts: bool) -> Usage {
        let charged = (turn + 1).min(self.granted);
        let account = self.before.bucket.less(charged);
        let bucket = self.key.map_or(account, |key| key.less(charged).tighter(account));
        let used = if counts { (turn + 1).min(self.passed) } else { 0 };
        Usage { bucket, used: self.before.used + i64::from(used), ..self.before.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(included: bool, granted: i32, passed: i32) -> Outcome {
        let before = Usage {
            bucket: Bucket { rate_per_minute: 10, burst: 20, tokens: 20.0 },
            now: 1_000.0,
            quota: 5_000,
            used: 0,
            month_start: 0.0,
            month_end: 2_000.0,
        };
        Outcome { group: 0, account: 1, tier: Tier::Free, included, granted, passed, before, key: None }
    }

    fn verdicts(outcome: &Outcome, counted: bool, calls: i32) -> Vec<Verdict> {
        (0..calls).map(|turn| outcome.decide(turn, counted).verdict).collect()
    }

    #[test]
    fn a_queue_is_decided_in_arrival_order() {
        use Verdict::{Passed, Quota, Rate, Tier};
        assert_eq!(verdicts(&outcome(true, 2, 1), true, 3), [Passed, Quota, Rate]);
        assert_eq!(verdicts(&outcome(true, 2, 0), false, 3), [Passed, Passed, Rate]);
        assert_eq!(verdicts(&outcome(false, 1, 0), true, 2), [Tier, Tier]);
    }

    #[test]
    fn each_call_sees_its_own_remainder() {
        let outcome = outcome(true, 2, 2);
        let usages: Vec<(f64, i64)> = (0..3)
            .map(|turn| outcome.decide(turn, true).usage)
            .map(|usage| (usage.bucket.tokens, usage.used))
            .collect();
        assert_eq!(usages, [(19.0, 1), (18.0, 2), (18.0, 2)]);
    }

    #[test]
    fn a_flood_from_one_key_is_one_row() {
        let call = |byte, need| Call { hash: [byte; 32], need, counted: true };
        let groups = Groups::of([call(1, 0), call(2, 0), call(1, 0), call(1, 1)].into_iter());
        assert_eq!(groups.members, [vec![0, 2], vec![1], vec![3]]);
    }
}
