//! Addresses of the database and the stream of one instance of the service. The programs of the instance read the
//! addresses from environment variables.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use reqwest::Url;

use crate::environment;
use crate::relay::delayed_address;
use crate::servers::{Database, DatabasePair};

/// Addresses and names that one instance of the service uses. Instances on the same servers must differ in database,
/// stream and subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Postgres URL for the database's owner.
    pub database_url: String,
    /// Postgres URL for the projector's role.
    pub projector_database_url: String,
    /// Postgres URL for the API's role.
    pub api_database_url: String,
    /// Postgres URL for the dashboard's role.
    pub dashboard_database_url: String,
    /// Postgres URLs of a separate database for the accounts, for its owner and for the API's role. `None` if the
    /// accounts are in the same database.
    pub accounts_database_urls: Option<[String; 2]>,
    /// Address of the NATS server.
    pub nats_url: String,
    /// Name of the JetStream stream that contains the event log.
    pub stream: String,
    /// First token of the subjects in the stream.
    pub subject_prefix: String,
}

impl Endpoints {
    /// Returns the endpoints for these databases and this stream. The URL for a role is the owner's URL with another
    /// user name. On a server that the harness did not start, variables such as `API_DATABASE_URL` replace this URL.
    pub(crate) fn new(
        databases: DatabasePair<'_>,
        nats_url: &str,
        stream: &str,
        subject_prefix: &str,
    ) -> Result<Endpoints> {
        let DatabasePair { market, accounts } = databases;
        let role_url = |variable: &str, role: &str, database: Database<'_>| {
            match environment::read_text(variable) {
                // A server that the harness did not start may have other roles. Environment variables then contain
                // their URLs.
                Some(given) if !database.server.is_own() => with_database(&given, database.name),
                _ => with_user(&database.url(), role),
            }
        };
        let accounts_database_urls = match databases.are_one() {
            true => None,
            false => Some([accounts.url(), role_url("API_DATABASE_URL", "dds_api", accounts)?]),
        };
        Ok(Endpoints {
            projector_database_url: role_url("PROJECTOR_DATABASE_URL", "dds_projector", market)?,
            api_database_url: role_url("API_DATABASE_URL", "dds_api", market)?,
            dashboard_database_url: role_url("DASHBOARD_DATABASE_URL", "dds_dashboard", accounts)?,
            accounts_database_urls,
            nats_url: nats_url.to_owned(),
            stream: stream.to_owned(),
            subject_prefix: subject_prefix.to_owned(),
            database_url: market.url(),
        })
    }

    /// Replaces the Postgres server of all roles except the owner by a relay that delays both directions.
    pub(crate) async fn delay_postgres(&mut self, delay: Duration) -> Result<()> {
        let url = Url::parse(&self.database_url)?;
        let host = url.host_str().context("DATABASE_URL names no host")?;
        let relay = delayed_address(format!("{host}:{}", url.port().unwrap_or(5432)), delay).await?;
        let relay: SocketAddr = relay.parse()?;
        let of_accounts = self.accounts_database_urls.as_mut().map(|[_, api]| api);
        let roles =
            [&mut self.projector_database_url, &mut self.api_database_url, &mut self.dashboard_database_url];
        for role in roles.into_iter().chain(of_accounts) {
            let mut url = Url::parse(role)?;
            url.set_ip_host(relay.ip()).ok().context("the URL of a role has no host")?;
            url.set_port(Some(relay.port())).ok().context("the URL of a role has no port")?;
            *role = url.into();
        }
        Ok(())
    }

    /// Postgres URL of the same database for another role.
    pub fn database_url_of(&self, role: &str) -> Result<String> {
        with_user(&self.database_url, role)
    }

    /// Environment variables with which the service's programs use these endpoints.
    pub fn environment(&self) -> Vec<(String, String)> {
        let names = ["ACCOUNTS_DATABASE_URL", "API_ACCOUNTS_DATABASE_URL"];
        let accounts = names.into_iter().zip(self.accounts_database_urls.iter().flatten());
        let others = [
            ("DATABASE_URL", &self.database_url),
            ("PROJECTOR_DATABASE_URL", &self.projector_database_url),
            ("API_DATABASE_URL", &self.api_database_url),
            ("DASHBOARD_DATABASE_URL", &self.dashboard_database_url),
            ("NATS_URL", &self.nats_url),
            ("NATS_STREAM", &self.stream),
            ("NATS_SUBJECT_PREFIX", &self.subject_prefix),
        ];
        others.into_iter().chain(accounts).map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

fn with_database(url: &str, database: &str) -> Result<String> {
    let mut url = Url::parse(url).context("the address of a role's database")?;
    url.set_path(database);
    Ok(url.into())
}

fn with_user(url: &str, user: &str) -> Result<String> {
    let mut url = Url::parse(url).context("the address of the database")?;
    url.set_username(user).ok().context("DATABASE_URL names no host to replace the user at")?;
    Ok(url.into())
}
