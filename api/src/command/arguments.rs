//! Functions that several commands share: parsing of times, and the database connection.

use chrono::{DateTime, Utc};
use store::db::{DatabaseSettings, connect_migrated, owner_config};
use tokio_postgres::Client;

/// Connects as the owner of the database.
pub(super) async fn connect_as_owner(database: &DatabaseSettings) -> anyhow::Result<Client> {
    Ok(connect_migrated(&owner_config(database)?).await?)
}

/// Parses a command-line time: an RFC 3339 time, or a day. A day means the end of the day in UTC.
pub(super) fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    let day: chrono::NaiveDate =
        text.parse().map_err(|_| "must be a day (YYYY-MM-DD) or an RFC 3339 time".to_owned())?;
    let next = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0)).ok_or("is out of range")?;
    Ok(next.and_utc())
}
