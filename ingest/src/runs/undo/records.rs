//! Undo of records, by comparison of the run's rows with the rows of all other runs of the source.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::record_batch::{BatchId, Body, RecordBatch};
use market::event::{
    Action, Dividend, DividendEvidence, Etf, EventRecord, EventRow, Fundamentals, HoldingSnapshot, Kind,
    MarketSession, Security, Split,
};
use market::metrics::merge::{dividend_preference, split_preference};
use market::observation::VersionRank;

use super::changes::UndoChanges;
use super::encoded_batches::{EncodedBatches, ROWS_PER_BATCH};
use super::scope::UndoScope;
use crate::batch::security_currencies::SecurityCurrencies;
use crate::load::error::LoadError;

/// Kind of record that supports undo.
trait Undoable: EventRecord + Clone + PartialEq {
    /// Rows of a record batch; empty for a batch of another kind.
    fn rows(body: &Body) -> &[EventRow<Self>];
    /// Record batch body with the given rows.
    fn body(rows: Vec<EventRow<Self>>) -> Body;
    /// Key of a record without a vendor's id: its symbol and dates, for example. A dividend without a currency is
    /// assumed in the currency of its security (R39).
    fn natural_key(&self, currencies: &SecurityCurrencies) -> String;
    /// Rank of a record by completeness of its dates. Of several rows with equal id and revision, the row with the
    /// highest rank is used (R29).
    fn preference(&self) -> u32 {
        0
    }
    /// True if a retraction without an id also withdraws rows with an id, which have the same natural key (R29).
    const BY_NATURAL_KEY: bool = false;
    /// Key of a row: the vendor's id, or else the natural key.
    fn key(row: &EventRow<Self>, currencies: &SecurityCurrencies) -> String {
        row.id.as_ref().map_or_else(|| row.record.natural_key(currencies), |id| format!("id:{id}"))
    }
}

macro_rules! records {
    ($($record:ident, $body:ident: |$row:ident, $currencies:pat_param| $key:expr $(, { $($more:tt)* })?;)*) => {
        $(impl Undoable for $record {
            fn rows(body: &Body) -> &[EventRow<Self>] {
                if let Body::$body(rows) = body { rows } else { &[] }
            }
            fn body(rows: Vec<EventRow<Self>>) -> Body {
                Body::$body(rows)
            }
            fn natural_key(&self, currencies: &SecurityCurrencies) -> String {
                let ($row, $currencies) = (self, currencies);
                $key
            }
            $($($more)*)?
        })*
    };
}

records! {
    Security, Securities: |row, _| row.symbol.to_string(), {
        fn key(row: &EventRow<Self>, currencies: &SecurityCurrencies) -> String {
            let given = row.security_ref.clone().or_else(|| row.id.clone());
            given.unwrap_or_else(|| row.record.natural_key(currencies))
        }
    };
    Dividend, Dividends: |row, currencies| dividend_key(row, currencies), {
        const BY_NATURAL_KEY: bool = true;
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
    };
    Split, Splits: |row, _| format!("{}|{}", row.symbol, row.ex_date), {
        const BY_NATURAL_KEY: bool = true;
        fn preference(&self) -> u32 {
            split_preference(self)
        }
    };
    Fundamentals, Fundamentals: |row, _| format!("{}|{}", row.symbol, row.as_of);
    DividendEvidence, Evidence: |row, _| format!("{}|{:?}|{:?}|{:?}", row.symbol, row.ex_date, row.dividends_from, row.dividends_to);
    Etf, Etfs: |row, _| format!("{}|{}", row.symbol, row.as_of);
    HoldingSnapshot, Holdings: |row, _| format!("{}|{}", row.symbol, row.as_of);
    MarketSession, Sessions: |row, _| row.date.to_string();
}

