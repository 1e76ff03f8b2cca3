//! Arguments of `projector diff`.

use std::path::PathBuf;

use chrono::NaiveDate;
use clap::Args;
use clap::builder::PossibleValuesParser;
use market::symbol::Symbol;

use super::tables::TABLES;

/// What is compared, and where the differences go.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// The generation to start from, as a rule the served one
    pub a: i32,
    /// The generation to compare it with
    pub b: i32,
    /// Compare only this read table
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(TABLES.iter().map(|table| table.name)))]
    pub table: Option<String>,
    /// Compare only this security
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Of prices, dividends, splits, held rows and holdings compare only those from this day on
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// Differing rows to show per table, and differences per topic of the summary
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Say why each difference of the summary is there: observations, policy and rules of both sides
    #[arg(long)]
    pub why: bool,
    /// Compare every row, also where the digests that were written with the rows say that they are the same
    #[arg(long)]
    pub whole: bool,
    /// Write every differing value to this file, one a line
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write every differing value to this file, one a row
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Write a report to this file: one page that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl DiffArgs {
    /// Whether nothing is left out, so that a promotion may rest on it.
    pub(super) fn is_complete(&self) -> bool {
        self.table.is_none() && self.symbol.is_none() && self.since.is_none()
    }

    /// Whether a table is compared.
    pub(super) fn wants(&self, table: &str) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == table)
    }
}
