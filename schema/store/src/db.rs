//! Postgres connections, roles, migrations and generations. Rows are written by [`crate::copy`].

use std::cmp::Ordering;

use refinery_core::{Migration, Runner, Target};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, GenericClient};

use crate::analysts;
use crate::ids::GenerationId;
use crate::versions::MarketSettings;

pub use crate::connect::{connect, watch_server};
pub use crate::error::{DbError, error_chain, is_disk_full};
pub use crate::settings::{
    ANALYST_ROLE, API_ROLE, DASHBOARD_ROLE, DatabaseSettings, PROJECTOR_ROLE, accounts_config,
    add_session_options, owner_config, replica_configs, role_config,
};

/// Contents of a database. Every database has the whole schema, so that all have the same migrations and one version.
/// The contents determine the tables to which the roles have access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseContents {
    /// Market data and accounts.
    All,
    /// Market data. The tables of the accounts are empty.
    Market,
    /// Accounts. The tables of the market are empty.
    Accounts,
}

const READ_TABLES: &str = include_str!("../generation/read_tables.sql");
const READ_INDEXES: &str = include_str!("../generation/read_indexes.sql");
const RECORDS: &str = include_str!("../generation/records.sql");
const FACT_TABLES: &str = include_str!("../generation/fact_tables.sql");
const GENERATIONS_VIEW_COMMENTS: &str = include_str!("../queries/generations_view_comments.sql");
const DATABASE_GRANTS: &str = include_str!("../queries/database_grants.sql");
const MARKET_ONLY: &str = include_str!("../queries/market_only.sql");
const ACCOUNTS_ONLY: &str = include_str!("../queries/accounts_only.sql");
const HAS_ACCESS: &str = include_str!("../queries/has_access.sql");
const IDENTITY: &str = "select system_identifier, d.oid from pg_control_system(), pg_database d where d.datname = current_database()";
const UNUSED_ACCOUNTS: &str = "select count(*) from accounts.accounts where deleted_at is null";

/// Opens a connection to a database with the schema of this program.
///
/// # Errors
/// [`DbError::NewerSchema`] and [`DbError::OlderSchema`] for other schemas, and the errors of [`connect`].
pub async fn connect_migrated(config: &Config) -> Result<Client, DbError> {
    let client = connect(config).await?;
    check_schema(&client).await?;
    Ok(client)
}

/// Opens a connection of the owner to the database with the accounts.
///
/// # Errors
/// [`DbError::OtherContents`] if the accounts were moved to another database, and the errors of [`connect_migrated`].
pub async fn connect_accounts(settings: &DatabaseSettings) -> Result<Client, DbError> {
    let client = connect_migrated(&accounts_config(settings)?).await?;
    check_contents(&client, Some(API_ROLE), "accounts", settings.accounts_variable()).await?;
    Ok(client)
}

/// True if both connections are to one database, under whatever host and name. A physical copy of a server, such as a
/// replica, has the same databases.
pub async fn is_same_database(one: &Client, other: &Client) -> Result<bool, DbError> {
    let identity = async |client: &Client| -> Result<(i64, u32), DbError> {
        let row = client.query_one(IDENTITY, &[]).await?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    };
    Ok(identity(one).await? == identity(other).await?)
}

/// Migrates an empty database to this schema version, without a generation.
pub async fn migrate_to(config: &Config, schema: i64) -> Result<(), DbError> {
    let mut client = connect(config).await?;
    let target = schema.try_into().map_or(Target::Latest, Target::Version);
    Runner::new(&migrations()?).set_target(target).run_async(&mut client).await?;
    Ok(())
}

