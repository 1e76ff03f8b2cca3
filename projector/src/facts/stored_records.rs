//! Reads and writes of rows of tables `records` and `superseded_records`.

use std::collections::{BTreeMap, HashMap};

use codec::records::{RawObservation, RecordSet, read};
use market::event::Kind;
use market::symbol::Symbol;
use store::copy::copy_into;
use store::facts::unpack_records;
use store::rows::{RecordsRow, SupersededRecordsRow};
use store::symbol_facts::SymbolLinks;
use tokio_postgres::Transaction;

use crate::error::ApplyError;
use crate::facts::fact_cache::{AppliedRecords, RecordsKey};

const STORED: &str = include_str!("../../queries/records_stored.sql");
const DELETE: &str = include_str!("../../queries/records_delete.sql");

pub(super) type ObservationsByRow = BTreeMap<RecordsKey, Vec<RawObservation>>;

pub(super) struct StoredRecords {
    pub(super) records: RecordSet,
    pub(super) packed: Vec<u8>,
}

pub(super) async fn load_stored<'a>(
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

pub(super) fn key_columns<'a>(
    keys: impl Iterator<Item = &'a RecordsKey>,
) -> (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>) {
    keys.map(|key| (key.symbol.as_str(), key.kind.as_str(), key.source.as_str())).collect()
}

/// Replaces the changed rows of table `records`. The lock on the fact set's row excludes other writers.
pub(super) async fn write_records(
    transaction: &Transaction<'_>,
    changed: &[AppliedRecords],
) -> Result<(), ApplyError> {
    let (symbols, kinds, sources) = key_columns(
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
