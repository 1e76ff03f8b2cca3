//! Generation: one complete set of read tables, in its own schema. The API serves one generation.
//!
//! Lookup of an earlier data version, by instant or by name. The result includes the source policy and the rules of the
//! version.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, Utc};
use market::day::date_of;
use market::history::SourcePolicy;
use market::metrics::{METHOD_VERSION, Rules};
use market::row::JsonColumn;
use market::symbol::Symbol;
use store::FromRow;
use store::db::generation_schema;
use store::facts::{load_newest_session, load_policy};
use store::ids::GenerationId;
use store::versions::{MarketSettings, NAMED_VERSION, ServedVersion, VERSION_AT, VersionName};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, GenericClient, IsolationLevel, Row, Transaction};

use crate::error::DeriveError;

const SERVED: &str = include_str!("../queries/generation_active.sql");
const BY_ID: &str = include_str!("../queries/generation_by_id.sql");
const TAILING: &str = include_str!("../queries/generations_tailing.sql");
const POLICY: &str = include_str!("../queries/generation_policy.sql");
const DERIVED_WITH: &str = include_str!("../queries/version_derived.sql");
const AS_OF: &str = include_str!("../queries/as_of.sql");

/// Begins a read-only transaction that sees one snapshot of the database.
pub async fn begin_snapshot(client: &mut Client) -> Result<Transaction<'_>, tokio_postgres::Error> {
    client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await
}

/// Loads the row of a generation. Fails if the generation does not exist.
pub async fn load_generation_row(client: &impl GenericClient, id: GenerationId) -> anyhow::Result<Row> {
    let row = client.query_opt(BY_ID, &[&id]).await?;
    row.with_context(|| format!("generation {id} does not exist; see projector list"))
}

/// Loads the inputs of a generation's last derivation: market date and source policy. The schema of the generation must
/// be first in the search path. The date is `None` if nothing was derived yet.
pub async fn load_last_inputs(
    transaction: &Transaction<'_>,
) -> Result<(Option<NaiveDate>, SourcePolicy), tokio_postgres::Error> {
    let row = transaction.query_one(DERIVED_WITH, &[]).await?;
    let JsonColumn(policy) = row.try_get("policy")?;
    Ok((row.try_get("as_of")?, policy))
}

/// Generation and the inputs of its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Number of the generation, which is also part of the name of its schema.
    pub id: GenerationId,
    /// Schema of the facts from which the generation is derived.
    pub fact_set: String,
    /// Security that serves as the benchmark of the metric beta.
    pub benchmark: Symbol,
    /// Currency in which market capitalisations are added and compared, an ISO 4217 code.
    pub reporting_currency: String,
    /// Fixed market date (as-of date of the figures); `None` if the market date is the newest session.
    pub as_of: Option<NaiveDate>,
    /// Source policy that belongs only to this generation; `None` if the generation follows the live policy.
    pub policy: Option<SourcePolicy>,
    /// Rules of the derivation, with their parameters.
    pub rules: Rules,
}

impl Generation {
    /// Reads a row of table `generations`.
    pub fn from_row(row: &Row) -> Result<Self, DeriveError> {
        let MarketSettings { benchmark, reporting_currency } = MarketSettings::from_row(row)?;
        let policy: Option<JsonColumn<SourcePolicy>> = row.try_get("policy")?;
        let JsonColumn(rules) = row.try_get::<_, JsonColumn<BTreeMap<_, _>>>("rules")?;
        Ok(Self {
            id: row.try_get("id")?,
            fact_set: row.try_get("fact_set")?,
            benchmark: benchmark.parse().map_err(|_| DeriveError::Benchmark(benchmark))?,
            reporting_currency,
            as_of: row.try_get("as_of")?,
            policy: policy.map(|JsonColumn(policy)| policy),
            rules: rules.try_into()?,
        })
    }

    /// Loads the served generation, and sets the search path of the transaction to it.
    pub async fn load_served(transaction: &Transaction<'_>) -> Result<Self, DeriveError> {
        let generation = Self::from_row(&transaction.query_one(SERVED, &[]).await?)?;
        generation.set_local_search_path(transaction).await?;
        Ok(generation)
    }

    /// Loads the generations of a fact set that follow the log and that this program can derive.
    pub async fn load_tailing(
        transaction: &Transaction<'_>,
        fact_set: &str,
    ) -> Result<Vec<Self>, DeriveError> {
        let rows = transaction.query(TAILING, &[&fact_set, &market::metrics::METHOD_VERSION]).await?;
        let mut tailing = Vec::new();
        for row in &rows {
            match Self::from_row(row) {
                Ok(generation) => tailing.push(generation),
                // A generation that this program cannot derive must not stop the derivation of other generations.
                Err(DeriveError::Rules(error)) => {
                    tracing::error!(generation = row.try_get::<_, GenerationId>("id")?.0, %error, "generation skipped; its rules are unknown to this program");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(tailing)
    }

    /// Sets the search path of the transaction: this generation, its fact set, the control tables.
    pub async fn set_local_search_path(&self, transaction: &Transaction<'_>) -> Result<(), DeriveError> {
        transaction.execute("select set_config('search_path', $1, true)", &[&self.search_path()]).await?;
        Ok(())
    }

    /// Sets the search path for the whole connection, as [`Generation::set_local_search_path`] does for a transaction.
    pub async fn set_session_search_path(&self, client: &Client) -> Result<(), DeriveError> {
        client.execute("select set_config('search_path', $1, false)", &[&self.search_path()]).await?;
        Ok(())
    }

    fn search_path(&self) -> String {
        format!("{}, {}, control", generation_schema(self.id), self.fact_set)
    }

    /// Loads the generation's own source policy, or the live policy without a pending change.
    pub async fn load_source_policy(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<SourcePolicy, DeriveError> {
        let policy: Option<JsonColumn<SourcePolicy>> =
            transaction.query_one(POLICY, &[&self.id]).await?.try_get("policy")?;
        Ok(match policy {
            Some(JsonColumn(policy)) => policy,
            None => load_policy(transaction).await?,
        })
    }

    /// Loads the market date: the fixed date if the generation has one, otherwise the newest session in the facts.
    /// `None` if the facts have no session.
    pub async fn load_market_date(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Option<NaiveDate>, DeriveError> {
        if self.as_of.is_some() {
            return Ok(self.as_of);
        }
        let last_day: Option<i32> = transaction.query_one(AS_OF, &[]).await?.try_get("last_day")?;
        Ok(last_day.map(date_of).max(load_newest_session(transaction).await?))
    }
}

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
