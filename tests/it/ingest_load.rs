//! Tests of `ingest load`: messages in the log, rejected rows, resumption after a kill, and repeated loads.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use harness::{Program, Signal, TestApp, fixture, generate_market};
use serde_json::{Value, json};

const TODAY: [&str; 2] = ["--today", "2024-03-15"];

/// Loads files. Returns the exit code and the JSON summary.
async fn load(app: &TestApp, paths: &[&str], more: &[&str]) -> Result<(i32, Value)> {
    let arguments = [&["load"], paths, &["--source", "test", "--json"], &TODAY, more].concat();
    let output = app.ingest(&arguments).await?;
    let summary = output.json().with_context(|| output.stderr.clone())?;
    Ok((output.code, summary))
}

async fn lines(app: &TestApp, arguments: &[&str]) -> Result<Vec<Value>> {
    let output = app.ingest(arguments).await?.success()?;
    output.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns all batches of the log except the manifests of runs.
async fn batches(app: &TestApp) -> Result<Vec<Value>> {
    let runs = lines(app, &["runs", "--json"]).await?;
    let last = runs.iter().filter_map(|run| run["sequence"].as_u64()).max().unwrap_or_default();
    let mut batches = Vec::new();
    for sequence in 1..=last {
        let shown = app.ingest(&["show", &sequence.to_string()]).await?.success()?.json()?;
        let shown = shown.as_array().cloned().unwrap_or_else(|| vec![shown]);
        batches.extend(shown.into_iter().filter(|batch| batch["kind"] != "run"));
    }
    Ok(batches)
}

fn market(app: &TestApp, symbols: &str, years: &str) -> Result<String> {
    let out = app.folder().join("market").display().to_string();
    generate_market(&out, &format!("--symbols {symbols} --years {years} --until 2024-03-15"))?;
    Ok(out)
}

#[tokio::test]
async fn every_kind_of_both_encodings_reaches_the_log_normalised() -> Result<()> {
    let app = TestApp::start().await?;
    let (code, summary) = load(&app, &[&fixture("feeds/kinds")], &[]).await?;
    assert_eq!((code, &summary["rejects_total"]), (0, &json!(0)), "{summary}");
    let expected = json!({
        "security": 3, "price": 4, "dividend": 3, "split": 1, "fundamentals": 1, "etf": 1, "holding": 2, "session": 1,
    });
    assert_eq!(summary["rows"], expected);
    let batches = batches(&app).await?;
    let of = |kind: &str| batches.iter().filter(|batch| batch["kind"] == kind).collect::<Vec<_>>();
    let dividend = &of("dividend")[0]["rows"][1];
    assert_eq!(dividend["record"]["symbol"], "VOD.L");
    assert_eq!(
        (&dividend["record"]["amount"], &dividend["record"]["currency"]),
        (&json!("0.045"), &json!("GBP"))
    );
    assert_eq!(dividend["record"].get("payment_date"), None);
    // The quote unit belongs to the security. Its prices are converted from pence to pounds when they are derived.
    let vodafone = &of("security")[0]["rows"][1]["record"];
    assert_eq!((&vodafone["currency"], &vodafone["quote_unit"]), (&json!("GBP"), &json!("GBX")));
    // The rows of one fund and date are one snapshot, even if they come from two files.
    assert_eq!(of("holding").len(), 1);
    assert_eq!(of("holding")[0]["rows"][0]["record"]["holdings"].as_array().map(Vec::len), Some(2));
    let prices = &of("price")[0]["rows"];
    assert_eq!(prices[0]["volume"], 9_856_700);
    assert_eq!((prices[2].get("open"), &prices[2]["close"]), (None, &json!("514.95")));
    Ok(())
}

#[tokio::test]
async fn rejected_rows_are_kept_in_the_log_with_their_reasons() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = fixture("feeds/rejects");
    let (code, summary) = load(&app, &[&feed], &[]).await?;
    assert_eq!((code, &summary["rejects_total"]), (1, &json!(3)), "{summary}");
    let run = summary["run"].as_str().unwrap_or_default();
    let rejects = lines(&app, &["rejects", "--json", "--run", run]).await?;
    let found: Vec<(&str, u64)> = rejects
        .iter()
        .filter_map(|reject| Some((reject["reason"].as_str()?, reject["line"].as_u64()?)))
        .collect();
    assert_eq!(found, [("bad_date", 6), ("intraday_row", 10), ("non_positive_close", 21)]);
    assert_eq!(
        (&rejects[0]["file"], &rejects[0]["row"]),
        (&json!("prices.csv"), &json!("KO,2024-02-30,58.00"))
    );
    assert_eq!(lines(&app, &["rejects", "--json", "--run", &run[..6]]).await?.len(), rejects.len());
    let unknown = app.ingest(&["rejects", "--run", "other"]).await?;
    assert!(unknown.code == 2 && unknown.stderr.contains("cannot find run other"), "{}", unknown.stderr);
    let (code, again) = load(&app, &[&feed], &[]).await?;
    assert_eq!(
        (code, &again["already_loaded"]),
        (1, &json!(true)),
        "the same command gives the same exit code"
    );
    Ok(())
}

