//! Stored records: all facts except prices. A row packs all observations (versions of records) of one symbol, kind and
//! source.
//!
//! Rows are divided: table `records` has the observations that count now, table `superseded_records` has all others. Of
//! observations with equal content, only the newest counts. Observations of held or excluded runs do not count.
//!
//! If a vendor corrects the symbol of a record with an id, the record is stored under both symbols.
//!
//! Reads and writes of rows of tables `records` and `superseded_records`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use codec::records::{RawObservation, RecordSet, read};
use event_log::record_batch::{BatchId, RecordBatch};
use market::event::Kind;
use market::symbol::Symbol;
use rayon::prelude::*;
use store::FromRow;
use store::copy::{CopyRow, copy_into, copy_values};
use store::facts::unpack_records;
use store::past_facts::{RecordsKey, record_columns};
use store::rows::{RecordsRow, id_digest, store_id_symbols};
use store::symbol_facts::SymbolLinks;
use store::view::{BatchOwners, RunStates, View};
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::AppliedRecords;

const MARK_DIRTY: &str = include_str!("../../queries/records_mark_dirty.sql");
const MOVED: &str = include_str!("../../queries/record_ids_moved.sql");
const TAKE_SUPERSEDED: &str = include_str!("../../queries/superseded_records_take.sql");
/// Maximum length of a vendor's record id, in bytes. The id is part of the keys of read tables, and Postgres limits the
/// size of a key.
const MAX_ID_BYTES: usize = 2048;
/// Maximum number of rows with hidden observations or moved records that are divided at the same time.
const ROWS_PER_CHUNK: usize = 5_000;

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
    let changed =
        divide_rows(transaction, RowsToDivide { rows: by_row, ..RowsToDivide::default() }, None).await?;
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
        let rows = divide_rows(transaction, std::mem::take(&mut chunk), Some(states)).await?;
        changed.extend(rows.into_iter().filter(|row| row.changes).map(|row| row.key.symbol));
    }
}

/// Adds observations to rows and writes the rows that change. Without `states`, all observations count, and the
/// superseded observations are not read.
async fn divide_rows(
    transaction: &Transaction<'_>,
    RowsToDivide { mut rows, moved }: RowsToDivide,
    states: Option<&RunStates>,
) -> Result<Vec<AppliedRecords>, ApplyError> {
    let mut packed = HashMap::new();
    for (key, stored) in load_stored(transaction, rows.keys()).await? {
        packed.insert(key.clone(), stored.packed);
        rows.entry(key).or_default().extend(stored.records.known(|_| true));
    }
    if states.is_some() {
        let (symbols, kinds, sources) = record_columns(rows.keys());
        for row in transaction.query(TAKE_SUPERSEDED, &[&symbols, &kinds, &sources]).await? {
            let superseded = unpack_records(&row)?;
            rows.entry(RecordsKey::from_row(&row)?).or_default().extend(superseded.known(|_| true));
        }
    }
    copy_to_moved_symbols(&mut rows, &moved);
    let states = states.filter(|states| !states.is_empty());
    let owners = match states {
        Some(_) => {
            let batches: BTreeSet<&[u8]> = rows.values().flatten().map(|raw| raw.frame.as_slice()).collect();
            BatchOwners::load(transaction, &batches.into_iter().collect::<Vec<_>>()).await?
        }
        None => BatchOwners::default(),
    };
    let newest = View::newest();
    let is_visible = |batch: &[u8; 16]| states.is_none_or(|states| owners.is_visible(batch, states, &newest));
    let changed: Vec<AppliedRecords> = tokio::task::block_in_place(|| {
        let divided = rows.into_par_iter().map(|(key, observations)| {
            let stored = packed.get(&key).map(Vec::as_slice);
            divide_row(key, observations, stored, is_visible)
        });
        divided.filter_map(Result::transpose).collect::<Result<_, _>>()
    })?;
    write_records(transaction, &changed).await?;
    store_links(transaction, &changed).await?;
    Ok(changed)
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

/// Divides the observations of one row; `None` if neither of its tables changes.
fn divide_row(
    key: RecordsKey,
    observations: Vec<RawObservation>,
    stored: Option<&[u8]>,
    is_visible: impl Fn(&[u8; 16]) -> bool,
) -> Result<Option<AppliedRecords>, ApplyError> {
    let failed = |source| ApplyError::Packed { symbol: key.symbol.clone(), source };
    let (current, others) =
        RecordSet::divide(key.kind, &key.symbol, observations, is_visible).map_err(failed)?;
    let packed = if current.is_empty() { Vec::new() } else { current.pack().map_err(failed)? };
    let superseded: Vec<Vec<u8>> =
        others.iter().map(RecordSet::pack).collect::<Result<_, _>>().map_err(failed)?;
    let changes = stored.unwrap_or_default() != packed;
    if !changes && superseded.is_empty() {
        return Ok(None);
    }
    Ok(Some(AppliedRecords { key, replaces: stored.is_some(), changes, packed, superseded }))
}

const STORED: &str = include_str!("../../queries/records_stored.sql");
const DELETE: &str = include_str!("../../queries/records_delete.sql");
const COPY_SUPERSEDED: &str = "copy superseded_records (symbol, kind, source, packed) from stdin binary";

pub(super) type ObservationsByRow = BTreeMap<RecordsKey, Vec<RawObservation>>;

pub(super) struct StoredRecords {
    pub(super) records: RecordSet,
    pub(super) packed: Vec<u8>,
}

pub(super) async fn load_stored<'a>(
    transaction: &Transaction<'_>,
    keys: impl Iterator<Item = &'a RecordsKey>,
) -> Result<HashMap<RecordsKey, StoredRecords>, ApplyError> {
    let (symbols, kinds, sources) = record_columns(keys);
    let mut stored = HashMap::new();
    for row in transaction.query(STORED, &[&symbols, &kinds, &sources]).await? {
        let found = StoredRecords { records: unpack_records(&row)?, packed: row.try_get("packed")? };
        stored.insert(RecordsKey::from_row(&row)?, found);
    }
    Ok(stored)
}

