//! Records into facts: every kind but prices is one set of observations that only grows.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use event_log::frame::{Body, Frame};
use market::event::{Action, Dividend, Kind, Row};
use market::symbol::Symbol;
use serde::Serialize;
use store::copy::copy_values;
use store::db::DbError;

use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

use crate::apply::ApplyError;

/// One observation, ready for the table.
#[derive(Debug)]
struct Staged {
    symbol: String,
    kind: Kind,
    source: String,
    key: String,
    content: Vec<u8>,
    id: Option<String>,
    security_ref: Option<String>,
    revision: i64,
    action: Action,
    observed_at: DateTime<Utc>,
    line: i64,
    frame: Vec<u8>,
    record: String,
}

const COLUMNS: &str = "symbol, kind, source, key, content, id, security_ref, revision, action, observed_at, line, frame, record";
const SPREAD_MOVED: &str = include_str!("../queries/observations_spread.sql");
const MERGE: &str = include_str!("../queries/observations_merge.sql");
const MARK_DIRTY: &str = include_str!("../queries/observations_mark_dirty.sql");
const MARK_SYMBOLS_DIRTY: &str = include_str!("../queries/symbols_mark_dirty.sql");
const KNOWN: &str = include_str!("../queries/observations_known.sql");

/// Merges the frames' records into the observations and marks their symbols dirty.
pub async fn apply_records(
    transaction: &Transaction<'_>,
    fact_set: &str,
    frames: &[&Frame],
) -> Result<(), ApplyError> {
    use rayon::prelude::*;
    let staged: Vec<Staged> =
        tokio::task::block_in_place(|| frames.par_iter().flat_map_iter(|frame| stage(frame)).collect());
    if staged.is_empty() {
        return Ok(());
    }
    // A json column takes the escape, the text columns of the read tables would not.
    if let Some(bad) = staged.iter().find(|s| s.record.contains("\\u0000")) {
        return Err(ApplyError::NulCharacter { symbol: bad.symbol.clone() });
    }
    let (first, staged) = first_of_their_symbol(transaction, staged).await?;
    if !first.is_empty() {
        copy(transaction, "observations", &first).await?;
        let symbols: Vec<&str> = first.iter().map(|s| s.symbol.as_str()).collect();
        transaction.execute(MARK_SYMBOLS_DIRTY, &[&fact_set, &symbols]).await?;
    }
    if staged.is_empty() {
        return Ok(());
    }
    copy(transaction, "staged_observations", &staged).await?;
    if staged.iter().any(|s| s.id.is_some()) {
        transaction.execute(SPREAD_MOVED, &[]).await?;
    }
    transaction.execute(MERGE, &[]).await?;
    transaction.execute(MARK_DIRTY, &[&fact_set]).await?;
    Ok(())
}

/// Parts from the others, each once, the records of symbols of which none of the kind is known: they can conflict with
/// nothing.
async fn first_of_their_symbol(
    transaction: &Transaction<'_>,
    staged: Vec<Staged>,
) -> Result<(Vec<Staged>, Vec<Staged>), ApplyError> {
    // Ids may tie a record to another symbol's; securities and sessions concern more than their symbol.
    let alone = |s: &Staged| s.id.is_none() && !matches!(s.kind, Kind::Security | Kind::Session);
    let groups: BTreeSet<(&str, &str)> =
        staged.iter().map(|s| (s.symbol.as_str(), s.kind.as_str())).collect();
    let (symbols, kinds): (Vec<&str>, Vec<&str>) = groups.into_iter().unzip();
    let mut known: HashSet<(String, Kind)> = HashSet::new();
    for row in transaction.query(KNOWN, &[&symbols, &kinds]).await? {
        known.insert((row.try_get("symbol")?, row.try_get("kind")?));
    }
    known.extend(staged.iter().filter(|s| !alone(s)).map(|s| (s.symbol.clone(), s.kind)));
    let (others, mut first): (Vec<Staged>, Vec<Staged>) =
        staged.into_iter().partition(|s| known.contains(&(s.symbol.clone(), s.kind)));
    // The newest observation of a record first, as the table would keep it.
    first.sort_unstable_by(|a, b| {
        let newest = || (b.observed_at, b.line, &b.frame).cmp(&(a.observed_at, a.line, &a.frame));
        a.identity().cmp(&b.identity()).then_with(newest)
    });
    first.dedup_by(|a, b| a.identity() == b.identity());
    Ok((first, others))
}

