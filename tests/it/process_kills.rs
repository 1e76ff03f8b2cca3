//! Processes killed at every step of their work. After each kill, the stored facts equal the log up to the checkpoint.
//! The final tables equal those of an undisturbed load.
//!
//! `KILLS_SEED` repeats a run with the printed seed. `KILLS_RUNS` sets the number of runs of the long test.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Daemon, Program, Signal, TestApp, eventually, number_variable};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::log_copies::messages;
use crate::reference_projection::ReferenceProjection;
use crate::replay::digest;
pub(crate) use market::Market;
use market::poison;

mod market;

const PATIENCE: Duration = Duration::from_secs(120);
const RUN: [&str; 2] = ["run", "--until-caught-up"];
/// Exit code that a shell reports for a process killed by SIGKILL.
const KILLED: i32 = 137;

/// Returns the names of all failpoints that begin with `prefix`, from the `failpoint!` calls in the source code. At a
/// failpoint, a process can be killed.
pub(crate) fn failpoints(prefix: &str) -> Result<Vec<String>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace")?;
    let mut found = BTreeSet::new();
    for folder in ["ingest/src", "projector/src"] {
        collect_failpoints(&workspace.join(folder), &mut found)?;
    }
    found.retain(|name| name.starts_with(prefix));
    ensure!(!found.is_empty(), "no failpoint begins with {prefix}");
    Ok(found.into_iter().collect())
}

fn collect_failpoints(folder: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_failpoints(&path, found)?;
        } else {
            let text = std::fs::read_to_string(path)?;
            let names = text.split("failpoint!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            found.extend(names.map(str::to_owned));
        }
    }
    Ok(())
}

/// Runs a program that kills itself at the `passing`-th pass of the failpoint `step`. Returns `false` if the program
/// ends successfully before this pass.
pub(crate) async fn killed_at(
    app: &TestApp,
    program: Program,
    arguments: &[&str],
    step: &str,
    passing: u32,
) -> Result<bool> {
    let armed = format!("{step}:{passing}:KILL");
    let output = app.run(program, arguments, &[("FAILPOINT", &armed)]).await?;
    if output.code == KILLED {
        return Ok(true);
    }
    output.success().with_context(|| format!("at {armed}"))?;
    Ok(false)
}

/// Loads a piece of the market. With `killed`, first runs an attempt that may be killed at a failpoint. `killed` has
/// the failpoint's name and the number of the pass. Returns `true` if the first attempt was killed.
async fn load(app: &TestApp, market: &Market, piece: usize, killed: Option<(&str, u32)>) -> Result<bool> {
    let arguments = market.load(app, piece)?;
    let arguments = arguments.each_ref().map(String::as_str);
    let died = match killed {
        Some((step, passing)) => killed_at(app, Program::Ingest, &arguments, step, passing).await?,
        None => false,
    };
    app.ingest(&arguments).await?.success()?;
    poison(app, piece).await?;
    Ok(died)
}

/// Applies the rest of the log. The log and the tables must equal those of an undisturbed load.
async fn converges(app: &TestApp, market: &Market) -> Result<()> {
    app.catch_up().await?;
    let checkpoint = ReferenceProjection::check(app, 1).await?;
    let log = messages(app).await?;
    ensure!(checkpoint == i64::try_from(log.len())?, "applied to {checkpoint} of {}", log.len());
    // `ingest verify` reports the poison messages as unreadable, but no batch of a load is missing.
    let verified = app.ingest(&["verify", "--check-only", "--json"]).await?.json()?;
    let none = |what: &str| verified[what].as_array().is_some_and(Vec::is_empty);
    ensure!(none("incomplete") && none("interrupted"), "{verified}");

    let undisturbed = TestApp::start().await?;
    market.load_all(&undisturbed, 0..market.len()).await?;
    undisturbed.catch_up().await?;
    let expected = messages(&undisturbed).await?;
    ensure!(
        ReferenceProjection::of(&log)?.batch_ids() == ReferenceProjection::of(&expected)?.batch_ids(),
        "the log holds other batches"
    );
    ensure!(log.len() == expected.len(), "{} messages instead of {}", log.len(), expected.len());
    let (found, wanted) = (digest(app).await?, digest(&undisturbed).await?);
    ensure!(found == wanted, "the tables differ: {found:?} {wanted:?}");
    Ok(())
}

