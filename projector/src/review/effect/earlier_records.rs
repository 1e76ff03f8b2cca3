//! Earlier records: rows of table `records` as they were before a position of the log.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Datelike;
use codec::records::{RawObservation, RecordSet};
use event_log::record_batch::Body;
use market::event::{Action, EventRecord, Kind};
use store::facts::unpack_records;
use store::records::id_digest;
use tokio_postgres::Transaction;

use super::log_messages::{Feed, LogMessages};
use crate::facts::applied_facts::RecordsKey;

const MOVED: &str = include_str!("../../../queries/record_ids_moved.sql");
const STORED: &str = include_str!("../../../queries/records_stored.sql");

/// Earlier state of the rows that batches after the position changed.
#[derive(Debug, Default)]
pub(super) struct EarlierRecords {
    /// Packed records of each row before the position; `None` for a row that did not exist then.
    pub(super) rows: BTreeMap<RecordsKey, Option<Vec<u8>>>,
    /// Calendar years of the dividends before the position, by source. Only sources with dividend batches after the
    /// position are included.
    pub(super) dividend_years: BTreeMap<String, BTreeSet<i32>>,
}

/// Adds the earlier state of all rows of a feed that messages after the position changed. `later` and `earlier` are the
/// log sequences of the messages after and before the position.
pub(super) async fn read_earlier_records(
    transaction: &Transaction<'_>,
    log: &LogMessages,
    feed: &Feed,
    [later, earlier]: [&[i64]; 2],
    found: &mut EarlierRecords,
) -> anyhow::Result<()> {
    let (kind, source) = feed;
    let (mut touched, mut digests) = (BTreeSet::<String>::new(), Vec::new());
    log.read(later.iter().copied(), |batch| {
        if batch.body.kind() == *kind && batch.source == *source {
            for (symbol, raw) in batch.body.observations(batch.id)? {
                digests.extend(raw.id.as_deref().map(|id| id_digest(*kind, source, id)));
                touched.insert(symbol);
            }
        }
        Ok(())
    })
    .await?;
    // A record whose symbol was corrected is stored under its old and its new symbol.
    for row in transaction.query(MOVED, &[&digests]).await? {
        touched.extend(row.try_get::<_, Vec<String>>("symbols")?);
    }
    let ids = load_ids(transaction, feed, &touched).await?;
    let mut own: BTreeMap<String, Vec<RawObservation>> = BTreeMap::new();
    let mut by_id: BTreeMap<String, Vec<(String, RawObservation)>> = BTreeMap::new();
    let mut years = BTreeSet::new();
    log.read(earlier.iter().copied(), |batch| {
        if batch.body.kind() != *kind || batch.source != *source {
            return Ok(());
        }
        if let Body::Dividends(rows) = &batch.body {
            let put = rows.iter().filter(|row| row.action == Action::Put);
            years.extend(put.filter_map(|row| row.record.date()).map(|date| date.year()));
        }
        for (symbol, raw) in batch.body.observations(batch.id)? {
            match raw.id.as_ref().filter(|id| ids.contains(*id)) {
                Some(id) => by_id.entry(id.clone()).or_default().push((symbol, raw)),
                None if touched.contains(&symbol) => own.entry(symbol).or_default().push(raw),
                None => {}
            }
        }
        Ok(())
    })
    .await?;
    for versions in by_id.into_values() {
        let symbols: BTreeSet<&String> = versions.iter().map(|(symbol, _)| symbol).collect();
        for symbol in symbols.into_iter().filter(|symbol| touched.contains(*symbol)) {
            own.entry(symbol.clone()).or_default().extend(versions.iter().map(|(_, raw)| raw.clone()));
        }
    }
    for symbol in touched {
        let observations = own.remove(&symbol);
        let packed = observations.map(|raw| RecordSet::new(*kind, raw).pack()).transpose()?;
        found.rows.insert(RecordsKey { symbol, kind: *kind, source: source.clone() }, packed);
    }
    if *kind == Kind::Dividend {
        found.dividend_years.insert(source.clone(), years);
    }
    Ok(())
}

/// Record ids in the current rows of `symbols`. They include all ids that the rows had before the position of the log,
/// because applied messages only add ids to a row.
async fn load_ids(
    transaction: &Transaction<'_>,
    (kind, source): &Feed,
    symbols: &BTreeSet<String>,
) -> anyhow::Result<BTreeSet<String>> {
    let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let (kinds, sources) = (vec![kind.as_str(); symbols.len()], vec![source.as_str(); symbols.len()]);
    let mut ids = BTreeSet::new();
    for row in transaction.query(STORED, &[&symbols, &kinds, &sources]).await? {
        let stored = unpack_records(&row)?;
        ids.extend(stored.observations().iter().filter_map(|raw| raw.id.clone()));
    }
    Ok(ids)
}
