//! HTTP server: listener, router, probes, the source of operational metrics, and the databases: connections of the roles
//! to market and accounts, and their check at the start.

pub(crate) mod router;
pub(crate) mod serve;

use anyhow::Context;
use futures::future::try_join_all;
use store::db::{self, API_ROLE, DASHBOARD_ROLE, DatabaseSettings, DbError, role_config};
use tokio_postgres::Config;

use crate::app::settings::{DashboardSwitch, ServeSettings};

/// Connection to the primary database of the market.
pub(super) fn market_config(
    settings: &ServeSettings,
    database: &DatabaseSettings,
) -> Result<Config, DbError> {
    let (own, owner) = (settings.api_database_url.as_deref(), database.database_url.as_deref());
    role_config(own, owner, API_ROLE, "API_DATABASE_URL")
}

/// Connection of the API's role to the database with the accounts.
pub(super) fn accounts_config(
    settings: &ServeSettings,
    database: &DatabaseSettings,
) -> Result<Config, DbError> {
    let own = settings.api_accounts_database_url.as_deref();
    if own.is_none_or(str::is_empty) && !database.has_accounts_url() {
        return market_config(settings, database);
    }
    role_config(own, database.accounts_url(), API_ROLE, "API_ACCOUNTS_DATABASE_URL")
}

/// Fails if a database does not have the schema of this program, or has other contents. A newer schema is refused only
/// at the start, so a running instance continues to serve during an upgrade.
pub(super) async fn check_databases(
    settings: &ServeSettings,
    database: &DatabaseSettings,
) -> anyhow::Result<()> {
    let mut expected = vec![
        (market_config(settings, database)?, "control", "API_DATABASE_URL"),
        (accounts_config(settings, database)?, "accounts", "API_ACCOUNTS_DATABASE_URL"),
    ];
    if let Some(config) = dashboard_config(settings, database)? {
        expected.push((config, "accounts", "DASHBOARD_DATABASE_URL"));
    }
    let limit = settings.read_timeout;
    let checks = expected.into_iter().map(|(config, schema, variable)| async move {
        let checking = async {
            let client = db::connect_migrated(&config).await?;
            db::check_contents(&client, None, schema, variable).await
        };
        // An unreachable database must not prevent the start.
        match tokio::time::timeout(limit, checking).await {
            Ok(Err(error)) if !error.is_unreachable() => Err(error),
            _ => Ok(()),
        }
    });
    Ok(try_join_all(checks).await.map(drop)?)
}

/// Connection of the dashboard's role; `None` if the dashboard is switched off.
pub(super) fn dashboard_config(
    settings: &ServeSettings,
    database: &DatabaseSettings,
) -> anyhow::Result<Option<Config>> {
    let settings = &settings.dashboard;
    if settings.dashboard == DashboardSwitch::Off {
        return Ok(None);
    }
    let config = role_config(
        settings.dashboard_database_url.as_deref(),
        database.accounts_url(),
        DASHBOARD_ROLE,
        "DASHBOARD_DATABASE_URL",
    )
    .context("cannot configure the dashboard database; set DASHBOARD=off to run without the dashboard")?;
    Ok(Some(config))
}