/// Migrates the database of the market, and that of the accounts, to the newest schema. Creates the first generation if
/// none exists. A repeated call changes nothing.
///
/// # Errors
/// [`DbError::OtherContents`] if the accounts were moved to another database than the settings name, or if the settings
/// name the databases the other way round.
pub async fn migrate(
    settings: &DatabaseSettings,
    method_version: &str,
    market: &MarketSettings,
) -> Result<(), DbError> {
    let client = connect(&owner_config(settings)?).await?;
    refuse_others(&client, "control", "DATABASE_URL").await?;
    let mut client = if let Some(accounts) = connect_separate_accounts(settings, &client).await? {
        refuse_others(&accounts, "accounts", "ACCOUNTS_DATABASE_URL").await?;
        migrate_schema(accounts, DatabaseContents::Accounts).await?;
        let client = migrate_schema(client, DatabaseContents::Market).await?;
        let accounts: i64 = client.query_one(UNUSED_ACCOUNTS, &[]).await?.try_get(0)?;
        if accounts > 0 {
            tracing::warn!(
                accounts,
                "the database in DATABASE_URL still has accounts, which are not used; see docs/operations.md"
            );
        }
        client
    } else {
        refuse_others(&client, "accounts", "DATABASE_URL").await?;
        migrate_schema(client, DatabaseContents::All).await?
    };
    client.batch_execute(GENERATIONS_VIEW_COMMENTS).await?;
    let generations = client.query("select id, fact_set from control.generations", &[]).await?;
    for row in &generations {
        let (id, fact_set): (GenerationId, String) = (row.try_get("id")?, row.try_get("fact_set")?);
        analysts::describe_views(&client, id).await?;
        let transaction = client.transaction().await?;
        transaction.batch_execute("set local role dds_projector").await?;
        analysts::create_origin_views(&transaction, id, &fact_set).await?;
        transaction.commit().await?;
    }
    if generations.is_empty() {
        let transaction = client.transaction().await?;
        transaction.batch_execute("set local role dds_projector").await?;
        create_fact_set(&transaction, "facts").await?;
        create_generation(&transaction, GenerationId(1), "facts", "tailing", method_version, market).await?;
        transaction.execute("insert into control.active (generation) values (1)", &[]).await?;
        transaction.commit().await?;
    }
    analysts::point_analysts(&client).await?;
    client.batch_execute("select pg_advisory_unlock(7401)").await?;
    Ok(())
}

/// Opens a connection of the owner to the database with the accounts; `None` if `market` is a connection to it.
async fn connect_separate_accounts(
    settings: &DatabaseSettings,
    market: &Client,
) -> Result<Option<Client>, DbError> {
    if !settings.has_accounts_url() {
        return Ok(None);
    }
    let accounts = connect(&accounts_config(settings)?).await?;
    Ok(if is_same_database(market, &accounts).await? { None } else { Some(accounts) })
}

/// Fails if the API's role has access to the market or to the accounts of this database, but not to `schema`. In a new
/// database, it has no access yet.
async fn refuse_others(client: &Client, schema: &'static str, variable: &'static str) -> Result<(), DbError> {
    let other = if schema == "accounts" { "control" } else { "accounts" };
    match check_contents(client, Some(API_ROLE), other, variable).await {
        Err(DbError::OtherContents { .. }) => Ok(()),
        checked => {
            checked?;
            check_contents(client, Some(API_ROLE), schema, variable).await
        }
    }
}

/// Migrates one database. Returns the session, which has the lock of the migration.
async fn migrate_schema(mut client: Client, contents: DatabaseContents) -> Result<Client, DbError> {
    // Only one process migrates at a time.
    client.batch_execute("select pg_advisory_lock(7401)").await?;
    refuse_newer_schema(&client).await?;
    Runner::new(&migrations()?).run_async(&mut client).await?;
    grant_database(&client, contents).await?;
    Ok(client)
}

/// Grants the roles access to this database. A copied database needs this too, because Postgres does not copy grants on
/// a database.
pub async fn grant_database(owner: &Client, contents: DatabaseContents) -> Result<(), DbError> {
    let restrictions = match contents {
        DatabaseContents::All => "",
        DatabaseContents::Market => MARKET_ONLY,
        DatabaseContents::Accounts => ACCOUNTS_ONLY,
    };
    // Statements of one call are one transaction, so no role has too many rights for a short time.
    Ok(owner.batch_execute(&format!("{DATABASE_GRANTS}{restrictions}")).await?)
}

/// Name of the schema with a generation's read tables.
pub fn generation_schema(id: GenerationId) -> String {
    format!("read_g{id}")
}

