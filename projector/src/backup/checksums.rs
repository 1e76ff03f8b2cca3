//! Checksums of read tables: sums of row digests, independent of the order of rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::db::{DbError, generation_schema};
use store::ids::GenerationId;
use tokio_postgres::GenericClient;

const READ_TABLES: &str = include_str!("../../queries/backup/read_tables.sql");

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableChecksum {
    pub rows: i64,
    /// Two sums over all rows: one of the first half and one of the second half of each row's MD5. The sums detect
    /// accidental changes, but not forgery.
    pub sum: String,
}

/// Computes the checksum of each read table of a generation, by table name.
pub(super) async fn compute_checksums(
    client: &impl GenericClient,
    generation: GenerationId,
) -> Result<BTreeMap<String, TableChecksum>, DbError> {
    let schema = generation_schema(generation);
    let mut sums = BTreeMap::new();
    for row in client.query(READ_TABLES, &[&schema]).await? {
        let name: String = row.try_get("name")?;
        let statement = format!(
            "select count(*) as rows, concat_ws('.', \
               sum(('x' || substr(d.digest, 1, 15))::bit(60)::bigint), \
               sum(('x' || substr(d.digest, 17, 15))::bit(60)::bigint)) as sum \
             from (select md5(t::text) as digest from {schema}.{name} t) d"
        );
        let row = client.query_one(&statement, &[]).await?;
        sums.insert(name, TableChecksum { rows: row.try_get("rows")?, sum: row.try_get("sum")? });
    }
    Ok(sums)
}
