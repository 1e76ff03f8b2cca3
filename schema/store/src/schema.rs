//! Schema version of a database, and the newest version that this program supports.

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

/// Fails if a newer program version migrated the database. This program could read or write the database incorrectly.
pub async fn refuse_newer_schema(client: &Client) -> Result<(), DbError> {
    let found: Option<i64> = match client.query_one(APPLIED, &[]).await {
        Ok(row) => row.try_get(0)?,
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
        Err(error) => return Err(error.into()),
    };
    match found {
        Some(found) if found > newest_schema() => Err(DbError::NewerSchema { found, known: newest_schema() }),
        _ => Ok(()),
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
