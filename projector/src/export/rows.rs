//! Export of all tables except prices, streamed from Postgres.

use std::path::Path;
use std::pin::pin;

use anyhow::bail;
use futures::TryStreamExt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::column::{ColumnType, ParquetColumn};
use super::file_writer::{ParquetFileWriter, TableFiles};
use super::manifest::TableManifest;

/// Query of an exported table. With a first column [`PARTITION`], each year is written to its own folder.
pub(super) struct TableQuery {
    name: &'static str,
    statement: &'static str,
}

macro_rules! tables {
    ($($name:literal),* $(,)?) => {
        &[$(TableQuery { name: $name, statement: include_str!(concat!("../../queries/export/", $name, ".sql")) }),*]
    };
}

/// Every exported table except prices.
pub(super) const TABLES: &[TableQuery] = tables![
    "stocks",
    "quotes",
    "fundamentals",
    "metrics",
    "dividends",
    "splits",
    "factors",
    "quarantine",
    "etfs",
    "holdings",
    "sectors",
];

/// Name of the query column with the year, if the rows are written to one folder per year. It is the first column.
const PARTITION: &str = "partition";

/// Exports a table of the generation that is first in the client's search path.
pub(super) async fn write_table(
    client: &Client,
    table: &TableQuery,
    folder: &Path,
) -> anyhow::Result<TableManifest> {
    let statement = client.prepare(table.statement).await?;
    let partitioned = statement.columns().first().is_some_and(|column| column.name() == PARTITION);
    let mut rows = pin!(client.query_raw(&statement, std::iter::empty::<&(dyn ToSql + Sync)>()).await?);
    let columns = || parquet_columns(table, &statement, partitioned);
    let mut files = TableFiles::new(table.name, folder);
    while let Some(row) = rows.try_next().await? {
        let year: Option<i32> = if partitioned { Some(row.try_get(0)?) } else { None };
        add_row(files.writer(year, columns)?, &row, usize::from(partitioned))?;
    }
    if files.is_empty() {
        // A table without rows still has a file with its columns.
        files.writer(None, columns)?;
    }
    let partition = partitioned.then_some("year of ex_date");
    Ok(TableManifest::new(table.name, partition, &columns()?, files.finish()?))
}

fn add_row(part: &mut ParquetFileWriter, row: &Row, first: usize) -> anyhow::Result<()> {
    for (place, column) in part.columns().iter_mut().enumerate() {
        column.push(row, first + place)?;
    }
    part.flush_full_group()
}

fn parquet_columns(
    table: &TableQuery,
    statement: &Statement,
    partitioned: bool,
) -> anyhow::Result<Vec<ParquetColumn>> {
    let columns = statement.columns().iter().skip(usize::from(partitioned));
    let column = |column: &tokio_postgres::Column| match ColumnType::from_postgres(column) {
        Some(kind) => Ok(ParquetColumn::new(column.name(), kind)),
        None => bail!(
            "cannot export column {} of {}: type {} is not supported",
            column.name(),
            table.name,
            column.type_()
        ),
    };
    columns.map(column).collect()
}
