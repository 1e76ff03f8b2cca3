//! Addresses of an instance's database and stream, as environment variables of its programs.

use anyhow::{Context, Result};
use reqwest::Url;

use crate::environment;
use crate::servers::Servers;

/// Addresses and names of one instance. Instances on the same servers must differ in database, stream and subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Postgres URL of the owner.
    pub database_url: String,
    /// Postgres URL of the projector's role.
    pub projector_database_url: String,
    /// Postgres URL of the API's role.
    pub api_database_url: String,
    /// Postgres URL of the dashboard's role.
    pub dashboard_database_url: String,
    /// Address of the NATS server.
    pub nats_url: String,
    /// JetStream stream of the log.
    pub stream: String,
    /// First token of the log's subjects.
    pub subject_prefix: String,
}

impl Endpoints {
    /// Endpoints for this database and stream. The URLs of the roles are the owner's URL with another user. On a
    /// Postgres server that the harness did not start, environment variables such as `API_DATABASE_URL` can set other
    /// URLs for the roles.
    pub fn new(servers: &Servers, database: &str, stream: &str, subject_prefix: &str) -> Result<Endpoints> {
        let owner = servers.postgres.url(database);
        let role_url = |variable: &str, role: &str| match environment::read_text(variable) {
            // Only a server that the harness did not start can have its own roles. Their URLs are in the environment.
            Some(given) if !servers.postgres.is_own() => with_database(&given, database),
            _ => with_user(&owner, role),
        };
        Ok(Endpoints {
            projector_database_url: role_url("PROJECTOR_DATABASE_URL", "dds_projector")?,
            api_database_url: role_url("API_DATABASE_URL", "dds_api")?,
            dashboard_database_url: role_url("DASHBOARD_DATABASE_URL", "dds_dashboard")?,
            nats_url: servers.nats.url().to_owned(),
            stream: stream.to_owned(),
            subject_prefix: subject_prefix.to_owned(),
            database_url: owner,
        })
    }

    /// URL of the database for another role.
    pub fn database_url_of(&self, role: &str) -> Result<String> {
        with_user(&self.database_url, role)
    }

    /// Environment variables of the service's programs.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("DATABASE_URL", &self.database_url),
            ("PROJECTOR_DATABASE_URL", &self.projector_database_url),
            ("API_DATABASE_URL", &self.api_database_url),
            ("DASHBOARD_DATABASE_URL", &self.dashboard_database_url),
            ("NATS_URL", &self.nats_url),
            ("NATS_STREAM", &self.stream),
            ("NATS_SUBJECT_PREFIX", &self.subject_prefix),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
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
