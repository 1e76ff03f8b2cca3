//! Random sequences of loads, and of changes of their states: held, released, undone. At the end, all tables equal those
//! of a log that has only the visible runs, and those of rebuilds.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use harness::{TestApp, number_variable};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use serde_json::Value;

use super::{RandomHistory, SOURCES, STEPS, equals_rebuilds, load_files, name_of, text_of};
use crate::undo;

/// Completed run.
struct LoadedRun {
    run: String,
    source: String,
    files: Vec<String>,
    /// `visible`, `held` or `excluded`.
    state: String,
    /// Reason of the last change of the state; empty without a change.
    reason: String,
}

/// Completed runs in log order.
async fn loaded_runs(app: &TestApp) -> Result<Vec<LoadedRun>> {
    let listed = app.ingest(&["runs", "--json", "--limit", "1000"]).await?.success()?.stdout;
    let runs = listed.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let completed = runs.iter().filter(|run| run["state"] == "completed");
    Ok(completed
        .map(|run| LoadedRun {
            run: text(&run["run"]),
            source: text(&run["source"]),
            files: run["files"].as_array().into_iter().flatten().map(text).collect(),
            state: text(&run["visibility"]),
            reason: text(&run["change"]["reason"]),
        })
        .collect())
}

/// Changes the state of a random run.
pub(crate) async fn change_random_run(app: &TestApp, random: &mut StdRng) -> Result<()> {
    change_state(app, random, &mut BTreeMap::new()).await
}

/// Changes the state of a random run. `undos` contains the id of the last undo of each run.
async fn change_state(
    app: &TestApp,
    random: &mut StdRng,
    undos: &mut BTreeMap<String, String>,
) -> Result<()> {
    let runs = loaded_runs(app).await?;
    let Some(LoadedRun { run, state, .. }) = runs.choose(random) else { return Ok(()) };
    let (undo, release) = (["undo", run, "--json"], ["release", run, "--json"]);
    match (state.as_str(), random.random_range(0..4)) {
        ("visible", _) | ("held", 0) => {
            let undone = app.ingest(&undo).await?.success()?.json()?;
            undos.insert(run.clone(), undone["undo"].as_str().context("an undo has an id")?.to_owned());
        }
        // Two operators at the same time. One of their commands may come too late.
        ("held", 1) => {
            let both = tokio::try_join!(app.ingest(&undo), app.ingest(&release))?;
            ensure!(both.0.code == 0 || both.1.code == 0, "{} {}", both.0.stderr, both.1.stderr);
        }
        ("excluded", 0 | 1) if undos.contains_key(run) => {
            app.ingest(&["undo", &undos[run]]).await?.success()?;
        }
        _ => drop(app.ingest(&release).await?.success()?),
    }
    Ok(())
}

/// File of a load.
struct FeedFile {
    name: String,
    source: &'static str,
    text: String,
}

impl FeedFile {
    /// Rows of a session or news. Some rows of an earlier load are repeated, with the same content in another batch.
    fn random(step: usize, history: &mut RandomHistory, earlier: &[Self]) -> Self {
        let mut rows = match history.random.random_bool(0.4) {
            true => history.next_day(),
            false => (0..3).flat_map(|_| history.news()).collect(),
        };
        rows.push(history.reference_row());
        let repeated =
            earlier.choose(&mut history.random).into_iter().flat_map(|file| file.text.lines().take(2));
        let text = text_of(&rows) + &repeated.map(|line| format!("{line}\n")).collect::<String>();
        let source = SOURCES.choose(&mut history.random).copied().unwrap_or("left");
        Self { name: name_of(step), source, text }
    }
}

/// Loads new files or files of earlier loads as one run. The run is visible, held, or judged by the gate, which needs a
/// projector.
async fn load_run(
    app: &TestApp,
    history: &mut RandomHistory,
    is_live: bool,
    files: &[&FeedFile],
) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let options = [&[][..], &["--stage"], &["--gate"], &["--gate"]];
    let options =
        options[..if is_live { 4 } else { 2 }].choose(&mut history.random).copied().unwrap_or_default();
    let files: Vec<(&str, &str)> =
        files.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    load_files(app, first.source, &files, options).await
}

