//! Comparison with the adjusted closes in files of the data set WIKI.
//!
//! The service's total return must equal the return of WIKI's adjusted closes (rule R12). The service's adjusted closes
//! may differ, because rule R11 uses the close before the ex-date.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::samples;
use rust_decimal::Decimal;

use super::{Closes, TOLERANCE, Vendors, column, table, worst};

/// Files whose adjusted closes differ from the service's adjusted closes by more than the tolerance. Each entry is the
/// name of a file and the cause of the difference.
const DIFFERENT: [(&str, &str); 2] = [
    ("WIKI-AES-2009-quandl", "0.84375 on a price of 6.45, on a day the price rose by 5 %"),
    ("WIKI-AIG-2011-quandl", "warrants worth 8.275 on a price of 54, on a day the price moved"),
];

/// The adjusted closes of one symbol in the file `name`.
struct Series {
    name: String,
    symbol: String,
    adjusted: Closes,
}

fn split_by_symbol(name: &str, text: &str, only: Option<&str>) -> Result<Vec<Series>> {
    let mut by_symbol: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for row in table(text) {
        let named = ["ticker", "stock", "symbol"].iter().find_map(|column| row.get(*column).cloned());
        let symbol = only.map(str::to_owned).or(named).context("a row names no symbol")?.replace('_', ".");
        by_symbol.entry(symbol).or_default().push(row);
    }
    by_symbol
        .into_iter()
        .map(|(symbol, rows)| {
            Ok(Series { name: name.to_owned(), symbol, adjusted: column(&rows, "adjclose")? })
        })
        .collect()
}

/// Returns the files that each contain one year of one symbol.
fn single(samples: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["wiki-pyalgotrade/samples/data", "wiki-pyalgotrade/testcases/data"] {
        for entry in std::fs::read_dir(samples.join(folder))? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("WIKI-")) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn unzipped(path: &Path) -> Result<String> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path)?)?;
    let mut text = String::new();
    archive.by_index(0)?.read_to_string(&mut text)?;
    Ok(text)
}

#[tokio::test]
async fn total_return_is_wikis_adjusted_close() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let (mut vendors, mut all) = (Vendors::start().await?, Vec::new());
    for (path, number) in single(&samples)?.iter().zip(1..) {
        let (name, symbol) = (path.file_stem().context("a name")?.to_string_lossy(), format!("W{number}"));
        vendors.load(path, Some(&symbol)).await?;
        all.extend(split_by_symbol(&name, &std::fs::read_to_string(path)?, Some(&symbol))?);
    }
    let archive = samples.join("wiki-zipline/quandl_samples/QUANDL_ARCHIVE.zip");
    let demo = samples.join("wiki-plotly/dash-stock-ticker-demo.csv");
    vendors.load(&archive, None).await?;
    vendors.load(&demo, None).await?;
    all.extend(split_by_symbol("QUANDL_ARCHIVE", &unzipped(&archive)?, None)?);
    all.extend(split_by_symbol("dash-stock-ticker-demo", &std::fs::read_to_string(&demo)?, None)?);
    vendors.serve().await?;
    let mut wrong = Vec::new();
    for series in &all {
        wrong.extend(
            check(&vendors, series).await.with_context(|| format!("{} {}", series.name, series.symbol))?,
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

async fn check(vendors: &Vendors, series: &Series) -> Result<Vec<String>> {
    let theirs = &series.adjusted;
    let (first, last) =
        (theirs.first_key_value().context("no rows")?, theirs.last_key_value().context("no rows")?);
    let (ours, total_return) = vendors.prices(&series.symbol, *first.0, *last.0).await?;
    let grown = (last.1 / first.1 - Decimal::ONE) * Decimal::ONE_HUNDRED;
    let apart = (total_return.context("no total return")? - grown).abs();
    let (difference, day) = worst(&ours, theirs)?;
    let cause = DIFFERENT.iter().find(|(name, _)| *name == series.name).map(|(_, cause)| *cause);
    let Series { name, symbol, .. } = series;
    let told = cause.unwrap_or("within the tolerance");
    eprintln!(
        "{name} {symbol}: total return {} against {}; adjusted close worst {difference} on {day}: {told}",
        total_return.unwrap_or_default(),
        grown.round_dp(4)
    );
    let mut wrong = Vec::new();
    if apart > Decimal::new(6, 5) {
        wrong.push(format!("{name} {symbol}: total return is {apart} apart"));
    }
    if (difference <= TOLERANCE) == cause.is_some() {
        wrong.push(format!("{name} {symbol}: adjusted close is {difference} apart on {day}"));
    }
    Ok(wrong)
}