fn dividend_key(row: &Dividend, currencies: &SecurityCurrencies) -> String {
    let date = match (row.ex_date, row.record_date) {
        (Some(ex_date), _) => ex_date.to_string(),
        (None, Some(record_date)) => format!("record {record_date}"),
        (None, None) => String::new(),
    };
    let assumed = row.currency.is_empty().then(|| currencies.find(&row.symbol));
    let currency = assumed.as_ref().map_or(row.currency.as_str(), |currency| &currency.code);
    format!("{}|{date}|{}|{currency}", row.symbol, row.r#type)
}

/// Computes the records of a kind that undo the run, and adds them to `batches`. Returns the counts of changes.
pub(super) async fn compute_changes(
    kind: Kind,
    scope: &UndoScope<'_>,
    batches: &mut EncodedBatches,
) -> Result<UndoChanges, LoadError> {
    match kind {
        Kind::Security => compute_changes_of::<Security>(scope, batches).await,
        Kind::Dividend => compute_changes_of::<Dividend>(scope, batches).await,
        Kind::Split => compute_changes_of::<Split>(scope, batches).await,
        Kind::Fundamentals => compute_changes_of::<Fundamentals>(scope, batches).await,
        Kind::Etf => compute_changes_of::<Etf>(scope, batches).await,
        Kind::Evidence => compute_changes_of::<DividendEvidence>(scope, batches).await,
        Kind::Holding => compute_changes_of::<HoldingSnapshot>(scope, batches).await,
        Kind::Session => compute_changes_of::<MarketSession>(scope, batches).await,
        Kind::Price | Kind::Decision | Kind::Reject | Kind::Run => Ok(UndoChanges::default()),
    }
}

async fn compute_changes_of<T: Undoable>(
    scope: &UndoScope<'_>,
    batches: &mut EncodedBatches,
) -> Result<UndoChanges, LoadError> {
    let mut table = RecordTable::<T>::default();
    if T::KIND == Kind::Dividend {
        table.currencies = SecurityCurrencies::read(scope.log, scope.end).await?;
    }
    let own = |batch: RecordBatch| T::rows(&batch.body).iter().for_each(|row| table.add_own(row, batch.id));
    scope.each_own_batch(T::KIND, own).await?;
    let others =
        |batch: RecordBatch| T::rows(&batch.body).iter().for_each(|row| table.add_other(row, batch.id));
    scope.each_batch_of_other_runs(T::KIND, others).await?;
    let (rows, changes) = table.undo();
    for rows in rows.chunks(ROWS_PER_BATCH) {
        batches.push(T::body(rows.to_vec()))?;
    }
    Ok(changes)
}

/// Version of a record: row, and id of the record batch that contains it.
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

/// Highest-ranked versions of one key: `own` of the run, `other` of all other runs; `None` without a version.
#[derive(Debug)]
struct KeyVersions<T> {
    own: Option<RecordVersion<T>>,
    other: Option<RecordVersion<T>>,
}

/// Rows of other runs that have an id, and the same natural key as a row of the run. A retraction of the natural key
/// also withdraws these rows.
#[derive(Debug)]
struct NaturalKeyRows<T> {
    /// Highest-ranked version of each row, by id.
    ids: BTreeMap<String, RecordVersion<T>>,
    /// Highest-ranked retraction that has the natural key and no id; `None` without such a retraction.
    withdrawn: Option<RecordVersion<T>>,
}

/// Versions of every key that occurs in the run.
#[derive(Debug)]
struct RecordTable<T> {
    by_key: BTreeMap<String, KeyVersions<T>>,
    /// Rows of other runs by natural key, for kinds with [`Undoable::BY_NATURAL_KEY`].
    neighbours: BTreeMap<String, NaturalKeyRows<T>>,
    currencies: SecurityCurrencies,
}

impl<T> Default for RecordTable<T> {
    fn default() -> Self {
        let currencies = SecurityCurrencies::default();
        Self { by_key: BTreeMap::new(), neighbours: BTreeMap::new(), currencies }
    }
}

/// Revision and observation time of a retraction without an id. The retraction withdraws all rows of its natural key
/// that are not newer.
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
                let highest = neighbours.ids.entry(key).or_insert_with(version);
                if highest.version() < version().version() {
                    *highest = version();
                }
            }
            _ => {}
        }
    }

    /// Rows that undo the run, and the counts of changes.
    fn undo(self) -> (Vec<EventRow<T>>, UndoChanges) {
        let (mut rows, mut changes) = (Vec::new(), UndoChanges::default());
        let mut withdrawn: BTreeMap<String, RetractionTime> = BTreeMap::new();
        for (key, versions) in &self.by_key {
            let Some(own) = &versions.own else { continue };
            let row = undo_key(key, own, versions.other.as_ref(), &mut changes);
            // A retraction without an id also withdraws rows with an id and the same natural key. It may be the row of
            // the run or of the undo.
            let withdrawal = row.iter().chain([&own.row]).find(|row| is_withdrawal(row));
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

    /// Copies of the rows that a retraction of their natural key withdrew. The observation time of a copy is just after
    /// the retraction, so that the copy is valid.
    fn rows_to_republish(&self, natural: &str, (revision, observed_at): RetractionTime) -> Vec<EventRow<T>> {
        let Some(neighbours) = self.neighbours.get(natural) else { return Vec::new() };
        let rank = |version: &RecordVersion<T>| (version.row.revision, version.row.observed_at);
        let withdrawn_before = neighbours.withdrawn.as_ref().map(rank);
        let concerned = neighbours.ids.values().filter(|version| {
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

/// Row that undoes the run's version of a key, and count of the change; `None` if the served row stays.
fn undo_key<T: Undoable>(
    key: &str,
    own: &RecordVersion<T>,
    other: Option<&RecordVersion<T>>,
    changes: &mut UndoChanges,
) -> Option<EventRow<T>> {
    match other {
        Some(other) if own.version() < other.version() => changes.corrected_since += 1,
        Some(other) if other.is_put() && !has_same_record(own, other) => {
            changes.restored += 1;
            changes.add_example(|| format!("{key}: restored to the earlier version"));
            return Some(restored(own, other));
        }
        other if own.is_put() && !other.is_some_and(RecordVersion::is_put) => {
            changes.retracted += 1;
            changes.add_example(|| format!("{key}: retracted"));
            return Some(retracted(own));
        }
        _ => changes.unchanged += 1,
    }
    None
}

fn is_withdrawal<T>(row: &EventRow<T>) -> bool {
    row.id.is_none() && row.action == Action::Retract
}

/// Retraction of the run's row. It has the observation time of this row, so that later observations outrank it. With
/// [`Undoable::BY_NATURAL_KEY`], the retraction has no id, because a retraction by id would outrank later rows of the
/// same revision.
fn retracted<T: Undoable>(own: &RecordVersion<T>) -> EventRow<T> {
    let id = own.row.id.clone().filter(|_| !T::BY_NATURAL_KEY);
    EventRow { id, action: Action::Retract, ..own.row.clone() }
}

fn just_after(time: DateTime<Utc>) -> DateTime<Utc> {
    time + TimeDelta::microseconds(1)
}

fn has_same_record<T: Undoable>(own: &RecordVersion<T>, other: &RecordVersion<T>) -> bool {
    own.row.action == other.row.action && own.row.record == other.row.record
}

/// Version from before the run, with a rank just above that of the run's version.
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
