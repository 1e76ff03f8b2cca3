//! What becomes of each difference: it is counted, ranked, shown as long as there is room, and written out.

use std::collections::BTreeMap;

use chrono::Datelike;
use serde::Serialize;

use super::csv::DifferenceSink;
use super::difference::{ChangeKind, RowDifference};
use super::prices::PriceDifference;
use super::ranking::{DiffRanking, TopicSummary};
use super::tables::PRICES;

/// The table whose figures are ranked.
const METRICS: &str = "metrics";

/// One table of the comparison.
#[derive(Debug, Default, Serialize)]
pub struct TableDiff {
    pub table: String,
    /// Rows of the first generation; of prices, years of a security.
    pub rows_a: u64,
    pub rows_b: u64,
    /// The sum of its rows' digests; null where rows have none.
    pub checksum_a: Option<String>,
    pub checksum_b: Option<String>,
    /// Differing rows in all, of prices days; `rows` lists the first of them.
    pub differing: u64,
    /// How many of these differ in each column.
    pub columns: BTreeMap<String, u64>,
    pub rows: Vec<RowDifference>,
}

/// Everything that is found.
#[derive(Debug)]
pub(super) struct DiffAccumulator {
    /// Rows kept of each table.
    keep: usize,
    pub(super) tables: Vec<TableDiff>,
    ranking: DiffRanking,
    /// Days of differing prices, by year.
    pub(super) years: BTreeMap<i32, u64>,
    files: Vec<Box<dyn DifferenceSink>>,
}

impl DiffAccumulator {
    /// Keeps so many rows of each table and topic, and writes all of them to the files.
    pub(super) fn new(keep: usize, files: Vec<Box<dyn DifferenceSink>>) -> Self {
        Self { keep, tables: Vec::new(), ranking: DiffRanking::new(keep), years: BTreeMap::new(), files }
    }

    /// What follows is of another table.
    pub(super) fn begin_table(&mut self, table: TableDiff) {
        self.tables.push(table);
    }

    /// A row that differs.
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

    /// A day of prices that differs.
    pub(super) fn add_price_day(&mut self, day: &PriceDifference<'_>) -> anyhow::Result<()> {
        *self.years.entry(day.date.year()).or_default() += 1;
        let Some(table) = self.tables.last_mut().filter(|table| table.table == PRICES) else { return Ok(()) };
        table.differing += 1;
        if day.change == ChangeKind::Changed {
            day.differing_fields().for_each(|field| count_column(&mut table.columns, field));
        }
        // A market has many days: they become rows only where somebody looks at them.
        if table.rows.len() < self.keep || !self.files.is_empty() {
            self.store_row(day.to_row())
        } else {
            Ok(())
        }
    }

    /// The tables and the topics; the files are whole.
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

/// Counts a column, which is named once.
fn count_column(columns: &mut BTreeMap<String, u64>, name: &str) {
    match columns.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(columns.insert(name.to_owned(), 1)),
    }
}
