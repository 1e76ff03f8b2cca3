//! Schema version of a database, and the newest version that this program supports.

use std::cmp::Ordering;

use refinery_core::Migration;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::error::DbError;

/// Migration files as pairs of name and SQL, sorted by name. The build script generates this list.
const MIGRATIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
const APPLIED: &str = "select max(version)::bigint from public.refinery_schema_history";

pub(crate) fn migrations() -> Result<Vec<Migration>, refinery_core::Error> {
    MIGRATIONS.iter().map(|(name, sql)| Migration::unapplied(name, sql)).collect()
}

/// Newest schema version that this program supports: that of its last migration.
pub fn newest_schema() -> i64 {
    let versions =
        MIGRATIONS.iter().filter_map(|(name, _)| name.strip_prefix('V')?.split_once("__")?.0.parse().ok());
    versions.max().unwrap_or(0)
}

/// Fails if the schema of the database is not that of this program, which could then read or write incorrectly.
///
/// # Errors
/// [`DbError::NewerSchema`] if a newer program migrated the database. [`DbError::OlderSchema`] if migrations are missing.
pub async fn check_schema(client: &Client) -> Result<(), DbError> {
    let (found, known) = (applied_schema(client).await?, newest_schema());
    match found.cmp(&known) {
        Ordering::Greater => Err(DbError::NewerSchema { found, known }),
        Ordering::Less => Err(DbError::OlderSchema { found, known }),
        Ordering::Equal => Ok(()),
    }
}

/// Fails if a newer program migrated the database.
pub(crate) async fn refuse_newer_schema(client: &Client) -> Result<(), DbError> {
    match check_schema(client).await {
        Err(DbError::OlderSchema { .. }) => Ok(()),
        checked => checked,
    }
}

/// Version of the last applied migration; 0 if none is applied.
async fn applied_schema(client: &Client) -> Result<i64, DbError> {
    match client.query_one(APPLIED, &[]).await {
        Ok(row) => Ok(row.try_get::<_, Option<i64>>(0)?.unwrap_or(0)),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_schema_is_the_last_migration() {
        let versions: Vec<i64> =
            migrations().expect("names").iter().map(|migration| i64::from(migration.version())).collect();
        assert_eq!(versions.iter().max(), Some(&newest_schema()));
    }
}
