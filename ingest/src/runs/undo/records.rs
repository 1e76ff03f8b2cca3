//! Undo of all rows except price bars, for example dividends and splits. The rows of the run are compared with the rows
//! of all other runs of the source.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::record_batch::{BatchId, Body, RecordBatch};
use market::event::{
    Action, Dividend, DividendEvidence, Etf, EventRecord, EventRow, Fundamentals, HoldingSnapshot, Kind,
    MarketSession, Security, Split,
};
use market::metrics::merge::{dividend_preference, split_preference};
use market::observation::VersionRank;

use super::changes::{EncodedBatches, UndoChange, UndoChanges};
use super::scope::UndoScope;
use crate::batch::security_currencies::SecurityCurrencies;
use crate::load::error::LoadError;

/// Number of rows per record batch. Even a batch of the largest rows stays below the size limit of messages.
const ROWS_PER_BATCH: usize = 500;

/// Type of record that can be undone.
trait Undoable: EventRecord + Clone + PartialEq {
    /// True if a retraction without an id also withdraws rows with an id. Both rows have the same natural key (rule
    /// R29).
    const BY_NATURAL_KEY: bool = false;
    /// Key that identifies a record without a vendor's id. The default is symbol and date.
    fn natural_key(&self, _currencies: &SecurityCurrencies) -> String {
        let date = self.date().map(|date| date.to_string());
        let parts = self.symbol().map(ToString::to_string).into_iter().chain(date);
        parts.collect::<Vec<_>>().join("|")
    }
    /// Rank of a record by completeness of its dates. Of several rows with the same id and revision, the one with the
    /// highest rank is used (rule R29).
    fn preference(&self) -> u32 {
        0
    }
    /// Key of a row: the vendor's id if the row has one, otherwise the natural key.
    fn key(row: &EventRow<Self>, currencies: &SecurityCurrencies) -> String {
        row.id.as_ref().map_or_else(|| row.record.natural_key(currencies), |id| format!("id:{id}"))
    }
}

impl Undoable for Security {
    fn key(row: &EventRow<Self>, currencies: &SecurityCurrencies) -> String {
        let given = row.security_ref.clone().or_else(|| row.id.clone());
        given.unwrap_or_else(|| row.record.natural_key(currencies))
    }
}

impl Undoable for Dividend {
    const BY_NATURAL_KEY: bool = true;
    fn natural_key(&self, currencies: &SecurityCurrencies) -> String {
        let date = match (self.ex_date, self.record_date) {
            (Some(ex_date), _) => ex_date.to_string(),
            (None, Some(record_date)) => format!("record {record_date}"),
            (None, None) => String::new(),
        };
        // The currency of the security replaces a missing currency (rule R39).
        let assumed = self.currency.is_empty().then(|| currencies.find(&self.symbol));
        let currency = assumed.as_ref().map_or(self.currency.as_str(), |currency| &currency.code);
        format!("{}|{date}|{}|{currency}", self.symbol, self.r#type)
    }
    fn preference(&self) -> u32 {
        dividend_preference(self)
    }
    fn key(row: &EventRow<Self>, currencies: &SecurityCurrencies) -> String {
        let natural = row.record.natural_key(currencies);
        match &row.id {
            Some(id) => format!("id:{id}"),
            None if row.record.sibling_amounts.is_empty() => natural,
            // Several payments of one day have different amounts, so the amount is part of the key.
            None => format!("{natural}|{}", row.record.amount.normalize()),
        }
    }
}

impl Undoable for Split {
    const BY_NATURAL_KEY: bool = true;
    fn preference(&self) -> u32 {
        split_preference(self)
    }
}

impl Undoable for DividendEvidence {
    fn natural_key(&self, _currencies: &SecurityCurrencies) -> String {
        let Self { symbol, ex_date, dividends_from, dividends_to, .. } = self;
        format!("{symbol}|{ex_date:?}|{dividends_from:?}|{dividends_to:?}")
    }
}

impl Undoable for Fundamentals {}
impl Undoable for Etf {}
impl Undoable for HoldingSnapshot {}
impl Undoable for MarketSession {}

/// Computes the rows of one kind to publish in order to undo the run, and adds them to `batches`. Returns the counts of
/// changes.
pub(super) async fn compute_changes(
    kind: Kind,
    scope: &UndoScope<'_>,
    batches: &mut EncodedBatches,
) -> Result<UndoChanges, LoadError> {
    macro_rules! compute {
        ($body:ident) => {{
            let rows = |body| if let Body::$body(rows) = body { rows } else { Vec::new() };
            compute_changes_of(scope, batches, rows, Body::$body).await
        }};
    }
    match kind {
        Kind::Security => compute!(Securities),
        Kind::Dividend => compute!(Dividends),
        Kind::Split => compute!(Splits),
        Kind::Fundamentals => compute!(Fundamentals),
        Kind::Etf => compute!(Etfs),
        Kind::Evidence => compute!(Evidence),
        Kind::Holding => compute!(Holdings),
        Kind::Session => compute!(Sessions),
        Kind::Price | Kind::Decision | Kind::Reject | Kind::Run => Ok(UndoChanges::default()),
    }
}

/// Computes the changes for the records of one kind. `rows` extracts the rows from the body of a record batch, and
/// `to_body` makes a body from rows.
async fn compute_changes_of<T: Undoable>(
    scope: &UndoScope<'_>,
    batches: &mut EncodedBatches,
    rows: fn(Body) -> Vec<EventRow<T>>,
    to_body: fn(Vec<EventRow<T>>) -> Body,
) -> Result<UndoChanges, LoadError> {
    let mut table = RecordTable::<T>::default();
    if T::KIND == Kind::Dividend {
        table.currencies = SecurityCurrencies::read(scope.log, scope.end).await?;
    }
    for own in [true, false] {
        let add = |RecordBatch { id, body, .. }: RecordBatch| {
            rows(body)
                .iter()
                .for_each(|row| if own { table.add_own(row, id) } else { table.add_other(row, id) });
        };
        scope.each_batch(T::KIND, own, add).await?;
    }
    let (rows, changes) = table.undo();
    for rows in rows.chunks(ROWS_PER_BATCH) {
        batches.push(to_body(rows.to_vec()))?;
    }
    Ok(changes)
}

/// One version of a record: a row, and the id of the record batch that contains the row.
#[derive(Debug, Clone)]
struct RecordVersion<T> {
    row: EventRow<T>,
    batch: BatchId,
}

impl<T: Undoable> RecordVersion<T> {
    fn is_put(&self) -> bool {
        self.row.action == Action::Put
    }

