//! Postgres connections, roles, migrations and generations. Rows are written with [`crate::copy`].

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use refinery_core::Runner;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::{Client, Config, GenericClient};

use crate::ids::GenerationId;
use crate::{analysts, schema, tls};

pub use crate::error::{DbError, error_chain, is_disk_full};
pub use crate::schema::{newest_schema, refuse_newer_schema};

/// Login role of the projector. It writes facts and read tables, and has no access to accounts.
pub const PROJECTOR_ROLE: &str = "dds_projector";
/// Login role of the API. It reads facts and read tables, and writes only counters.
pub const API_ROLE: &str = "dds_api";
/// Login role of the dashboard. It has access to accounts, keys and sessions, but not to market data.
pub const DASHBOARD_ROLE: &str = "dds_dashboard";
/// Login role of analysts. It reads only the columns of a generation that are not packed.
pub const ANALYST_ROLE: &str = "dds_analyst";

/// Settings of the owner's database connection.
#[derive(Debug, Clone, Args)]
pub struct DatabaseSettings {
    /// Postgres URL of the owner, for migrations and account administration
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
}

/// Maximum time to connect to one host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the sign-in. A frozen server accepts connections, but never replies.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between the checks of [`watch_server`].
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

const READ_TABLES: &str = include_str!("../generation/read_tables.sql");
const READ_INDEXES: &str = include_str!("../generation/read_indexes.sql");
const RECORDS: &str = include_str!("../generation/records.sql");
const FACT_TABLES: &str = include_str!("../generation/fact_tables.sql");
const GENERATIONS_VIEW_COMMENTS: &str = include_str!("../queries/generations_view_comments.sql");
const DATABASE_GRANTS: &str = include_str!("../queries/database_grants.sql");

/// Connection settings of one role. They come from the role's own URL, or from the owner's URL with the name of the
/// role. `variable` is the environment variable that error messages contain.
pub fn role_config(
    own_url: Option<&str>,
    owner_url: Option<&str>,
    role: &str,
    variable: &'static str,
) -> Result<Config, DbError> {
    let own_url = own_url.filter(|url| !url.is_empty());
    let owner_url = owner_url.filter(|url| !url.is_empty());
    let url = own_url.or(owner_url).ok_or(DbError::NotConfigured { variable })?;
    let mut config = Config::from_str(url).map_err(|source| DbError::BadUrl { variable, source })?;
    if own_url.is_none() {
        config.user(role);
    }
    Ok(with_timeouts(config, role))
}

/// Connection settings for the read replicas of one database. Each connection goes to a random replica. User, password
/// and database are taken from the first URL.
pub fn replicas_config(urls: &[String], variable: &'static str) -> Result<Config, DbError> {
    let parse = |url: &String| Config::from_str(url).map_err(|source| DbError::BadUrl { variable, source });
    let (first, others) = urls.split_first().ok_or(DbError::NotConfigured { variable })?;
    let mut config = parse(first)?;
    for other in others {
        let other = parse(other)?;
        for (index, host) in other.get_hosts().iter().enumerate() {
            match host {
                Host::Tcp(name) => config.host(name),
                Host::Unix(path) => config.host_path(path),
            };
            // One port may apply to all hosts of a URL.
            let port = other.get_ports().get(index).or(other.get_ports().first());
            config.port(port.copied().unwrap_or(5432));
        }
    }
    config.load_balance_hosts(LoadBalanceHosts::Random);
    Ok(with_timeouts(config, API_ROLE))
}

/// Connection settings of the owner.
pub fn owner_config(settings: &DatabaseSettings) -> Result<Config, DbError> {
    let url = settings.database_url.as_deref().filter(|url| !url.is_empty());
    let url = url.ok_or(DbError::NotConfigured { variable: "DATABASE_URL" })?;
    let config =
        Config::from_str(url).map_err(|source| DbError::BadUrl { variable: "DATABASE_URL", source })?;
    Ok(with_timeouts(config, "dds_owner"))
}

/// Sets the timeouts for connecting and for unreachable peers. The URL decides about TLS.
fn with_timeouts(mut config: Config, name: &str) -> Config {
    tls::disable_opportunistic_tls(&mut config);
    config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name(name);
    }
    config
}

/// Returns an error when the server does not answer a new connection. A statement on a frozen server never ends, and
/// cannot be distinguished from a slow statement.
pub async fn watch_server(config: &Config) -> DbError {
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        if let Err(error @ DbError::Unanswered { .. }) = connect(config).await {
            return error;
        }
    }
}

/// Opens one connection. Its background task runs until the client is dropped.
///
/// # Errors
/// [`DbError::Unanswered`] if no host completes the sign-in in time.
pub async fn connect(config: &Config) -> Result<Client, DbError> {
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(1).max(1);
    let limit = CONNECT_TIMEOUT * hosts + SIGN_IN_TIMEOUT;
    let connected = tokio::time::timeout(limit, config.connect(tls::tls_connector(config)?)).await;
    let (client, connection) = connected
        .map_err(|_| DbError::Unanswered { place: describe_place(config), seconds: limit.as_secs() })?
        .map_err(|source| DbError::Unreachable { place: describe_place(config), source })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = %error_chain(&error), "postgres connection ended");
        }
    });
    Ok(client)
}

