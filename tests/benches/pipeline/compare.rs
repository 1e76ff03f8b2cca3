//! Benchmark of `projector diff`, which compares two generations (complete sets of read tables), and of the
//! publication as Parquet files. The times are also printed as multiples of the time for reading two generations once.

use std::time::Instant;

use anyhow::Result;
use futures::{TryStreamExt, pin_mut};
use harness::{Program, TestApp};

use super::{Timed, timed};

const TABLES: [&str; 13] = [
    "stocks",
    "quotes",
    "fundamentals",
    "metrics",
    "dividends",
    "splits",
    "quarantine",
    "prices",
    "factors",
    "symbols",
    "etfs",
    "holdings",
    "sectors",
];

/// Measures comparisons of the served generation with `equal`, which has the same rows, and with a generation rebuilt
/// as of `day_before`.
pub(crate) async fn compare(app: &TestApp, equal: &str, day_before: &str) -> Result<()> {
    let other = timed(app, Program::Projector, &["rebuild", "--as-of", day_before]).await?;
    println!("{:32} {:>8.1} s", "rebuild of the day before", other.seconds);
    let read = read_both(app, equal).await?;
    println!("{:32} {read:>8.1} s", "reading two generations once");
    for (what, arguments) in [
        ("diff of equal generations", &["diff", "1", equal][..]),
        ("diff of equal ones, --whole", &["diff", "1", equal, "--whole"]),
        ("diff of the day before", &["diff", "1", "4"]),
        ("the same into files", &["diff", "1", "4", "--csv", "diff.csv", "--html", "diff.html"]),
    ] {
        let Timed { seconds, peak_megabytes } = timed(app, Program::Projector, arguments).await?;
        println!(
            "{what:32} {seconds:>8.1} s {:>8.2} x reading {peak_megabytes:>6} MB at most",
            seconds / read
        );
    }
    app.projector(&["drop", "4"]).await?.success()?;
    publish(app, read).await
}

/// Measures the publication of the served generation as Parquet files. The time is printed as a multiple of `read`, the
/// seconds for reading two generations.
async fn publish(app: &TestApp, read: f64) -> Result<()> {
    let folder = app.folder().join("published").display().to_string();
    let Timed { seconds, peak_megabytes } =
        timed(app, Program::Projector, &["publish", "--to", &format!("file:{folder}")]).await?;
    let what = "publication as Parquet files";
    println!("{what:32} {seconds:>8.1} s {:>8.2} x reading {peak_megabytes:>6} MB at most", seconds / read);
    Ok(std::fs::remove_dir_all(folder)?)
}

/// Returns the seconds for reading the served generation and another generation at the same time, on two connections.
async fn read_both(app: &TestApp, other: &str) -> Result<f64> {
    let started = Instant::now();
    tokio::try_join!(read(app, "1"), read(app, other))?;
    Ok(started.elapsed().as_secs_f64())
}

async fn read(app: &TestApp, generation: &str) -> Result<()> {
    let client = app.servers().postgres.connect(app.database()).await?;
    for table in TABLES {
        let rows = client.copy_out(&format!("copy read_g{generation}.{table} to stdout binary")).await?;
        pin_mut!(rows);
        while rows.try_next().await?.is_some() {}
    }
    Ok(())
}
