//! Lookup of an earlier data version, by instant or by name, with its source policy and rules.

use std::str::FromStr;

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use market::history::SourcePolicy;
use market::metrics::{METHOD_VERSION, Rules};
use store::db::generation_schema;
use store::ids::GenerationId;
use store::versions::{NAMED_VERSION, ServedVersion, VERSION_AT, VersionName};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

const ACTIVE: &str = "select generation from control.active";

/// Selector of a served data version: an instant or the name of the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownAt {
    /// The version that was served at this instant.
    Instant(DateTime<Utc>),
    /// The version with this name. Responses contain the name in `data_version`.
    Version(VersionName),
}

impl FromStr for KnownAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(version) = text.parse() {
            return Ok(Self::Version(version));
        }
        let instant = DateTime::parse_from_rfc3339(text);
        let instant = instant.map_err(|_| "is neither an RFC 3339 instant nor a data_version, g3.184467")?;
        Ok(Self::Instant(instant.to_utc()))
    }
}

/// Finds a data version that was served. Fails if there is none.
pub async fn find_version(client: &mut Client, known_at: KnownAt) -> anyhow::Result<ServedVersion> {
    let transaction = client.transaction().await?;
    let active: GenerationId = transaction.query_one(ACTIVE, &[]).await?.try_get(0)?;
    let path = format!("{}, control", generation_schema(active));
    transaction.execute("select set_config('search_path', $1, true)", &[&path]).await?;
    let row = match known_at {
        KnownAt::Version(name) => {
            let name: [&(dyn ToSql + Sync); 3] = [&name.generation, &name.sequence, &name.position];
            let row = transaction.query_opt(NAMED_VERSION, &name).await?;
            row.context("no such version was served")?
        }
        KnownAt::Instant(instant) => {
            let row = transaction.query_opt(VERSION_AT, &[&instant]).await?;
            row.with_context(|| format!("nothing was known at {instant}"))?
        }
    };
    Ok(ServedVersion::from_row(&row)?)
}

/// Source policy and rules of a served data version. Fails if this program cannot derive the data version, for example
/// because the rule versions differ.
pub fn derivation_inputs(version: &ServedVersion) -> anyhow::Result<&(SourcePolicy, Rules)> {
    let Some(inputs) = version.derivable() else {
        let ServedVersion { generation, sequence, method_version, program_version, .. } = version;
        bail!(
            "cannot derive version g{generation}.{sequence}: it has rules {method_version}, this program {METHOD_VERSION}; use program {program_version}"
        );
    };
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_or_a_version_is_accepted() {
        let instant: DateTime<Utc> = "2024-06-28T10:00:00Z".parse().unwrap();
        assert_eq!("2024-06-28T12:00:00+02:00".parse(), Ok(KnownAt::Instant(instant)));
        assert!(matches!("g1.20".parse(), Ok(KnownAt::Version(_))));
        assert!("2024-06-28".parse::<KnownAt>().is_err() && "20".parse::<KnownAt>().is_err());
    }
}
