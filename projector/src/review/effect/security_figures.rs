//! Derived rows of one security, either before a run or now, and the comparison of these two versions.

use market::history::History;
use market::metrics::fund::{FundRows, fund};
use market::metrics::{Derivation, DerivationContext, DerivedRows, RowsBySource};
use market::row::TableRow;

use crate::review::compare::{DerivedCells, RowComparison, RowDifference};

/// Columns that are not compared. They may change even if the facts are equal.
const NOT_COMPARED: [&str; 3] = ["updated_at", "as_of", "method_version"];

pub(crate) struct SecurityFigures {
    pub(super) rows: DerivedRows,
    fund: Option<FundRows>,
    pub(super) sources: RowsBySource,
}

/// Differences of one security in one table. `rows` has the number of its rows before the run, and the number now.
pub(super) struct ComparedRows {
    pub(super) table: &'static str,
    pub(super) rows: [u64; 2],
    pub(super) differences: Vec<RowDifference>,
}

impl SecurityFigures {
    pub(crate) fn has_same_rows(&self, other: &Self) -> bool {
        self.rows == other.rows && self.fund == other.fund
    }

    /// Derives a security; `None` if the security is not listed.
    pub(super) fn derive(history: &History, context: &DerivationContext<'_>) -> Option<Self> {
        let derivation = Derivation::new(history, context);
        let sources = derivation.rows_by_source();
        let rows = derivation.rows();
        let fund = fund(history, context, &rows.stock, &rows.metrics);
        let is_listed = history.security.is_some() || fund.is_some() || rows.has_live_rows();
        is_listed.then_some(Self { rows, fund, sources })
    }
}

/// Compares the rows of a security before the run with its rows now. If the security is listed at only one of these
/// times, compares only its metrics and quarantined rows.
pub(super) fn compare_figures(sides: [Option<&SecurityFigures>; 2]) -> anyhow::Result<Vec<ComparedRows>> {
    fn one<T>(row: &T) -> &[T] {
        std::slice::from_ref(row)
    }
    let mut found = vec![
        compare("metrics", sides, |side| one(&side.rows.metrics))?,
        compare("quarantine", sides, |side| &side.rows.quarantined)?,
    ];
    if sides.iter().all(Option::is_some) {
        found.push(compare("stocks", sides, |side| one(&side.rows.stock))?);
        found.push(compare("quotes", sides, |side| one(&side.rows.quote))?);
        found.push(compare("fundamentals", sides, |side| side.rows.fundamentals.as_slice())?);
        found.push(compare("dividends", sides, |side| &side.rows.dividends)?);
        found.push(compare("splits", sides, |side| &side.rows.splits)?);
        found.push(compare("etfs", sides, |side| side.fund.as_ref().map_or(&[], |fund| one(&fund.etf)))?);
        found.push(compare("holdings", sides, |side| side.fund.as_ref().map_or(&[], |fund| &fund.holdings))?);
    }
    Ok(found)
}

pub(super) const COMPARED: [&str; 10] = [
    "metrics",
    "quarantine",
    "stocks",
    "quotes",
    "fundamentals",
    "dividends",
    "splits",
    "etfs",
    "holdings",
    "prices",
];

fn compare<T: TableRow + PartialEq>(
    table: &'static str,
    sides: [Option<&SecurityFigures>; 2],
    rows: impl Fn(&SecurityFigures) -> &[T],
) -> anyhow::Result<ComparedRows> {
    let [before, after] = sides.map(|side| side.map(&rows).unwrap_or_default());
    let mut differences = Vec::new();
    if before != after {
        let encode = |rows: &[T]| rows.iter().map(DerivedCells::encode).collect::<anyhow::Result<_>>();
        let comparison = RowComparison::of_derived::<T>(table, &NOT_COMPARED)?;
        differences = comparison.compare([encode(before)?, encode(after)?])?;
    }
    Ok(ComparedRows { table, rows: [before.len() as u64, after.len() as u64], differences })
}
