//! The statement that decides on calls, against its rules written a second time in whole numbers.
//!
//! Its clock is replaced by one the test sets, so that waits, clock steps and month edges cost no time.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Datelike, Months, NaiveTime, Utc};
use harness::TestApp;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio_postgres::{Client, Statement};

/// A call in units: a rate of one a minute flows in one unit a microsecond.
const CALL: i64 = 60_000_000;
/// The millionth of a call the statement forgives.
const FORGIVEN: i64 = CALL / 1_000_000;
/// Name, rate, burst, quota: smaller quotas than the real ones, so that they are reached.
const TIERS: [(&str, i64, i64, i64); 4] = [
    ("free", 10, 20, 30),
    ("starter", 30, 60, 100),
    ("premium", 100, 200, 300),
    ("professional", 300, 600, 900),
];
/// Account and own rate of each key; two accounts, keys 1 and 2 beside others of theirs.
const KEYS: [(usize, Option<i64>); 4] = [(0, None), (0, None), (0, Some(5)), (1, Some(12))];
const START: i64 = 1_769_900_000_000_000;

#[derive(Debug, Clone)]
enum Step {
    /// Milliseconds the clock moves by, backwards too.
    Clock(i64),
    /// To just before the next month.
    MonthEnd,
    /// Key, least tier, whether it counts, how many.
    Calls(Vec<(usize, i16, bool, i32)>),
    Tier(usize, usize),
    /// The paid period ends so many seconds from now.
    PaidFor(usize, i64),
    Toggle(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let group =
        (0..KEYS.len(), prop_oneof![4 => Just(0i16), 1 => 1i16..4], prop::bool::weighted(0.8), 1i32..30);
    let step = prop_oneof![
        6 => prop::collection::vec(group, 1..5).prop_map(distinct),
        4 => (0i64..30_000).prop_map(Step::Clock),
        1 => (-100_000i64..0).prop_map(Step::Clock),
        1 => Just(Step::MonthEnd),
        1 => (0usize..2, 0usize..4).prop_map(|(account, tier)| Step::Tier(account, tier)),
        1 => (0usize..2, -5i64..60).prop_map(|(account, seconds)| Step::PaidFor(account, seconds)),
        1 => (0..KEYS.len()).prop_map(Step::Toggle),
    ];
    prop::collection::vec(step, 1..40)
}

/// Equal calls are one group, as the service groups them.
fn distinct(groups: Vec<(usize, i16, bool, i32)>) -> Step {
    let mut kept: Vec<(usize, i16, bool, i32)> = Vec::new();
    for group in groups {
        if !kept.iter().any(|(key, need, counted, _)| (*key, *need, *counted) == (group.0, group.1, group.2))
        {
            kept.push(group);
        }
    }
    Step::Calls(kept)
}

#[derive(Debug, Clone)]
struct Account {
    tier: usize,
    paid_until: Option<i64>,
    units: i64,
    cap: i64,
    at: i64,
    month: (i32, u32),
    used: i64,
}

#[derive(Debug, Clone, Default)]
struct Key {
    deleted: bool,
    units: Option<(i64, i64)>,
}

/// What is decided on a group: granted, passed, units and count before it, units of the key's own bucket.
type Decision = (i64, i64, i64, i64, Option<i64>);

#[derive(Debug, Clone)]
struct Model {
    now: i64,
    accounts: [Account; 2],
    keys: [Key; KEYS.len()],
}

impl Model {
    fn new() -> Model {
        let account = Account {
            tier: 0,
            paid_until: None,
            units: 20 * CALL,
            cap: 20,
            at: START,
            month: month(START),
            used: 0,
        };
        Model { now: START, accounts: [account.clone(), account], keys: Default::default() }
    }

