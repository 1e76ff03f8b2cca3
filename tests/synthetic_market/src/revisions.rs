//! Revisions of a generated market: an earlier state of the market, and the later files that correct it.
//!
//! A market of one load has no past: no row was ever corrected, late, held or replaced. The revisions add these cases, and
//! end with the figures of the generated market.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use market::decimal::parse_decimal;

/// Symbols of the revised securities. All of them are among the first 30 familiar tickers.
const CORRECTED: &str = "KO";
const LATE: &str = "PEP";
const REPLACED: &str = "MSFT";
const SECOND_SOURCE: &str = "JNJ";
/// Number of payments that the second source has: three years of quarterly payments.
const PAYMENTS: usize = 12;
/// Number of sessions for which the second source has prices.
const SESSIONS: usize = 12;
/// Position of the wrong price among these sessions.
const WRONG_SESSION: usize = 6;

/// Later load of a revised market.
#[derive(Debug)]
pub struct Revision {
    /// Name of the folder with the files.
    pub folder: &'static str,
    /// Source of the rows.
    pub source: &'static str,
    /// Source whose rows this source replaces. Its load is undone.
    pub replaces: Option<&'static str>,
}

/// Later loads, in order. A source with halved amounts arrives. A second source with the right amounts replaces it, and
/// has one price that is held. The market's own source then corrects an amount, and adds a late payment.
pub const REVISIONS: [Revision; 4] = [
    Revision { folder: "wire", source: "wire", replaces: None },
    Revision { folder: "desk", source: "desk", replaces: Some("wire") },
    Revision { folder: "correction", source: "demo", replaces: None },
    Revision { folder: "late", source: "demo", replaces: None },
];

/// Changes a generated market to its earlier state, and writes the files of [`REVISIONS`] to folders of `later`. The
/// market needs familiar tickers.
///
/// # Errors
/// A file cannot be read or written, or a security has too few rows.
pub fn write_revisions(market: &Path, later: &Path) -> anyhow::Result<()> {
    let dividends = fs::read_to_string(market.join("dividends.csv")).context("cannot read dividends.csv")?;
    let mut lines: Vec<&str> = dividends.lines().collect();
    ensure!(!lines.is_empty(), "dividends.csv is empty");
    let header = lines.remove(0);
    let (price_header, bars) = newest_bars(market)?;
    let last_session = cell(bars.last().context("a security has no price")?, 1)?.to_owned();
    let paid = |symbol: &str| -> anyhow::Result<Vec<&str>> {
        let is_paid = |line: &&&str| {
            let mut cells = line.split(',');
            cells.next() == Some(symbol)
                && cells.next().is_some_and(|ex_date| ex_date <= last_session.as_str())
        };
        let rows: Vec<&str> = lines.iter().filter(is_paid).copied().collect();
        ensure!(!rows.is_empty(), "{symbol} has no payment");
        Ok(rows[rows.len().saturating_sub(PAYMENTS)..].to_vec())
    };
    let last = |symbol: &str| Ok::<_, anyhow::Error>(*paid(symbol)?.last().context("no payment")?);
    let (corrected, late, replaced) = (last(CORRECTED)?, last(LATE)?, last(REPLACED)?);
    let write = |folder: &str, name: &str, header: &str, rows: &[String]| -> anyhow::Result<()> {
        fs::create_dir_all(later.join(folder))?;
        let text = format!("{header}\n{}\n", rows.join("\n"));
        fs::write(later.join(folder).join(name), text)
            .with_context(|| format!("cannot write {folder}/{name}"))
    };
    write("wire", "dividends.csv", header, &[scaled(replaced, &[2], "0.5")?])?;
    let second = [paid(REPLACED)?, paid(SECOND_SOURCE)?].concat();
    write("desk", "dividends.csv", header, &second.into_iter().map(str::to_owned).collect::<Vec<_>>())?;
    let mut second = bars;
    second[WRONG_SESSION] = scaled(&second[WRONG_SESSION], &[2, 3, 4, 5], "10")?;
    write("desk", "prices.csv", &price_header, &second)?;
    write("correction", "dividends.csv", header, &[corrected.to_owned()])?;
    write("late", "dividends.csv", header, &[late.to_owned()])?;
    let wrong = scaled(corrected, &[2], "1.1")?;
    let earlier = lines.iter().filter(|line| **line != late);
    let earlier: Vec<&str> = earlier.map(|line| if *line == corrected { &wrong } else { *line }).collect();
    fs::write(market.join("dividends.csv"), format!("{header}\n{}\n", earlier.join("\n")))
        .context("cannot write dividends.csv")
}

/// Header of the price files, and the newest bars of the second source.
fn newest_bars(market: &Path) -> anyhow::Result<(String, Vec<String>)> {
    let beginning = format!("{SECOND_SOURCE},");
    for number in 1.. {
        let name = format!("prices-{number:04}.csv");
        let text = fs::read_to_string(market.join(&name)).with_context(|| format!("cannot read {name}"))?;
        let bars: Vec<&str> = text.lines().filter(|line| line.starts_with(&beginning)).collect();
        if bars.len() >= SESSIONS {
            let header = text.lines().next().unwrap_or_default().to_owned();
            return Ok((header, bars[bars.len() - SESSIONS..].iter().map(|bar| (*bar).to_owned()).collect()));
        }
    }
    anyhow::bail!("{SECOND_SOURCE} has too few prices")
}

/// Row with some of its numbers multiplied by a factor.
fn scaled(row: &str, columns: &[usize], factor: &str) -> anyhow::Result<String> {
    let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
    for column in columns {
        let number = parse_decimal(cell(row, *column)?)?.value * parse_decimal(factor)?.value;
        cells[*column] = number.normalize().to_string();
    }
    Ok(cells.join(","))
}

fn cell(row: &str, column: usize) -> anyhow::Result<&str> {
    row.split(',').nth(column).with_context(|| format!("no column {column} in {row}"))
}
