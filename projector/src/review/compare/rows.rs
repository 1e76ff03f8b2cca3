//! Comparison of two sets of rows of one table, by key and column.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, anyhow};
use bytes::BytesMut;
use market::row::TableRow;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, Type};

use super::row_difference::{CellValue, ChangeKind, ColumnDifference, EncodedCell, RowDifference};

/// Compared read table and its key. An owner of rows is a security, fund or sector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComparedTable {
    /// Name of the table, in the database and in the option `--table`.
    pub(crate) name: &'static str,
    pub(crate) key: &'static [&'static str],
    pub(crate) owner: &'static str,
    /// Column with the day of a row; `None` if the rows have no day.
    pub(crate) day: Option<&'static str>,
    /// SQL sort order for rows with equal keys; `None` if each key is unique.
    pub(crate) tie: Option<&'static str>,
}

const fn table(name: &'static str, key: &'static [&'static str]) -> ComparedTable {
    ComparedTable { name, key, owner: "symbol", day: None, tie: None }
}

pub(crate) static TABLES: [ComparedTable; 13] = [
    table("stocks", &["symbol"]),
    table("quotes", &["symbol"]),
    table("fundamentals", &["symbol"]),
    table("metrics", &["symbol"]),
    ComparedTable { day: Some("ex_date"), ..table("dividends", &["symbol", "ex_date", "type", "id"]) },
    ComparedTable { day: Some("ex_date"), ..table("splits", &["symbol", "ex_date", "id"]) },
    ComparedTable {
        day: Some("date"),
        tie: Some("id, message"),
        ..table("quarantine", &["symbol", "kind", "date", "source", "line"])
    },
    ComparedTable { day: Some("date"), ..table(PRICES, &["symbol", "date"]) },
    table("factors", &["symbol"]),
    ComparedTable { owner: "canonical", ..table(SYMBOLS, &["symbol"]) },
    table("etfs", &["symbol"]),
    ComparedTable {
        owner: "etf_symbol",
        day: Some("as_of"),
        ..table(HOLDINGS, &["etf_symbol", "as_of", "rank"])
    },
    ComparedTable { owner: "slug", ..table(SECTORS, &["slug"]) },
];

/// Table of prices. A row contains one year of bars, which are unpacked and compared by day and field.
pub(crate) const PRICES: &str = "prices";
/// Table of the current and former symbols of each security. A symbol may belong to different securities in the two
/// versions.
pub(crate) const SYMBOLS: &str = "symbols";
/// Table of fund holdings, with thousands of rows per fund and day.
pub(crate) const HOLDINGS: &str = "holdings";
/// Table of sector statistics. Its rows do not belong to a security.
pub(crate) const SECTORS: &str = "sectors";

pub(crate) trait EncodedRow {
    fn cell(&self, column: usize) -> anyhow::Result<EncodedCell<'_>>;
}

impl EncodedRow for Row {
    fn cell(&self, column: usize) -> anyhow::Result<EncodedCell<'_>> {
        Ok(self.try_get(column)?)
    }
}

/// Derived row, encoded as Postgres stores it.
#[derive(Debug)]
pub(crate) struct DerivedCells(Vec<Option<BytesMut>>);

impl DerivedCells {
    pub(crate) fn encode<T: TableRow>(row: &T) -> anyhow::Result<Self> {
        let mut cells = Vec::with_capacity(T::COLUMNS.len());
        for (value, ty) in row.values().into_iter().zip(T::types()) {
            let mut bytes = BytesMut::new();
            let encoded = value.to_sql_checked(ty, &mut bytes).map_err(|error| anyhow!(error))?;
            cells.push(matches!(encoded, IsNull::No).then_some(bytes));
        }
        Ok(Self(cells))
    }
}

impl EncodedRow for DerivedCells {
    fn cell(&self, column: usize) -> anyhow::Result<EncodedCell<'_>> {
        Ok(EncodedCell(self.0[column].as_deref()))
    }
}

/// Comparison of the rows of one table. A version may lack columns that the other one has.
pub(crate) struct RowComparison {
    table: &'static ComparedTable,
    /// Columns by name, each with its index and type in both versions; `None` if a version lacks the column.
    columns: BTreeMap<String, [Option<(usize, Type)>; 2]>,
}

