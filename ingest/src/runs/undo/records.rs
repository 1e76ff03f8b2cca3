//! Records that a run put, against all others of its source: what stood before, and what was corrected since.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::frame::{Body, Frame, FrameId};
use market::event::EventRecord;
use market::event::{
    Action, Dividend, Etf, EventRow, Fundamentals, HoldingSnapshot, Kind, MarketSession, Security, Split,
};
use market::metrics::merge::{dividend_preference, split_preference};
use market::observation::VersionRank;

use super::changes::Changes;
use super::frames::{Frames, ROWS};
use super::scope::Scope;
use crate::load::error::LoadError;

/// A kind of record that can be taken back.
trait Undoable: EventRecord + Clone + PartialEq {
    /// The rows of a frame of this kind.
    fn rows(body: &Body) -> &[EventRow<Self>];
    /// The rows as a frame's body.
    fn body(rows: Vec<EventRow<Self>>) -> Body;
    /// What its rows are known by when the vendor gives them no id.
    fn natural_key(&self) -> String;
    /// How well dated a row with an id is: of one revision the better dated counts (R29).
    fn preference(&self) -> u32 {
        0
    }
    /// True if a retraction without an id also withdraws rows that have one (R29).
    const BY_NATURAL_KEY: bool = false;
    /// What a row is known by.
    fn key(row: &EventRow<Self>) -> String {
        row.id.as_ref().map_or_else(|| row.record.natural_key(), |id| format!("id:{id}"))
    }
}

macro_rules! records {
    ($($record:ident, $body:ident: |$row:ident| $key:expr $(, { $($more:tt)* })?;)*) => {
        $(impl Undoable for $record {
            fn rows(body: &Body) -> &[EventRow<Self>] {
                if let Body::$body(rows) = body { rows } else { &[] }
            }
            fn body(rows: Vec<EventRow<Self>>) -> Body {
                Body::$body(rows)
            }
            fn natural_key(&self) -> String {
                let $row = self;
                $key
            }
            $($($more)*)?
        })*
    };
}

records! {
    Security, Securities: |row| row.symbol.to_string(), {
        fn key(row: &EventRow<Self>) -> String {
            let given = row.security_ref.clone().or_else(|| row.id.clone());
            given.unwrap_or_else(|| row.record.natural_key())
        }
    };
    Dividend, Dividends: |row| dividend_key(row), {
        const BY_NATURAL_KEY: bool = true;
        fn preference(&self) -> u32 {
            dividend_preference(self)
        }
        fn key(row: &EventRow<Self>) -> String {
            let natural = row.record.natural_key();
            match &row.id {
                Some(id) => format!("id:{id}"),
                None if row.record.sibling_amounts.is_empty() => natural,
                // Payments of one day are told apart by their amounts.
                None => format!("{natural}|{}", row.record.amount.normalize()),
            }
        }
    };
    Split, Splits: |row| format!("{}|{}", row.symbol, row.ex_date), {
        const BY_NATURAL_KEY: bool = true;
        fn preference(&self) -> u32 {
            split_preference(self)
        }
    };
    Fundamentals, Fundamentals: |row| format!("{}|{}", row.symbol, row.as_of);
    Etf, Etfs: |row| format!("{}|{}", row.symbol, row.as_of);
    HoldingSnapshot, Holdings: |row| format!("{}|{}", row.symbol, row.as_of);
    MarketSession, Sessions: |row| row.date.to_string();
}

