//! Two connections, one for each compared generation. The search path of a connection has the schema of its generation.
//!
//! Both connections use the same database snapshot. Concurrent writes therefore have no effect on a comparison.

use chrono::NaiveDate;
use event_log::sequence::Sequence;
use market::history::SourcePolicy;
use market::row::JsonColumn;
use market::symbol::Symbol;
use serde::Serialize;
use store::db;
use store::ids::GenerationId;
use tokio_postgres::{Client, NoTls, Statement};

use super::tables::ComparedTable;
use crate::generation::{Generation, load_generation_row};
use crate::settings::{DatabaseArgs, LIVE_FACTS};

const BEGIN: &str = include_str!("../../../queries/diff_begin.sql");
const EXPORT: &str = "select pg_export_snapshot()";
const VERSION: &str = include_str!("../../../queries/diff_version.sql");
const CANONICAL: &str = include_str!("../../../queries/symbols_canonical.sql");

/// Compared generation, with the inputs from which it was derived.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedGeneration {
    pub generation: GenerationId,
    pub method_version: String,
    pub fact_set: String,
    pub sequence: Sequence,
    pub as_of: Option<NaiveDate>,
    #[serde(skip)]
    pub(super) policy: SourcePolicy,
    /// `true` if the rebuild of the generation has not finished.
    #[serde(skip)]
    pub(super) unfinished: bool,
}

/// Connection that reads one generation, in a snapshot that both connections share.
pub(super) struct GenerationReader {
    pub(super) client: Client,
    pub(super) generation: ComparedGeneration,
}

/// Opens a reader for each of two generations. Both readers use the same snapshot.
pub(super) async fn open_readers(
    database: &DatabaseArgs,
    ids: [GenerationId; 2],
) -> anyhow::Result<[GenerationReader; 2]> {
    let config = database.projector_config(LIVE_FACTS)?;
    let (a, b) = (db::connect_migrated(&config).await?, db::connect_migrated(&config).await?);
    a.batch_execute(BEGIN).await?;
    let snapshot: String = a.query_one(EXPORT, &[]).await?.try_get(0)?;
    b.batch_execute(&format!("{BEGIN}; set transaction snapshot '{snapshot}'")).await?;
    Ok([GenerationReader::open(a, ids[0]).await?, GenerationReader::open(b, ids[1]).await?])
}

impl GenerationReader {
    /// Loads a generation, and sets the search path of the connection to the schema of the generation.
    async fn open(client: Client, id: GenerationId) -> anyhow::Result<Self> {
        let row = load_generation_row(&client, id).await?;
        let generation = Generation::from_row(&row)?;
        generation.set_session_search_path(&client).await?;
        let version = client.query_one(VERSION, &[]).await?;
        let JsonColumn(policy) = version.try_get("policy")?;
        let generation = ComparedGeneration {
            generation: id,
            method_version: generation.rules.with_deviations(row.try_get("method_version")?),
            fact_set: generation.fact_set,
            sequence: version.try_get("sequence")?,
            as_of: version.try_get("as_of")?,
            policy,
            unfinished: row.try_get::<_, &str>("state")? == "building",
        };
        Ok(Self { client, generation })
    }

    /// Looks up a current or former symbol in this generation. Returns the canonical symbol of its security; `None` if
    /// no security has this symbol.
    pub(super) async fn load_canonical_symbol(&self, symbol: &Symbol) -> anyhow::Result<Option<String>> {
        let row = self.client.query_opt(CANONICAL, &[&symbol.as_str()]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// Prepares a query for the rows of a table. `$1` is the list of owners (securities, funds or sectors). `$2` is the
    /// first day; null selects all days.
    pub(super) async fn prepare_rows(&self, table: &ComparedTable) -> anyhow::Result<Statement> {
        let ComparedTable { name, owner, .. } = table;
        let day = table.day.unwrap_or("$2");
        let order = table.tie.map_or_else(String::new, |tie| format!(" order by {tie}"));
        let query = format!(
            "select * from {name} where {owner} = any ($1) and ($2::date is null or {day} >= $2){order}"
        );
        Ok(self.client.prepare(&query).await?)
    }

    /// Counts the rows of a table. If `only` has a list of owners (securities, funds or sectors), counts only their
    /// rows. If `since` has a day and the rows have days, counts only rows of this day or later.
    pub(super) async fn count_rows(
        &self,
        table: &ComparedTable,
        only: Option<&[String]>,
        since: Option<NaiveDate>,
    ) -> anyhow::Result<u64> {
        let day = since.and(table.day).unwrap_or("$2");
        let query = format!(
            "select count(*) from {} where ($1::text[] is null or {} = any ($1)) and ($2::date is null or {day} >= $2)",
            table.name, table.owner
        );
        let count: i64 = self.client.query_one(&query, &[&only, &since]).await?.try_get(0)?;
        Ok(count.unsigned_abs())
    }

    /// Returns a future that cancels the running query of this reader.
    pub(super) fn cancel_query(&self) -> impl Future<Output = Result<(), tokio_postgres::Error>> + use<> {
        let token = self.client.cancel_token();
        async move { token.cancel_query(NoTls).await }
    }
}