/// Servers and database of a connection, as in its URL: `127.0.0.1:5432/dividends`.
fn describe_place(config: &Config) -> String {
    let ports = config.get_ports();
    let servers = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    format!("{}/{}", servers.collect::<Vec<_>>().join(","), config.get_dbname().unwrap_or_default())
}

/// Migrates the database to the newest schema, and creates the first generation if none exists. Idempotent.
pub async fn migrate(config: &Config, method_version: &str, benchmark: &str) -> Result<(), DbError> {
    let mut client = connect(config).await?;
    // Only one process migrates at a time.
    client.batch_execute("select pg_advisory_lock(7401)").await?;
    refuse_newer_schema(&client).await?;
    Runner::new(&schema::migrations()?).run_async(&mut client).await?;
    grant_database(&client).await?;
    client.batch_execute(GENERATIONS_VIEW_COMMENTS).await?;
    let generations = client.query("select id from control.generations", &[]).await?;
    for row in &generations {
        analysts::describe_views(&client, row.try_get("id")?).await?;
    }
    if generations.is_empty() {
        let transaction = client.transaction().await?;
        transaction.batch_execute("set local role dds_projector").await?;
        create_fact_set(&transaction, "facts").await?;
        create_generation(&transaction, GenerationId(1), "facts", "tailing", method_version, benchmark)
            .await?;
        transaction.execute("insert into control.active (generation) values (1)", &[]).await?;
        transaction.commit().await?;
    }
    analysts::point_analysts(&client).await?;
    client.batch_execute("select pg_advisory_unlock(7401)").await?;
    Ok(())
}

/// Grants the roles access to this database. [`migrate`] calls this function. A copied database needs the grants again.
pub async fn grant_database(owner: &Client) -> Result<(), DbError> {
    Ok(owner.batch_execute(DATABASE_GRANTS).await?)
}

/// Name of the schema with a generation's read tables.
pub fn generation_schema(id: GenerationId) -> String {
    format!("read_g{id}")
}

/// Creates and registers the schema and tables of a fact set, in the caller's transaction. `name` must be an SQL
/// identifier.
pub async fn create_fact_set(client: &impl GenericClient, name: &str) -> Result<(), DbError> {
    client.batch_execute(&format!("create schema {name}")).await?;
    client.execute("select set_config('search_path', $1, true)", &[&name]).await?;
    client.batch_execute(RECORDS).await?;
    client.batch_execute(FACT_TABLES).await?;
    client.execute("insert into control.fact_sets (name) values ($1)", &[&name]).await?;
    Ok(())
}

/// Creates and registers the schema and tables of a generation, in the caller's transaction.
pub async fn create_generation(
    client: &impl GenericClient,
    id: GenerationId,
    fact_set: &str,
    state: &str,
    method_version: &str,
    benchmark: &str,
) -> Result<(), DbError> {
    let schema = generation_schema(id);
    client.batch_execute(&format!("create schema {schema}")).await?;
    client.execute("select set_config('search_path', $1, true)", &[&schema]).await?;
    client.batch_execute(READ_TABLES).await?;
    client
        .execute(
            "insert into version (generation, sequence, benchmark, method_version) values ($1, 0, $2, $3)",
            &[&id, &benchmark, &method_version],
        )
        .await?;
    client
        .execute(
            "insert into control.generations (id, fact_set, method_version, state, benchmark) values ($1, $2, $3, $4, $5)",
            &[&id, &fact_set, &method_version, &state, &benchmark],
        )
        .await?;
    analysts::create_analyst_views(client, id, &schema).await
}

/// Creates the indexes that readers need, for the first generation in the search path. Must be called after the first
/// rows are written.
pub async fn index_generation(client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(READ_INDEXES).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use market::row::{self, TableRow};

    #[test]
    fn replicas_become_one_address_of_many_hosts() {
        let urls = ["postgres://reader:secret@one:1/d".to_owned(), "postgres://two/other".to_owned()];
        let config = replicas_config(&urls, "DATABASE_READ_URLS").unwrap();
        assert_eq!((config.get_hosts().len(), config.get_ports()), (2, &[1, 5432][..]));
        assert_eq!((config.get_user(), config.get_dbname()), (Some("reader"), Some("d")));
        assert!(replicas_config(&[], "DATABASE_READ_URLS").is_err());
    }

    #[test]
    fn a_place_is_that_of_the_url() {
        let place = |url| describe_place(&Config::from_str(url).unwrap());
        assert_eq!(place("postgres://user:secret@one:1/dividends"), "one:1/dividends");
        assert_eq!(
            place("postgres://one,two:2/d?host=/run/postgresql"),
            "one:5432,two:2,/run/postgresql:5432/d"
        );
    }

    /// Columns of a table in the generation's DDL, in order.
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

    fn check<T: TableRow>(table: &str) {
        assert_eq!(columns(table), T::COLUMNS, "{table}");
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
}
