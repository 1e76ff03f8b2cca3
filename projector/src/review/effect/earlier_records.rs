//! Earlier records: rows of table `records` as they were before a position of the log (the sequence of a message).

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

/// Earlier content of the rows that were changed after the position.
#[derive(Debug, Default)]
pub(super) struct EarlierRecords {
    /// Rows that changed after the position. Each has its packed records before the position; `None` if the row did not
    /// exist then.
    pub(super) rows: BTreeMap<RecordsKey, Option<Vec<u8>>>,
    /// Calendar years of the dividends in log messages before the position, by source. Contains only sources that also
    /// have dividend messages after the position.
    pub(super) dividend_years: BTreeMap<String, BTreeSet<i32>>,
}

/// Adds to `found` the rows that the messages `later` changed, as they were before. `later` and `earlier` are log
/// sequences of the feed, after and before the position.
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
    // If the symbol of a record was corrected, the record is stored under its old and its new symbol.
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

/// Loads the record ids in the rows of `symbols`. No message removes an id, so all earlier ids are included.
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