fn dividend_key(row: &Dividend) -> String {
    let date = match (row.ex_date, row.record_date) {
        (Some(ex_date), _) => ex_date.to_string(),
        (None, Some(record_date)) => format!("record {record_date}"),
        (None, None) => String::new(),
    };
    format!("{}|{date}|{}|{}", row.symbol, row.r#type, row.currency)
}

/// What becomes of the records of a kind; their new versions are added to `frames`.
pub(super) async fn changes_of(
    kind: Kind,
    scope: &Scope<'_>,
    frames: &mut Frames,
) -> Result<Changes, LoadError> {
    match kind {
        Kind::Security => changes::<Security>(scope, frames).await,
        Kind::Dividend => changes::<Dividend>(scope, frames).await,
        Kind::Split => changes::<Split>(scope, frames).await,
        Kind::Fundamentals => changes::<Fundamentals>(scope, frames).await,
        Kind::Etf => changes::<Etf>(scope, frames).await,
        Kind::Holding => changes::<HoldingSnapshot>(scope, frames).await,
        Kind::Session => changes::<MarketSession>(scope, frames).await,
        Kind::Price | Kind::Decision | Kind::Reject | Kind::Run => Ok(Changes::default()),
    }
}

async fn changes<T: Undoable>(scope: &Scope<'_>, frames: &mut Frames) -> Result<Changes, LoadError> {
    let mut table = Table::<T>::default();
    let own = |frame: Frame| T::rows(&frame.body).iter().for_each(|row| table.put(row, frame.id));
    scope.own(T::KIND, own).await?;
    let others = |frame: Frame| T::rows(&frame.body).iter().for_each(|row| table.compare(row, frame.id));
    scope.others(T::KIND, others).await?;
    let (rows, changes) = table.undo();
    for rows in rows.chunks(ROWS) {
        frames.push(T::body(rows.to_vec()))?;
    }
    Ok(changes)
}

/// A row and the frame it came in.
#[derive(Debug, Clone)]
struct Seen<T> {
    row: EventRow<T>,
    frame: FrameId,
}

impl<T: Undoable> Seen<T> {
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

    /// What it is worth against another row of its key.
    fn version(&self) -> VersionRank<'_> {
        VersionRank {
            revision: self.row.revision,
            preference: self.preference(),
            observed_at: self.row.observed_at.timestamp_micros(),
            retracted: !self.is_put(),
            line: self.row.line,
            frame: &self.frame.0,
        }
    }
}

/// The greater version.
fn keep<T: Undoable>(slot: &mut Option<Seen<T>>, seen: Seen<T>) {
    if slot.as_ref().is_none_or(|kept| kept.version() < seen.version()) {
        *slot = Some(seen);
    }
}

/// What is known of one key: the run's greatest version, and the greatest of all others.
#[derive(Debug)]
struct Versions<T> {
    own: Option<Seen<T>>,
    other: Option<Seen<T>>,
}

/// Rows of other runs that share a natural key with the run's: a retraction without an id withdraws them too.
#[derive(Debug)]
struct Neighbours<T> {
    /// The greatest version of each id.
    ids: BTreeMap<String, Seen<T>>,
    /// The greatest retraction without an id.
    withdrawn: Option<Seen<T>>,
}

/// Everything the run touched.
#[derive(Debug)]
struct Table<T> {
    touched: BTreeMap<String, Versions<T>>,
    /// By natural key, for kinds that are withdrawn by it.
    neighbours: BTreeMap<String, Neighbours<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { touched: BTreeMap::new(), neighbours: BTreeMap::new() }
    }
}

/// Revision and time of a retraction without an id: it withdraws rows with ids that are no newer.
type Moment = (i64, DateTime<Utc>);

impl<T: Undoable> Table<T> {
    /// Adds a row of the run.
    fn put(&mut self, row: &EventRow<T>, frame: FrameId) {
        if T::BY_NATURAL_KEY {
            let none = || Neighbours { ids: BTreeMap::new(), withdrawn: None };
            self.neighbours.entry(row.record.natural_key()).or_insert_with(none);
        }
        let versions = self.touched.entry(T::key(row)).or_insert(Versions { own: None, other: None });
        keep(&mut versions.own, Seen { row: row.clone(), frame });
    }

    /// Compares a row of another run.
    fn compare(&mut self, row: &EventRow<T>, frame: FrameId) {
        let key = T::key(row);
        let seen = || Seen { row: row.clone(), frame };
        let touched = self.touched.get_mut(&key);
        let is_touched = touched.is_some();
        touched.into_iter().for_each(|versions| keep(&mut versions.other, seen()));
        if !T::BY_NATURAL_KEY {
            return;
        }
        let Some(neighbours) = self.neighbours.get_mut(&row.record.natural_key()) else { return };
        match (&row.id, row.action) {
            (None, Action::Retract) => keep(&mut neighbours.withdrawn, seen()),
            (Some(_), _) if !is_touched => {
                let kept = neighbours.ids.entry(key).or_insert_with(seen);
                if kept.version() < seen().version() {
                    *kept = seen();
                }
            }
            _ => {}
        }
    }