#[tokio::test]
async fn killed_at_every_step_a_load_converges_to_what_the_log_says() -> Result<()> {
    let (ingest, projector) = (failpoints("ingest.")?, failpoints("projector.")?);
    let market = Market::new(1, ingest.len() + projector.len() + 1);
    let app = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "1").start().await?;
    let (mut piece, mut checkpoint) = (0, 0);
    let mut checked = async |step: &str| {
        let now = ReferenceProjection::check(&app, 1).await.with_context(|| format!("killed at {step}"))?;
        ensure!(now >= checkpoint, "killed at {step}, the checkpoint went from {checkpoint} to {now}");
        checkpoint = now;
        Ok(())
    };
    for step in &projector {
        load(&app, &market, piece, None).await?;
        ensure!(killed_at(&app, Program::Projector, &RUN, step, 1).await?, "{step} was not reached");
        checked(step).await?;
        piece += 1;
    }
    for step in &ingest {
        ensure!(load(&app, &market, piece, Some((step, 1))).await?, "{step} was not reached");
        piece += 1;
    }
    load(&app, &market, piece, None).await?;
    converges(&app, &market).await
}

/// Loads a market and kills the projector and `ingest` at random failpoints. The seed determines the market, the
/// failpoints and the batch size.
async fn killed_at_random(seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let market = Market::new(seed, random.random_range(3..=8));
    let bytes = ["1", "3000", "33554432"][random.random_range(0..3)];
    let app = TestApp::builder()
        .env("PROJECTOR_LEASE_SECONDS", "1")
        .env("PROJECTOR_BATCH_BYTES", bytes)
        .start()
        .await?;
    let (ingest, projector) = (failpoints("ingest.")?, failpoints("projector.")?);
    let mut checkpoint = 0;
    for piece in 0..market.len() {
        let step = &projector[random.random_range(0..projector.len())];
        let armed = format!("{step}:{}:KILL", random.random_range(1..=4));
        let mut live = app.spawn_with(Program::Projector, &["run"], &[("FAILPOINT", &armed)]).await?;
        let step = &ingest[random.random_range(0..ingest.len())];
        load(&app, &market, piece, Some((step, random.random_range(1..=3)))).await?;
        // If the projector does not reach its failpoint, it is killed at a random time.
        let _ = live.wait(Duration::from_millis(random.random_range(0..2_000))).await;
        live.kill9()?;
        let now = ReferenceProjection::check(&app, 1)
            .await
            .with_context(|| format!("piece {piece}, {armed}, {step}"))?;
        ensure!(now >= checkpoint, "the checkpoint went from {checkpoint} to {now}");
        checkpoint = now;
    }
    converges(&app, &market).await
}

async fn killed_at_random_again(first: u64, runs: u64) -> Result<()> {
    for seed in first..first + runs {
        killed_at_random(seed).await.with_context(|| format!("repeat with KILLS_SEED={seed}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn killed_at_random_steps_a_load_converges_to_what_the_log_says() -> Result<()> {
    killed_at_random_again(
        number_variable("KILLS_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000)),
        1,
    )
    .await
}

#[tokio::test]
#[ignore = "forty runs of random kills, about five minutes"]
async fn killed_at_random_steps_many_times() -> Result<()> {
    let first = number_variable("KILLS_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    killed_at_random_again(first, number_variable("KILLS_RUNS").unwrap_or(40)).await
}

/// Waits until the kernel reports that SIGSTOP has stopped the process.
pub(crate) async fn stopped(process: &Daemon) -> Result<()> {
    eventually(PATIENCE, async || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid()))?;
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        ensure!(state == Some('T'), "it goes on: {stat}");
        Ok(())
    })
    .await
}

/// Only the epoch (the number of the lease) can prevent the write of the stopped projector. The next renewal of its
/// lease is twenty seconds away.
#[tokio::test]
async fn a_projector_stopped_with_a_batch_in_its_hands_does_not_write_it_after_another_took_over()
-> Result<()> {
    let app = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "60").start().await?;
    let market = Market::new(2, 3);
    market.load_all(&app, 0..1).await?;
    let armed = [("FAILPOINT", "projector.read:1:STOP")];
    let mut old = app.spawn_with(Program::Projector, &["run"], &armed).await?;
    stopped(&old).await?;
    // The lease ends as if it had not been renewed for a minute.
    app.sql("update control.fact_sets set lease_until = null", &[]).await?;
    market.load_all(&app, 1..2).await?;
    app.catch_up().await?;
    let applied = ReferenceProjection::check(&app, 1).await?;
    ensure!(applied == i64::try_from(messages(&app).await?.len())?, "applied to {applied}");

    old.signal(Signal::CONT)?;
    eventually(PATIENCE, async || {
        let now: i64 = app.sql_value("select checkpoint from control.fact_sets where name = 'facts'").await?;
        assert_eq!(now, applied, "the checkpoint moved without anything new in the log");
        ensure!(old.log().contains("lease on fact set facts lost"), "{}", old.log_tail(5));
        Ok(())
    })
    .await?;
    market.load_all(&app, 2..3).await?;
    eventually(PATIENCE, async || {
        let end = i64::try_from(messages(&app).await?.len())?;
        let now = ReferenceProjection::check(&app, 1).await?;
        ensure!(now == end, "applied to {now} of {end}");
        Ok(())
    })
    .await
}
