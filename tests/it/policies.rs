//! Source policies, which rank the sources of each kind of row. At any time, all served rows follow the same policy. A
//! change of the policy takes effect with `--now` or with a new generation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use harness::{Program, TestApp, eventually, number_variable};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::generations::{PATIENCE, answer, policy, two_sources};

const SOURCES: [&str; 3] = ["left", "middle", "right"];
const KINDS: [&str; 2] = ["price", "dividend"];
const SYMBOLS: [&str; 6] = ["AAA", "BBB", "CCC", "DDD", "EEE", "FFF"];

/// Ranks of a policy. The key is a kind of row and a source. The source with the lowest rank is preferred.
type Ranks = BTreeMap<(String, String), i64>;

/// Starts an app with three sources. For each symbol, every source reports a different close and a different dividend.
async fn disagreeing() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    for (source, place) in SOURCES.iter().zip(1..) {
        let prices = SYMBOLS.map(|symbol| format!("{symbol},2024-06-28,{place}0\n")).concat();
        let dividends = SYMBOLS.map(|symbol| format!("{symbol},2024-06-14,0.{place}\n")).concat();
        for (name, text) in [
            ("prices", format!("symbol,date,close\n{prices}")),
            ("dividends", format!("symbol,ex_date,amount\n{dividends}")),
        ] {
            app.feed(&format!("{name}-{source}.csv"), text).source(source).load().await?;
        }
    }
    app.catch_up().await?;
    Ok(app)
}

/// Returns the policy of a generation, and the distinct pairs of close and dividend that it serves. One query reads
/// both.
async fn served(app: &TestApp, generation: i32) -> Result<(Ranks, BTreeSet<(String, String)>)> {
    let query = format!(
        "select v.policy::text as policy, trim_scale(q.price)::text as price, trim_scale(d.amount)::text as amount
         from read_g{generation}.version v
         cross join read_g{generation}.quotes q
         join read_g{generation}.dividends d on d.symbol = q.symbol and d.status <> 'projected'"
    );
    let rows = app.sql(&query, &[]).await?;
    ensure!(rows.len() == SYMBOLS.len(), "{} rows are served", rows.len());
    let policy: Value = serde_json::from_str(rows[0].try_get("policy")?)?;
    let word = |rule: &Value, name: &str| rule[name].as_str().unwrap_or_default().to_owned();
    let rules = policy.as_array().context("a policy")?.iter();
    let ranks = rules
        .map(|rule| ((word(rule, "kind"), word(rule, "source")), rule["rank"].as_i64().unwrap_or_default()));
    let seen = rows.iter().map(|row| Ok((row.try_get("price")?, row.try_get("amount")?)));
    Ok((ranks.collect(), seen.collect::<Result<_>>()?))
}

/// Returns the close and the dividend that every symbol must have under a policy.
fn folded(ranks: &Ranks) -> (String, String) {
    let place = |kind: &str| {
        let ranked = SOURCES.iter().zip(1..).map(|(source, place)| {
            (ranks.get(&(kind.to_owned(), (*source).to_owned())).copied().unwrap_or(i64::MAX), place)
        });
        ranked.min().map_or(0, |(_, place)| place)
    };
    (format!("{}0", place("price")), format!("0.{}", place("dividend")))
}

async fn check(app: &TestApp, generation: i32, applied: &Mutex<Vec<Ranks>>) -> Result<Ranks> {
    let (ranks, seen) = served(app, generation).await?;
    let expected = BTreeSet::from([folded(&ranks)]);
    ensure!(seen == expected, "under {ranks:?} every row is {expected:?}, but there are {seen:?}");
    let applied = applied.lock().map_err(|_| anyhow::anyhow!("a check failed"))?;
    ensure!(applied.contains(&ranks), "{ranks:?} was never asked for now");
    Ok(ranks)
}

struct Changes {
    app: Arc<TestApp>,
    random: StdRng,
    /// Policy after all changes, including those without `--now`.
    live: Ranks,
    applied: Arc<Mutex<Vec<Ranks>>>,
    step: i64,
}

