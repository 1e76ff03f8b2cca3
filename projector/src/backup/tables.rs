//! Export and import of the tables that cannot be derived again: accounts, source policy and served data versions. Also
//! computes the checksums of the read tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use store::db::{DbError, generation_schema};
use store::ids::GenerationId;
use store::{FromRow, sql_row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::{Client, Transaction};

use super::error::BackupError;
use super::folder;

const TABLES: &str = include_str!("../../queries/backup/tables.sql");
const READ_TABLES: &str = include_str!("../../queries/backup/read_tables.sql");
const COUNTERS: &str = include_str!("../../queries/backup/counters.sql");

/// Table in the backup. Its rows are in a separate file, in the text format of Postgres `copy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackupTable {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: u64,
    pub digest: String,
}

/// Exports every table into its own file.
pub(super) async fn export_tables(snapshot: &Client, folder: &Path) -> Result<Vec<BackupTable>, BackupError> {
    let mut exported = Vec::new();
    for row in snapshot.query(TABLES, &[]).await? {
        let (name, columns): (String, Vec<String>) = (row.try_get("name")?, row.try_get("columns")?);
        let path = folder::table_path(folder, &name);
        let failed = |source| BackupError::File { path: path.clone(), source };
        let mut file = tokio::fs::File::from_std(folder::create_file(&path)?);
        let statement = format!("copy (select {} from {name}) to stdout", columns.join(", "));
        let mut copied = pin!(snapshot.copy_out(&statement).await?);
        let mut rows = 0;
        while let Some(bytes) = copied.next().await {
            let bytes = bytes?;
            // Every line is one row, because `copy` writes a line end within a value as \n.
            rows += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            file.write_all(&bytes).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        file.sync_all().await.map_err(failed)?;
        exported.push(BackupTable { digest: folder::digest_file(&path)?, name, columns, rows });
    }
    Ok(exported)
}

/// Imports the tables into a migrated database without accounts.
///
/// Triggers are disabled for the import, because the backup already contains the rows that triggers would write.
pub(super) async fn import_tables(
    transaction: &Transaction<'_>,
    folder: &Path,
    tables: &[BackupTable],
) -> Result<(), BackupError> {
    for BackupTable { name, .. } in tables {
        transaction.batch_execute(&format!("alter table {name} disable trigger user")).await?;
    }
    // A migration fills some tables, such as plans. Replace those rows by the rows of the backup.
    for BackupTable { name, .. } in tables.iter().rev() {
        transaction.batch_execute(&format!("delete from {name}")).await?;
    }
    for table in tables {
        import_table(transaction, folder, table).await?;
    }
    for row in transaction.query(COUNTERS, &[]).await? {
        let (name, column): (&str, &str) = (row.try_get("name")?, row.try_get("column_name")?);
        let counter: &str = row.try_get("counter")?;
        let statement =
            format!("select setval($1::text::regclass, coalesce(max({column}), 0) + 1, false) from {name}");
        transaction.execute(&statement, &[&counter]).await?;
    }
    for BackupTable { name, .. } in tables {
        transaction.batch_execute(&format!("alter table {name} enable trigger user")).await?;
    }
    Ok(())
}

async fn import_table(
    transaction: &Transaction<'_>,
    folder: &Path,
    table: &BackupTable,
) -> Result<(), BackupError> {
    let path = folder::table_path(folder, &table.name);
    let failed = |source| BackupError::File { path: path.clone(), source };
    let mut file = tokio::fs::File::open(&path).await.map_err(failed)?;
    let statement = format!("copy {} ({}) from stdin", table.name, table.columns.join(", "));
    let mut sink = pin!(transaction.copy_in::<_, Bytes>(&statement).await?);
    loop {
        let mut piece = Vec::with_capacity(1 << 16);
        if file.read_buf(&mut piece).await.map_err(failed)? == 0 {
            break;
        }
        sink.send(Bytes::from(piece)).await?;
    }
    let rows = sink.as_mut().finish().await?;
    if rows != table.rows {
        let reason = format!("{} has {rows} rows, not {}", path.display(), table.rows);
        return Err(BackupError::Incomplete { path: folder.to_owned(), reason });
    }
    Ok(())
}

sql_row! {
    /// Checksum of a read table: the sum of its row digests. It does not depend on the order of the rows.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub(super) struct TableChecksum {
        pub(super) rows: i64,
        /// Two sums over the halves of the rows' MD5 digests, joined by a dot. They detect errors, not forgery.
        pub(super) sum: String,
    }
}

/// Checksums of the read tables of a generation, by table name.
pub(super) type Checksums = BTreeMap<String, TableChecksum>;

/// Computes the checksum of each read table of a generation, by table name.
pub(super) async fn compute_checksums(
    client: &Client,
    generation: GenerationId,
) -> Result<Checksums, DbError> {
    let schema = generation_schema(generation);
    let mut sums = Checksums::new();
    for row in client.query(READ_TABLES, &[&schema]).await? {
        let name: String = row.try_get("name")?;
        let statement = format!(
            "select count(*) as rows, concat_ws('.', \
               sum(('x' || substr(d.digest, 1, 15))::bit(60)::bigint), \
               sum(('x' || substr(d.digest, 17, 15))::bit(60)::bigint)) as sum \
             from (select md5(t::text) as digest from {schema}.{name} t) d"
        );
        sums.insert(name, TableChecksum::from_row(&client.query_one(&statement, &[]).await?)?);
    }
    Ok(sums)
}
