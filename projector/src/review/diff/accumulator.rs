//! Collection of the differences between two versions of the read tables. Differences are counted and ranked. The first
//! differing rows of each table stay in memory, and all differing rows are written to files.

use std::collections::BTreeMap;

use chrono::Datelike;
use serde::Serialize;

use super::difference::{ChangeKind, DifferenceSink, RowDifference};
use super::prices::PriceDifference;
use super::ranking::{DiffRanking, TopicSummary};
use super::tables::PRICES;

/// Name of the table with the metrics. Only differences in this table are ranked by size.
const METRICS: &str = "metrics";

/// Differences in one table.
#[derive(Debug, Default, Serialize)]
pub struct TableDiff {
    pub table: String,
    /// Number of rows in the first version. In table `prices`, a row contains the prices of one security in one year.
    pub rows_a: u64,
    pub rows_b: u64,
    /// Checksum of the table in the first version: the sum of its securities' digests. Null if a digest is missing.
    pub checksum_a: Option<String>,
    pub checksum_b: Option<String>,
    /// Number of differing rows. For prices, the number of differing days, summed over all securities. The list `rows`
    /// contains only the first differing rows.
    pub differing: u64,
    /// Number of rows with different values in a column, by column. Rows that only one version has are not counted.
    pub columns: BTreeMap<String, u64>,
    pub rows: Vec<RowDifference>,
}

/// Differences between two versions of the read tables, with a summary of the largest ones.
#[derive(Debug, Default, Serialize)]
pub struct Differences {
    /// Summary: the largest differences of each topic.
    #[serde(rename = "summary")]
    pub ranked: Vec<TopicSummary>,
    /// Differences of each compared table.
    pub tables: Vec<TableDiff>,
    /// Number of days with a price difference, by calendar year, summed over all securities.
    pub price_days: BTreeMap<i32, u64>,
    /// `true` if no compared row differs.
    pub identical: bool,
}

impl Differences {
    /// Keeps only the first `limit` rows of each table and of each topic.
    pub(crate) fn truncated(mut self, limit: usize) -> Self {
        self.ranked.iter_mut().for_each(|ranked| ranked.first.truncate(limit));
        self.tables.iter_mut().for_each(|table| table.rows.truncate(limit));
        self
    }
}

#[derive(Debug)]
pub(crate) struct DiffAccumulator {
    /// Maximum number of differing rows per table that stay in memory.
    keep: usize,
    tables: Vec<TableDiff>,
    ranking: DiffRanking,
    /// Number of days with a price difference, by calendar year, summed over all securities.
    years: BTreeMap<i32, u64>,
    files: Vec<Box<dyn DifferenceSink>>,
}

impl DiffAccumulator {
    /// Creates an accumulator. The first `keep` differing rows of each table and the `keep` largest differences of each
    /// topic stay in memory. All differing rows are written to `files`.
    pub(crate) fn new(keep: usize, files: Vec<Box<dyn DifferenceSink>>) -> Self {
        Self { keep, tables: Vec::new(), ranking: DiffRanking::new(keep), years: BTreeMap::new(), files }
    }

    /// Adds a table. Its differences are added afterwards.
    pub(crate) fn begin_table(&mut self, table: TableDiff) {
        self.tables.push(table);
    }

    /// Increases the row counts of a table, for the first and for the second version.
    pub(crate) fn add_row_counts(&mut self, table: &str, [rows_a, rows_b]: [u64; 2]) {
        if let Some(table) = self.table_mut(table) {
            table.rows_a += rows_a;
            table.rows_b += rows_b;
        }
    }

    pub(crate) fn add_row(&mut self, difference: RowDifference) -> anyhow::Result<()> {
        if difference.table == METRICS {
            self.ranking.add(&difference);
        }
        if let Some(table) = self.table_mut(difference.table) {
            table.differing += 1;
            if difference.change == ChangeKind::Changed {
                difference
                    .columns
                    .iter()
                    .for_each(|changed| count_column(&mut table.columns, &changed.column));
            }
        }
        self.store_row(difference)
    }

    /// Adds a day on which the prices of a security differ.
    pub(crate) fn add_price_day(&mut self, day: &PriceDifference<'_>) -> anyhow::Result<()> {
        *self.years.entry(day.date.year()).or_default() += 1;
        let Some(table) = self.table_mut(PRICES) else { return Ok(()) };
        table.differing += 1;
        if day.change == ChangeKind::Changed {
            day.differing_fields().for_each(|field| count_column(&mut table.columns, field));
        }
        // Formatting every differing day would be slow. A day is formatted as a row only if the row is kept or written
        // to a file.
        let shown = table.rows.len();
        if shown < self.keep || !self.files.is_empty() { self.store_row(day.to_row()) } else { Ok(()) }
    }

    /// Completes the output files and returns the collected differences.
    pub(crate) fn finish(self) -> anyhow::Result<Differences> {
        self.files.into_iter().try_for_each(|file| file.finish())?;
        Ok(Differences {
            ranked: self.ranking.finish(),
            price_days: self.years,
            identical: self.tables.iter().all(|table| table.differing == 0),
            tables: self.tables,
        })
    }

    fn table_mut(&mut self, name: &str) -> Option<&mut TableDiff> {
        self.tables.iter_mut().rfind(|table| table.table == name)
    }

    fn store_row(&mut self, difference: RowDifference) -> anyhow::Result<()> {
        self.files.iter_mut().try_for_each(|file| file.write(&difference))?;
        let keep = self.keep;
        if let Some(table) = self.table_mut(difference.table).filter(|table| table.rows.len() < keep) {
            table.rows.push(difference);
        }
        Ok(())
    }
}

/// Increments the count of a column. The name is allocated only for the first count.
fn count_column(columns: &mut BTreeMap<String, u64>, name: &str) {
    match columns.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(columns.insert(name.to_owned(), 1)),
    }
}
