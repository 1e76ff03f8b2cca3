//! `projector diff A B`: what differs between two generations, the weightiest first, and why.
//!
//! Both generations are read in one snapshot. Digests say which securities and years of prices can differ; only their
//! rows are read, a few hundred securities at a time, so memory does not grow with the market but for its spellings. The
//! rules' version stands on every metrics row and is left out of the comparison: it is a reason, not a figure.

mod args;
mod cell;
mod copy;
mod difference;
mod digests;
mod found;
mod html;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod plot;
mod prices;
mod ranking;
mod rows;
mod side;
mod tables;
mod tally;
mod text;
mod unfinished;
mod why;
mod why_rows;

use anyhow::{Context, bail};
use chrono::Datelike;
use store::db;
use telemetry::Shutdown;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::progress::Progress;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use digests::Candidates;
use found::reasons;
use html::Page;
use lines::{Lines, Sink};
use rows::Comparison;
use side::{Reader, open};
use tables::{HOLDINGS, PRICES, SECTORS, SYMBOLS};
use tally::{TableDiff, Tally};
use unfinished::Unfinished;

pub use args::DiffArgs;
pub use copy::copy_others;
pub use difference::Difference;
pub use found::Diff;
pub use tables::{TABLES, Table};

const REVIEWED: &str = include_str!("../../../queries/diff_reviewed.sql");

/// Securities whose rows are compared at a time.
const SECURITIES: usize = 250;
/// Funds whose holdings are compared at a time.
const FUNDS: usize = 4;
/// Years of prices compared at a time.
const YEARS: usize = 2000;
/// Rows of each table and topic in a report that is to be sorted.
const REPORTED: usize = 500;

/// Compares two generations and notes that it was looked at. When it is asked to stop, Postgres stops too.
pub async fn diff(database: &DatabaseArgs, args: &DiffArgs, mut shutdown: Shutdown) -> anyhow::Result<Diff> {
    let (a, b) = open(database, args.a, args.b).await?;
    let cancel = [a.canceller(), b.canceller()];
    let found = tokio::select! {
        found = compare(database, args, &a, &b) => found?,
        () = shutdown.wait() => {
            for cancelled in cancel {
                cancelled.await?;
            }
            bail!("interrupted: nothing is noted as looked at");
        }
    };
    Ok(found)
}

/// Prints what was found for people.
pub fn print(diff: &Diff, args: &DiffArgs) {
    text::print(diff, args.limit);
}

async fn compare(database: &DatabaseArgs, args: &DiffArgs, a: &Reader, b: &Reader) -> anyhow::Result<Diff> {
    let only = securities(args, a, b).await?;
    // The files are begun first: that they cannot be written is said before the work.
    let files = files(args)?;
    let page = args.html.as_deref().map(Unfinished::of).transpose()?.map(Page::begin).transpose()?;
    let keep = if page.is_some() { args.limit.max(REPORTED) } else { args.limit };
    let first_year = args.since.map(|since| since.year());
    let candidates = Candidates::find(a, b, only.as_deref(), first_year, args.whole).await?;
    let mut comparing = Comparing { args, a, b, candidates, tally: Tally::new(keep, files) };
    comparing.all(only.as_deref()).await?;
    let price_days = std::mem::take(&mut comparing.tally.years);
    let (mut tables, mut ranked) = comparing.tally.finish()?;
    let mut client = db::connect(&database.projector_config(LIVE_FACTS)?).await?;
    if args.why {
        ranked.iter_mut().for_each(|ranked| ranked.first.truncate(args.limit));
        why::say_why(&mut client, [args.a, args.b], &mut ranked).await?;
        why_rows::say_why(&mut client, [args.a, args.b], &mut tables, args.limit).await?;
    }
    let found = Diff {
        reasons: reasons(&a.side, &b.side),
        a: a.side.clone(),
        b: b.side.clone(),
        ranked,
        price_days,
        identical: tables.iter().all(|table| table.differing == 0),
        tables,
        reviewed: args.is_complete() && !a.side.unfinished && !b.side.unfinished,
    };
    // Nobody has looked at what could not be written.
    if let Some(page) = page {
        page.write(&found)?;
    }
    if found.reviewed {
        note_review(&mut client, &found).await?;
    }
    Ok(found.shortened(args.limit))
}