/// Replaces the changed rows of table `records`. The lock on the fact set's row excludes other writers.
pub(super) async fn write_records(
    transaction: &Transaction<'_>,
    changed: &[AppliedRecords],
) -> Result<(), ApplyError> {
    let (symbols, kinds, sources) = record_columns(
        changed.iter().filter(|changed| changed.changes && changed.replaces).map(|changed| &changed.key),
    );
    if !symbols.is_empty() {
        transaction.execute(DELETE, &[&symbols, &kinds, &sources]).await?;
    }
    let present = changed.iter().filter(|changed| changed.changes && !changed.packed.is_empty());
    let rows = present.map(|AppliedRecords { key, packed, .. }| RecordsRow {
        symbol: &key.symbol,
        kind: key.kind,
        source: &key.source,
        packed,
    });
    copy_into(transaction, &rows.collect::<Vec<_>>()).await?;
    let superseded = changed.iter().flat_map(|AppliedRecords { key, superseded, .. }| {
        let RecordsKey { symbol, kind, source } = key;
        superseded.iter().map(|packed| RecordsRow { symbol, kind: *kind, source, packed })
    });
    let superseded: Vec<RecordsRow<'_>> = superseded.collect();
    if !superseded.is_empty() {
        let values = superseded.iter().map(CopyRow::values);
        copy_values(transaction, COPY_SUPERSEDED, RecordsRow::TYPES, values).await?;
    }
    Ok(())
}

/// Stores links between symbols. Each changed security record links its current and former symbols. Each new row links
/// the spellings of its symbol, for example `BAC.A` and `BAC.PRA`.
pub(super) async fn store_links(
    transaction: &Transaction<'_>,
    changed: &[AppliedRecords],
) -> Result<(), ApplyError> {
    let mut links = SymbolLinks::default();
    for AppliedRecords { key, packed, replaces, superseded, .. } in changed {
        if key.kind == Kind::Security {
            for packed in std::iter::once(packed).chain(superseded).filter(|packed| !packed.is_empty()) {
                let said = read(&key.source, packed);
                let said =
                    said.map_err(|source| ApplyError::Packed { symbol: key.symbol.clone(), source })?;
                said.iter().for_each(|observation| links.add_security(observation));
            }
        }
        if !replaces {
            links.add_spellings(&Symbol::from_stored(&key.symbol));
        }
    }
    links.store(transaction).await?;
    Ok(())
}
