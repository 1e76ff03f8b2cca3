//! Queries of account operations: errors, and conversion of rows into structs.

use store::FromRow;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

/// Result of an account operation.
pub(crate) type Result<T, E = AccountError> = std::result::Result<T, E>;

/// Errors of an account operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("{0} is not an email address")]
    Email(String),
    #[error("account {0} does not exist")]
    NoAccount(String),
    #[error("account {0} already exists")]
    Taken(String),
    /// Refusal by a limit or another rule for accounts. The value is the complete message for the caller.
    #[error("{0}")]
    Refused(String),
    #[error("{}", store::db::error_chain(.0))]
    Database(#[from] tokio_postgres::Error),
}

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