    /// The rows that take the run back, and what becomes of each key.
    fn undo(self) -> (Vec<EventRow<T>>, Changes) {
        let (mut rows, mut changes) = (Vec::new(), Changes::default());
        let mut withdrawn: BTreeMap<String, Moment> = BTreeMap::new();
        for (key, versions) in &self.touched {
            let Some(own) = &versions.own else { continue };
            let row = undo_key(key, own, versions.other.as_ref(), &mut changes);
            // Whatever becomes of its own key, a retraction without an id has withdrawn rows that have one.
            let withdrawal = row.iter().chain([&own.row]).find(|row| is_withdrawal(row));
            if let Some(row) = withdrawal.filter(|_| T::BY_NATURAL_KEY) {
                let moment =
                    withdrawn.entry(row.record.natural_key()).or_insert((row.revision, row.observed_at));
                *moment = (*moment).max((row.revision, row.observed_at));
            }
            rows.extend(row);
        }
        for (natural, moment) in withdrawn {
            rows.extend(self.spared(&natural, moment));
        }
        rows.iter_mut().zip(1..).for_each(|(row, line)| row.line = line);
        (rows, changes)
    }

    /// Rows with other ids that a retraction of their natural key would withdraw, or has withdrawn, just after it.
    fn spared(&self, natural: &str, (revision, observed_at): Moment) -> Vec<EventRow<T>> {
        let Some(neighbours) = self.neighbours.get(natural) else { return Vec::new() };
        let moment = |seen: &Seen<T>| (seen.row.revision, seen.row.observed_at);
        let withdrawn_before = neighbours.withdrawn.as_ref().map(moment);
        let concerned = neighbours.ids.values().filter(|seen| {
            seen.is_put() && moment(seen) <= (revision, observed_at) && Some(moment(seen)) > withdrawn_before
        });
        concerned
            .map(|seen| EventRow {
                revision: revision.max(seen.row.revision),
                observed_at: just_after(observed_at),
                ..seen.row.clone()
            })
            .collect()
    }
}

/// The row that takes the run's version of a key back, if any is needed.
fn undo_key<T: Undoable>(
    key: &str,
    own: &Seen<T>,
    other: Option<&Seen<T>>,
    changes: &mut Changes,
) -> Option<EventRow<T>> {
    match other {
        Some(other) if own.version() < other.version() => changes.corrected_since += 1,
        Some(other) if other.is_put() && !says_the_same(own, other) => {
            changes.restored += 1;
            changes.example(|| format!("{key}: as it stood before"));
            return Some(restored(own, other));
        }
        other if own.is_put() && !other.is_some_and(Seen::is_put) => {
            changes.retracted += 1;
            changes.example(|| format!("{key}: retracted"));
            return Some(retracted(own));
        }
        _ => changes.unchanged += 1,
    }
    None
}

fn is_withdrawal<T>(row: &EventRow<T>) -> bool {
    row.id.is_none() && row.action == Action::Retract
}

/// Withdraws a row at its own moment, so that whatever is observed later counts again: by its natural key where that is
/// enough, since a retraction by id outlives later rows of the id's revision.
fn retracted<T: Undoable>(own: &Seen<T>) -> EventRow<T> {
    let id = own.row.id.clone().filter(|_| !T::BY_NATURAL_KEY);
    EventRow { id, action: Action::Retract, ..own.row.clone() }
}

fn just_after(moment: DateTime<Utc>) -> DateTime<Utc> {
    moment + TimeDelta::microseconds(1)
}

fn says_the_same<T: Undoable>(own: &Seen<T>, other: &Seen<T>) -> bool {
    own.row.action == other.row.action && own.row.record == other.row.record
}

/// The version that stood before, just greater than the run's.
fn restored<T: Undoable>(own: &Seen<T>, before: &Seen<T>) -> EventRow<T> {
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