#[tokio::test]
async fn a_file_with_too_many_rejects_is_refused_before_its_first_batch() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = fixture("feeds/rejects/prices.csv");
    let (code, summary) = load(&app, &[&feed], &["--max-reject-percent", "4"]).await?;
    assert_eq!(code, 2, "{summary}");
    assert_eq!((&summary["files"][0]["status"], &summary["frames"]), (&json!("refused"), &json!(0)));
    assert_eq!(batches(&app).await?.len(), 0);
    // In a load with a good file, only the file with too many rejects is refused. A load with a higher limit accepts
    // this file.
    let good = fixture("feeds/kinds/splits.csv");
    let (code, summary) = load(&app, &[&feed, &good], &["--max-reject-percent", "4"]).await?;
    assert_eq!((code, &summary["rows_total"]), (1, &json!(1)), "{summary}");
    let (code, summary) = load(&app, &[&feed, &good], &[]).await?;
    assert_eq!((code, &summary["frames"], &summary["frames_in_log"]), (1, &json!(2), &json!(1)), "{summary}");
    let (code, summary) = load(&app, &[&feed], &["--max-reject-percent", "1", "--no-precheck"]).await?;
    assert_eq!((code, &summary["already_loaded"]), (1, &json!(true)), "{summary}");
    Ok(())
}

#[tokio::test]
async fn a_batch_in_the_log_is_not_published_again_by_any_load() -> Result<()> {
    let app = TestApp::start().await?;
    let [prices, splits, etfs] =
        ["prices", "splits", "etfs"].map(|name| fixture(&format!("feeds/kinds/{name}.csv")));
    load(&app, &[&prices, &splits], &[]).await?;
    let (_, alone) = load(&app, &[&splits], &[]).await?;
    assert_eq!(alone["already_loaded"], true, "part of an earlier load: {alone}");
    let (_, more) = load(&app, &[&splits, &etfs], &[]).await?;
    assert_eq!((&more["frames"], &more["frames_in_log"]), (&json!(1), &json!(1)), "{more}");
    // A compressed copy in another folder counts as the same file.
    let copy = app.folder().join("prices.csv.zst");
    std::fs::write(&copy, packed(Path::new(&prices))?)?;
    let (_, copied) = load(&app, &[&copy.display().to_string()], &[]).await?;
    assert_eq!(copied["already_loaded"], true, "{copied}");
    assert_eq!(batches(&app).await?.len(), 3);
    Ok(())
}

/// Returns the content of a file as a zstd frame with one raw block. A raw block is not compressed, so no compressor is
/// needed.
fn packed(path: &Path) -> Result<Vec<u8>> {
    let content = std::fs::read(path)?;
    let size = u8::try_from(content.len())?;
    let block = (u32::from(size) << 3) | 1;
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x20, size];
    frame.extend_from_slice(&block.to_le_bytes()[..3]);
    frame.extend(content);
    Ok(frame)
}

#[tokio::test]
async fn a_killed_load_is_resumed_by_the_same_command() -> Result<()> {
    let (killed, whole) = (TestApp::start().await?, TestApp::start().await?);
    let feed = market(&killed, "120", "20")?;
    load(&whole, &[&feed], &[]).await?;
    let arguments = [&["load", &feed, "--source", "test"][..], &TODAY].concat();
    for (signal, after) in [(Signal::KILL, 60), (Signal::INT, 120), (Signal::KILL, 200)] {
        let mut load = killed.spawn(Program::Ingest, &arguments).await?;
        tokio::time::sleep(Duration::from_millis(after)).await;
        load.signal(signal)?;
        load.wait(Duration::from_secs(120)).await?;
    }
    load(&killed, &[&feed], &[]).await?;
    let completed =
        |runs: Vec<Value>| runs.into_iter().find(|run| run["state"] == "completed").unwrap_or_default();
    let resumed = completed(lines(&killed, &["runs", "--json"]).await?);
    let expected = completed(lines(&whole, &["runs", "--json"]).await?);
    assert!(expected["chunks"].as_u64() > Some(5), "{expected}");
    for figure in ["run", "digest", "chunks", "rows", "rejects"] {
        assert_eq!(resumed[figure], expected[figure], "{figure}");
    }
    let started = lines(&killed, &["runs", "--json"])
        .await?
        .into_iter()
        .filter(|run| run["state"] == "started")
        .count();
    // The log has one start of the run and each batch once.
    assert_eq!(started, 1);
    assert_eq!(Some(batches(&killed).await?.len() as u64), expected["chunks"].as_u64());
    Ok(())
}

