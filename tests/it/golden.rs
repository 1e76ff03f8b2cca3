//! Tests that load worked cases of the domain rules as feeds, and compare the API's answers with the expected values.
//!
//! All cases share one market. The cases of a date are loaded together, and the date becomes the market date. At the
//! end, every case is requested again as of its date.
//!
//! The cases in the fixtures test the bounds of each rule. The published cases are in a folder next to the workspace.

mod answers;
#[path = "../../schema/market/tests/golden_cases/compare.rs"]
mod compare;
mod feed;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, TestApp, eventually};
use serde_json::Value;

use answers::Answers;
use feed::{Case, FeedFile, SOURCE};

/// Current date of the service. No case has a later date.
const TODAY: &str = "2025-07-01";

const NOT_EXPRESSIBLE: [(&str, &str); 2] = [
    (
        "R25A",
        "a sector has the securities of the other cases too; `lists_by_rule` computes the sectors of a whole market",
    ),
    ("Z01", "it gives instants of the clock, which no feed sets; `today` is tested where the calendar is"),
];

fn cases(path: &Path) -> Result<Vec<Value>> {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(file["cases"].as_array().context("the file has no cases")?.clone())
}

#[tokio::test]
async fn every_bound_is_served() -> Result<()> {
    serve(&cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/market/domain-cases.json"))?).await
}

#[tokio::test]
async fn every_worked_case_is_served() -> Result<()> {
    let Some(path) = harness::golden() else { return Ok(()) };
    serve(&cases(&path)?).await
}

/// Loads the cases date by date, and compares every answer with the expected value.
async fn serve(cases: &[Value]) -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    let (mut by_date, mut left_out) = (BTreeMap::<String, Vec<Case>>::new(), Vec::new());
    for case in cases {
        let case = Case::new(case);
        match NOT_EXPRESSIBLE.iter().find(|(id, _)| *id == case.id) {
            Some((id, reason)) => left_out.push(format!("{id}: {reason}")),
            None => by_date.entry(case.as_of.clone()).or_default().push(case),
        }
    }
    eprintln!("not expressible as a feed: {}", left_out.join("; "));
    let (mut failures, mut api) = (Vec::new(), None);
    for (date, cases) in &by_date {
        load(&app, date, cases).await?;
        if api.is_none() {
            api = Some((app.api_serve().await?, app.key("professional").await?));
        }
        let Some((api, key)) = &api else { continue };
        arrived(api, date).await?;
        for case in cases {
            failures.extend(check(case, &Answers::new(&app, api, key, case, None)).await?);
        }
    }
    let Some((api, _)) = &api else { return Ok(()) };
    let key = app.key("professional").await?;
    for (date, cases) in &by_date {
        for case in cases {
            failures.extend(check(case, &Answers::new(&app, api, &key, case, Some(date))).await?);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Loads the cases of `date`, and a trading session that makes `date` the market date. Other sources are loaded after
/// [`SOURCE`], in the order of their rows, so the last one is the newest.
async fn load(app: &TestApp, date: &str, cases: &[Case]) -> Result<()> {
    let session = FeedFile::new(SOURCE, "session.csv".to_owned(), format!("date\n{date}\n"));
    let files: Vec<FeedFile> = std::iter::once(session).chain(cases.iter().flat_map(Case::files)).collect();
    let mut sources: Vec<&str> = Vec::new();
    for file in &files {
        if !sources.contains(&file.source.as_str()) {
            sources.push(&file.source);
        }
        let folder = app.folder().join(date).join(&file.source);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(&file.name), &file.text)?;
    }
    for source in sources {
        let folder = app.folder().join(date).join(source).display().to_string();
        let load = ["load", &folder, "--source", source, "--max-reject-percent", "100", "--today", TODAY];
        let loaded = app.ingest(&load).await?;
        ensure!([0, 1].contains(&loaded.code), "{date} {source}: {}\n{}", loaded.stdout, loaded.stderr);
    }
    app.catch_up().await
}

/// Waits until the API's market date is `date`.
async fn arrived(api: &Api, date: &str) -> Result<()> {
    eventually(Duration::from_secs(120), async || {
        let health = api.get("/v1/health", None).await?.json()?;
        let as_of = &health["data"]["components"]["projection"]["as_of"];
        ensure!(as_of == date, "the market is at {as_of}, not at {date}");
        Ok(())
    })
    .await
}

/// Returns a message for each failed expectation of a case. Some figures are served only for the current market date.
/// If the answers are as of a past date, these figures are skipped.
async fn check(case: &Case, answers: &Answers<'_>) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for (key, expected) in case.expected() {
        let Some(found) = answers.value(key).await.with_context(|| format!("{}: {key}", case.id))? else {
            continue;
        };
        if !compare::matches(key, expected, &found, case.tolerance()) {
            failures.push(format!("{} {}: {key} is {found}, expected {expected}", case.id, answers.when()));
        }
    }
    Ok(failures)
}
