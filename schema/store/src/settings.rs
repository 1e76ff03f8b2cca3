//! Settings of database connections: URLs, roles and timeouts.

use std::time::Duration;

use clap::Args;
use tokio_postgres::Config;

use crate::error::DbError;
use crate::tls;

/// Login role of the projector. It writes the facts and the read tables (the tables that the API reads). It has no
/// access to accounts.
pub const PROJECTOR_ROLE: &str = "dds_projector";
/// Login role of the API. It reads facts, read tables, accounts and API keys. It writes only usage counters, rate
/// limits, call statistics, slots of change streams and audit entries.
pub const API_ROLE: &str = "dds_api";
/// Login role of the dashboard. It has access to accounts, keys and sessions, but not to market data.
pub const DASHBOARD_ROLE: &str = "dds_dashboard";
/// Login role of analysts. It reads only views. The views of a generation unpack its packed columns, for example bars.
pub const ANALYST_ROLE: &str = "dds_analyst";

/// Time without acknowledgement of sent data after which the connection is closed.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle time after which the server is probed. With three probes at intervals of 3 s, a vanished server is detected
/// within 20 s.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
/// Number of unanswered probes after which the connection is closed.
const KEEPALIVE_RETRIES: u32 = 3;

/// Settings of the owner's database connections.
#[derive(Debug, Clone, Args)]
pub struct DatabaseSettings {
    /// Postgres URL of the owner, for migrations and account administration
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
    /// Postgres URL of the owner of a separate database for the accounts. Default: DATABASE_URL
    #[arg(long, env = "ACCOUNTS_DATABASE_URL", hide_env_values = true, global = true)]
    pub accounts_database_url: Option<String>,
}

impl DatabaseSettings {
    /// Owner's URL of the database with the accounts, and the variable that contains the URL.
    fn accounts_setting(&self) -> Option<(&str, &'static str)> {
        let settings =
            [(&self.accounts_database_url, "ACCOUNTS_DATABASE_URL"), (&self.database_url, "DATABASE_URL")];
        settings.into_iter().find_map(|(url, variable)| Some((given(url.as_deref())?, variable)))
    }

    /// Owner's URL of the database with the accounts.
    pub fn accounts_url(&self) -> Option<&str> {
        self.accounts_setting().map(|(url, _)| url)
    }

    /// Environment variable that contains [`Self::accounts_url`].
    pub(crate) fn accounts_variable(&self) -> &'static str {
        self.accounts_setting().map_or("DATABASE_URL", |(_, variable)| variable)
    }

    /// True if the accounts have a URL of their own. It may still name the database of the market, see
    /// [`crate::db::is_same_database`].
    pub fn has_accounts_url(&self) -> bool {
        given(self.accounts_database_url.as_deref()).is_some()
    }
}

/// Connection settings of a role. Without its own URL, a role uses the owner's URL with another user name. `variable`
/// is the environment variable that error messages name.
pub fn role_config(
    own_url: Option<&str>,
    owner_url: Option<&str>,
    role: &str,
    variable: &'static str,
) -> Result<Config, DbError> {
    let own_url = given(own_url);
    let url = own_url.or(given(owner_url)).ok_or(DbError::NotConfigured { variable })?;
    let mut config = parse_url(url, variable)?;
    if own_url.is_none() {
        config.user(role);
    }
    Ok(with_timeouts(config, role))
}

/// Connection settings of each read replica. `list` has URLs separated by commas; one URL may name several hosts.
pub fn replica_configs(list: &str, variable: &'static str) -> Result<Vec<Config>, DbError> {
    let mut urls: Vec<String> = vec![];
    for part in list.split(',') {
        match urls.last_mut() {
            // This part continues the previous URL: the comma separates two hosts of that URL.
            Some(url) if !part.trim_start().starts_with("postgres") => url.extend([",", part]),
            _ => urls.push(part.trim_start().to_owned()),
        }
    }
    urls.iter().map(|url| Ok(with_timeouts(parse_url(url, variable)?, API_ROLE))).collect()
}

/// Connection settings of the owner.
pub fn owner_config(settings: &DatabaseSettings) -> Result<Config, DbError> {
    let url = given(settings.database_url.as_deref());
    let url = url.ok_or(DbError::NotConfigured { variable: "DATABASE_URL" })?;
    Ok(with_timeouts(parse_url(url, "DATABASE_URL")?, "dds_owner"))
}

/// Connection settings of the owner for the database with the accounts.
pub fn accounts_config(settings: &DatabaseSettings) -> Result<Config, DbError> {
    let setting = settings.accounts_setting();
    let (url, variable) = setting.ok_or(DbError::NotConfigured { variable: "DATABASE_URL" })?;
    Ok(with_timeouts(parse_url(url, variable)?, "dds_owner"))
}

/// A setting that is not empty.
fn given(url: Option<&str>) -> Option<&str> {
    url.filter(|url| !url.is_empty())
}

fn parse_url(url: &str, variable: &'static str) -> Result<Config, DbError> {
    url.parse().map_err(|source| DbError::BadUrl { variable, source })
}

/// Appends session settings, written as `-c` options, to the options of the connection URL.
pub fn add_session_options(config: &mut Config, options: &str) {
    let existing = config.get_options().unwrap_or_default();
    let options = format!("{existing} {options}");
    config.options(options.trim());
}

/// Sets timeouts that detect a vanished server, and disables TLS unless the URL requires it.
fn with_timeouts(mut config: Config, name: &str) -> Config {
    tls::disable_opportunistic_tls(&mut config);
    config
        .tcp_user_timeout(TCP_TIMEOUT)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES);
    if config.get_application_name().is_none() {
        config.application_name(name);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_replicas_may_contain_urls_of_several_hosts() {
        let list = "postgres://r@one:1,two:2/d?target_session_attrs=read-only, postgresql://r@three/d";
        let configs = replica_configs(list, "DATABASE_READ_URLS").unwrap();
        let hosts: Vec<usize> = configs.iter().map(|config| config.get_hosts().len()).collect();
        assert_eq!(hosts, [2, 1]);
        assert!(replica_configs("nonsense", "DATABASE_READ_URLS").is_err());
    }
}
