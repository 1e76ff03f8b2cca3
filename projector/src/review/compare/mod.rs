//! Comparison of two versions of the read tables: differing rows, their number by table and column, and a ranking of
//! the largest changes.
//!
//! The rows come from two generations, from two derivations of one security, or from two sources.

mod bars;
mod differences;
mod files;
mod ranking;
mod report;
mod row_difference;
mod rows;

pub(crate) use bars::{BAR_FIELDS, each_pair};
pub(crate) use differences::{DiffAccumulator, Differences, TableDiff};
pub(crate) use files::{DifferenceFile, HTML_ROWS, PageFile};
pub(crate) use ranking::DiffTopic;
pub(crate) use row_difference::{CellValue, RowDifference};
pub(crate) use rows::{
    ComparedTable, DerivedCells, HOLDINGS, PRICES, RowComparison, SECTORS, SYMBOLS, TABLES,
};