impl RowComparison {
    /// Creates a comparison of rows with these columns. Columns in `ignored` are not compared, except for key columns.
    pub(crate) fn new<'c, C: Iterator<Item = (&'c str, &'c Type)>>(
        table: &'static ComparedTable,
        sides: [C; 2],
        ignored: &[&str],
    ) -> Self {
        let mut columns: BTreeMap<String, [Option<(usize, Type)>; 2]> = BTreeMap::new();
        for (side, of_side) in sides.into_iter().enumerate() {
            for (index, (name, ty)) in of_side.enumerate() {
                if table.key.contains(&name) || !ignored.contains(&name) {
                    columns.entry(name.to_owned()).or_default()[side] = Some((index, ty.clone()));
                }
            }
        }
        Self { table, columns }
    }

    pub(crate) fn of_derived<T: TableRow>(table: &str, ignored: &[&str]) -> anyhow::Result<Self> {
        let table = TABLES.iter().find(|known| known.name == table).context("the table is not compared")?;
        let columns = || T::COLUMNS.iter().copied().zip(T::types());
        Ok(Self::new(table, [columns(), columns()], ignored))
    }

    /// Compares the rows of both versions. Returns the differences sorted by key.
    pub(crate) fn compare<R: EncodedRow>(&self, [a, b]: [Vec<R>; 2]) -> anyhow::Result<Vec<RowDifference>> {
        let mut others = self.index_by_key(1, b)?;
        let mut differences = Vec::new();
        for (key, row) in self.index_by_key(0, a)? {
            differences.extend(self.compare_pair([Some(&row), others.remove(&key).as_ref()])?);
        }
        for row in others.values() {
            differences.extend(self.compare_pair([None, Some(row)])?);
        }
        differences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(differences)
    }

    /// Values of a column in two rows; `None` if a row lacks the value.
    pub(crate) fn values<R: EncodedRow>(
        &self,
        column: &str,
        rows: [&R; 2],
    ) -> anyhow::Result<Option<[CellValue; 2]>> {
        let Some(places) = self.columns.get(column) else { return Ok(None) };
        let [a, b] = [0, 1].map(|side| self.decode(&places[side], Some(rows[side])));
        Ok(Some([a?, b?]).filter(|values| !values.contains(&CellValue::Null)))
    }

    /// Maps rows by key: the bytes of the key columns, and a number that makes equal keys distinct.
    fn index_by_key<R: EncodedRow>(
        &self,
        side: usize,
        rows: Vec<R>,
    ) -> anyhow::Result<HashMap<(Vec<u8>, usize), R>> {
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let mut key = Vec::new();
            for name in self.table.key {
                let EncodedCell(value) = cell(&self.columns[*name][side], Some(&row))?;
                key.push(u8::from(value.is_some()));
                key.extend(value.unwrap_or_default());
                key.push(0);
            }
            let mut numbered = (key, 0);
            while found.contains_key(&numbered) {
                numbered.1 += 1;
            }
            found.insert(numbered, row);
        }
        Ok(found)
    }

    /// Compares two rows with equal keys. A row is `None` if its version lacks the key.
    fn compare_pair<R: EncodedRow>(&self, rows: [Option<&R>; 2]) -> anyhow::Result<Option<RowDifference>> {
        let mut columns = Vec::new();
        for (column, places) in &self.columns {
            let cells = [cell(&places[0], rows[0])?, cell(&places[1], rows[1])?];
            if cells[0] == cells[1] || self.table.key.contains(&column.as_str()) {
                continue;
            }
            let (a, b) = (self.decode(&places[0], rows[0])?, self.decode(&places[1], rows[1])?);
            if a != b {
                columns.push(ColumnDifference { column: column.clone(), a, b });
            }
        }
        let change = ChangeKind::of(rows);
        if change == ChangeKind::Changed && columns.is_empty() {
            return Ok(None);
        }
        let side = usize::from(change == ChangeKind::Added);
        let mut key = Vec::new();
        for name in self.table.key {
            key.push((*name, self.decode(&self.columns[*name][side], rows[side])?));
        }
        Ok(Some(RowDifference { table: self.table.name, key, change, columns, why: Vec::new() }))
    }

    fn decode<R: EncodedRow>(
        &self,
        place: &Option<(usize, Type)>,
        row: Option<&R>,
    ) -> anyhow::Result<CellValue> {
        let Some((_, ty)) = place else { return Ok(CellValue::Null) };
        let decoded = cell(place, row)?.decode(ty);
        decoded.map_err(|error| anyhow!("cannot decode a value of {}: {error}", self.table.name))
    }
}

/// Value of a column in a row. It is null if the version lacks the row or the column.
fn cell<'r, R: EncodedRow>(
    place: &Option<(usize, Type)>,
    row: Option<&'r R>,
) -> anyhow::Result<EncodedCell<'r>> {
    match (place, row) {
        (Some((column, _)), Some(row)) => row.cell(*column),
        _ => Ok(EncodedCell(None)),
    }
}
