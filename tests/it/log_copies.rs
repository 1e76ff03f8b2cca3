//! The commands `ingest verify`, `resume`, `export` and `import`, which check, complete and copy the log.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_nats::jetstream;
use event_log::record_batch::Envelope;
use harness::{Program, TestApp, eventually, generate_market};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn market(app: &TestApp, symbols: &str, years: &str) -> Result<String> {
    let out = app.folder().join("market").display().to_string();
    generate_market(&out, &format!("--symbols {symbols} --years {years} --until 2024-06-28"))?;
    Ok(out)
}

/// Returns every message of the app's log as a triple of kind, headers and payload. The kind is the last part of the
/// subject, for example `price`.
pub(crate) async fn messages(app: &TestApp) -> Result<Vec<(String, async_nats::HeaderMap, Vec<u8>)>> {
    let stream = jetstream::new(app.nats().await?).get_stream(&app.endpoints().stream).await?;
    let mut messages = Vec::new();
    for sequence in 1..=stream.cached_info().state.last_sequence {
        let message = stream.get_raw_message(sequence).await?;
        let kind = message.subject.rsplit('.').next().context("a kind")?.to_owned();
        messages.push((kind, message.headers, message.payload.to_vec()));
    }
    Ok(messages)
}

async fn copy_without(from: &TestApp, to: &TestApp, lost: &[usize]) -> Result<()> {
    to.create_stream().await?;
    let context = jetstream::new(to.nats().await?);
    for (index, (kind, headers, payload)) in messages(from).await?.into_iter().enumerate() {
        if !lost.contains(&index) {
            let subject = format!("{}.{kind}", to.endpoints().subject_prefix);
            context.publish_with_headers(subject, headers, payload.into()).await?.await?;
        }
    }
    Ok(())
}

pub(crate) async fn verify(app: &TestApp, more: &[&str]) -> Result<(i32, Value)> {
    let output = app.ingest(&[&["verify", "--json"], more].concat()).await?;
    Ok((output.code, output.json().with_context(|| output.stderr.clone())?))
}

#[tokio::test]
async fn verify_finds_lost_batches_and_publishes_them_again() -> Result<()> {
    let (whole, damaged) = (TestApp::start().await?, TestApp::start().await?);
    let feed = market(&whole, "30", "3")?;
    whole.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    assert_eq!(verify(&whole, &[]).await?.0, 0);

    let all = messages(&whole).await?;
    let kinds: Vec<&str> = all.iter().map(|(kind, ..)| kind.as_str()).collect();
    let lost: Vec<usize> = ["price", "dividend"]
        .iter()
        .filter_map(|wanted| kinds.iter().position(|kind| kind == wanted))
        .collect();
    let mut batches = 0;
    for index in &lost {
        batches += Envelope::read_all(Some(&all[*index].1))?.len();
    }
    copy_without(&whole, &damaged, &lost).await?;
    let (code, found) = verify(&damaged, &["--check-only"]).await?;
    assert_eq!((code, &found["incomplete"][0]["missing"]), (1, &json!(batches)), "{found}");
    let (code, found) = verify(&damaged, &[]).await?;
    assert_eq!((code, &found["incomplete"][0]["published_again"]), (0, &json!(batches)), "{found}");
    assert_eq!(verify(&damaged, &["--check-only"]).await?.0, 0);
    Ok(())
}

#[tokio::test]
async fn verify_says_which_file_it_needs_when_it_is_gone() -> Result<()> {
    let (whole, damaged) = (TestApp::start().await?, TestApp::start().await?);
    let path = whole.folder().join("prices.csv");
    std::fs::write(&path, "symbol,date,close\nGONE,2024-06-28,7\n")?;
    let shown = path.display().to_string();
    whole.ingest(&["load", &shown, "--source", "test", "--today", "2024-06-30"]).await?.success()?;
    let kinds: Vec<String> = messages(&whole).await?.into_iter().map(|(kind, ..)| kind).collect();
    let lost = kinds.iter().position(|kind| kind == "price").context("a price batch")?;
    copy_without(&whole, &damaged, &[lost]).await?;
    std::fs::remove_file(&path)?;
    let (code, found) = verify(&damaged, &[]).await?;
    assert_eq!((code, &found["whole"]), (1, &json!(false)));
    assert!(
        found["incomplete"][0]["reason"].as_str().is_some_and(|reason| reason.contains("prices.csv")),
        "{found}"
    );
    Ok(())
}

