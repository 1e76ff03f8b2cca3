//! Two connections, one for each compared generation. The search path of a connection has the schema of its generation.
//!
//! Both connections use the same database snapshot. Concurrent writes therefore have no effect on a comparison.

use std::collections::HashMap;

use anyhow::Context;
use chrono::NaiveDate;
use event_log::sequence::Sequence;
use market::bars::Bars;
use market::history::{PolicyRule, SourcePolicy};
use market::row::JsonColumn;
use market::symbol::Symbol;
use serde::Serialize;
use store::db;
use store::facts::read_packed_bars;
use store::ids::GenerationId;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use crate::generation::{Generation, load_generation_row};
use crate::review::compare::ComparedTable;
use crate::settings::{DatabaseArgs, LIVE_FACTS};

const BEGIN: &str = include_str!("../../../queries/diff_begin.sql");
const EXPORT: &str = "select pg_export_snapshot()";
const VERSION: &str = include_str!("../../../queries/diff_version.sql");
const BARS: &str = include_str!("../../../queries/diff_prices.sql");
const CANONICAL: &str = include_str!("../../../queries/symbols_canonical.sql");

/// Compared generation, with the inputs from which it was derived.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ComparedGeneration {
    pub generation: GenerationId,
    pub method_version: String,
    pub fact_set: String,
    pub sequence: Sequence,
    pub as_of: Option<NaiveDate>,
    #[serde(skip)]
    pub(super) policy: SourcePolicy,
    #[serde(skip)]
    pub(super) unfinished: bool,
}

/// Connection that reads one generation, in a snapshot that both connections share.
pub(super) struct GenerationReader {
    pub(super) client: Client,
    pub(super) generation: ComparedGeneration,
}

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

    /// Prepares a query for the rows of a table. `$1` is the list of owners. `$2` is the first day; null selects all days.
    pub(super) async fn prepare_rows(&self, table: &ComparedTable) -> anyhow::Result<Statement> {
        let ComparedTable { name, owner, .. } = table;
        let day = table.day.unwrap_or("$2");
        let order = table.tie.map_or_else(String::new, |tie| format!(" order by {tie}"));
        let query = format!(
            "select * from {name} where {owner} = any ($1) and ($2::date is null or {day} >= $2){order}"
        );
        Ok(self.client.prepare(&query).await?)
    }

    /// Counts the rows of a table, or only those of some owners, or of days from `since` on.
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

    pub(super) async fn load_bars(
        &self,
        years: &[(String, i32)],
    ) -> anyhow::Result<HashMap<(String, i32), Bars>> {
        let symbols: Vec<&str> = years.iter().map(|(symbol, _)| symbol.as_str()).collect();
        let numbers: Vec<i32> = years.iter().map(|(_, year)| *year).collect();
        let parameters: [&(dyn ToSql + Sync); 2] = [&symbols, &numbers];
        let mut read = HashMap::with_capacity(years.len());
        for row in self.client.query(BARS, &parameters).await? {
            let (symbol, year): (String, i32) = (row.try_get("symbol")?, row.try_get("year")?);
            let bars = read_packed_bars(&row)?.unpack();
            let bars = bars.with_context(|| format!("cannot unpack the prices of {symbol} in {year}"))?;
            read.insert((symbol, year), bars);
        }
        Ok(read)
    }

    pub(super) fn cancel_query(&self) -> impl Future<Output = Result<(), tokio_postgres::Error>> + use<> {
        let token = self.client.cancel_token();
        async move { token.cancel_query(NoTls).await }
    }
}

/// Finds the inputs of the derivations that differ between the generations. Returns one text per differing input.
pub(super) fn find_reasons(a: &ComparedGeneration, b: &ComparedGeneration) -> Vec<String> {
    let inputs = |generation: &ComparedGeneration| {
        let as_of = generation.as_of.map_or_else(|| "none".to_owned(), |day| day.to_string());
        [
            ("rules: version", generation.method_version.clone()),
            ("source policy:", describe_policy(&generation.policy)),
            ("market date:", as_of),
            ("facts:", generation.fact_set.clone()),
            ("log: applied to", generation.sequence.to_string()),
        ]
    };
    let pairs = inputs(a).into_iter().zip(inputs(b)).filter(|((_, a), (_, b))| a != b);
    pairs.map(|((input, a), (_, b))| format!("{input} {a} against {b}")).collect()
}

/// Formats the rules of a policy, for example `price desk rank 1 from 2020-01-01, dividend other rank 2`. A policy
/// without rules is `none`.
fn describe_policy(policy: &SourcePolicy) -> String {
    let describe = |PolicyRule { kind, source, from, to, rank }: &PolicyRule| {
        let from = from.map(|day| format!(" from {day}")).unwrap_or_default();
        let to = to.map(|day| format!(" to {day}")).unwrap_or_default();
        format!("{kind} {source} rank {rank}{from}{to}")
    };
    let rules: Vec<String> = policy.rules.iter().map(describe).collect();
    if rules.is_empty() { "none".to_owned() } else { rules.join(", ") }
}