impl Changes {
    async fn policy(&mut self, kind: &str, source: &str, now: bool) -> Result<()> {
        self.step += 1;
        let rank = if self.random.random_bool(0.5) { self.step } else { -self.step };
        self.live.insert((kind.to_owned(), source.to_owned()), rank);
        if now {
            self.applied.lock().map_err(|_| anyhow::anyhow!("a check failed"))?.push(self.live.clone());
        }
        let rank = format!("--rank={rank}");
        let arguments = ["policy", "set", kind, source, &rank];
        let taking: &[&str] = if now { &["--now"] } else { &[] };
        self.app.projector(&[&arguments, taking].concat()).await?.success()?;
        Ok(())
    }

    async fn event(&mut self) -> Result<()> {
        self.step += 1;
        let symbol = SYMBOLS.choose(&mut self.random).copied().unwrap_or("AAA");
        let row = json!({ "kind": "security", "symbol": symbol, "type": "stock", "name": format!("Name {}", self.step) });
        self.app.feed(&format!("named-{}.ndjson", self.step), format!("{row}\n")).load().await
    }
}

async fn random_changes(seed: u64) -> Result<()> {
    let app = Arc::new(disagreeing().await?);
    let applied = Arc::new(Mutex::new(Vec::new()));
    let random = StdRng::seed_from_u64(seed);
    let mut changes =
        Changes { app: Arc::clone(&app), random, live: Ranks::new(), applied: Arc::clone(&applied), step: 0 };
    for (kind, source) in KINDS.iter().flat_map(|kind| SOURCES.map(|source| (kind, source))) {
        changes.policy(kind, source, true).await?;
    }
    app.catch_up().await?;
    let projector = app.spawn(Program::Projector, &["run"]).await?;
    let watching = {
        let (app, applied) = (Arc::clone(&app), Arc::clone(&applied));
        tokio::spawn(async move {
            loop {
                if let Err(error) = check(&app, 1, &applied).await {
                    return error;
                }
            }
        })
    };
    for _ in 0..12 {
        let kind = KINDS.choose(&mut changes.random).copied().unwrap_or("price");
        let source = SOURCES.choose(&mut changes.random).copied().unwrap_or("left");
        match changes.random.random_range(0..4) {
            0 => changes.policy(kind, source, true).await?,
            1 => changes.policy(kind, source, false).await?,
            _ => changes.event().await?,
        }
        ensure!(!watching.is_finished(), "a check failed: {:?}", watching.await);
    }
    let newest =
        changes.applied.lock().ok().and_then(|applied| applied.last().cloned()).context("a policy")?;
    eventually(PATIENCE, async || {
        ensure!(check(&app, 1, &applied).await? == newest, "the newest policy is not served yet");
        Ok(())
    })
    .await?;
    watching.abort();
    drop(projector);

    // The next generation also has the changes without `--now`.
    changes.policy("price", "left", false).await?;
    answer(&app, &["rebuild"]).await?;
    let both = Mutex::new(vec![newest.clone(), changes.live.clone()]);
    assert_eq!(check(&app, 2, &both).await?, changes.live);
    assert_eq!(check(&app, 1, &both).await?, newest);
    answer(&app, &["promote", "2", "--accept-diff"]).await?;
    let listed = answer(&app, &["policy", "list"]).await?;
    assert!(
        listed.as_array().is_some_and(|lines| lines.iter().all(|line| line["standing"] == "served")),
        "{listed}"
    );
    Ok(())
}

