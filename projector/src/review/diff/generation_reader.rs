//! Two connections, one for each compared generation. The search path of a connection has the schema of its generation.
//!
//! Both connections use the same database snapshot. Concurrent writes therefore have no effect on a comparison.

use std::collections::HashMap;

use anyhow::Context;
use chrono::NaiveDate;
use event_log::sequence::Sequence;
use market::bars::Bars;
use market::history::{PolicyRule, SourcePolicy};
use market::identity::SecurityAddress;
use market::row::JsonColumn;
use serde::Serialize;
use store::db;
use store::db::generation_schema;
use store::facts::read_packed_bars;
use store::ids::GenerationId;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

use crate::generation::{Generation, load_generation_row};
use crate::review::compare::{ComparedTable, PRICES, SECTORS, TABLES};
use crate::review::find_symbol;
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use crate::write::digest_index;

const BEGIN: &str = include_str!("../../../queries/diff_begin.sql");
const EXPORT: &str = "select pg_export_snapshot()";
const VERSION: &str = include_str!("../../../queries/diff_version.sql");
const BARS: &str = include_str!("../../../queries/diff_prices.sql");

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

    /// Canonical symbol of an address in this generation; `None` if no security has this address.
    pub(super) async fn load_canonical_symbol(
        &self,
        address: &SecurityAddress,
    ) -> anyhow::Result<Option<String>> {
        Ok(find_symbol(&self.client, address).await?.map(|symbol| symbol.to_string()))
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

const DIGESTS: &str = include_str!("../../../queries/diff_digests.sql");
const YEARS: &str = include_str!("../../../queries/diff_years.sql");
const YEAR_COUNT: &str = include_str!("../../../queries/diff_year_count.sql");
const SECTOR_SLUGS: &str = "select slug from sectors";

pub(super) struct DiffScope<'a> {
    pub(super) only: Option<&'a [String]>,
    pub(super) first_price_year: Option<i32>,
    pub(super) include_equal: bool,
}

/// Rows that must be compared column by column. An owner of rows is a security, fund or sector.
#[derive(Debug, Default)]
pub(super) struct DiffCandidates {
    owners: HashMap<&'static str, Vec<String>>,
    /// Price years to compare, as symbol and calendar year. A price year is one row that contains the prices of one
    /// security in one calendar year.
    pub(super) years: Vec<(String, i32)>,
    /// Number of all price years in each generation. Years with equal digests are counted too.
    pub(super) years_in_all: [u64; 2],
    /// Sum of all digests of each table, in each generation; `None` if a digest is missing.
    checksums: HashMap<&'static str, [Option<String>; 2]>,
}

impl DiffCandidates {
    pub(super) async fn find(readers: &[GenerationReader; 2], scope: &DiffScope<'_>) -> Result<Self, Error> {
        let mut found = Self::default();
        let [a, b] = readers.each_ref().map(|reader| generation_schema(reader.generation.generation));
        let [digests, years] = [DIGESTS, YEARS].map(|query| query.replace("{a}", &a).replace("{b}", &b));
        found.compare_digests(&readers[0].client.query(&digests, &[&scope.only]).await?, scope)?;
        let of_years: [&(dyn ToSql + Sync); 3] = [&scope.only, &scope.first_price_year, &scope.include_equal];
        for row in readers[0].client.query(&years, &of_years).await? {
            found.years.push((row.try_get("symbol")?, row.try_get("year")?));
        }
        let mut checksums = [None, None];
        for (side, reader) in readers.iter().enumerate() {
            let row = reader.client.query_one(YEAR_COUNT, &of_years[..2]).await?;
            found.years_in_all[side] = row.try_get::<_, i64>("years")?.unsigned_abs();
            checksums[side] = row.try_get("checksum")?;
            if scope.only.is_none() {
                for row in reader.client.query(SECTOR_SLUGS, &[]).await? {
                    found.owners.entry(SECTORS).or_default().push(row.try_get(0)?);
                }
            }
        }
        found.checksums.insert(PRICES, checksums);
        if let Some(slugs) = found.owners.get_mut(SECTORS) {
            slugs.sort_unstable();
            slugs.dedup();
        }
        Ok(found)
    }

    pub(super) fn owners(&self, table: &ComparedTable) -> &[String] {
        self.owners.get(table.name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn checksums(&self, table: &ComparedTable) -> [Option<String>; 2] {
        self.checksums.get(table.name).cloned().unwrap_or_default()
    }

    fn compare_digests(&mut self, rows: &[Row], scope: &DiffScope<'_>) -> Result<(), Error> {
        for table in TABLES.iter().filter(|table| !matches!(table.name, PRICES | SECTORS)) {
            let index = digest_index(table.name);
            let (mut sums, mut owners) = ([Some(0); 2], Vec::new());
            for row in rows {
                let mut digests = [None, None];
                for (side, (column, present)) in [("a", "in_a"), ("b", "in_b")].into_iter().enumerate() {
                    if row.try_get(present)? {
                        let tables: Option<Vec<i64>> = row.try_get(column)?;
                        digests[side] =
                            tables.zip(index).and_then(|(tables, index)| tables.get(index).copied());
                        sums[side] = sums[side]
                            .zip(digests[side])
                            .map(|(sum, digest): (i128, i64)| sum + i128::from(digest));
                    }
                }
                if scope.include_equal || digests[0].is_none() || digests[0] != digests[1] {
                    owners.push(row.try_get("symbol")?);
                }
            }
            self.owners.insert(table.name, owners);
            self.checksums.insert(table.name, sums.map(|sum| sum.map(|sum| sum.to_string())));
        }
        Ok(())
    }
}
