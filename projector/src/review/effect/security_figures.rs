//! Derived rows of one security, either before a run or now, and the comparison of these two versions.

use std::collections::BTreeMap;

use market::history::History;
use market::metrics::fund::{FundRows, fund};
use market::metrics::{Derivation, DerivationContext, DerivedRows, RowsBySource};
use market::row::TableRow;

use crate::review::diff::{
    CellValue, ChangeKind, ColumnDifference, ComparedTable, RowDifference, TABLES, read_cells,
};

/// Columns that are not compared. They may change even if the facts are equal.
const NOT_COMPARED: [&str; 3] = ["updated_at", "as_of", "method_version"];

/// Derived rows of a security, either before the run or now.
pub(super) struct SecurityFigures {
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

/// Names of the tables that are compared.
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
    let rows = sides.map(|side| side.map(&rows).unwrap_or_default());
    let mut found = ComparedRows { table, rows: rows.map(|rows| rows.len() as u64), differences: Vec::new() };
    let Some(table) = TABLES.iter().find(|known| known.name == table).filter(|_| rows[0] != rows[1]) else {
        return Ok(found);
    };
    let [before, mut after] = [index_by_key(table, rows[0])?, index_by_key(table, rows[1])?];
    for (key, cells) in before {
        let other = after.remove(&key);
        found.differences.extend(compare_cells::<T>(table, key.0, Some(cells), other));
    }
    for (key, cells) in after {
        found.differences.extend(compare_cells::<T>(table, key.0, None, Some(cells)));
    }
    Ok(found)
}

/// Values of a row's key columns, and a number from 0 that distinguishes rows with equal keys.
type RowKey = (Vec<CellValue>, usize);

fn index_by_key<T: TableRow>(
    table: &ComparedTable,
    rows: &[T],
) -> anyhow::Result<BTreeMap<RowKey, Vec<CellValue>>> {
    let mut found = BTreeMap::new();
    for row in rows {
        let cells = read_cells(row)?;
        let value =
            |name: &&str| T::COLUMNS.iter().position(|column| column == name).map(|at| cells[at].clone());
        let mut key: RowKey = (table.key.iter().filter_map(value).collect(), 0);
        while found.contains_key(&key) {
            key.1 += 1;
        }
        found.insert(key, cells);
    }
    Ok(found)
}

fn compare_cells<T: TableRow>(
    table: &ComparedTable,
    key: Vec<CellValue>,
    before: Option<Vec<CellValue>>,
    after: Option<Vec<CellValue>>,
) -> Option<RowDifference> {
    let change = match (&before, &after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    };
    let none = || vec![CellValue::Null; T::COLUMNS.len()];
    let pairs = before.unwrap_or_else(none).into_iter().zip(after.unwrap_or_else(none));
    let compared = T::COLUMNS
        .iter()
        .zip(pairs)
        .filter(|(column, (a, b))| a != b && !table.key.contains(*column) && !NOT_COMPARED.contains(*column));
    let columns: Vec<ColumnDifference> =
        compared.map(|(column, (a, b))| ColumnDifference { column: (*column).to_owned(), a, b }).collect();
    let differs = change != ChangeKind::Changed || !columns.is_empty();
    let key = table.key.iter().copied().zip(key).collect();
    differs.then_some(RowDifference { table: table.name, key, change, columns, why: Vec::new() })
}