#[tokio::test]
async fn a_summary_names_symbols_new_ones_and_dates() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = fixture("feeds/kinds/prices.csv");
    let (_, tried) = load(&app, &[&prices], &["--dry-run"]).await?;
    let symbols = json!(["META", "SPY", "VOD.L"]);
    let expected = json!({ "count": 3, "first": symbols, "new": 3, "first_new": symbols });
    assert_eq!(tried["symbols"], expected, "{tried}");
    assert_eq!(tried["dates"], json!({ "first": "2024-03-13", "last": "2024-03-14" }));
    let (_, loaded) = load(&app, &[&prices], &[]).await?;
    assert_eq!((&loaded["symbols"], &loaded["new_source"]), (&expected, &json!(true)), "{loaded}");
    // A symbol is not new if an earlier run of any source has it.
    let more = app.folder().join("prices-more.csv");
    std::fs::write(&more, "symbol,date,close\nKO,2024-03-14,60\nMETA,2024-03-14,490\n")?;
    let text = app
        .ingest(&["load", &more.display().to_string(), "--source", "tset", "--dry-run"])
        .await?
        .success()?
        .stdout;
    assert!(text.contains("symbols: 2 (KO, META), 1 of them new (KO)\n"), "{text}");
    assert!(text.contains("source tset is new; known: test"), "{text}");
    let runs = lines(&app, &["runs", "--json"]).await?;
    assert_eq!(runs.last().map(|run| &run["new_symbols"]), Some(&symbols), "{runs:?}");
    Ok(())
}

#[tokio::test]
async fn standard_input_is_loaded_as_the_file_it_is_named() -> Result<()> {
    let app = TestApp::start().await?;
    let splits = fixture("feeds/kinds/splits.csv");
    let load_input = async |arguments: &[&str], input: &Path| -> Result<(i32, Value)> {
        let arguments = [&["load", "-", "--source", "test", "--json"], &TODAY[..], arguments].concat();
        let output = app.ingest_from(input, &arguments).await?;
        Ok((output.code, output.json().with_context(|| output.stderr.clone())?))
    };
    let (code, summary) = load_input(&["--name", "splits.csv"], Path::new(&splits)).await?;
    assert_eq!((code, &summary["rows"]), (0, &json!({ "split": 1 })), "{summary}");
    assert_eq!(summary["files"][0]["file"], "splits.csv");
    // The same content counts as already loaded, whether `--name` or `--kind` gives its kind, and whether it comes from
    // standard input or from a file.
    let (_, again) = load_input(&["--kind", "split"], Path::new(&splits)).await?;
    assert_eq!(again["already_loaded"], true, "{again}");
    let (_, file) = load(&app, &[&splits], &[]).await?;
    assert_eq!(file["already_loaded"], true, "{file}");
    let session = app.folder().join("session");
    std::fs::write(&session, r#"{"kind":"session","date":"2024-03-14"}"#)?;
    let (code, summary) = load_input(&[], &session).await?;
    assert_eq!((code, &summary["rows"]), (0, &json!({ "session": 1 })), "{summary}");
    let (code, summary) = load_input(&[], Path::new(&splits)).await?;
    assert_eq!((code, &summary["files"][0]["status"]), (2, &json!("refused")), "{summary}");
    Ok(())
}

#[tokio::test]
async fn exit_codes_tell_what_happened() -> Result<()> {
    let app = TestApp::start().await?;
    let good = fixture("feeds/kinds/splits.csv");
    let exit = async |arguments: &[&str]| -> Result<(i32, String)> {
        let output = app.ingest(&[&["load", "--source", "test"], arguments].concat()).await?;
        Ok((output.code, output.stdout + &output.stderr))
    };
    let (code, text) = exit(&["no-such-file.csv"]).await?;
    assert!(code == 2 && text.contains("no-such-file.csv: cannot be opened"), "{code} {text}");
    let empty = app.folder().join("empty");
    std::fs::create_dir(&empty)?;
    let (code, text) = exit(&[&empty.display().to_string()]).await?;
    assert!(code == 2 && text.contains("no feed files found"), "{code} {text}");
    let (code, text) = exit(&["--nats-url", "nats://127.0.0.1:1", &good]).await?;
    assert!(code == 3 && text.contains("cannot reach NATS"), "{code} {text}");
    let (code, text) = exit(&["--nats-url", "nats://127.0.0.1:1", "--dry-run", &good]).await?;
    assert!(code == 0 && text.contains("would load 1 row"), "{code} {text}");
    assert_eq!(exit(&[&good]).await?.0, 0);
    Ok(())
}
