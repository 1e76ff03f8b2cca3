//! Collection of differences. They are counted and ranked. The first differing rows of each table stay in memory, and
//! all differing rows are written to files.

use std::collections::BTreeMap;

use chrono::Datelike;
use serde::Serialize;

use super::bars::{BAR_FIELDS, BarPair};
use super::files::DifferenceFile;
use super::ranking::{DiffRanking, TopicSummary};
use super::row_difference::{ChangeKind, RowDifference};
use super::rows::PRICES;

/// Table of the metrics. Only its differences are ranked by size.
const METRICS: &str = "metrics";

#[derive(Debug, Default, Serialize)]
pub(crate) struct TableDiff {
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
pub(crate) struct Differences {
    #[serde(rename = "summary")]
    pub ranked: Vec<TopicSummary>,
    pub tables: Vec<TableDiff>,
    /// Number of days with a price difference, by calendar year, summed over all securities.
    pub price_days: BTreeMap<i32, u64>,
    pub identical: bool,
}

impl Differences {
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
    price_days: BTreeMap<i32, u64>,
    files: Vec<DifferenceFile>,
}

impl DiffAccumulator {
    /// Creates an accumulator. The first `keep` differing rows of each table and the `keep` largest differences of each
    /// topic stay in memory. All differing rows are written to `files`.
    pub(crate) fn new(keep: usize, files: Vec<DifferenceFile>) -> Self {
        let (tables, price_days) = Default::default();
        Self { keep, tables, ranking: DiffRanking::new(keep), price_days, files }
    }

    pub(crate) fn begin_table(&mut self, table: TableDiff) {
        self.tables.push(table);
    }

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
        let columns = difference.columns.iter().map(|changed| changed.column.as_str());
        self.count(difference.table, difference.change, columns);
        self.store_row(difference)
    }

    /// Adds a day of a security if its prices differ. Returns true if they differ.
    pub(crate) fn add_prices(&mut self, symbol: &str, pair: &BarPair) -> anyhow::Result<bool> {
        if !pair.differs() {
            return Ok(false);
        }
        *self.price_days.entry(pair.date.year()).or_default() += 1;
        let differing = BAR_FIELDS.iter().filter(|field| pair.field_differs(field)).map(|field| field.0);
        self.count(PRICES, pair.change(), differing);
        // Formatting every differing day would be slow. A day is formatted as a row only if the row is kept or written
        // to a file.
        let keep = self.keep;
        if !self.files.is_empty() || self.table_mut(PRICES).is_some_and(|table| table.rows.len() < keep) {
            self.store_row(pair.to_row(symbol))?;
        }
        Ok(true)
    }

    pub(crate) fn finish(self) -> anyhow::Result<Differences> {
        self.files.into_iter().try_for_each(DifferenceFile::finish)?;
        Ok(Differences {
            ranked: self.ranking.finish(),
            price_days: self.price_days,
            identical: self.tables.iter().all(|table| table.differing == 0),
            tables: self.tables,
        })
    }

    fn table_mut(&mut self, name: &str) -> Option<&mut TableDiff> {
        self.tables.iter_mut().rfind(|table| table.table == name)
    }

    fn count<'c>(&mut self, table: &str, change: ChangeKind, columns: impl Iterator<Item = &'c str>) {
        let Some(table) = self.table_mut(table) else { return };
        table.differing += 1;
        for column in columns.filter(|_| change == ChangeKind::Changed) {
            // The name is allocated only for the first count.
            match table.columns.get_mut(column) {
                Some(count) => *count += 1,
                None => drop(table.columns.insert(column.to_owned(), 1)),
            }
        }
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