/// The files that every differing value goes to.
fn files(args: &DiffArgs) -> anyhow::Result<Vec<Box<dyn Sink>>> {
    let mut files: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(path) = &args.csv {
        files.push(Box::new(Lines::begin(Unfinished::of(path)?)?));
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.parquet {
        files.push(Box::new(parquet::Rows::begin(Unfinished::of(path)?)?));
    }
    Ok(files)
}

/// Notes, for promotions either way, that all of it was looked at.
async fn note_review(client: &mut Client, found: &Diff) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    for [this, other] in [[&found.b, &found.a], [&found.a, &found.b]] {
        let values: [&(dyn ToSql + Sync); 4] =
            [&this.generation, &other.generation, &this.sequence, &other.sequence];
        transaction.execute(REVIEWED, &values).await?;
    }
    Ok(transaction.commit().await?)
}

/// The canonical symbols of the one security that is asked for: a rename may have given it another one.
async fn securities(args: &DiffArgs, a: &Reader, b: &Reader) -> anyhow::Result<Option<Vec<String>>> {
    let Some(symbol) = &args.symbol else { return Ok(None) };
    let (of_a, of_b) = tokio::try_join!(a.canonical(symbol), b.canonical(symbol))?;
    let mut found: Vec<String> = [of_a, of_b].into_iter().flatten().collect();
    found.dedup();
    if found.is_empty() {
        bail!("no security has the symbol {symbol} in either generation");
    }
    Ok(Some(found))
}

/// A comparison at work.
struct Comparing<'a> {
    args: &'a DiffArgs,
    a: &'a Reader,
    b: &'a Reader,
    candidates: Candidates,
    tally: Tally,
}

impl Comparing<'_> {
    async fn all(&mut self, only: Option<&[String]>) -> anyhow::Result<()> {
        let wanted =
            |table: &&Table| self.args.wants(table.name) && (only.is_none() || table.name != SECTORS);
        let tables: Vec<&Table> = TABLES.iter().filter(wanted).collect();
        let rows = tables.iter().map(|table| self.candidates.owners(table).len());
        let years = if self.args.wants(PRICES) { self.candidates.years.len() } else { 0 };
        let total = rows.sum::<usize>() + years;
        let mut progress = Progress::new("compared", "securities' tables and years of prices", total as u64);
        for table in tables {
            self.begin(table, only).await?;
            match table.name {
                PRICES => self.prices(&mut progress).await?,
                _ => self.rows(table, &mut progress).await?,
            }
        }
        progress.finish();
        Ok(())
    }

    /// Counts a table's rows.
    async fn begin(&mut self, table: &Table, only: Option<&[String]>) -> anyhow::Result<()> {
        let since = self.args.since;
        let [rows_a, rows_b] = match table.name {
            PRICES => self.candidates.years_in_all,
            _ => {
                let (a, b) =
                    tokio::try_join!(self.a.count(table, only, since), self.b.count(table, only, since))?;
                [a, b]
            }
        };
        let [checksum_a, checksum_b] = self.candidates.checksums(table);
        let name = table.name.to_owned();
        let begun = TableDiff { table: name, rows_a, rows_b, checksum_a, checksum_b, ..TableDiff::default() };
        self.tally.begin(begun);
        Ok(())
    }

    async fn rows(&mut self, table: &Table, progress: &mut Progress) -> anyhow::Result<()> {
        let comparison = Comparison::of(table, self.a, self.b).await?;
        let owners = self.candidates.owners(table);
        let together = match table.name {
            // A spelling that moved to another security is one change only where both are looked at together.
            SYMBOLS => owners.len().max(1),
            // A fund has thousands of holdings on each of its days.
            HOLDINGS => FUNDS,
            _ => SECURITIES,
        };
        for owners in owners.chunks(together) {
            let found = comparison.of_owners(self.a, self.b, owners, self.args.since).await?;
            found.into_iter().try_for_each(|difference| self.tally.note(difference))?;
            progress.add(owners.len() as u64);
        }
        Ok(())
    }

    async fn prices(&mut self, progress: &mut Progress) -> anyhow::Result<()> {
        let tally = &mut self.tally;
        for years in self.candidates.years.chunks(YEARS) {
            prices::of_years(self.a, self.b, years, self.args.since, |day| tally.note_day(day))
                .await
                .context("comparing prices")?;
            progress.add(years.len() as u64);
        }
        Ok(())
    }
}
