//! Stored records: all facts except prices. A row packs all observations (versions of records) of one symbol, kind and
//! source.
//!
//! Of observations with equal content, only the newest stays in the row. Older ones from other record batches move to
//! table `superseded_records`.
//!
//! Rows with observations of held or excluded runs, and rows of records whose symbol was corrected, are divided
//! ([`super::divided_records`]) instead of merged.

use std::collections::HashSet;

use codec::records::{RawObservation, RecordSet};
use event_log::record_batch::{BatchId, RecordBatch};
use market::event::Kind;
use rayon::prelude::*;
use store::view::RunStates;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::divided_records::{divide_records, take_moved_records};
use crate::facts::fact_cache::{AppliedRecords, RecordsKey};
use crate::facts::stored_records::{
    ObservationsByRow, StoredRecords, load_stored, store_links, write_records,
};

const MARK_DIRTY: &str = include_str!("../../queries/records_mark_dirty.sql");

/// Maximum length of a vendor's record id, in bytes. The id is part of the keys of read tables, and Postgres limits the
/// size of a key.
const MAX_ID_BYTES: usize = 2048;

/// Merges the observations of record batches into the rows of table `records`, and marks changed symbols dirty. The
/// observations of batches in `hidden` do not count. Returns the merged rows, and the symbols of all other changed
/// rows.
pub async fn apply_records(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[&RecordBatch],
    hidden: &HashSet<BatchId>,
    states: &RunStates,
) -> Result<(Vec<AppliedRecords>, Vec<String>), ApplyError> {
    let mut by_row = tokio::task::block_in_place(|| collect_observations(batches))?;
    if by_row.is_empty() {
        return Ok(Default::default());
    }
    let mut divided = take_moved_records(transaction, &mut by_row).await?;
    divided.rows.extend(by_row.extract_if(.., |_, observations| {
        observations.iter().any(|raw| hidden.contains(&BatchId(raw.frame)))
    }));
    let divided = divide_records(transaction, divided, states).await?;
    let mut stored = load_stored(transaction, by_row.keys()).await?;
    let work: Vec<_> = by_row
        .into_iter()
        .map(|(key, observations)| {
            let stored = stored.remove(&key);
            (key, observations, stored)
        })
        .collect();
    let changed: Vec<AppliedRecords> = tokio::task::block_in_place(|| {
        let merged =
            work.into_par_iter().map(|(key, observations, stored)| merge_records(key, observations, stored));
        merged.filter_map(Result::transpose).collect::<Result<_, _>>()
    })?;
    write_records(transaction, &changed).await?;
    store_links(transaction, &changed).await?;
    let changed: Vec<AppliedRecords> = changed.into_iter().filter(|row| row.changes).collect();
    let mut symbols: Vec<&str> = changed.iter().map(|changed| changed.key.symbol.as_str()).collect();
    let mut references: Vec<bool> =
        changed.iter().map(|changed| changed.key.kind == Kind::Security).collect();
    // The rows of a divided symbol may be gone, so the securities are resolved again.
    symbols.extend(divided.iter().map(String::as_str));
    references.resize(symbols.len(), true);
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols, &references]).await?;
    Ok((changed, divided))
}

/// Groups the observations of record batches by row of table `records`. Fails if an observation cannot be stored.
fn collect_observations(batches: &[&RecordBatch]) -> Result<ObservationsByRow, ApplyError> {
    let observed = |batch: &&RecordBatch| {
        let observed = batch.body.observations(batch.id)?;
        observed.iter().try_for_each(|(symbol, raw)| check_storable(symbol, raw))?;
        Ok(observed)
    };
    let observed: Vec<Vec<_>> = batches.par_iter().map(observed).collect::<Result<_, ApplyError>>()?;
    let mut by_row = ObservationsByRow::new();
    for (batch, observations) in batches.iter().zip(observed) {
        let (kind, source) = (batch.body.kind(), &batch.source);
        for (symbol, raw) in observations {
            by_row.entry(RecordsKey { symbol, kind, source: source.clone() }).or_default().push(raw);
        }
    }
    Ok(by_row)
}

/// Checks that Postgres can store the texts of an observation in columns and keys.
fn check_storable(symbol: &str, raw: &RawObservation) -> Result<(), ApplyError> {
    let refuse = |code, reason| Err(ApplyError::Unstorable { symbol: symbol.to_owned(), code, reason });
    let texts = [raw.id.as_deref(), raw.security_ref.as_deref()];
    if texts.iter().flatten().any(|text| text.contains('\0')) {
        return refuse("nul_character", "a text contains U+0000, which Postgres cannot store");
    }
    if raw.id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
        return refuse("id_too_long", "its id is longer than 2048 bytes");
    }
    if i64::try_from(raw.line).is_err() {
        return refuse("line_too_large", "its line number exceeds the range of bigint");
    }
    Ok(())
}

/// Merges new observations into a stored row; `None` if nothing changes.
fn merge_records(
    key: RecordsKey,
    observations: Vec<RawObservation>,
    stored: Option<StoredRecords>,
) -> Result<Option<AppliedRecords>, ApplyError> {
    let pack = |records: &RecordSet| {
        records.pack().map_err(|source| ApplyError::Packed { symbol: key.symbol.clone(), source })
    };
    let (before, stored) = match stored {
        Some(stored) => (stored.records, Some(stored.packed)),
        None => (RecordSet::new(key.kind, Vec::new()), None),
    };
    let (records, superseded) = before.merge_keeping_superseded(observations);
    let packed = pack(&records)?;
    let changes = stored.as_ref() != Some(&packed);
    if !changes && superseded.is_empty() {
        return Ok(None);
    }
    let superseded = superseded.iter().map(pack).collect::<Result<_, _>>()?;
    Ok(Some(AppliedRecords { key, replaces: stored.is_some(), changes, packed, superseded }))
}