#[tokio::test]
async fn whatever_changes_every_row_follows_one_policy() -> Result<()> {
    let seed = number_variable("POLICIES_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    random_changes(seed).await.with_context(|| format!("repeat with POLICIES_SEED={seed}"))
}

#[tokio::test]
async fn a_change_says_what_it_would_change_and_waits() -> Result<()> {
    let app = two_sources().await?;
    let price = "select price::text from read_g1.quotes";
    let set = ["policy", "set", "price", "right", "--rank", "1"];
    let dry = answer(&app, &[&set[..], &["--dry-run"]].concat()).await?;
    assert_eq!(dry, json!({ "securities": ["TWIN"], "applied": false, "dry_run": true }));
    assert_eq!(answer(&app, &["policy", "list"]).await?, json!([]));

    let held = app.projector(&set).await?.success()?;
    assert!(held.stdout.contains("would change 1 security: TWIN"), "{}", held.stdout);
    assert!(held.stdout.contains("projector rebuild, diff, promote"), "{}", held.stdout);
    assert_eq!(answer(&app, &["policy", "list"]).await?[0]["standing"], "waits");
    // An unrelated event derives TWIN again, but the waiting change is not applied.
    app.feed("prices-next.csv", "symbol,date,close\nNEXT,2024-06-28,7\nTWIN,2024-06-27,19\n")
        .source("left")
        .apply()
        .await?;
    assert_eq!(app.sql_value::<String>(&format!("{price} where symbol = 'TWIN'")).await?, "20");

    let again = answer(&app, &["policy", "set", "price", "right", "--rank", "1", "--now"]).await?;
    assert_eq!((&again["securities"], &again["applied"]), (&json!(["TWIN"]), &json!(true)));
    app.catch_up().await?;
    assert_eq!(app.sql_value::<String>(&format!("{price} where symbol = 'TWIN'")).await?, "10");
    assert_eq!(answer(&app, &["policy", "list"]).await?[0]["standing"], "served");
    Ok(())
}

#[tokio::test]
async fn a_change_that_touches_nothing_warns_and_an_unknown_source_is_refused() -> Result<()> {
    let app = two_sources().await?;
    let unknown = app.projector(&["policy", "set", "price", "rihgt", "--rank", "1"]).await?;
    assert!(unknown.code == 1 && unknown.stderr.contains("there are left, right"), "{}", unknown.stderr);
    let none = app.projector(&["policy", "set", "dividend", "right", "--rank", "1"]).await?;
    assert!(none.code == 1 && none.stderr.contains("no rows of kind dividend"), "{}", none.stderr);
    // This source is already the preferred one.
    let same = app.projector(&["policy", "set", "price", "left", "--rank", "1"]).await?.success()?;
    assert!(same.stderr.contains("no published row changes"), "{}", same.stderr);
    app.projector(&["policy", "set", "dividend", "later", "--rank", "1", "--unknown-ok"]).await?.success()?;
    let absent = app.projector(&["policy", "remove", "price", "right"]).await?;
    assert!(absent.code == 1 && absent.stderr.contains("not in the policy"), "{}", absent.stderr);
    Ok(())
}

#[tokio::test]
async fn a_generation_with_a_policy_of_its_own_refuses_a_change_now() -> Result<()> {
    let app = two_sources().await?;
    let policy = policy(app.folder(), "right")?;
    answer(&app, &["rebuild", "--policy", &policy]).await?;
    answer(&app, &["diff", "1", "2"]).await?;
    answer(&app, &["policy", "set", "price", "left", "--rank", "3", "--now"]).await?;
    let unseen = app.projector(&["promote", "2"]).await?;
    assert!(unseen.code == 1 && unseen.stderr.contains("projector diff 1 2"), "{}", unseen.stderr);
    answer(&app, &["promote", "2", "--accept-diff"]).await?;
    let refused = app.projector(&["policy", "set", "price", "left", "--rank", "1", "--now"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("it has its own policy"), "{}", refused.stderr);
    let ranks = "select rank from control.source_policy";
    assert_eq!(app.sql_value::<i32>(ranks).await?, 3);
    // The served tables were derived with the policy that is listed as served.
    let listed = answer(&app, &["policy", "list"]).await?;
    let standing = |source: &str| {
        let lines = listed.as_array().into_iter().flatten();
        lines.into_iter().find(|line| line["source"] == source).map(|line| line["standing"].clone())
    };
    assert_eq!(
        (standing("left"), standing("right")),
        (Some(json!("waits")), Some(json!("ends"))),
        "{listed}"
    );
    Ok(())
}