impl Staged {
    /// What makes it the same observation as another.
    fn identity(&self) -> (&str, &str, &str, &str, &[u8]) {
        (&self.symbol, self.kind.as_str(), &self.source, &self.key, &self.content)
    }
}

async fn copy(transaction: &Transaction<'_>, table: &str, staged: &[Staged]) -> Result<(), DbError> {
    let kinds: Vec<(&str, &str)> = staged.iter().map(|s| (s.kind.as_str(), s.action.as_str())).collect();
    let records: Vec<RawJson<'_>> = staged.iter().map(|s| RawJson(&s.record)).collect();
    let tuples = staged.iter().zip(&kinds).zip(&records).map(|((s, (kind, action)), record)| {
        let values: Vec<&(dyn ToSql + Sync)> = vec![
            &s.symbol,
            kind,
            &s.source,
            &s.key,
            &s.content,
            &s.id,
            &s.security_ref,
            &s.revision,
            action,
            &s.observed_at,
            &s.line,
            &s.frame,
            record,
        ];
        values
    });
    let types = [
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::BYTEA,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::TEXT,
        Type::TIMESTAMPTZ,
        Type::INT8,
        Type::BYTEA,
        Type::JSON,
    ];
    copy_values(transaction, &format!("copy {table} ({COLUMNS}) from stdin binary"), &types, tuples).await?;
    Ok(())
}

fn stage(frame: &Frame) -> Vec<Staged> {
    match &frame.body {
        Body::Securities(rows) => rows
            .iter()
            .map(|row| staged(frame, row, &row.record.symbol, reference_key(row, &row.record.symbol)))
            .collect(),
        Body::Dividends(rows) => {
            rows.iter().map(|row| staged(frame, row, &row.record.symbol, dividend_key(&row.record))).collect()
        }
        Body::Splits(rows) => rows
            .iter()
            .map(|row| staged(frame, row, &row.record.symbol, row.record.ex_date.to_string()))
            .collect(),
        Body::Fundamentals(rows) => rows
            .iter()
            .map(|row| staged(frame, row, &row.record.symbol, row.record.as_of.to_string()))
            .collect(),
        Body::Etfs(rows) => rows
            .iter()
            .map(|row| staged(frame, row, &row.record.symbol, row.record.as_of.to_string()))
            .collect(),
        Body::Holdings(rows) => rows
            .iter()
            .map(|row| staged(frame, row, &row.record.symbol, row.record.as_of.to_string()))
            .collect(),
        Body::Sessions(rows) => rows.iter().map(|row| staged_session(frame, row)).collect(),
        Body::Prices(_) | Body::Rejects(_) | Body::Run(_) => Vec::new(),
    }
}

/// A security is known by the vendor's permanent reference, so that a reused ticker stays two securities.
fn reference_key<T>(row: &Row<T>, symbol: &Symbol) -> String {
    row.security_ref.clone().unwrap_or_else(|| symbol.to_string())
}

fn dividend_key(dividend: &Dividend) -> String {
    let date = |date: Option<NaiveDate>| date.map(|d| d.to_string()).unwrap_or_default();
    format!(
        "{}|{}|{}|{}",
        date(dividend.ex_date),
        date(dividend.record_date.filter(|_| dividend.ex_date.is_none())),
        dividend.r#type,
        dividend.currency
    )
}

fn staged_session(frame: &Frame, row: &Row<market::event::Session>) -> Staged {
    build(frame, row, String::new(), row.record.date.to_string())
}

fn staged<T: Serialize>(frame: &Frame, row: &Row<T>, symbol: &Symbol, natural: String) -> Staged {
    let key = row.id.as_ref().map_or(natural, |id| format!("id:{id}"));
    build(frame, row, symbol.to_string(), key)
}

fn build<T: Serialize>(frame: &Frame, row: &Row<T>, symbol: String, key: String) -> Staged {
    // A record was read from JSON a moment ago; writing it again cannot fail but for a bug, which would show as {}.
    let record = serde_json::to_string(&row.record).unwrap_or_else(|_| "{}".to_owned());
    let mut hasher = blake3::Hasher::new();
    for part in
        [row.id.as_deref().unwrap_or_default(), &row.revision.to_string(), row.action.as_str(), &record]
    {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    Staged {
        symbol,
        kind: frame.body.kind(),
        source: frame.source.clone(),
        key,
        content: hasher.finalize().as_bytes()[..16].to_vec(),
        id: row.id.clone(),
        security_ref: row.security_ref.clone(),
        revision: row.revision,
        action: row.action,
        observed_at: row.observed_at,
        line: i64::try_from(row.line).unwrap_or(i64::MAX),
        frame: frame.id.0.to_vec(),
        record,
    }
}

/// JSON text passed to a `json` column as it is.
#[derive(Debug)]
struct RawJson<'a>(&'a str);

