//! Accumulator of a comparison. It counts and ranks differences, keeps the first rows, and writes all rows to files.

use std::collections::BTreeMap;

use chrono::Datelike;
use serde::Serialize;

use super::csv::DifferenceSink;
use super::difference::{ChangeKind, RowDifference};
use super::prices::PriceDifference;
use super::ranking::{DiffRanking, TopicSummary};
use super::tables::PRICES;

/// Table whose metrics are ranked.
const METRICS: &str = "metrics";

/// Differences of one table.
#[derive(Debug, Default, Serialize)]
pub struct TableDiff {
    pub table: String,
    /// Number of rows of the first generation. For prices, number of years of securities.
    pub rows_a: u64,
    pub rows_b: u64,
    /// Sum of the row digests of the first generation; null if the rows have no digests.
    pub checksum_a: Option<String>,
    pub checksum_b: Option<String>,
    /// Number of differing rows, of which `rows` contains the first. For prices, number of differing days.
    pub differing: u64,
    /// Number of differing rows by column.
    pub columns: BTreeMap<String, u64>,
    pub rows: Vec<RowDifference>,
}

#[derive(Debug)]
pub(super) struct DiffAccumulator {
    /// Maximum number of rows kept per table.
    keep: usize,
    pub(super) tables: Vec<TableDiff>,
    ranking: DiffRanking,
    /// Number of days with differing prices, by year.
    pub(super) years: BTreeMap<i32, u64>,
    files: Vec<Box<dyn DifferenceSink>>,
}

impl DiffAccumulator {
    /// Creates an accumulator. It keeps up to `keep` rows per table and topic, and writes all rows to the files.
    pub(super) fn new(keep: usize, files: Vec<Box<dyn DifferenceSink>>) -> Self {
        Self { keep, tables: Vec::new(), ranking: DiffRanking::new(keep), years: BTreeMap::new(), files }
    }

    /// Starts the next table.
    pub(super) fn begin_table(&mut self, table: TableDiff) {
        self.tables.push(table);
    }

    /// Adds a differing row.
    pub(super) fn add_row(&mut self, difference: RowDifference) -> anyhow::Result<()> {
        if difference.table == METRICS {
            self.ranking.add(&difference);
        }
        if let Some(table) = self.tables.last_mut() {
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

    /// Adds a day with differing prices.
    pub(super) fn add_price_day(&mut self, day: &PriceDifference<'_>) -> anyhow::Result<()> {
        *self.years.entry(day.date.year()).or_default() += 1;
        let Some(table) = self.tables.last_mut().filter(|table| table.table == PRICES) else { return Ok(()) };
        table.differing += 1;
        if day.change == ChangeKind::Changed {
            day.differing_fields().for_each(|field| count_column(&mut table.columns, field));
        }
        // A market has many days. They become rows only if they are shown or written.
        if table.rows.len() < self.keep || !self.files.is_empty() {
            self.store_row(day.to_row())
        } else {
            Ok(())
        }
    }

    /// Completes the files and returns tables and topics.
    pub(super) fn finish(self) -> anyhow::Result<(Vec<TableDiff>, Vec<TopicSummary>)> {
        self.files.into_iter().try_for_each(|file| file.finish())?;
        Ok((self.tables, self.ranking.finish()))
    }

    fn store_row(&mut self, difference: RowDifference) -> anyhow::Result<()> {
        self.files.iter_mut().try_for_each(|file| file.write(&difference))?;
        if let Some(table) = self.tables.last_mut().filter(|table| table.rows.len() < self.keep) {
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
