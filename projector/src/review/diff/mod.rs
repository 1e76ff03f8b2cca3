//! `projector diff A B`: differences between two generations, most important first, with explanations.
//!
//! Both generations are read in one snapshot. Stored digests show which securities and price years can differ. Only
//! these are read, in chunks.

mod explain;
mod generation_reader;

use std::path::PathBuf;

use anyhow::{Context, bail};
use chrono::{Datelike, NaiveDate};
use clap::Args;
use clap::builder::PossibleValuesParser;
use market::identity::SecurityAddress;
use serde::Serialize;
use store::db;
use store::ids::GenerationId;
use telemetry::Shutdown;
use telemetry::report::Report;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::progress::ProgressReport;
use crate::review::compare::{
    ComparedTable, DiffAccumulator, DifferenceFile, Differences, HOLDINGS, HTML_ROWS, PRICES, PageFile,
    RowComparison, SECTORS, SYMBOLS, TABLES, TableDiff, each_pair,
};
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use explain::DiffExplainer;
use generation_reader::{
    ComparedGeneration, DiffCandidates, DiffScope, GenerationReader, find_reasons, open_readers,
};

const REVIEWED: &str = include_str!("../../../queries/diff_reviewed.sql");

const SECURITIES_PER_CHUNK: usize = 250;
const FUNDS_PER_CHUNK: usize = 4;
/// Number of price years that are compared at the same time. A price year has the prices of one security in one year.
const YEARS_PER_CHUNK: usize = 2000;

/// Scope and output files of a comparison.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiffArgs {
    /// Number of the first generation to compare, usually the served generation
    pub a: GenerationId,
    /// Number of the second generation to compare
    pub b: GenerationId,
    /// Read table to compare; default: all tables
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(TABLES.iter().map(|table| table.name)))]
    pub table: Option<String>,
    /// Security to compare; default: all securities
    #[arg(long)]
    pub symbol: Option<SecurityAddress>,
    /// First day to compare, for prices, dividends, splits, quarantined rows and holdings
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// Maximum number of printed rows per table and of printed differences per topic
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Explain each printed difference: compare the observations and the formula of the figure in both generations
    #[arg(long)]
    pub why: bool,
    /// Compare all rows; by default, rows with equal digests (checksums) are skipped
    #[arg(long)]
    pub whole: bool,
    /// CSV file for all differing values, one per line
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Parquet file for all differing values, one per row
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// HTML file for a report without external resources
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl DiffArgs {
    /// `true` if the comparison covers all tables, securities and days. Only such a comparison permits a promotion.
    fn is_complete(&self) -> bool {
        self.table.is_none() && self.symbol.is_none() && self.since.is_none()
    }

    fn includes_table(&self, table: &str) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == table)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct GenerationDiff {
    a: ComparedGeneration,
    b: ComparedGeneration,
    /// Inputs of the derivations (such as rules, source policy and facts) that differ between the generations. They are
    /// the causes of the differing rows.
    reasons: Vec<String>,
    #[serde(flatten)]
    differences: Differences,
    /// `true` if the comparison is complete and counts as a review. A promotion requires a review.
    reviewed: bool,
}

impl GenerationDiff {
    pub(crate) fn report(&self) -> Report {
        let (before, after) = (self.a.generation, self.b.generation);
        let mut report = Report::new(format!("Generation {before} against {after}"));
        report.add_fact(format!("before is generation {before}, after is generation {after}"));
        self.reasons.iter().for_each(|reason| report.add_fact(format!("differs in {reason}")));
        if self.differences.identical {
            report.add_fact("identical");
        }
        if self.a.unfinished || self.b.unfinished {
            report.add_fact(
                "a generation is still being built (projector rebuild); compare again before a promotion",
            );
        } else if !self.reviewed {
            report.add_fact("partial comparison; a promotion requires a complete one");
        }
        self.differences.add_charts(&mut report);
        Differences::add_tables(&mut report, self.differences.tables.iter());
        self.differences.add_topics(&mut report);
        self.differences.add_rows(&mut report, true);
        report
    }
}