impl ToSql for RawJson<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(tokio_postgres::types::IsNull::No)
    }
    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON
    }
    tokio_postgres::types::to_sql_checked!();
}

const STAGE_FRAMES: &str =
    "copy staged_frames (frame, sequence, kind, source, run, file, line, rows) from stdin binary";
const KNOWN_FRAMES: &str = include_str!("../queries/frames_known.sql");
const INSERT_FRAMES: &str = include_str!("../queries/frames_insert.sql");

/// Ids of frames that were applied before.
pub async fn known_frames(transaction: &Transaction<'_>, ids: &[&[u8]]) -> Result<HashSet<Vec<u8>>, DbError> {
    let rows = transaction.query(KNOWN_FRAMES, &[&ids]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Remembers that frames were applied, where each came from.
pub async fn record_frames(transaction: &Transaction<'_>, frames: &[(u64, &Frame)]) -> Result<(), DbError> {
    let values: Vec<(Vec<u8>, i64, &str, i64, i32)> = frames
        .iter()
        .map(|(sequence, frame)| {
            let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            let rows = i32::try_from(frame.body.rows()).unwrap_or(i32::MAX);
            (frame.id.0.to_vec(), number(*sequence), frame.body.kind().as_str(), number(frame.line), rows)
        })
        .collect();
    let tuples = frames.iter().zip(&values).map(|((_, frame), (id, sequence, kind, line, rows))| {
        let tuple: Vec<&(dyn ToSql + Sync)> =
            vec![id, sequence, kind, &frame.source, &frame.run, &frame.file, line, rows];
        tuple
    });
    let types =
        [Type::BYTEA, Type::INT8, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8, Type::INT4];
    copy_values(transaction, STAGE_FRAMES, &types, tuples).await?;
    transaction.execute(INSERT_FRAMES, &[]).await?;
    Ok(())
}

const STAGE_REJECTS: &str =
    "copy staged_rejects (frame, item, run, source, file, line, reason, message, row) from stdin binary";
const INSERT_REJECTS: &str = include_str!("../queries/rejects_insert.sql");
const INSERT_RUN: &str = include_str!("../queries/runs_insert.sql");

/// Projects rejects and manifests, for the operator's lists.
pub async fn apply_bookkeeping(
    transaction: &Transaction<'_>,
    frames: &[(u64, &Frame)],
) -> Result<(), DbError> {
    let rejects: Vec<(&Frame, i32, i64, &market::event::Reject)> = frames
        .iter()
        .filter_map(|(_, frame)| match &frame.body {
            Body::Rejects(rejects) => Some((*frame, rejects)),
            _ => None,
        })
        .flat_map(|(frame, rejects)| {
            rejects.iter().zip(1i32..).map(move |(reject, item)| {
                (frame, item, i64::try_from(reject.line).unwrap_or(i64::MAX), reject)
            })
        })
        .collect();
    if !rejects.is_empty() {
        let ids: Vec<&[u8]> = rejects.iter().map(|(frame, ..)| frame.id.0.as_slice()).collect();
        let tuples = rejects.iter().zip(&ids).map(|((frame, item, line, reject), id)| {
            let tuple: Vec<&(dyn ToSql + Sync)> = vec![
                id,
                item,
                &frame.run,
                &frame.source,
                &reject.file,
                line,
                &reject.reason,
                &reject.message,
                &reject.row,
            ];
            tuple
        });
        let types = [
            Type::BYTEA,
            Type::INT4,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
            Type::INT8,
            Type::TEXT,
            Type::TEXT,
            Type::TEXT,
        ];
        copy_values(transaction, STAGE_REJECTS, &types, tuples).await?;
        transaction.execute(INSERT_REJECTS, &[]).await?;
    }
    for (sequence, frame) in frames {
        if let Body::Run(run) = &frame.body {
            let manifest = market::row::Json(run);
            let sequence = i64::try_from(*sequence).unwrap_or(i64::MAX);
            transaction.execute(INSERT_RUN, &[&run.run, &run.state.as_str(), &sequence, &manifest]).await?;
        }
    }
    Ok(())
}