#[tokio::test]
async fn an_interrupted_run_is_named_and_resumed_from_its_manifest() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = market(&app, "60", "10")?;
    let mut load = app.spawn(Program::Ingest, &["load", &feed, "--source", "test"]).await?;
    let started = eventually(PATIENCE, async || {
        let runs = app.ingest(&["runs", "--json"]).await?.success()?.stdout;
        ensure!(!runs.is_empty(), "no run yet");
        Ok(())
    });
    started.await?;
    load.kill9()?;
    let completed = async || {
        let runs = app.ingest(&["runs", "--json"]).await?.success()?.stdout;
        anyhow::Ok(runs.contains("\"state\":\"completed\""))
    };
    if !completed().await? {
        let (code, found) = verify(&app, &[]).await?;
        assert_eq!((code, found["interrupted"].as_array().map(Vec::len)), (1, Some(1)), "{found}");
    }
    app.ingest(&["resume"]).await?.success()?;
    assert!(completed().await?);
    let (code, found) = verify(&app, &[]).await?;
    assert_eq!(code, 0, "{found}");
    Ok(())
}

#[tokio::test]
async fn an_exported_log_is_imported_whole_with_its_identity() -> Result<()> {
    let (original, copy) = (TestApp::start().await?, TestApp::start().await?);
    let feed = market(&original, "30", "3")?;
    original.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    let file = original.folder().join("log.export").display().to_string();
    let exported = original.ingest(&["export", &file, "--json"]).await?.success()?.json()?;
    let again = original.ingest(&["export", &file]).await?;
    assert_eq!(again.code, 2, "an export never overwrites: {}", again.stderr);

    let damaged = copy.folder().join("damaged.export");
    let bytes = std::fs::read(&file)?;
    std::fs::write(&damaged, &bytes[..bytes.len() / 2])?;
    let refused = copy.ingest(&["import", &damaged.display().to_string()]).await?;
    assert!(refused.code == 2 && refused.stderr.contains("not a whole export"), "{}", refused.stderr);

    for there_before in [json!(0), exported["messages"].clone()] {
        let imported = copy.ingest(&["import", &file, "--json"]).await?.success()?.json()?;
        assert_eq!(
            (&imported["messages"], &imported["there_before"]),
            (&exported["messages"], &there_before)
        );
    }
    let plain = |messages: Vec<(String, async_nats::HeaderMap, Vec<u8>)>| {
        messages
            .into_iter()
            .map(|(kind, headers, payload)| {
                (kind, headers.get("Nats-Msg-Id").map(ToString::to_string), payload)
            })
            .collect::<Vec<_>>()
    };
    assert!(plain(messages(&original).await?) == plain(messages(&copy).await?), "the copy differs");
    // A projector with facts from the original log continues with the copy, because the copy has the same identity.
    original.catch_up().await?;
    let moved = [
        ("NATS_STREAM", copy.endpoints().stream.as_str()),
        ("NATS_SUBJECT_PREFIX", copy.endpoints().subject_prefix.as_str()),
    ];
    original.run(Program::Projector, &["run", "--until-caught-up"], &moved).await?.success()?;
    Ok(())
}

#[tokio::test]
async fn a_log_made_again_halts_the_projector_with_what_to_do() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = market(&app, "10", "1")?;
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    app.catch_up().await?;
    app.servers().nats.delete_stream(&app.endpoints().stream).await?;
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    let halted = app.projector(&["run", "--until-caught-up"]).await?;
    assert_eq!(halted.code, 2, "{}", halted.stderr);
    assert!(
        halted.stderr.contains("deleted and created again") && halted.stderr.contains("ingest import"),
        "{}",
        halted.stderr
    );
    let status = app.projector(&["status", "--json"]).await?;
    assert!(status.stdout.contains("created again"), "{}", status.stdout);
    Ok(())
}

#[tokio::test]
async fn a_reader_that_has_gone_ends_a_command_quietly() -> Result<()> {
    let app = TestApp::start().await?;
    app.ingest(&["load", &market(&app, "3", "1")?, "--source", "test"]).await?.success()?;
    let commands: [(Program, &[&str]); 5] = [
        (Program::Ingest, &["runs"]),
        (Program::Projector, &["status"]),
        (Program::Projector, &["list"]),
        (Program::Projector, &["dead-letters", "list", "--json"]),
        (Program::Api, &["account", "list"]),
    ];
    for (program, arguments) in commands {
        let ended = app.run_with_unread_output(program, arguments).await?;
        assert!(ended.code == 0 && !ended.stderr.contains("panicked"), "{program} {arguments:?}: {ended:?}");
    }
    Ok(())
}
