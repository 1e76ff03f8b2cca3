//! `projector diff A B`: differences between two generations, most important first, with explanations.
//!
//! Both generations are read in one snapshot. Stored digests show which securities and price years can differ. Only
//! these are read, in chunks.
//!
//! A different rule version is a reason for differences, but not itself a difference.

mod accumulator;
mod args;
mod cell;
mod csv;
mod difference;
mod digests;
mod explain;
mod generation_reader;
mod html;
#[cfg(feature = "parquet")]
mod parquet;
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

use crate::progress::ProgressReport;
use crate::review::html_page::HtmlFile;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use digests::DiffCandidates;
use generation_reader::{GenerationReader, open_readers};
use result::find_reasons;
use rows::TableComparison;
use tables::{HOLDINGS, PRICES, SECTORS, SYMBOLS};

pub(crate) use self::csv::CsvDifferences;
pub use accumulator::Differences;
pub(crate) use accumulator::{DiffAccumulator, TableDiff};
pub use args::DiffArgs;
pub(crate) use cell::{CellValue, read_cells};
pub use difference::RowDifference;
pub(crate) use difference::{ChangeKind, ColumnDifference, DifferenceSink};
pub(crate) use html::write_differences;
use prices::PriceDifference;
pub(crate) use prices::{BAR_FIELDS, compare_bars};
pub use result::GenerationDiff;
pub use tables::{ComparedTable, TABLES};
pub(crate) use text::{print_diff, print_topic};

/// Hint for a user who requests a Parquet file from a build without the feature `parquet`.
#[cfg(not(feature = "parquet"))]
pub(crate) const NEEDS_PARQUET: &str =
    "this program was built without it; build it with cargo build --release --features projector/parquet";

const REVIEWED: &str = include_str!("../../../queries/diff_reviewed.sql");

/// Number of securities that are compared at the same time.
const SECURITIES_PER_CHUNK: usize = 250;
/// Number of funds whose holdings are compared at the same time.
const FUNDS_PER_CHUNK: usize = 4;
/// Number of price years that are compared at the same time. A price year has the prices of one security in one year.
const YEARS_PER_CHUNK: usize = 2000;
/// Maximum number of rows per table and per topic in the HTML report, unless `--limit` is larger.
pub(crate) const HTML_ROWS: usize = 500;

/// Compares two generations. A complete comparison of completely built generations is stored as a review, which a
/// promotion requires.
pub async fn compare_generations(
    database: &DatabaseArgs,
    args: &DiffArgs,
    mut shutdown: Shutdown,
) -> anyhow::Result<GenerationDiff> {
    let readers = open_readers(database, [args.a, args.b]).await?;
    let cancel = readers.each_ref().map(GenerationReader::cancel_query);
    tokio::select! {
        found = compare_readers(database, args, &readers) => found,
        () = shutdown.wait() => {
            for cancelled in cancel {
                cancelled.await?;
            }
            bail!("interrupted; no review was recorded");
        }
    }
}

async fn compare_readers(
    database: &DatabaseArgs,
    args: &DiffArgs,
    readers: &[GenerationReader; 2],
) -> anyhow::Result<GenerationDiff> {
    let only = canonical_symbols(args, readers).await?;
    // Create the output files first, so that a file error is reported before the long comparison.
    let files = create_sinks(args)?;
    let page = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let keep = if page.is_some() { args.limit.max(HTML_ROWS) } else { args.limit };
    let first_year = args.since.map(|since| since.year());
    let candidates = DiffCandidates::find(readers, only.as_deref(), first_year, args.whole).await?;
    let mut comparing = DiffRun { args, readers, candidates, accumulator: DiffAccumulator::new(keep, files) };
    comparing.compare_tables(only.as_deref()).await?;
    let mut differences = comparing.accumulator.finish()?;
    let mut client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    if args.why {
        let Differences { ranked, tables, .. } = &mut differences;
        ranked.iter_mut().for_each(|ranked| ranked.first.truncate(args.limit));
        explain::explain_findings(&mut client, [args.a, args.b], ranked).await?;
        explain::explain_rows(&mut client, [args.a, args.b], tables, args.limit).await?;
    }
    let [a, b] = readers.each_ref().map(|reader| reader.generation.clone());
    let (reasons, reviewed) = (find_reasons(&a, &b), args.is_complete() && !a.unfinished && !b.unfinished);
    let found = GenerationDiff { a, b, reasons, differences, reviewed };
    // Write the HTML report before storing the review. If the report fails, no review is stored.
    if let Some(page) = page {
        html::write_page(page, &found)?;
    }
    if found.reviewed {
        record_review(&mut client, &found).await?;
    }
    Ok(GenerationDiff { differences: found.differences.truncated(args.limit), ..found })
}

