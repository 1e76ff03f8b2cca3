//! `projector diff A B`: what differs between two generations, table by table and figure by figure.
//!
//! Tables are compared by counts and order-independent checksums first; only where those differ are rows compared.
//! The rules' version stands on every metrics row and is left out of the comparison: it is a reason, not a figure.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::row::Json;
use serde::Serialize;
use serde_json::{Map, Value};
use store::db::generation_schema;
use tokio_postgres::{Client, Row, Transaction};

/// A read table and what identifies its rows.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    key: &'static [&'static str],
}

/// Every read table that is compared.
pub const TABLES: [Table; 13] = [
    Table { name: "stocks", key: &["symbol"] },
    Table { name: "quotes", key: &["symbol"] },
    Table { name: "fundamentals", key: &["symbol"] },
    Table { name: "metrics", key: &["symbol"] },
    Table { name: "dividends", key: &["symbol", "ex_date", "type", "id"] },
    Table { name: "splits", key: &["symbol", "ex_date", "id"] },
    Table { name: "quarantine", key: &["symbol", "kind", "date", "source", "line"] },
    Table { name: "prices", key: &["symbol", "year"] },
    Table { name: "factors", key: &["symbol"] },
    Table { name: "symbols", key: &["symbol"] },
    Table { name: "etfs", key: &["symbol"] },
    Table { name: "holdings", key: &["etf_symbol", "as_of", "rank"] },
    Table { name: "sectors", key: &["slug"] },
];

/// Columns that say how a row came to be rather than what it says, and the packed prices, for which their digest stands.
fn left_out(table: &Table) -> &'static str {
    match table.name {
        "prices" => "days,close,range,volume,extra",
        _ => "method_version",
    }
}

/// What two generations differ in.
#[derive(Debug, Serialize)]
pub struct Diff {
    pub a: Side,
    pub b: Side,
    /// Why they can differ at all.
    pub reasons: Vec<String>,
    pub tables: Vec<TableDiff>,
    pub identical: bool,
}

/// One generation of the comparison.
#[derive(Debug, Serialize)]
pub struct Side {
    pub generation: i32,
    pub method_version: String,
    pub fact_set: String,
    pub sequence: i64,
    pub as_of: Option<NaiveDate>,
    #[serde(skip)]
    policy: Value,
}

/// One table of the comparison.
#[derive(Debug, Serialize)]
pub struct TableDiff {
    pub table: String,
    pub rows_a: i64,
    pub rows_b: i64,
    pub checksum_a: String,
    pub checksum_b: String,
    /// Differing keys in all; `rows` lists the first of them.
    pub differing: i64,
    pub rows: Vec<RowDiff>,
}

/// One differing row: the columns that differ, with both values.
#[derive(Debug, Serialize)]
pub struct RowDiff {
    pub key: Map<String, Value>,
    /// added, removed or changed.
    pub change: &'static str,
    pub columns: BTreeMap<String, (Value, Value)>,
}

const SIDE: &str = include_str!("../queries/diff_side.sql");
const REVIEWED: &str = include_str!("../queries/diff_reviewed.sql");

/// Compares two generations and notes that it was looked at.
pub async fn diff(client: &mut Client, a: i32, b: i32, limit: i64) -> anyhow::Result<Diff> {
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .start()
        .await?;
    let (side_a, side_b) = (side(&transaction, a).await?, side(&transaction, b).await?);
    let mut tables = Vec::new();
    for table in &TABLES {
        tables.push(compare(&transaction, table, a, b, limit).await?);
    }
    for (generation, against) in [(b, a), (a, b)] {
        let (this, other) = if generation == b { (&side_b, &side_a) } else { (&side_a, &side_b) };
        transaction.execute(REVIEWED, &[&generation, &against, &this.sequence, &other.sequence]).await?;
    }
    transaction.commit().await?;
    let identical = tables.iter().all(|table| table.differing == 0);
    Ok(Diff { reasons: reasons(&side_a, &side_b), a: side_a, b: side_b, tables, identical })
}

async fn side(transaction: &Transaction<'_>, id: i32) -> anyhow::Result<Side> {
    let row = transaction
        .query_opt(SIDE, &[&id])
        .await?
        .ok_or_else(|| anyhow::anyhow!("there is no generation {id}; see: projector list"))?;
    let query = format!("select sequence, as_of, policy from {}.version", generation_schema(id));
    let version = transaction.query_one(&query, &[]).await?;
    let Json(policy): Json<Value> = version.try_get("policy")?;
    Ok(Side {
        generation: id,
        method_version: row.try_get("method_version")?,
        fact_set: row.try_get("fact_set")?,
        sequence: version.try_get("sequence")?,
        as_of: version.try_get("as_of")?,
        policy,
    })
}

