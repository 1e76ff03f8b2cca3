//! Functions that run a query and convert its rows into structs.

use store::FromRow;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::error::Result;

pub(super) async fn find_rows<T: FromRow>(
    client: &Client,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<T>> {
    let rows = client.query(statement, parameters).await?;
    Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?)
}

/// Runs a query that returns at most one row, and converts the row; `None` without a row.
pub(super) async fn find_row<T: FromRow>(
    client: &Client,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<T>> {
    let row = client.query_opt(statement, parameters).await?;
    Ok(row.as_ref().map(T::from_row).transpose()?)
}