/// Creates the output files for all differing values.
fn create_sinks(args: &DiffArgs) -> anyhow::Result<Vec<Box<dyn DifferenceSink>>> {
    #[cfg(not(feature = "parquet"))]
    if args.parquet.is_some() {
        bail!("cannot write Parquet: {NEEDS_PARQUET}");
    }
    let mut files: Vec<Box<dyn DifferenceSink>> = Vec::new();
    if let Some(path) = &args.csv {
        files.push(Box::new(CsvDifferences::create(path)?));
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.parquet {
        files.push(Box::new(parquet::ParquetDifferences::create(path)?));
    }
    Ok(files)
}

/// Stores a complete comparison as a review of both generations. A generation can be promoted if a review compared it
/// with the served generation.
async fn record_review(client: &mut Client, found: &GenerationDiff) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    for [this, other] in [[&found.b, &found.a], [&found.a, &found.b]] {
        let values: [&(dyn ToSql + Sync); 4] =
            [&this.generation, &other.generation, &this.sequence, &other.sequence];
        transaction.execute(REVIEWED, &values).await?;
    }
    Ok(transaction.commit().await?)
}

/// Canonical symbols of the requested security in both generations. The list has two symbols if the canonical symbol
/// differs between the generations. `None` if no security was requested.
async fn canonical_symbols(
    args: &DiffArgs,
    [a, b]: &[GenerationReader; 2],
) -> anyhow::Result<Option<Vec<String>>> {
    let Some(symbol) = &args.symbol else { return Ok(None) };
    let (of_a, of_b) = tokio::try_join!(a.load_canonical_symbol(symbol), b.load_canonical_symbol(symbol))?;
    let mut found: Vec<String> = [of_a, of_b].into_iter().flatten().collect();
    found.dedup();
    if found.is_empty() {
        bail!("security {symbol} does not exist in either generation");
    }
    Ok(Some(found))
}

struct DiffRun<'a> {
    args: &'a DiffArgs,
    readers: &'a [GenerationReader; 2],
    candidates: DiffCandidates,
    accumulator: DiffAccumulator,
}

impl DiffRun<'_> {
    async fn compare_tables(&mut self, only: Option<&[String]>) -> anyhow::Result<()> {
        let wanted = |table: &&ComparedTable| {
            self.args.includes_table(table.name) && (only.is_none() || table.name != SECTORS)
        };
        let tables: Vec<&ComparedTable> = TABLES.iter().filter(wanted).collect();
        let rows = tables.iter().map(|table| self.candidates.owners(table).len());
        let years = if self.args.includes_table(PRICES) { self.candidates.years.len() } else { 0 };
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

    /// Adds a table to the result, with its row counts in both generations. Its differences are added afterwards.
    async fn count_table(&mut self, table: &ComparedTable, only: Option<&[String]>) -> anyhow::Result<()> {
        let since = self.args.since;
        let [rows_a, rows_b] = match table.name {
            PRICES => self.candidates.years_in_all,
            _ => {
                let [a, b] = self.readers.each_ref().map(|reader| reader.count_rows(table, only, since));
                tokio::try_join!(a, b)?.into()
            }
        };
        let [checksum_a, checksum_b] = self.candidates.checksums(table);
        let table = table.name.to_owned();
        let begun = TableDiff { table, rows_a, rows_b, checksum_a, checksum_b, ..TableDiff::default() };
        self.accumulator.begin_table(begun);
        Ok(())
    }

    async fn compare_rows(
        &mut self,
        table: &ComparedTable,
        progress: &mut ProgressReport,
    ) -> anyhow::Result<()> {
        let comparison = TableComparison::prepare(table, self.readers).await?;
        let owners = self.candidates.owners(table);
        let together = match table.name {
            // Compare all spellings together. A spelling that moved to another security is then one change, not a
            // removal and an addition.
            SYMBOLS => owners.len().max(1),
            // A fund has thousands of holdings per day.
            HOLDINGS => FUNDS_PER_CHUNK,
            _ => SECURITIES_PER_CHUNK,
        };
        for owners in owners.chunks(together) {
            let found = comparison.compare_owners(self.readers, owners, self.args.since).await?;
            found.into_iter().try_for_each(|difference| self.accumulator.add_row(difference))?;
            progress.add(owners.len() as u64);
        }
        Ok(())
    }

    async fn compare_prices(&mut self, progress: &mut ProgressReport) -> anyhow::Result<()> {
        let accumulator = &mut self.accumulator;
        for years in self.candidates.years.chunks(YEARS_PER_CHUNK) {
            let note = |day: &PriceDifference<'_>| accumulator.add_price_day(day);
            let compared = prices::compare_years(self.readers, years, self.args.since, note).await;
            compared.context("cannot compare prices")?;
            progress.add(years.len() as u64);
        }
        Ok(())
    }
}