/// Compares two generations. A complete comparison of completely built generations is stored as a review, which a
/// promotion requires.
pub(crate) async fn compare_generations(
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
    let files = create_files(args)?;
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let keep = if page.is_some() { args.limit.max(HTML_ROWS) } else { args.limit };
    let scope = DiffScope {
        only: only.as_deref(),
        first_price_year: args.since.map(|since| since.year()),
        include_equal: args.whole,
    };
    let candidates = DiffCandidates::find(readers, &scope).await?;
    let mut comparing = DiffRun { args, readers, candidates, accumulator: DiffAccumulator::new(keep, files) };
    comparing.compare_tables(only.as_deref()).await?;
    let mut differences = comparing.accumulator.finish()?;
    let mut client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    if args.why {
        let mut explainer = DiffExplainer { client: &mut client, generations: [args.a, args.b] };
        explainer.explain(&mut differences, args.limit).await?;
    }
    let [a, b] = readers.each_ref().map(|reader| reader.generation.clone());
    let (reasons, reviewed) = (find_reasons(&a, &b), args.is_complete() && !a.unfinished && !b.unfinished);
    let found = GenerationDiff { a, b, reasons, differences, reviewed };
    // Write the HTML report before storing the review. If the report fails, no review is stored.
    page.map(|page| page.write(&found.report())).transpose()?;
    if found.reviewed {
        record_review(&mut client, &found).await?;
    }
    Ok(GenerationDiff { differences: found.differences.truncated(args.limit), ..found })
}

fn create_files(args: &DiffArgs) -> anyhow::Result<Vec<DifferenceFile>> {
    let csv = args.csv.as_deref().map(DifferenceFile::create_csv);
    let parquet = args.parquet.as_deref().map(DifferenceFile::create_parquet);
    csv.into_iter().chain(parquet).collect()
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
        let wanted = |table: &&'static ComparedTable| {
            self.args.includes_table(table.name) && (only.is_none() || table.name != SECTORS)
        };
        let tables: Vec<&'static ComparedTable> = TABLES.iter().filter(wanted).collect();
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
        table: &'static ComparedTable,
        progress: &mut ProgressReport,
    ) -> anyhow::Result<()> {
        let [a, b] = self.readers;
        let statements = [a.prepare_rows(table).await?, b.prepare_rows(table).await?];
        let columns = statements
            .each_ref()
            .map(|statement| statement.columns().iter().map(|column| (column.name(), column.type_())));
        // A different rule version is a cause of differing rows and not an effect.
        let comparison = RowComparison::new(table, columns, &["method_version"]);
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
            let parameters: [&(dyn ToSql + Sync); 2] = [&owners, &self.args.since];
            let rows = tokio::try_join!(
                a.client.query(&statements[0], &parameters),
                b.client.query(&statements[1], &parameters)
            )?;
            let found = comparison.compare(rows.into())?;
            found.into_iter().try_for_each(|difference| self.accumulator.add_row(difference))?;
            progress.add(owners.len() as u64);
        }
        Ok(())
    }

    async fn compare_prices(&mut self, progress: &mut ProgressReport) -> anyhow::Result<()> {
        let [a, b] = self.readers;
        for years in self.candidates.years.chunks(YEARS_PER_CHUNK) {
            let bars = tokio::try_join!(a.load_bars(years), b.load_bars(years));
            let (mut left, mut right) = bars.context("cannot compare prices")?;
            for key in years {
                let bars = [left.remove(key).unwrap_or_default(), right.remove(key).unwrap_or_default()];
                each_pair(bars.each_ref(), |pair| match self.args.since {
                    Some(since) if pair.date < since => Ok(()),
                    _ => self.accumulator.add_prices(&key.0, pair).map(drop),
                })?;
            }
            progress.add(years.len() as u64);
        }
        Ok(())
    }
}
