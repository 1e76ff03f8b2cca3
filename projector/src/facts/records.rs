//! Stored records: all facts except prices. A row packs all observations (versions of records) of one symbol, kind and
//! source.
//!
//! Of observations with equal content, only the newest stays in the row. Older ones from other record batches move to
//! table `superseded_records`.
//!
//! If a vendor corrects the symbol of a record with an id, the record is stored under both symbols.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use codec::records::{RawObservation, RecordSet, read};
use event_log::record_batch::RecordBatch;
use market::event::Kind;
use market::symbol::Symbol;
use rayon::prelude::*;
use store::copy::copy_into;
use store::facts::unpack_records;
use store::records::{RecordsRow, SupersededRecordsRow, id_digest, store_id_symbols};
use store::symbol_links::SymbolLinks;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::applied_facts::{AppliedRecords, RecordsKey};

const STORED: &str = include_str!("../../queries/records_stored.sql");
const DELETE: &str = include_str!("../../queries/records_delete.sql");
const MOVED: &str = include_str!("../../queries/record_ids_moved.sql");
const MARK_DIRTY: &str = include_str!("../../queries/records_mark_dirty.sql");

/// Maximum length of a vendor's record id, in bytes. The id is part of the keys of read tables, and Postgres limits the
/// size of a key.
const MAX_ID_BYTES: usize = 2048;

type ObservationsByRow = BTreeMap<RecordsKey, Vec<RawObservation>>;

/// Merges the observations of record batches into the rows of table `records`, and marks changed symbols dirty. Returns
/// the changed rows.
pub async fn apply_records(
    transaction: &Transaction<'_>,
    fact_set: &str,
    batches: &[&RecordBatch],
) -> Result<Vec<AppliedRecords>, ApplyError> {
    let mut by_row = tokio::task::block_in_place(|| collect_observations(batches))?;
    if by_row.is_empty() {
        return Ok(Vec::new());
    }
    copy_to_moved_symbols(transaction, &mut by_row).await?;
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
    let symbols: Vec<&str> = changed.iter().map(|changed| changed.key.symbol.as_str()).collect();
    let references: Vec<bool> = changed.iter().map(|changed| changed.key.kind == Kind::Security).collect();
    transaction.execute(MARK_DIRTY, &[&fact_set, &symbols, &references]).await?;
    Ok(changed)
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

/// Finds the record ids that have several symbols after a correction. Copies all observations of such an id to each of
/// these symbols.
async fn copy_to_moved_symbols(
    transaction: &Transaction<'_>,
    by_row: &mut ObservationsByRow,
) -> Result<(), ApplyError> {
    let named = by_row.iter().map(|(key, raw)| (&*key.symbol, key.kind, &*key.source, &**raw));
    let digests = store_id_symbols(transaction, named).await?;
    if digests.is_empty() {
        return Ok(());
    }
    let mut symbols: HashMap<i64, Vec<String>> = HashMap::new();
    for row in transaction.query(MOVED, &[&digests]).await? {
        symbols.insert(row.try_get("digest")?, row.try_get("symbols")?);
    }
    if symbols.is_empty() {
        return Ok(());
    }
    let moved = rows_of_moved_ids(by_row, &symbols);
    let keys: BTreeSet<RecordsKey> = moved.values().flatten().cloned().collect();
    let stored = load_stored(transaction, keys.iter()).await?;
    for (id, mut keys) in moved {
        let of_id = |raw: &&RawObservation| raw.id.as_ref() == Some(&id.2);
        let mut versions = Vec::new();
        // Another record id with the same digest may have added its rows to `keys`. Such a row has no observation of
        // `id`: remove its key.
        keys.retain(|key| {
            let before = versions.len();
            versions.extend(by_row.get(key).into_iter().flatten().filter(of_id).cloned());
            let stored = stored.get(key).map(|stored| stored.records.observations()).unwrap_or_default();
            versions.extend(stored.iter().filter(of_id).cloned());
            versions.len() > before
        });
        for key in keys {
            by_row.entry(key).or_default().extend(versions.iter().cloned());
        }
    }
    Ok(())
}

/// Maps each record id with a corrected symbol to the rows that may contain its observations. The key of the map is
/// (kind, source, id).
fn rows_of_moved_ids(
    by_row: &ObservationsByRow,
    symbols: &HashMap<i64, Vec<String>>,
) -> BTreeMap<(Kind, String, String), Vec<RecordsKey>> {
    let mut moved = BTreeMap::new();
    for (RecordsKey { kind, source, .. }, observations) in by_row {
        for id in observations.iter().filter_map(|raw| raw.id.as_ref()) {
            let Some(symbols) = symbols.get(&id_digest(*kind, source, id)) else { continue };
            let key =
                |symbol: &String| RecordsKey { symbol: symbol.clone(), kind: *kind, source: source.clone() };
            moved.insert((*kind, source.clone(), id.clone()), symbols.iter().map(key).collect());
        }
    }
    moved
}

struct StoredRecords {
    records: RecordSet,
    packed: Vec<u8>,
}

async fn load_stored<'a>(
    transaction: &Transaction<'_>,
    keys: impl Iterator<Item = &'a RecordsKey>,
) -> Result<HashMap<RecordsKey, StoredRecords>, ApplyError> {
    let (symbols, kinds, sources) = key_columns(keys);
    let mut stored = HashMap::new();
    for row in transaction.query(STORED, &[&symbols, &kinds, &sources]).await? {
        let (symbol, kind, source) = (row.try_get("symbol")?, row.try_get("kind")?, row.try_get("source")?);
        let found = StoredRecords { records: unpack_records(&row)?, packed: row.try_get("packed")? };
        stored.insert(RecordsKey { symbol, kind, source }, found);
    }
    Ok(stored)
}

