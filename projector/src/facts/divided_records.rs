//! Rows of stored records that are divided: into the observations that count now, and all others. Table `records` has
//! the former, table `superseded_records` has the latter.
//!
//! If a vendor corrects the symbol of a record with an id, the record is stored under both symbols.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use codec::records::{RawObservation, RecordSet};
use market::event::Kind;
use rayon::prelude::*;
use store::facts::unpack_records;
use store::records::{id_digest, store_id_symbols};
use store::view::{BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::fact_cache::{AppliedRecords, RecordsKey};
use crate::facts::stored_records::{
    ObservationsByRow, StoredRecords, key_columns, load_stored, store_links, write_records,
};

const MOVED: &str = include_str!("../../queries/record_ids_moved.sql");
const TAKE_SUPERSEDED: &str = include_str!("../../queries/superseded_records_take.sql");

/// Maximum number of rows that are divided at the same time.
const ROWS_PER_CHUNK: usize = 5_000;

/// Kind, source and vendor's id of a record.
type RecordId = (Kind, String, String);

/// Rows to divide.
#[derive(Default)]
pub(crate) struct RowsToDivide {
    /// New observations of each row.
    pub(super) rows: ObservationsByRow,
    /// Records that have had several symbols, with the rows of these symbols.
    moved: BTreeMap<RecordId, Vec<RecordsKey>>,
}

impl RowsToDivide {
    /// Rows without new observations.
    pub(crate) fn stored(keys: impl IntoIterator<Item = RecordsKey>) -> Self {
        Self { rows: keys.into_iter().map(|key| (key, Vec::new())).collect(), ..Self::default() }
    }
}

/// Stores the symbols of all records with an id. Takes the rows of records that have had several symbols out of
/// `by_row`.
pub(super) async fn take_moved_records(
    transaction: &Transaction<'_>,
    by_row: &mut ObservationsByRow,
) -> Result<RowsToDivide, ApplyError> {
    let named = by_row.iter().map(|(key, raw)| (&*key.symbol, key.kind, &*key.source, &**raw));
    let digests = store_id_symbols(transaction, named).await?;
    let symbols = load_symbols_of_ids(transaction, &digests).await?;
    let mut found = RowsToDivide::default();
    if symbols.is_empty() {
        return Ok(found);
    }
    for (RecordsKey { kind, source, .. }, observations) in &*by_row {
        for id in observations.iter().filter_map(|raw| raw.id.as_ref()) {
            let Some(symbols) = symbols.get(&id_digest(*kind, source, id)) else { continue };
            let key =
                |symbol: &String| RecordsKey { symbol: symbol.clone(), kind: *kind, source: source.clone() };
            found.moved.insert((*kind, source.clone(), id.clone()), symbols.iter().map(key).collect());
        }
    }
    for key in found.moved.values().flatten() {
        // Several moved records may share a row.
        if !found.rows.contains_key(key) {
            found.rows.insert(key.clone(), by_row.remove(key).unwrap_or_default());
        }
    }
    Ok(found)
}

/// Rows of all symbols that records with these ids have had. Each id is given as its digest, with the key of one of its
/// rows.
pub(crate) async fn rows_of_ids(
    transaction: &Transaction<'_>,
    ids: &BTreeMap<i64, RecordsKey>,
) -> Result<BTreeSet<RecordsKey>, ApplyError> {
    let digests: Vec<i64> = ids.keys().copied().collect();
    let mut keys = BTreeSet::new();
    for (digest, symbols) in load_symbols_of_ids(transaction, &digests).await? {
        let Some(key) = ids.get(&digest) else { continue };
        keys.extend(symbols.into_iter().map(|symbol| RecordsKey { symbol, ..key.clone() }));
    }
    Ok(keys)
}

/// Symbols of each id that has several, by the digest of the id.
async fn load_symbols_of_ids(
    transaction: &Transaction<'_>,
    digests: &[i64],
) -> Result<HashMap<i64, Vec<String>>, ApplyError> {
    if digests.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = transaction.query(MOVED, &[&digests]).await?;
    Ok(rows
        .iter()
        .map(|row| Ok((row.try_get("digest")?, row.try_get("symbols")?)))
        .collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Divides rows by the states of the runs. Returns the symbols of the rows in table `records` that changed.
pub(crate) async fn divide_records(
    transaction: &Transaction<'_>,
    mut work: RowsToDivide,
    states: &RunStates,
) -> Result<Vec<String>, ApplyError> {
    let mut changed = Vec::new();
    // The rows of a moved record depend on each other, so they are divided together.
    let moved: BTreeSet<&RecordsKey> = work.moved.values().flatten().collect();
    let related: ObservationsByRow = work.rows.extract_if(.., |key, _| moved.contains(key)).collect();
    let mut chunk = RowsToDivide { rows: related, moved: work.moved };
    loop {
        while chunk.rows.len() < ROWS_PER_CHUNK
            && let Some((key, observations)) = work.rows.pop_first()
        {
            chunk.rows.insert(key, observations);
        }
        if chunk.rows.is_empty() {
            return Ok(changed);
        }
        changed.extend(divide_chunk(transaction, std::mem::take(&mut chunk), states).await?);
    }
}

async fn divide_chunk(
    transaction: &Transaction<'_>,
    RowsToDivide { mut rows, moved }: RowsToDivide,
    states: &RunStates,
) -> Result<Vec<String>, ApplyError> {
    let mut stored = load_stored(transaction, rows.keys()).await?;
    let (symbols, kinds, sources) = key_columns(rows.keys());
    for row in transaction.query(TAKE_SUPERSEDED, &[&symbols, &kinds, &sources]).await? {
        let (symbol, kind, source) = (row.try_get("symbol")?, row.try_get("kind")?, row.try_get("source")?);
        let superseded = unpack_records(&row)?;
        rows.entry(RecordsKey { symbol, kind, source })
            .or_default()
            .extend(superseded.observations().iter().cloned());
    }
    for (key, observations) in &mut rows {
        if let Some(stored) = stored.get(key) {
            observations.extend(stored.records.observations().iter().cloned());
        }
    }
    copy_to_moved_symbols(&mut rows, &moved);
    let batches: BTreeSet<&[u8]> =
        rows.values().flatten().map(|observation| observation.frame.as_slice()).collect();
    let batches: Vec<&[u8]> = batches.into_iter().collect();
    let owners = BatchOwners::load(transaction, &batches).await?;
    let work: Vec<_> = rows
        .into_iter()
        .map(|(key, observations)| {
            let stored = stored.remove(&key);
            (key, observations, stored)
        })
        .collect();
    let newest = View::newest();
    let is_visible = |batch: &[u8; 16]| states.is_empty() || owners.is_visible(batch, states, &newest);
    let rows: Vec<AppliedRecords> = tokio::task::block_in_place(|| {
        work.into_par_iter()
            .map(|(key, observations, stored)| divide_row(key, observations, stored, is_visible))
            .collect::<Result<_, _>>()
    })?;
    write_records(transaction, &rows).await?;
    store_links(transaction, &rows).await?;
    let changed = rows.into_iter().filter(|row| row.changes);
    Ok(changed.map(|row| row.key.symbol).collect())
}

/// Copies all observations of a record to the rows of all symbols that the record has had.
fn copy_to_moved_symbols(rows: &mut ObservationsByRow, moved: &BTreeMap<RecordId, Vec<RecordsKey>>) {
    for ((_, _, id), keys) in moved {
        let of_id = |raw: &&RawObservation| raw.id.as_ref() == Some(id);
        let mut versions: Vec<RawObservation> = Vec::new();
        // Another record id with the same digest may have added its rows to `keys`. Such a row has no observation of
        // this id, and gets none.
        let mut own = Vec::new();
        for key in keys {
            let before = versions.len();
            versions.extend(rows.get(key).into_iter().flatten().filter(of_id).cloned());
            if versions.len() > before {
                own.push(key);
            }
        }
        for key in own {
            let Some(observations) = rows.get_mut(key) else { continue };
            observations.retain(|raw| raw.id.as_ref() != Some(id));
            observations.extend(versions.iter().cloned());
        }
    }
}

/// Divides the observations of one row.
fn divide_row(
    key: RecordsKey,
    observations: Vec<RawObservation>,
    stored: Option<StoredRecords>,
    is_visible: impl Fn(&[u8; 16]) -> bool,
) -> Result<AppliedRecords, ApplyError> {
    let failed = |source| ApplyError::Packed { symbol: key.symbol.clone(), source };
    let (current, others) =
        RecordSet::divide(key.kind, &key.symbol, observations, is_visible).map_err(failed)?;
    let packed = if current.is_empty() { Vec::new() } else { current.pack().map_err(failed)? };
    let superseded = others.iter().map(RecordSet::pack).collect::<Result<_, _>>().map_err(failed)?;
    let changes = stored.as_ref().map_or(&[][..], |stored| &stored.packed) != packed;
    Ok(AppliedRecords { key, replaces: stored.is_some(), changes, packed, superseded })
}
