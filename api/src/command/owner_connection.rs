//! Database connection of the operator commands, as the owner.

use store::db::{DatabaseSettings, connect, owner_config};
use tokio_postgres::Client;

/// Connects as the owner of the database.
pub(super) async fn connect_as_owner(database: &DatabaseSettings) -> anyhow::Result<Client> {
    Ok(connect(&owner_config(database)?).await?)
}
