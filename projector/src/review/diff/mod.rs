//! `projector diff A B`: what differs between two generations, the weightiest first, and why.
//!
//! Both generations are read in one snapshot. Digests say which securities and years of prices can differ; only their
//! rows are read, a few hundred securities at a time, so memory does not grow with the market but for its spellings. The
//! rules' version stands on every metrics row and is left out of the comparison: it is a reason, not a figure.

mod accumulator;
mod args;
mod atomic_file;
mod cell;
mod csv;
mod difference;
mod digests;
mod explain;
mod generation_reader;
mod html;
#[cfg(feature = "parquet")]
mod parquet;
mod plot;
mod prices;
mod ranking;
mod result;
mod rows;
mod tables;
mod text;

use anyhow::{Context, bail};
use chrono::Datelike;
use store::db;
use telemetry::Shutdown;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use self::csv::{CsvSink, DifferenceSink};
use crate::progress::ProgressReport;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use accumulator::{DiffAccumulator, TableDiff};
use atomic_file::AtomicFile;
use digests::DiffCandidates;
use generation_reader::{GenerationReader, open_readers};
use html::HtmlReport;
use result::find_reasons;
use rows::TableComparison;
use tables::{HOLDINGS, PRICES, SECTORS, SYMBOLS};

pub use args::DiffArgs;
pub use difference::RowDifference;
pub use result::GenerationDiff;
pub use tables::{ComparedTable, TABLES};

const REVIEWED: &str = include_str!("../../../queries/diff_reviewed.sql");

/// Securities whose rows are compared at a time.
const SECURITIES_PER_STEP: usize = 250;
/// Funds whose holdings are compared at a time.
const FUNDS_PER_STEP: usize = 4;
/// Years of prices compared at a time.
const YEARS_PER_STEP: usize = 2000;
/// Rows of each table and topic in a report that is to be sorted.
const HTML_ROWS: usize = 500;

