//! Rows of one table, compared column by column for the owners whose rows can differ.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::cell::{Cell, Raw};
use super::difference::{Change, Changed, Difference};
use super::side::Reader;
use super::tables::{METHOD_VERSION, Table};

/// A table as both generations have it. One may lack columns that the other has.
pub(super) struct Comparison<'a> {
    table: &'a Table,
    statements: [Statement; 2],
    /// Every column but those left out, and where either side has it.
    columns: Vec<(String, [Option<usize>; 2])>,
}

impl<'a> Comparison<'a> {
    pub(super) async fn of(table: &'a Table, a: &Reader, b: &Reader) -> anyhow::Result<Self> {
        let statements = [a.rows_of(table).await?, b.rows_of(table).await?];
        let mut places: BTreeMap<String, [Option<usize>; 2]> = BTreeMap::new();
        for (side, statement) in statements.iter().enumerate() {
            for (place, column) in statement.columns().iter().enumerate() {
                places.entry(column.name().to_owned()).or_default()[side] = Some(place);
            }
        }
        places.remove(METHOD_VERSION);
        Ok(Self { table, statements, columns: places.into_iter().collect() })
    }

    /// The differences of some owners' rows, in the order of their keys.
    pub(super) async fn of_owners(
        &self,
        a: &Reader,
        b: &Reader,
        owners: &[String],
        since: Option<NaiveDate>,
    ) -> anyhow::Result<Vec<Difference>> {
        let parameters: [&(dyn ToSql + Sync); 2] = [&owners, &since];
        let (left, right) = tokio::try_join!(
            a.client.query(&self.statements[0], &parameters),
            b.client.query(&self.statements[1], &parameters)
        )?;
        let mut others = self.by_key(1, right)?;
        let mut differences = Vec::new();
        for (key, row) in self.by_key(0, left)? {
            let other = others.remove(&key);
            differences.extend(self.difference([Some(&row), other.as_ref()])?);
        }
        for row in others.values() {
            differences.extend(self.difference([None, Some(row)])?);
        }
        differences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(differences)
    }

    /// Rows by the bytes of their key. Rows that share a key are numbered.
    fn by_key(&self, side: usize, rows: Vec<Row>) -> anyhow::Result<HashMap<(Vec<u8>, usize), Row>> {
        let mut found = HashMap::with_capacity(rows.len());
        for row in rows {
            let mut key = Vec::new();
            for name in self.table.key {
                let value = self.raw(&row, side, name)?;
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

    fn raw<'r>(&self, row: &'r Row, side: usize, name: &str) -> anyhow::Result<Raw<'r>> {
        let found = self.columns.iter().find(|(column, _)| column == name);
        match found.and_then(|(_, places)| places[side]) {
            Some(place) => Ok(row.try_get(place)?),
            None => Ok(Raw(None)),
        }
    }

    /// How two rows of one key differ, if they do.
    fn difference(&self, rows: [Option<&Row>; 2]) -> anyhow::Result<Option<Difference>> {
        let mut columns = Vec::new();
        for (column, places) in &self.columns {
            let mut raws = [Raw(None); 2];
            for side in 0..2 {
                if let Some((row, place)) = rows[side].zip(places[side]) {
                    raws[side] = row.try_get(place)?;
                }
            }
            if raws[0] != raws[1] && !self.table.key.contains(&column.as_str()) {
                let [a, b] = self.cells(raws, places)?;
                columns.push(Changed { column: column.clone(), a, b });
            }
        }
        let change = match rows {
            [None, _] => Change::Added,
            [_, None] => Change::Removed,
            _ if columns.is_empty() => return Ok(None),
            _ => Change::Changed,
        };
        let (side, row) = match rows {
            [Some(row), _] => (0, row),
            [_, Some(row)] => (1, row),
            [None, None] => return Ok(None),
        };
        let mut key = Vec::new();
        for name in self.table.key {
            let places = self.columns.iter().find(|(column, _)| column == name).map(|(_, places)| *places);
            let mut raws = [Raw(None); 2];
            raws[side] = self.raw(row, side, name)?;
            let cells = self.cells(raws, &places.unwrap_or_default())?;
            key.push((*name, cells[side].clone()));
        }
        Ok(Some(Difference { table: self.table.name, key, change, columns, why: Vec::new() }))
    }

    /// Values of one column, each read as its side's type.
    fn cells(&self, raws: [Raw<'_>; 2], places: &[Option<usize>; 2]) -> anyhow::Result<[Cell; 2]> {
        let read = |side: usize| match places[side] {
            Some(place) => {
                let ty = self.statements[side].columns()[place].type_();
                Cell::read(ty, raws[side]).map_err(|error| {
                    anyhow::anyhow!("a value of {} cannot be read: {error}", self.table.name)
                })
            }
            None => Ok(Cell::Null),
        };
        Ok([read(0)?, read(1)?])
    }
}