/// Creates the schema and tables of a fact set, and registers the fact set. The caller's transaction is used. `name`
/// must be an SQL identifier.
pub async fn create_fact_set(client: &impl GenericClient, name: &str) -> Result<(), DbError> {
    client.batch_execute(&format!("create schema {name}")).await?;
    client.execute("select set_config('search_path', $1, true)", &[&name]).await?;
    client.batch_execute(RECORDS).await?;
    client.batch_execute(FACT_TABLES).await?;
    client.execute("insert into control.fact_sets (name) values ($1)", &[&name]).await?;
    Ok(())
}

/// Creates the schema and tables of a generation, and registers the generation. The caller's transaction is used.
pub async fn create_generation(
    client: &impl GenericClient,
    id: GenerationId,
    fact_set: &str,
    state: &str,
    method_version: &str,
    market: &MarketSettings,
) -> Result<(), DbError> {
    let schema = generation_schema(id);
    client.batch_execute(&format!("create schema {schema}")).await?;
    client.execute("select set_config('search_path', $1, true)", &[&schema]).await?;
    client.batch_execute(READ_TABLES).await?;
    client
        .execute(
            "insert into version (generation, sequence, benchmark, method_version) values ($1, 0, $2, $3)",
            &[&id, &market.benchmark, &method_version],
        )
        .await?;
    client
        .execute(
            "insert into control.generations (id, fact_set, method_version, state, benchmark, reporting_currency) values ($1, $2, $3, $4, $5, $6)",
            &[&id, &fact_set, &method_version, &state, &market.benchmark, &market.reporting_currency],
        )
        .await?;
    analysts::create_analyst_views(client, id, &schema, fact_set).await
}

/// Creates the indexes that queries on a generation's read tables need. The generation's schema must be the first
/// schema of the search path. This function must be called only after the first rows are written.
pub async fn index_generation(client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(READ_INDEXES).await
}

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

/// Fails if migrations are missing. A newer schema is accepted, because a newer program migrates the database while its
/// predecessor still serves.
pub async fn refuse_older_schema(client: &Client) -> Result<(), DbError> {
    match check_schema(client).await {
        Err(DbError::NewerSchema { .. }) => Ok(()),
        checked => checked,
    }
}

/// Fails if a role has no access to `schema`: `control` for the market, or `accounts`. `None` is the role of the
/// connection. `variable` is the environment variable that contains the URL.
pub async fn check_contents(
    client: &Client,
    role: Option<&str>,
    schema: &'static str,
    variable: &'static str,
) -> Result<(), DbError> {
    let has_access: bool = client.query_one(HAS_ACCESS, &[&role, &schema]).await?.try_get(0)?;
    if has_access { Ok(()) } else { Err(DbError::OtherContents { schema, variable }) }
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
    use std::collections::BTreeSet;

    use market::row::{self, TableRow};

    use super::*;

    fn columns(table: &str) -> Vec<String> {
        let start = READ_TABLES.find(&format!("create table {table} (")).expect("the table exists");
        let body = READ_TABLES[start..].split("\n);").next().unwrap_or_default();
        body.lines()
            .skip(1)
            .filter(|line| !line.trim_start().starts_with("primary key"))
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    }

    /// The order may differ: a migration adds a column at the end.
    fn check<T: TableRow>(table: &str) {
        let sorted =
            |columns: &[&str]| columns.iter().map(|&column| column.to_owned()).collect::<BTreeSet<_>>();
        let found = columns(table);
        assert_eq!(found.len(), T::COLUMNS.len(), "{table}");
        assert_eq!(found.into_iter().collect::<BTreeSet<String>>(), sorted(T::COLUMNS), "{table}");
    }

    #[test]
    fn tables_have_their_structs_columns() {
        check::<row::Stock>("stocks");
        check::<row::Quote>("quotes");
        check::<row::FundamentalsRow>("fundamentals");
        check::<row::Metrics>("metrics");
        check::<row::DividendRow>("dividends");
        check::<row::SplitRow>("splits");
        check::<row::Quarantined>("quarantine");
        check::<row::EtfRow>("etfs");
        check::<row::HoldingRow>("holdings");
        check::<row::SectorRow>("sectors");
    }

    #[test]
    fn the_newest_schema_is_the_last_migration() {
        let versions: Vec<i64> =
            migrations().expect("names").iter().map(|migration| i64::from(migration.version())).collect();
        assert_eq!(versions.iter().max(), Some(&newest_schema()));
    }
}