    fn preference(&self) -> u32 {
        match (&self.row.id, self.row.action) {
            (None, _) => 0,
            (Some(_), Action::Retract) => u32::MAX,
            (Some(_), Action::Put) => self.row.record.preference(),
        }
    }

    /// Rank of this version among all versions with the same key.
    fn version(&self) -> VersionRank<'_> {
        VersionRank {
            revision: self.row.revision,
            preference: self.preference(),
            observed_at: self.row.observed_at.timestamp_micros(),
            retracted: !self.is_put(),
            line: self.row.line,
            frame: &self.batch.0,
        }
    }
}

/// Replaces the version in `slot` if `slot` is empty or the new version has a higher rank.
fn replace_if_higher<T: Undoable>(slot: &mut Option<RecordVersion<T>>, version: RecordVersion<T>) {
    if slot.as_ref().is_none_or(|highest| highest.version() < version.version()) {
        *slot = Some(version);
    }
}

/// Highest-ranked versions of one row, by [`RecordVersion::version`]: from the undone run, and from all other runs.
#[derive(Debug)]
struct KeyVersions<T> {
    own: Option<RecordVersion<T>>,
    other: Option<RecordVersion<T>>,
}

/// Rows of other runs that have a natural key of the undone run, but other ids. A retraction of the natural key also
/// withdraws them; the undo then republishes them.
#[derive(Debug)]
struct NaturalKeyRows<T> {
    /// Highest-ranked version of each row, by id.
    ids: BTreeMap<String, Option<RecordVersion<T>>>,
    /// Highest-ranked retraction of the natural key by other runs. It withdraws all rows in `ids` except newer ones.
    withdrawn: Option<RecordVersion<T>>,
}

/// Versions of every row that the undone run contains, by key.
#[derive(Debug)]
struct RecordTable<T> {
    by_key: BTreeMap<String, KeyVersions<T>>,
    /// Rows of other runs by natural key. Empty unless [`Undoable::BY_NATURAL_KEY`] is true.
    neighbours: BTreeMap<String, NaturalKeyRows<T>>,
    currencies: SecurityCurrencies,
}

impl<T> Default for RecordTable<T> {
    fn default() -> Self {
        let currencies = SecurityCurrencies::default();
        Self { by_key: BTreeMap::new(), neighbours: BTreeMap::new(), currencies }
    }
}

/// Revision and observation time of a retraction without an id. The retraction does not withdraw rows with a later
/// pair.
type RetractionTime = (i64, DateTime<Utc>);

impl<T: Undoable> RecordTable<T> {
    fn add_own(&mut self, row: &EventRow<T>, batch: BatchId) {
        if T::BY_NATURAL_KEY {
            let none = || NaturalKeyRows { ids: BTreeMap::new(), withdrawn: None };
            self.neighbours.entry(row.record.natural_key(&self.currencies)).or_insert_with(none);
        }
        let key = T::key(row, &self.currencies);
        let versions = self.by_key.entry(key).or_insert(KeyVersions { own: None, other: None });
        replace_if_higher(&mut versions.own, RecordVersion { row: row.clone(), batch });
    }

