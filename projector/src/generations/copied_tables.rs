//! A rebuild of some tables only: the others become copies of the served generation's.

use store::db::generation_schema;
use tokio_postgres::Transaction;

use crate::review::diff::TABLES;

const ORIGIN: &str = include_str!("../../queries/generation_origin.sql");

/// Copies the tables that were not asked for.
pub(crate) async fn copy_served_tables(
    transaction: &Transaction<'_>,
    id: i32,
) -> Result<(), tokio_postgres::Error> {
    let row = transaction.query_one(ORIGIN, &[&id]).await?;
    let (only, active): (Option<Vec<String>>, i32) = (row.try_get("projections")?, row.try_get("active")?);
    let Some(only) = only else { return Ok(()) };
    for table in TABLES.iter().filter(|table| !only.iter().any(|name| name == table.name)) {
        let (target, origin) = (generation_schema(id), generation_schema(active));
        transaction
            .batch_execute(&format!(
                "truncate {target}.{0}; insert into {target}.{0} select * from {origin}.{0}",
                table.name
            ))
            .await?;
    }
    // What is there now was not derived here.
    transaction.batch_execute(&format!("truncate {}.digests", generation_schema(id))).await
}