    fn decide(&mut self, groups: &[(usize, i16, bool, i32)]) -> Vec<Option<Decision>> {
        let active: Vec<usize> =
            groups.iter().map(|group| group.0).filter(|key| !self.keys[*key].deleted).collect();
        for account in 0..2 {
            if active.iter().any(|key| KEYS[*key].0 == account) {
                self.settle(account);
            }
        }
        for (key, (_, rate)) in KEYS.iter().enumerate() {
            if let (true, Some(rate)) = (active.contains(&key), rate) {
                let (units, at) = self.keys[key].units.unwrap_or((rate * CALL, self.now));
                let flowed = rate * (self.now - at).max(0);
                self.keys[key].units = Some(((units + flowed).min(rate * CALL), self.now));
            }
        }
        // By key, as the statement does; equal keys in the order of the queue.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|index| groups[*index].0);
        let mut decisions = vec![None; groups.len()];
        for index in order {
            decisions[index] = self.group(groups[index]);
        }
        decisions
    }

    /// Brings an account to now: its tier, its month, what flowed in.
    fn settle(&mut self, account: usize) {
        let (now, account) = (self.now, &mut self.accounts[account]);
        let (_, rate, burst, _) = TIERS[account.effective(now)];
        let used = account.cap * CALL - account.units;
        let flowed = rate * (now - account.at).max(0);
        account.units = ((burst * CALL - used).max(0) + flowed).min(burst * CALL);
        (account.cap, account.at) = (burst, now);
        if month(now) > account.month {
            (account.month, account.used) = (month(now), 0);
        }
    }

    fn group(&mut self, (key, need, counted, calls): (usize, i16, bool, i32)) -> Option<Decision> {
        if self.keys[key].deleted {
            return None;
        }
        let whole = |units: i64| (units + FORGIVEN).div_euclid(CALL).max(0);
        let account = &mut self.accounts[KEYS[key].0];
        let tier = account.effective(self.now);
        let (units, used, key_units) = (account.units, account.used, self.keys[key].units.map(|key| key.0));
        let own = key_units.map_or(i64::MAX, whole);
        let granted = i64::from(calls).min(own).min(whole(units));
        let counts = counted && tier >= usize::try_from(need).unwrap_or(usize::MAX);
        let passed = if counts { granted.min((TIERS[tier].3 - used).max(0)) } else { 0 };
        account.units -= granted * CALL;
        account.used += passed;
        if let Some((units, _)) = &mut self.keys[key].units {
            *units -= granted * CALL;
        }
        Some((granted, passed, units, used, key_units))
    }
}

impl Account {
    fn effective(&self, now: i64) -> usize {
        if self.paid_until.is_none_or(|until| until > now) { self.tier } else { 0 }
    }
}

fn instant(microseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(microseconds).unwrap_or_default()
}

fn month(microseconds: i64) -> (i32, u32) {
    let at = instant(microseconds);
    (at.year(), at.month())
}

/// The last second of the month.
fn month_end(microseconds: i64) -> i64 {
    let first = instant(microseconds).date_naive().with_day(1).unwrap_or_default() + Months::new(1);
    first.and_time(NaiveTime::MIN).and_utc().timestamp_micros() - 1_000_000
}

/// The statement, and the rows it works on.
struct Store {
    client: Client,
    admit: Statement,
}

impl Store {
    async fn new(app: &TestApp) -> Result<Store> {
        let client = app.servers().postgres.connect(app.database()).await?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/queries/access/admit.sql");
        let text = std::fs::read_to_string(path)?;
        ensure!(text.matches("clock_timestamp()").count() > 3, "the statement reads the clock otherwise");
        client.batch_execute("select set_config('test.now', now()::text, false)").await?;
        for (tier, rate, burst, quota) in TIERS {
            let change = "update accounts.tiers set rate_per_minute = $2, burst = $3, monthly_quota = $4 where tier = $1";
            client.execute(change, &[&tier, &i32::try_from(rate)?, &i32::try_from(burst)?, &quota]).await?;
        }
        let admit = client
            .prepare(&text.replace("clock_timestamp()", "current_setting('test.now')::timestamptz"))
            .await?;
        Ok(Store { client, admit })
    }