    /// Adds a row of another run, if the undone run has a row with the same key or natural key.
    fn add_other(&mut self, row: &EventRow<T>, batch: BatchId) {
        let key = T::key(row, &self.currencies);
        let version = || RecordVersion { row: row.clone(), batch };
        let versions = self.by_key.get_mut(&key);
        let is_own_key = versions.is_some();
        versions.into_iter().for_each(|versions| replace_if_higher(&mut versions.other, version()));
        if !T::BY_NATURAL_KEY {
            return;
        }
        let natural = row.record.natural_key(&self.currencies);
        let Some(neighbours) = self.neighbours.get_mut(&natural) else { return };
        match (&row.id, row.action) {
            (None, Action::Retract) => replace_if_higher(&mut neighbours.withdrawn, version()),
            (Some(_), _) if !is_own_key => {
                replace_if_higher(neighbours.ids.entry(key).or_default(), version());
            }
            _ => {}
        }
    }

    /// Rows to publish in order to undo the run, and the counts of changes.
    fn undo(self) -> (Vec<EventRow<T>>, UndoChanges) {
        let (mut rows, mut changes) = (Vec::new(), UndoChanges::default());
        let mut withdrawn: BTreeMap<String, RetractionTime> = BTreeMap::new();
        for (key, versions) in &self.by_key {
            let Some(own) = &versions.own else { continue };
            let other = versions.other.as_ref().map(|other| (other, other.version()));
            let is_equal = |other: &&RecordVersion<T>| own.row.record == other.row.record;
            let row = match changes.count_key(|| key.clone(), own.version(), other, is_equal) {
                Some(UndoChange::Restore(other)) => Some(restored(own, other)),
                Some(UndoChange::Retract) => Some(retracted(own)),
                None => None,
            };
            // A retraction without an id also withdraws rows that have an id and the same natural key. Such a
            // retraction may be a row of the run or a row of this undo.
            let withdrawal =
                row.iter().chain([&own.row]).find(|row| row.id.is_none() && row.action == Action::Retract);
            if let Some(row) = withdrawal.filter(|_| T::BY_NATURAL_KEY) {
                let natural = row.record.natural_key(&self.currencies);
                let rank = withdrawn.entry(natural).or_insert((row.revision, row.observed_at));
                *rank = (*rank).max((row.revision, row.observed_at));
            }
            rows.extend(row);
        }
        for (natural, rank) in withdrawn {
            rows.extend(self.rows_to_republish(&natural, rank));
        }
        rows.iter_mut().zip(1..).for_each(|(row, line)| row.line = line);
        (rows, changes)
    }

    /// Copies of other runs' rows that a retraction withdraws because of their natural key `natural`. Each copy is
    /// newer than the retraction, and so restores the row.
    fn rows_to_republish(&self, natural: &str, (revision, observed_at): RetractionTime) -> Vec<EventRow<T>> {
        let Some(neighbours) = self.neighbours.get(natural) else { return Vec::new() };
        let rank = |version: &RecordVersion<T>| (version.row.revision, version.row.observed_at);
        // A row that another run withdrew is not restored.
        let withdrawn_before = neighbours.withdrawn.as_ref().map(rank);
        let concerned = neighbours.ids.values().flatten().filter(|version| {
            version.is_put()
                && rank(version) <= (revision, observed_at)
                && Some(rank(version)) > withdrawn_before
        });
        concerned
            .map(|version| EventRow {
                revision: revision.max(version.row.revision),
                observed_at: just_after(observed_at),
                ..version.row.clone()
            })
            .collect()
    }
}

/// Retraction of `own`, with the observation time of `own`. Without an id, later observations outrank it.
fn retracted<T: Undoable>(own: &RecordVersion<T>) -> EventRow<T> {
    // A retraction with an id would outrank every row of the same id and revision, even later observations.
    let id = own.row.id.clone().filter(|_| !T::BY_NATURAL_KEY);
    EventRow { id, action: Action::Retract, ..own.row.clone() }
}

fn just_after(time: DateTime<Utc>) -> DateTime<Utc> {
    time + TimeDelta::microseconds(1)
}

/// Copy of `before` that outranks `own`. Readers of the log use the highest-ranked version of a row.
fn restored<T: Undoable>(own: &RecordVersion<T>, before: &RecordVersion<T>) -> EventRow<T> {
    let revision = own.row.revision.max(before.row.revision);
    let outranked = own.row.id.is_some() && before.preference() < own.preference();
    EventRow {
        revision: if outranked { revision.saturating_add(1) } else { revision },
        observed_at: just_after(own.row.observed_at),
        ..before.row.clone()
    }
}

#[cfg(test)]
mod tests;