/// Without these limits, the gate releases about half of the loads.
async fn lift_some_limits(app: &TestApp) -> Result<()> {
    for source in SOURCES {
        for expectation in ["coverage", "session", "replaced"] {
            app.projector(&["expect", "set", source, "price", expectation, "off"]).await?.success()?;
        }
    }
    Ok(())
}

/// Loads of two sources and all kinds of rows, with corrections, retractions, renames and mergers. Their runs are held,
/// released by the gate or by an operator, undone, and loaded again. Returns the runs.
async fn changed_states(seed: u64) -> Result<Vec<LoadedRun>> {
    let mut history = RandomHistory::new(seed);
    let memory = ["0", "1000000"].choose(&mut history.random).copied().unwrap_or("0");
    let builder = TestApp::builder().env("PROJECTOR_LEASE_SECONDS", "1").env("PROJECTOR_MEMORY", memory);
    let app = builder.start().await?;
    if history.random.random_bool(0.5) {
        lift_some_limits(&app).await?;
    }
    let mut live = match history.random.random_bool(0.7) {
        true => Some(app.start_projector().await?),
        false => None,
    };
    let (mut files, mut undos) = (Vec::<FeedFile>::new(), BTreeMap::new());
    for step in 0..STEPS {
        match history.random.random_range(0..12) {
            0..6 => {
                files.push(FeedFile::random(step, &mut history, &files));
                let new: Vec<&FeedFile> = files.last().into_iter().collect();
                load_run(&app, &mut history, live.is_some(), &new).await?;
            }
            6..9 => change_state(&app, &mut history.random, &mut undos).await?,
            // One file or two files of a source, again.
            9 | 10 => {
                let mut again: Vec<&FeedFile> = files.iter().collect();
                again.shuffle(&mut history.random);
                let source = again.first().map(|file| file.source);
                again.retain(|file| Some(file.source) == source);
                again.truncate(history.random.random_range(1..=2));
                load_run(&app, &mut history, live.is_some(), &again).await?;
            }
            _ => match live.take() {
                Some(mut running) => drop(running.kill9()?),
                None => live = Some(app.start_projector().await?),
            },
        }
        if live.is_none() && history.random.random_bool(0.4) {
            app.catch_up().await?;
        }
    }
    drop(live);
    let found = undo::tables(&app).await?;
    let (runs, expected) = (loaded_runs(&app).await?, TestApp::start().await?);
    for run in runs.iter().filter(|run| run.state == "visible") {
        // The order of the files is part of the ids of their holdings.
        let of_run = run.files.iter().flat_map(|name| files.iter().find(|file| file.name == *name));
        let of_run: Vec<(&str, &str)> = of_run.map(|file| (file.name.as_str(), file.text.as_str())).collect();
        load_files(&expected, &run.source, &of_run, &[]).await?;
    }
    undo::equal_tables(&found, &undo::tables(&expected).await?, "only the visible runs count")?;
    equals_rebuilds(&app).await?;
    Ok(runs)
}

#[tokio::test]
async fn after_any_changes_of_state_the_tables_are_those_of_the_visible_runs() -> Result<()> {
    let first = number_variable("SEQUENCES_SEED").unwrap_or_else(|| rand::random_range(0..1_000_000));
    let histories = number_variable("SEQUENCES_RUNS").unwrap_or(3);
    let mut found = BTreeMap::<String, usize>::new();
    for seed in first..first + histories {
        for run in changed_states(seed).await.with_context(|| format!("repeat with SEQUENCES_SEED={seed}"))? {
            let verdict = match run.reason.as_str() {
                "gate: all expectations are met" => "released by the gate",
                reason if reason.starts_with("gate: cannot compare") => "not compared",
                reason if reason.starts_with("gate: ") => "held by the gate",
                _ => "other",
            };
            *found.entry(format!("{}, {verdict}", run.state)).or_default() += 1;
        }
    }
    eprintln!("last states of runs: {found:#?}");
    // A run without any event is visible, and has no verdict.
    let (runs, default) = (found.values().sum::<usize>(), found.get("visible, other").copied());
    ensure!(runs < 20 || default.unwrap_or_default() < runs, "no state was changed: {found:?}");
    for result in ["held", "excluded", "released by the gate", "held by the gate"] {
        let has_result = found.keys().any(|key| key.split(", ").any(|part| part == result));
        ensure!(histories < 20 || has_result, "no run was {result}: {found:?}");
    }
    Ok(())
}