    /// Two new accounts with the keys.
    async fn reset(&self) -> Result<()> {
        let clear = "truncate accounts.api_keys; update accounts.accounts set deleted_at = now() where deleted_at is null; \
                     insert into accounts.accounts (email) values ('0@example.com'), ('1@example.com')";
        self.client.batch_execute(clear).await?;
        for (number, (account, rate)) in KEYS.iter().enumerate() {
            let rate = rate.map(i32::try_from).transpose()?;
            self.client
                .execute(
                    "insert into accounts.api_keys (account_id, hash, name, last_four, rate_per_minute) \
                     select id, $2, 'k', '0000', $3 from accounts.accounts where email = $1 and deleted_at is null",
                    &[&format!("{account}@example.com"), &hash(number), &rate],
                )
                .await?;
        }
        let start =
            "update accounts.limiter set at = $1, month = date_trunc('month', $1 at time zone 'utc')::date";
        self.client.execute(start, &[&instant(START)]).await?;
        self.clock(START).await
    }

    async fn clock(&self, now: i64) -> Result<()> {
        let text = instant(now).to_rfc3339();
        self.client.execute("select set_config('test.now', $1, false)", &[&text]).await?;
        Ok(())
    }

    async fn account(
        &self,
        account: usize,
        change: &str,
        value: &(dyn tokio_postgres::types::ToSql + Sync),
    ) -> Result<()> {
        let statement =
            format!("update accounts.accounts set {change} where email = $1 and deleted_at is null");
        self.client.execute(&statement, &[&format!("{account}@example.com"), value]).await?;
        Ok(())
    }

    async fn decide(&self, groups: &[(usize, i16, bool, i32)]) -> Result<Vec<Option<Decision>>> {
        let hashes: Vec<Vec<u8>> = groups.iter().map(|group| hash(group.0)).collect();
        let needs: Vec<i16> = groups.iter().map(|group| group.1).collect();
        let counted: Vec<bool> = groups.iter().map(|group| group.2).collect();
        let calls: Vec<i32> = groups.iter().map(|group| group.3).collect();
        let rows = self.client.query(&self.admit, &[&hashes, &needs, &counted, &calls]).await?;
        let mut decisions = vec![None; groups.len()];
        for row in rows {
            let place = usize::try_from(row.try_get::<_, i64>("place")? - 1)?;
            decisions[place] = Some((
                i64::from(row.try_get::<_, i32>("granted")?),
                i64::from(row.try_get::<_, i32>("passed")?),
                units(row.try_get("tokens")?),
                row.try_get("used")?,
                row.try_get::<_, Option<f64>>("key_tokens")?.map(units),
            ));
        }
        Ok(decisions)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "far below 2^53")]
fn units(tokens: f64) -> i64 {
    (tokens * CALL as f64).round() as i64
}

fn hash(number: usize) -> Vec<u8> {
    vec![u8::try_from(number).unwrap_or(u8::MAX); 32]
}

async fn agree(store: &Store, steps: &[Step]) -> Result<()> {
    store.reset().await?;
    let mut model = Model::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Clock(milliseconds) => model.now += milliseconds * 1_000,
            Step::MonthEnd => model.now = month_end(model.now),
            Step::Tier(account, tier) => {
                model.accounts[*account].tier = *tier;
                store.account(*account, "tier = $2", &TIERS[*tier].0).await?;
            }
            Step::PaidFor(account, seconds) => {
                let until = model.now + seconds * 1_000_000;
                model.accounts[*account].paid_until = Some(until);
                store.account(*account, "paid_until = $2", &instant(until)).await?;
            }
            Step::Toggle(key) => {
                model.keys[*key].deleted = !model.keys[*key].deleted;
                let change =
                    "update accounts.api_keys set revoked_at = case when $2 then now() end where hash = $1";
                store.client.execute(change, &[&hash(*key), &model.keys[*key].deleted]).await?;
            }
            Step::Calls(groups) => {
                store.clock(model.now).await?;
                let (decided, expected) = (store.decide(groups).await?, model.decide(groups));
                ensure!(
                    decided == expected,
                    "step {number}: {groups:?}\n decided {decided:?}\nexpected {expected:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn the_statement_decides_as_the_rules_say() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let (store, _app) = runtime.block_on(async {
        let app = TestApp::start().await?;
        anyhow::Ok((Store::new(&app).await?, app))
    })?;
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    runner
        .run(&steps(), |steps| {
            runtime.block_on(agree(&store, &steps)).map_err(|error| TestCaseError::fail(format!("{error:#}")))
        })
        .map_err(|failure| anyhow::anyhow!("{failure}"))
        .context("the statement and the model differ")
}
