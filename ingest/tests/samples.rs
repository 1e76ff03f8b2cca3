//! Real vendors' files: each is loaded, or refused with the reason that fits it.
//!
//! The files are not part of this repository; they are looked for beside it, in `../shared/samples`.

use std::path::{Path, PathBuf};

use clap::Parser;
use ingest::load::{LoadArgs, load};
use ingest::report::{FileStatus, Summary};
use schema::process::Shutdown;
use schema::stream::StreamSettings;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(flatten)]
    load: LoadArgs,
}

/// Files loaded with their rows and rejects, or part of the reason they are refused with.
enum Expected {
    Loaded { rows: &'static [(&'static str, u64)], rejects: u64 },
    Refused(&'static str),
}
use Expected::{Loaded, Refused};

fn samples() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: optional sample data not found at {}", folder.display());
    None
}

async fn try_out(path: &Path, more: &[&str]) -> Summary {
    let path = path.display().to_string();
    let arguments = ["load", path.as_str(), "--source", "sample", "--dry-run"];
    let cli = Cli::parse_from(arguments.iter().chain(more));
    load(&cli.load, &cli.stream, &Shutdown::listen().unwrap()).await.unwrap()
}

async fn check(path: &Path, expected: Expected) {
    let summary = try_out(path, &[]).await;
    let name = path.display();
    match expected {
        Loaded { rows, rejects } => {
            let expected = rows.iter().map(|(kind, rows)| ((*kind).to_owned(), *rows)).collect();
            assert_eq!(summary.rows, expected, "{name}\n{}", summary.text());
            assert_eq!(summary.rejects_total, rejects, "{name}\n{}", summary.text());
            assert!(summary.files.iter().all(|file| file.status == FileStatus::Loaded), "{name}\n{}", summary.text());
        }
        Refused(reason) => {
            let [file] = summary.files.as_slice() else { panic!("{name}: one file expected\n{}", summary.text()) };
            assert!(file.reason.as_deref().is_some_and(|found| found.contains(reason)), "{name}\n{}", summary.text());
            assert_eq!(summary.exit_code(), 2, "{name}");
        }
    }
}

/// Every file under a folder, in name order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn explore() {
    let Some(samples) = samples() else { return };
    for folder in ["wiki-plotly", "wiki-pyalgotrade", "wiki-zipline", "yahoo-bokeh", "yahoo-scheb", "yahoo-yfinance"] {
        for path in files(&samples.join(folder)) {
            let summary = try_out(&path, &[]).await;
            let first = summary.text().lines().next().unwrap_or_default().to_owned();
            eprintln!("{} {:?} rejects {:?} rounded {} | {first}", path.strip_prefix(&samples).unwrap().display(), summary.rows, summary.rejects, summary.rounded);
        }
    }
}
