//! Tests with real files of vendors, which must be loaded or refused for a given reason.
//!
//! The files are in the folder `shared/samples` next to the repository. Without this folder, the tests are skipped.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use event_log::stream::StreamSettings;
use ingest::load::file_list::{FileReport, FileStatus};
use ingest::load::report::LoadSummary;
use ingest::load::{LoadArgs, load};
use skipped::Requirement;
use telemetry::Shutdown;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(flatten)]
    load: LoadArgs,
}

fn samples() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if folder.is_dir() {
        return Some(folder);
    }
    skipped::record(Requirement::SampleData, "");
    None
}

async fn try_out(path: &Path, more: &[&str]) -> Result<LoadSummary> {
    let path = path.display().to_string();
    let arguments = ["load", path.as_str(), "--source", "sample", "--dry-run"];
    let cli = Cli::parse_from(arguments.iter().chain(more));
    Ok(load(&cli.load, &cli.stream, &Shutdown::listen()?).await?)
}

async fn loads(path: &Path, expected: &[(&str, u64)]) -> Result<()> {
    let summary = try_out(path, &[]).await?;
    let expected = expected.iter().map(|(kind, rows)| ((*kind).to_owned(), *rows)).collect();
    assert_eq!(summary.rows, expected, "{}\n{:?}", path.display(), summary);
    assert_eq!((summary.rejects_total, summary.exit_code()), (0, 0), "{}\n{:?}", path.display(), summary);
    Ok(())
}

async fn refuses(path: &Path, expected: &str) -> Result<()> {
    let summary = try_out(path, &[]).await?;
    let [file] = summary.files.reports.as_slice() else {
        panic!("{}: one file expected\n{:?}", path.display(), summary)
    };
    assert_eq!((file.status, summary.exit_code()), (FileStatus::Refused, 2), "{}", path.display());
    let reason = file.reason.as_deref().unwrap_or_default();
    assert!(reason.contains(expected), "{}: {reason}", path.display());
    Ok(())
}

fn csv_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<Result<Vec<PathBuf>>>()?;
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            files.extend(csv_files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "csv") {
            files.push(path);
        }
    }
    Ok(files)
}

#[tokio::test]
async fn wiki_tables_of_many_symbols() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    loads(&samples.join("wiki-plotly/hello-world-stock.csv"), &[("price", 2261), ("dividend", 23)]).await?;
    loads(&samples.join("wiki-plotly/dash-stock-ticker-demo.csv"), &[("price", 3634), ("dividend", 23)])
        .await?;
    let archive = samples.join("wiki-zipline/quandl_samples/QUANDL_ARCHIVE.zip");
    loads(&archive, &[("price", 916), ("dividend", 8), ("split", 1)]).await?;
    Ok(())
}

#[tokio::test]
async fn wiki_and_older_yahoo_files_of_one_symbol_lose_no_row() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    for path in csv_files(&samples.join("wiki-pyalgotrade"))? {
        if path.to_string_lossy().contains("googlefinance") {
            refuses(&path, "it looks like a Google Finance prices file").await?;
            continue;
        }
        let summary = try_out(&path, &[]).await?;
        let lines = std::fs::read_to_string(&path)?.lines().filter(|line| !line.is_empty()).count() as u64;
        assert_eq!(summary.rows.get("price"), Some(&(lines - 1)), "{}\n{:?}", path.display(), summary);
        assert_eq!(summary.rejects_total, 0, "{}\n{:?}", path.display(), summary);
    }
    let data = samples.join("wiki-pyalgotrade/samples/data");
    loads(&data.join("WIKI-AAPL-2012-quandl.csv"), &[("price", 250), ("dividend", 2)]).await?;
    loads(&data.join("WIKI-AIG-2009-quandl.csv"), &[("price", 252), ("split", 1)]).await?;
    loads(&samples.join("wiki-zipline/yahoo_samples/AAPL.csv.gz"), &[("price", 252)]).await?;
    loads(&samples.join("yahoo-bokeh/AAPL.csv"), &[("price", 3270)]).await?;
    loads(&samples.join("yahoo-scheb/historicalData.json"), &[("price", 10)]).await?;
    Ok(())
}

#[tokio::test]
async fn other_tables_are_refused_with_what_they_look_like() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let zipline = samples.join("wiki-zipline");
    refuses(&samples.join("wiki-plotly/finance-charts-apple.csv"), "a symbol in its column names").await?;
    refuses(&zipline.join("csvdir_samples/csvdir/daily/AAPL.csv.gz"), "a zipline csvdir file").await?;
    refuses(&zipline.join("pipeline_inputs/BRK-A.csv"), "a table of prices without a symbol").await?;
    refuses(&zipline.join("quandl_samples/metadata.csv.gz"), "its columns are: file.link").await?;
    refuses(&zipline.join("yahoo_samples/AAPL.adjustments.gz"), "rows cannot be used").await?;
    refuses(&samples.join("yahoo-scheb/dividendData.json"), "has 1mo rows").await?;
    Ok(())
}