/// Compares two generations and notes that it was looked at. When it is asked to stop, Postgres stops too.
pub async fn compare_generations(
    database: &DatabaseArgs,
    args: &DiffArgs,
    mut shutdown: Shutdown,
) -> anyhow::Result<GenerationDiff> {
    let (a, b) = open_readers(database, args.a, args.b).await?;
    let cancel = [a.canceller(), b.canceller()];
    let found = tokio::select! {
        found = compare_readers(database, args, &a, &b) => found?,
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
pub fn print_diff(diff: &GenerationDiff, args: &DiffArgs) {
    text::print_diff(diff, args.limit);
}

async fn compare_readers(
    database: &DatabaseArgs,
    args: &DiffArgs,
    a: &GenerationReader,
    b: &GenerationReader,
) -> anyhow::Result<GenerationDiff> {
    let only = canonical_symbols(args, a, b).await?;
    // The files are begun first: that they cannot be written is said before the work.
    let files = create_sinks(args)?;
    let page = args.html.as_deref().map(AtomicFile::new).transpose()?.map(HtmlReport::create).transpose()?;
    let keep = if page.is_some() { args.limit.max(HTML_ROWS) } else { args.limit };
    let first_year = args.since.map(|since| since.year());
    let candidates = DiffCandidates::find(a, b, only.as_deref(), first_year, args.whole).await?;
    let mut comparing = DiffRun { args, a, b, candidates, accumulator: DiffAccumulator::new(keep, files) };
    comparing.compare_tables(only.as_deref()).await?;
    let price_days = std::mem::take(&mut comparing.accumulator.years);
    let (mut tables, mut ranked) = comparing.accumulator.finish()?;
    let mut client = db::connect(&database.projector_config(LIVE_FACTS)?).await?;
    if args.why {
        ranked.iter_mut().for_each(|ranked| ranked.first.truncate(args.limit));
        explain::explain_findings(&mut client, [args.a, args.b], &mut ranked).await?;
        explain::explain_rows(&mut client, [args.a, args.b], &mut tables, args.limit).await?;
    }
    let found = GenerationDiff {
        reasons: find_reasons(&a.side, &b.side),
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
        record_review(&mut client, &found).await?;
    }
    Ok(found.truncated(args.limit))
}

/// The files that every differing value goes to.
fn create_sinks(args: &DiffArgs) -> anyhow::Result<Vec<Box<dyn DifferenceSink>>> {
    let mut files: Vec<Box<dyn DifferenceSink>> = Vec::new();
    if let Some(path) = &args.csv {
        files.push(Box::new(CsvSink::create(AtomicFile::new(path)?)?));
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.parquet {
        files.push(Box::new(parquet::ParquetSink::create(AtomicFile::new(path)?)?));
    }
    Ok(files)
}

/// Notes, for promotions either way, that all of it was looked at.
async fn record_review(client: &mut Client, found: &GenerationDiff) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    for [this, other] in [[&found.b, &found.a], [&found.a, &found.b]] {
        let values: [&(dyn ToSql + Sync); 4] =
            [&this.generation, &other.generation, &this.sequence, &other.sequence];
        transaction.execute(REVIEWED, &values).await?;
    }
    Ok(transaction.commit().await?)
}

/// The canonical symbols of the one security that is asked for: a rename may have given it another one.
async fn canonical_symbols(
    args: &DiffArgs,
    a: &GenerationReader,
    b: &GenerationReader,
) -> anyhow::Result<Option<Vec<String>>> {
    let Some(symbol) = &args.symbol else { return Ok(None) };
    let (of_a, of_b) = tokio::try_join!(a.load_canonical_symbol(symbol), b.load_canonical_symbol(symbol))?;
    let mut found: Vec<String> = [of_a, of_b].into_iter().flatten().collect();
    found.dedup();
    if found.is_empty() {
        bail!("no security has the symbol {symbol} in either generation");
    }
    Ok(Some(found))
}

/// A comparison at work.
struct DiffRun<'a> {
    args: &'a DiffArgs,
    a: &'a GenerationReader,
    b: &'a GenerationReader,
    candidates: DiffCandidates,
    accumulator: DiffAccumulator,
}

impl DiffRun<'_> {
    async fn compare_tables(&mut self, only: Option<&[String]>) -> anyhow::Result<()> {
        let wanted =
            |table: &&ComparedTable| self.args.wants(table.name) && (only.is_none() || table.name != SECTORS);
        let tables: Vec<&ComparedTable> = TABLES.iter().filter(wanted).collect();
        let rows = tables.iter().map(|table| self.candidates.owners(table).len());
        let years = if self.args.wants(PRICES) { self.candidates.years.len() } else { 0 };
        let total = rows.sum::<usize>() + years;
        let mut progress =
            ProgressReport::new("compared", "securities' tables and years of prices", total as u64);
        for table in tables {
            self.count_table(table, only).await?;
            match table.name {
                PRICES => self.compare_prices(&mut progress).await?,
                _ => self.compare_rows(table, &mut progress).await?,
            }
        }
        progress.finish();
        Ok(())
    }

    /// Counts a table's rows.
    async fn count_table(&mut self, table: &ComparedTable, only: Option<&[String]>) -> anyhow::Result<()> {
        let since = self.args.since;
        let [rows_a, rows_b] = match table.name {
            PRICES => self.candidates.years_in_all,
            _ => {
                let (a, b) = tokio::try_join!(
                    self.a.count_rows(table, only, since),
                    self.b.count_rows(table, only, since)
                )?;
                [a, b]
            }
        };
        let [checksum_a, checksum_b] = self.candidates.checksums(table);
        let name = table.name.to_owned();
        let begun = TableDiff { table: name, rows_a, rows_b, checksum_a, checksum_b, ..TableDiff::default() };
        self.accumulator.begin_table(begun);
        Ok(())
    }

    async fn compare_rows(
        &mut self,
        table: &ComparedTable,
        progress: &mut ProgressReport,
    ) -> anyhow::Result<()> {
        let comparison = TableComparison::prepare(table, self.a, self.b).await?;
        let owners = self.candidates.owners(table);
        let together = match table.name {
            // A spelling that moved to another security is one change only where both are looked at together.
            SYMBOLS => owners.len().max(1),
            // A fund has thousands of holdings on each of its days.
            HOLDINGS => FUNDS_PER_STEP,
            _ => SECURITIES_PER_STEP,
        };
        for owners in owners.chunks(together) {
            let found = comparison.compare_owners(self.a, self.b, owners, self.args.since).await?;
            found.into_iter().try_for_each(|difference| self.accumulator.add_row(difference))?;
            progress.add(owners.len() as u64);
        }
        Ok(())
    }

    async fn compare_prices(&mut self, progress: &mut ProgressReport) -> anyhow::Result<()> {
        let accumulator = &mut self.accumulator;
        for years in self.candidates.years.chunks(YEARS_PER_STEP) {
            prices::compare_years(self.a, self.b, years, self.args.since, |day| {
                accumulator.add_price_day(day)
            })
            .await
            .context("comparing prices")?;
            progress.add(years.len() as u64);
        }
        Ok(())
    }
}