fn key_columns<'a>(keys: impl Iterator<Item = &'a RecordsKey>) -> (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>) {
    keys.map(|key| (key.symbol.as_str(), key.kind.as_str(), key.source.as_str())).collect()
}

/// Merges new observations into a stored row; `None` if the row does not change.
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
    if stored.as_ref() == Some(&packed) {
        return Ok(None);
    }
    let superseded = superseded.iter().map(pack).collect::<Result<_, _>>()?;
    Ok(Some(AppliedRecords { key, replaces: stored.is_some(), packed, superseded }))
}

/// Replaces the changed rows of table `records`. The lock on the fact set's row excludes other writers.
async fn write_records(transaction: &Transaction<'_>, changed: &[AppliedRecords]) -> Result<(), ApplyError> {
    let (symbols, kinds, sources) =
        key_columns(changed.iter().filter(|changed| changed.replaces).map(|changed| &changed.key));
    if !symbols.is_empty() {
        transaction.execute(DELETE, &[&symbols, &kinds, &sources]).await?;
    }
    let rows = changed.iter().map(|AppliedRecords { key, packed, .. }| RecordsRow {
        symbol: &key.symbol,
        kind: key.kind,
        source: &key.source,
        packed,
    });
    copy_into(transaction, &rows.collect::<Vec<_>>()).await?;
    let superseded = changed.iter().flat_map(|AppliedRecords { key, superseded, .. }| {
        let RecordsKey { symbol, kind, source } = key;
        superseded.iter().map(|packed| SupersededRecordsRow { symbol, kind: *kind, source, packed })
    });
    let superseded: Vec<SupersededRecordsRow<'_>> = superseded.collect();
    if !superseded.is_empty() {
        copy_into(transaction, &superseded).await?;
    }
    Ok(())
}

/// Stores links between symbols. Each changed security record links its current and former symbols. Each new row links
/// the spellings of its symbol, for example `BAC.A` and `BAC.PRA`.
async fn store_links(transaction: &Transaction<'_>, changed: &[AppliedRecords]) -> Result<(), ApplyError> {
    let mut links = SymbolLinks::default();
    for AppliedRecords { key, packed, replaces, .. } in changed {
        if key.kind == Kind::Security {
            let said = read(&key.source, packed);
            let said = said.map_err(|source| ApplyError::Packed { symbol: key.symbol.clone(), source })?;
            said.iter().for_each(|observation| links.add_security(observation));
        }
        if !replaces {
            links.add_spellings(&Symbol::from_stored(&key.symbol));
        }
    }
    links.store(transaction).await?;
    Ok(())
}
