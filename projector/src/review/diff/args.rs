//! Arguments of `projector diff`.

use std::path::PathBuf;

use chrono::NaiveDate;
use clap::Args;
use clap::builder::PossibleValuesParser;
use market::symbol::Symbol;
use store::ids::GenerationId;

use super::tables::TABLES;

/// Scope and output files of a comparison.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Number of the first generation to compare, usually the served generation
    pub a: GenerationId,
    /// Number of the second generation to compare
    pub b: GenerationId,
    /// Read table to compare; default: all tables
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(TABLES.iter().map(|table| table.name)))]
    pub table: Option<String>,
    /// Security to compare; default: all securities
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// First day to compare, for prices, dividends, splits, quarantined rows and holdings
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// Maximum number of printed rows per table and of printed differences per topic
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Explain each difference in the summary: compare the observations, the policy and the rules of both generations
    #[arg(long)]
    pub why: bool,
    /// Compare all rows; by default, rows with equal digests (checksums) are skipped
    #[arg(long)]
    pub whole: bool,
    /// CSV file for all differing values, one per line
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Parquet file for all differing values, one per row
    // Without the feature `parquet`, this option is hidden and fails with a hint.
    #[arg(long, value_name = "FILE", hide = cfg!(not(feature = "parquet")))]
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
    pub(super) fn is_complete(&self) -> bool {
        self.table.is_none() && self.symbol.is_none() && self.since.is_none()
    }

    pub(super) fn includes_table(&self, table: &str) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == table)
    }
}