#[tokio::test]
async fn newer_yahoo_files_are_daily_or_refused() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    for path in csv_files(&samples.join("yahoo-yfinance"))? {
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        if ["-1h-", "-15m-", "-1wk-"].iter().any(|interval| name.contains(interval)) {
            refuses(&path, "only daily rows are loaded").await?;
            // The file name of the copy does not contain the interval. The loader must detect from the rows that they
            // are not daily.
            let copy = std::env::temp_dir().join(format!("{}-unnamed.csv", std::process::id()));
            std::fs::copy(&path, &copy)?;
            let summary = try_out(&copy, &["--symbol", "X"]).await?;
            assert_eq!(summary.exit_code(), 2, "{name}\n{summary:?}");
            continue;
        }
        let summary = try_out(&path, &[]).await?;
        let lines = std::fs::read_to_string(&path)?.lines().filter(|line| !line.is_empty()).count() as u64;
        let prices = summary.rows.get("price").copied().unwrap_or_default();
        assert_eq!(prices + summary.rejects_total, lines - 1, "{name}\n{summary:?}");
        assert!(summary.rejects_total <= 1, "{name}\n{summary:?}");
    }
    let hong_kong = try_out(&samples.join("yahoo-yfinance/1398-HK-1d-bad-div.csv"), &[]).await?;
    assert_eq!(hong_kong.rejects.get("missing_field"), Some(&1));
    assert_eq!(hong_kong.rows.get("dividend"), Some(&3));
    Ok(())
}

#[tokio::test]
async fn broken_yahoo_files_are_refused_whole_or_lose_their_bad_rows_only() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    for (name, reason) in [
        ("invalidColumnsHistoricalData.csv", "malformed_row"),
        ("invalidDateTimeFormatHistoricalData.csv", "bad_date"),
        ("invalidNumericStringHistoricalData.csv", "bad_number"),
        ("invalidNumericStringDividendData.csv", "bad_number"),
        ("invalidNumericStringSplitData.csv", "bad_number"),
        ("invalidColumnsSplitData.csv", "malformed_row"),
    ] {
        let path = samples.join("yahoo-scheb").join(name);
        refuses(&path, "add --symbol").await?;
        let refused = try_out(&path, &["--symbol", "AAPL"]).await?;
        assert!(refused.files.reports[0].rejects.contains_key(reason), "{refused:?}");
        assert_eq!(refused.exit_code(), 2, "{refused:?}");
        let lenient = try_out(&path, &["--symbol", "AAPL", "--max-reject-percent", "100"]).await?;
        assert!(lenient.rejects.contains_key(reason), "{lenient:?}");
    }
    Ok(())
}

fn outcome(file: &FileReport) -> String {
    let FileReport { file: name, rows, rejects, reason, .. } = file;
    let format = file.format.as_deref().unwrap_or("-");
    match reason {
        Some(reason) => {
            let reason: String = reason.lines().flat_map(str::chars).take(70).collect();
            format!("{name}: {format} refused: {reason}")
        }
        None if rejects.is_empty() => format!("{name}: {format} {rows}"),
        None => format!("{name}: {format} {rows} {rejects:?}"),
    }
}

#[tokio::test]
async fn every_sample_is_told_from_all_others() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let summary =
        try_out(&samples, &["--today", "2026-11-20", "--observed-at", "2026-11-20T00:00:00Z"]).await?;
    let mut found: Vec<String> = summary.files.reports.iter().map(outcome).collect();
    found.sort();
    let found = found.join("\n") + "\n";
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples.txt");
    std::fs::write(&written, &found)?;
    for (line, (found, expected)) in (1..).zip(found.lines().zip(include_str!("samples.txt").lines())) {
        assert_eq!(found, expected, "line {line}; what was found is in {}", written.display());
    }
    assert_eq!(found.lines().count(), include_str!("samples.txt").lines().count(), "{}", written.display());
    Ok(())
}

/// Body of a recorded HTTP response. In the YAML recording, the body is a quoted string that is folded over several
/// lines.
fn recorded_body(recording: &str) -> Option<String> {
    let key = ["string: '", "content: '"].into_iter().find(|key| recording.contains(key))?;
    let rest = recording.split_once(key)?.1.replace("''", "\0");
    let folded = rest.split_once('\'')?.0.replace('\0', "'");
    let mut body = String::new();
    for (index, line) in folded.split('\n').map(str::trim).enumerate() {
        let after_break = body.ends_with('\n');
        match (index, line) {
            (_, "") => body.push('\n'),
            (0, line) => body.push_str(line),
            (_, line) if after_break => body.push_str(line),
            (_, line) => body.extend([" ", line]),
        }
    }
    Some(body)
}

async fn loads_recorded(recording: &Path, name: &str, expected: &[(&str, u64)]) -> Result<()> {
    let body = recorded_body(&std::fs::read_to_string(recording)?).context("a recorded body")?;
    let folder = std::env::temp_dir().join(format!("recorded-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), body)?;
    let loaded = loads(&folder.join(name), expected).await;
    std::fs::remove_dir_all(&folder)?;
    loaded
}

#[tokio::test]
async fn recorded_answers_of_tiingo_and_eodhd() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let tiingo = samples.join("tiingo-fixtures");
    for (recording, name, expected) in [
        ("ticker_price_with_date.yaml", "GOOGL.json", ("price", 2)),
        ("ticker_price_with_date_csv.yaml", "GOOGL.csv", ("price", 2)),
        ("ticker_metadata.yaml", "metadata.json", ("security", 1)),
    ] {
        loads_recorded(&tiingo.join(recording), name, &[expected]).await?;
    }
    let eodhd = samples.join("eodhd-cassettes/test_clients");
    loads_recorded(&eodhd.join("test_response_csv[httpxs].yaml"), "MCD.US.csv", &[("price", 2)]).await?;
    loads_recorded(&eodhd.join("test_response_json[httpxs].yaml"), "MCD.US.json", &[("price", 2)]).await?;
    Ok(())
}
