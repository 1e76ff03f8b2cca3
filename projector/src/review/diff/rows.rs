//! Comparison of the rows of one table, column by column. Only rows of the given owners are compared. An owner is a
//! security, fund or sector.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::cell::{CellValue, PostgresCell};
use super::difference::{ChangeKind, ColumnDifference, RowDifference};
use super::generation_reader::GenerationReader;
use super::tables::{ComparedTable, METHOD_VERSION};

/// Table to compare, with one prepared query per generation. A generation may lack columns that the other one has.
pub(super) struct TableComparison<'a> {
    table: &'a ComparedTable,
    statements: [Statement; 2],
    /// Compared columns, each with its index in both generations; `None` if a generation lacks the column.
    columns: Vec<(String, [Option<usize>; 2])>,
}

impl<'a> TableComparison<'a> {
    pub(super) async fn prepare(
        table: &'a ComparedTable,
        [a, b]: &[GenerationReader; 2],
    ) -> anyhow::Result<Self> {
        let statements = [a.prepare_rows(table).await?, b.prepare_rows(table).await?];
        let mut places: BTreeMap<String, [Option<usize>; 2]> = BTreeMap::new();
        for (side, statement) in statements.iter().enumerate() {
            for (place, column) in statement.columns().iter().enumerate() {
                places.entry(column.name().to_owned()).or_default()[side] = Some(place);
            }
        }
        places.remove(METHOD_VERSION);
        Ok(Self { table, statements, columns: places.into_iter().collect() })
    }

    /// Compares the rows of some owners (securities, funds or sectors). Returns the differences sorted by key.
    pub(super) async fn compare_owners(
        &self,
        [a, b]: &[GenerationReader; 2],
        owners: &[String],
        since: Option<NaiveDate>,
    ) -> anyhow::Result<Vec<RowDifference>> {
        let parameters: [&(dyn ToSql + Sync); 2] = [&owners, &since];
        let (left, right) = tokio::try_join!(
            a.client.query(&self.statements[0], &parameters),
            b.client.query(&self.statements[1], &parameters)
        )?;
        let mut others = self.index_by_key(1, right)?;
        let mut differences = Vec::new();
        for (key, row) in self.index_by_key(0, left)? {
            let other = others.remove(&key);
            differences.extend(self.compare_rows([Some(&row), other.as_ref()])?);
        }
        for row in others.values() {
            differences.extend(self.compare_rows([None, Some(row)])?);
        }
        differences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(differences)
    }

    /// Maps rows by key: the bytes of the key columns, and a number that makes equal keys distinct.
    fn index_by_key(&self, side: usize, rows: Vec<Row>) -> anyhow::Result<HashMap<(Vec<u8>, usize), Row>> {
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let mut key = Vec::new();
            for name in self.table.key {
                let value = raw_value(Some(&row), self.place(side, name))?;
                key.push(u8::from(value.0.is_some()));
                key.extend(value.0.unwrap_or_default());
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

    /// Index of a column in the rows of one generation; `None` if the generation lacks the column.
    fn place(&self, side: usize, name: &str) -> Option<usize> {
        self.columns.iter().find(|(column, _)| column == name).and_then(|(_, places)| places[side])
    }

    /// Compares two rows with equal keys, one from each generation. A row is `None` if its generation lacks the key.
    /// Returns `None` if all compared columns are equal.
    fn compare_rows(&self, rows: [Option<&Row>; 2]) -> anyhow::Result<Option<RowDifference>> {
        let mut columns = Vec::new();
        for (column, places) in &self.columns {
            let raws = [raw_value(rows[0], places[0])?, raw_value(rows[1], places[1])?];
            if raws[0] != raws[1] && !self.table.key.contains(&column.as_str()) {
                let (a, b) = (self.decode(0, places[0], raws[0])?, self.decode(1, places[1], raws[1])?);
                columns.push(ColumnDifference { column: column.clone(), a, b });
            }
        }
        let (change, side) = match rows {
            [None, None] => return Ok(None),
            [None, _] => (ChangeKind::Added, 1),
            [_, None] => (ChangeKind::Removed, 0),
            _ if columns.is_empty() => return Ok(None),
            _ => (ChangeKind::Changed, 0),
        };
        let mut key = Vec::new();
        for name in self.table.key {
            let place = self.place(side, name);
            key.push((*name, self.decode(side, place, raw_value(rows[side], place)?)?));
        }
        Ok(Some(RowDifference { table: self.table.name, key, change, columns, why: Vec::new() }))
    }

    /// Decodes a value of one generation with the column type of this generation. The type may differ between the
    /// generations.
    fn decode(&self, side: usize, place: Option<usize>, raw: PostgresCell<'_>) -> anyhow::Result<CellValue> {
        let Some(place) = place else { return Ok(CellValue::Null) };
        let ty = self.statements[side].columns()[place].type_();
        CellValue::decode(ty, raw)
            .map_err(|error| anyhow::anyhow!("cannot decode a value of {}: {error}", self.table.name))
    }
}

fn raw_value(row: Option<&Row>, place: Option<usize>) -> Result<PostgresCell<'_>, tokio_postgres::Error> {
    row.zip(place).map_or(Ok(PostgresCell(None)), |(row, place)| row.try_get(place))
}