fn reasons(a: &Side, b: &Side) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut note = |differ: bool, text: String| {
        if differ {
            reasons.push(text);
        }
    };
    note(
        a.method_version != b.method_version,
        format!("rules: version {} against {}", a.method_version, b.method_version),
    );
    note(a.policy != b.policy, format!("source policy: {} against {}", a.policy, b.policy));
    note(a.as_of != b.as_of, format!("market date: {:?} against {:?}", a.as_of, b.as_of));
    note(a.fact_set != b.fact_set, format!("facts: {} against {}", a.fact_set, b.fact_set));
    note(a.sequence != b.sequence, format!("log: applied to {} against {}", a.sequence, b.sequence));
    reasons
}

async fn compare(
    transaction: &Transaction<'_>,
    table: &Table,
    a: i32,
    b: i32,
    limit: i64,
) -> anyhow::Result<TableDiff> {
    let (schema_a, schema_b) = (generation_schema(a), generation_schema(b));
    let (rows_a, checksum_a) = checksum(transaction, &schema_a, table).await?;
    let (rows_b, checksum_b) = checksum(transaction, &schema_b, table).await?;
    let mut found = TableDiff {
        table: table.name.to_owned(),
        rows_a,
        rows_b,
        checksum_a,
        checksum_b,
        differing: 0,
        rows: Vec::new(),
    };
    if (found.rows_a, &found.checksum_a) == (found.rows_b, &found.checksum_b) {
        return Ok(found);
    }
    for row in transaction.query(&differing_rows(table, &schema_a, &schema_b), &[&limit]).await? {
        found.differing = row.try_get("total")?;
        found.rows.push(row_diff(table, &row)?);
    }
    Ok(found)
}

/// Order-independent: the sum of the rows' hashes.
async fn checksum(
    transaction: &Transaction<'_>,
    schema: &str,
    table: &Table,
) -> anyhow::Result<(i64, String)> {
    let query = format!(
        "select count(*), coalesce(sum(hashtextextended((to_jsonb(t) - '{{{}}}'::text[])::text, 0)::numeric), 0)::text from {schema}.{} t",
        left_out(table),
        table.name
    );
    let row = transaction.query_one(&query, &[]).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn differing_rows(table: &Table, schema_a: &str, schema_b: &str) -> String {
    let key = table
        .key
        .iter()
        .map(|column| format!("a.{column} is not distinct from b.{column}"))
        .collect::<Vec<_>>()
        .join(" and ");
    let order = table
        .key
        .iter()
        .map(|column| format!("coalesce(x->>'{column}', y->>'{column}')"))
        .collect::<Vec<_>>()
        .join(", ");
    let (name, left_out) = (table.name, left_out(table));
    format!(
        "with a as (select *, to_jsonb(t) - '{{{left_out}}}'::text[] as body_ from {schema_a}.{name} t),
              b as (select *, to_jsonb(t) - '{{{left_out}}}'::text[] as body_ from {schema_b}.{name} t),
              d as (
                select a.body_ as x, b.body_ as y from a left join b on {key} where b.body_ is null or a.body_ <> b.body_
                union all
                select null, b.body_ from b where not exists (select from a where {key})
              )
         select x::json as x, y::json as y, count(*) over () as total from d order by {order} limit $1"
    )
}

fn row_diff(table: &Table, row: &Row) -> anyhow::Result<RowDiff> {
    let object = |column: &str| -> anyhow::Result<Option<Map<String, Value>>> {
        let value: Option<Json<Value>> = row.try_get(column)?;
        Ok(value.and_then(|Json(value)| value.as_object().cloned()))
    };
    let (x, y) = (object("x")?, object("y")?);
    let change = match (&x, &y) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    let (x, y) = (x.unwrap_or_default(), y.unwrap_or_default());
    let value = |side: &Map<String, Value>, name: &str| side.get(name).cloned().unwrap_or(Value::Null);
    let key = table
        .key
        .iter()
        .map(|name| ((*name).to_owned(), value(if x.is_empty() { &y } else { &x }, name)))
        .collect();
    let names = x
        .keys()
        .chain(y.keys())
        .filter(|name| x.get(*name) != y.get(*name) && !table.key.contains(&name.as_str()));
    let columns = names.map(|name| (name.clone(), (value(&x, name), value(&y, name)))).collect();
    Ok(RowDiff { key, change, columns })
}

/// For a rebuild of some tables only: the others become copies of the served generation's.
pub async fn copy_others(transaction: &Transaction<'_>, id: i32) -> Result<(), tokio_postgres::Error> {
    let row = transaction.query_one(SIDE, &[&id]).await?;
    let (only, active): (Option<Vec<String>>, i32) = (row.try_get("projections")?, row.try_get("active")?);
    let Some(only) = only else { return Ok(()) };
    for table in TABLES.iter().filter(|table| !only.iter().any(|name| name == table.name)) {
        let (target, origin) = (generation_schema(id), generation_schema(active));
        transaction
            .batch_execute(&format!(
                "truncate {target}.{0}; insert into {target}.{0} select * from {origin}.{0}",
                table.name
            ))
            .await?;
    }
    // What is there now was not derived here.
    transaction.batch_execute(&format!("truncate {}.digests", generation_schema(id))).await
}
