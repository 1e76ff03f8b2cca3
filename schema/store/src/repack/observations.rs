//! Fact sets of databases made before records were packed: their observations, one row each, become packed rows.
//!
//! In one transaction for each fact set, so a migration that is interrupted has changed nothing and is made again.

use market::event::{Action, Kind};
use market::records::{RawObservation, Records};
use tokio_postgres::{Client, Row, Transaction};

use crate::copy::copy_into;
use crate::error::{DbError, RepackError};
use crate::records::{RecordsRow, note_ids};

/// Observations read at a time.
const FETCH: &str = "fetch 20000 from unpacked";
const CURSOR: &str = include_str!("../../queries/observations_unpacked.sql");
const UNPACKED: &str = "select name from control.fact_sets where to_regclass(name || '.records') is null";

/// Packs the observations of every fact set that still has them one row each. `tables` is the DDL of packed records.
pub(crate) async fn pack_observations(client: &mut Client, tables: &str) -> Result<(), DbError> {
    for row in client.query(UNPACKED, &[]).await? {
        let fact_set: &str = row.try_get(0)?;
        tracing::info!(fact_set, "packing the observations of an older program; this is done once");
        let transaction = client.transaction().await?;
        transaction.batch_execute("set local role dds_projector").await?;
        transaction.execute("select set_config('search_path', $1, true)", &[&fact_set]).await?;
        transaction.batch_execute("alter table observations rename to observations_unpacked").await?;
        transaction.batch_execute(tables).await?;
        pack(&transaction).await?;
        transaction.batch_execute("close unpacked; drop table observations_unpacked").await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// What rows of one symbol, kind and source are gathered by.
type Key = (String, Kind, String);

async fn pack(transaction: &Transaction<'_>) -> Result<(), DbError> {
    transaction.batch_execute(CURSOR).await?;
    // The rows of the last key may go on in the next piece.
    let mut open: Option<(Key, Vec<RawObservation>)> = None;
    loop {
        let rows = transaction.query(FETCH, &[]).await?;
        let mut done = Vec::new();
        for row in &rows {
            let key = (row.try_get("symbol")?, row.try_get("kind")?, row.try_get("source")?);
            let raw = raw_observation(row)?;
            match &mut open {
                Some((known, observations)) if *known == key => observations.push(raw),
                _ => done.extend(open.replace((key, vec![raw]))),
            }
        }
        if rows.is_empty() {
            done.extend(open.take());
        }
        write(transaction, done).await?;
        if rows.is_empty() {
            return Ok(());
        }
    }
}

async fn write(transaction: &Transaction<'_>, done: Vec<(Key, Vec<RawObservation>)>) -> Result<(), DbError> {
    let sets: Vec<(String, String, Records)> = done
        .into_iter()
        .map(|((symbol, kind, source), observations)| (symbol, source, Records::new(kind, observations)))
        .collect();
    let said =
        sets.iter().map(|(symbol, source, set)| (&**symbol, set.kind(), &**source, set.observations()));
    note_ids(transaction, said).await?;
    let packed: Vec<Vec<u8>> =
        sets.iter().map(|(_, _, set)| set.pack()).collect::<Result<_, _>>().map_err(RepackError::from)?;
    let rows: Vec<RecordsRow<'_>> = sets
        .iter()
        .zip(&packed)
        .map(|((symbol, source, set), packed)| RecordsRow { symbol, kind: set.kind(), source, packed })
        .collect();
    copy_into(transaction, &rows).await?;
    Ok(())
}

fn raw_observation(row: &Row) -> Result<RawObservation, DbError> {
    let observed_at: chrono::DateTime<chrono::Utc> = row.try_get("observed_at")?;
    let (line, frame): (i64, &[u8]) = (row.try_get("line")?, row.try_get("frame")?);
    let damaged = || RepackError::Provenance { symbol: row.try_get("symbol").unwrap_or_default() };
    Ok(RawObservation {
        id: row.try_get("id")?,
        security_ref: row.try_get("security_ref")?,
        revision: row.try_get("revision")?,
        retracted: row.try_get::<_, Action>("action")? == Action::Retract,
        observed_at: observed_at.timestamp_micros(),
        line: u64::try_from(line).map_err(|_| damaged())?,
        frame: frame.try_into().map_err(|_| damaged())?,
        record: row.try_get("record")?,
    })
}
