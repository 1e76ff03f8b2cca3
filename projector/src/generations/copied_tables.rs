//! Copy of the read tables that a partial rebuild does not derive, from the served generation.

use store::db::generation_schema;
use store::ids::GenerationId;
use tokio_postgres::Transaction;

use crate::review::diff::TABLES;

const ORIGIN: &str = include_str!("../../queries/generation_origin.sql");

/// Copies the tables that were not selected for the rebuild from the served generation into generation `id`.
pub(crate) async fn copy_served_tables(
    transaction: &Transaction<'_>,
    id: GenerationId,
) -> Result<(), tokio_postgres::Error> {
    let row = transaction.query_one(ORIGIN, &[&id]).await?;
    let (only, active): (Option<Vec<String>>, GenerationId) =
        (row.try_get("projections")?, row.try_get("active")?);
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
    // The stored digests belong to the derived rows and not to the copied rows, so all digests are removed.
    transaction.batch_execute(&format!("truncate {}.digests", generation_schema(id))).await
}
