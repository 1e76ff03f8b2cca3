//! View of the log: the part of its record batches that counts.
//!
//! A batch belongs to every run whose manifest lists it, and is visible while one of these runs is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use market::event::{Kind, RunVisibility};
use tokio_postgres::{GenericClient, Row};

const CHANGES: &str = "select run, sequence, state from run_changes order by run, sequence";
const OF_RUN: &str = include_str!("../queries/batches_of_run.sql");
const OWNERS: &str = include_str!("../queries/batch_owners.sql");

/// Id of a record batch.
pub type BatchId = [u8; 16];

/// Part of the log that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Last log sequence of the view.
    pub up_to: i64,
    /// Runs that do not count, in addition to the runs that are held or excluded at `up_to`.
    pub without: BTreeSet<String>,
    /// Run that counts although it is held or excluded at `up_to`.
    pub with: Option<String>,
}

impl View {
    /// View of the log up to a sequence, without the runs that were held or excluded there.
    pub fn at(sequence: i64) -> Self {
        Self { up_to: sequence, ..Self::default() }
    }

    /// View of all messages so far, without the runs that are held or excluded now.
    pub fn newest() -> Self {
        Self::at(i64::MAX)
    }

    /// The same view without another run.
    #[must_use]
    pub fn without_run(mut self, run: &str) -> Self {
        self.without.insert(run.to_owned());
        self
    }

    /// The same view with another run.
    #[must_use]
    pub fn with_run(mut self, run: &str) -> Self {
        self.with = Some(run.to_owned());
        self
    }
}

/// States of all runs whose state has ever changed.
#[derive(Debug, Clone, Default)]
pub struct RunStates {
    /// Changes of each run, as log sequence and `true` for a change to `visible`, in log order.
    changes: HashMap<String, Vec<(i64, bool)>>,
}

impl RunStates {
    /// Loads the states from table `run_changes` of the fact set in the search path.
    ///
    /// # Errors
    /// Postgres rejects the query or is unreachable.
    pub async fn load(client: &impl GenericClient) -> Result<Self, tokio_postgres::Error> {
        let mut states = Self::default();
        for row in client.query(CHANGES, &[]).await? {
            states.add(row.try_get("run")?, row.try_get("sequence")?, row.try_get("state")?);
        }
        Ok(states)
    }

    /// Adds a change. A change at sequence 0 is fixed for the fact set: later changes of this run have no effect.
    pub fn add(&mut self, run: &str, sequence: i64, state: RunVisibility) {
        let changes = self.changes.entry(run.to_owned()).or_default();
        let place = changes.partition_point(|(known, _)| *known < sequence);
        changes.insert(place, (sequence, state == RunVisibility::Visible));
    }

    /// True if no run has ever been held or excluded.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// True if the rows of the run count in the view.
    pub fn is_visible(&self, run: &str, view: &View) -> bool {
        let state = self.changes.get(run).and_then(|changes| {
            let fixed = changes.first().filter(|(sequence, _)| *sequence == 0);
            let last = changes.iter().rev().find(|(sequence, _)| *sequence <= view.up_to);
            fixed.or(last).map(|(_, visible)| *visible)
        });
        let counts = state.unwrap_or(true) || view.with.as_deref() == Some(run);
        counts && !view.without.contains(run)
    }

    /// Log sequences at which the state of the run changed.
    pub fn change_sequences(&self, run: &str) -> impl Iterator<Item = i64> {
        self.changes.get(run).into_iter().flatten().map(|(sequence, _)| *sequence)
    }
}

/// Place of a record batch in the log, and the run that published it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedBatch {
    /// Sequence of the log message that contains the batch.
    pub sequence: i64,
    /// True for a batch of prices or exchange rates.
    pub has_prices: bool,
    /// Run that published the batch.
    pub run: Arc<str>,
}

impl LoggedBatch {
    /// Reads a row with the columns `kind`, `sequence` and `run` of table `frames`.
    pub(crate) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let has_prices = matches!(row.try_get("kind")?, Kind::Price | Kind::Fx);
        Ok(Self {
            sequence: row.try_get("sequence")?,
            has_prices,
            run: row.try_get::<_, &str>("run")?.into(),
        })
    }
}

/// Record batches with the runs that they belong to.
#[derive(Debug, Clone, Default)]
pub struct BatchOwners {
    places: HashMap<BatchId, LoggedBatch>,
    /// Further runs whose manifests list a batch, each with the log sequence of its manifest.
    listed: HashMap<BatchId, Vec<(String, i64)>>,
}

impl BatchOwners {
    /// Loads the owners of some batches from the fact set in the search path.
    ///
    /// # Errors
    /// Postgres rejects the query or is unreachable.
    pub async fn load(client: &impl GenericClient, batches: &[&[u8]]) -> Result<Self, tokio_postgres::Error> {
        let mut owners = Self::default();
        for row in client.query(OWNERS, &[&batches]).await? {
            let Ok(batch) = BatchId::try_from(row.try_get::<_, &[u8]>("frame")?) else { continue };
            match row.try_get::<_, Option<i64>>("listed")? {
                None => owners.add_place(batch, LoggedBatch::from_row(&row)?),
                Some(sequence) => owners.add_listing(batch, row.try_get("run")?, sequence),
            }
        }
        Ok(owners)
    }

    /// Loads the owners of all batches that a run published or lists.
    ///
    /// # Errors
    /// Postgres rejects the query or is unreachable.
    pub async fn load_of_run(client: &impl GenericClient, run: &str) -> Result<Self, tokio_postgres::Error> {
        let rows = client.query(OF_RUN, &[&run]).await?;
        let batches = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<&[u8]>, _>>()?;
        Self::load(client, &batches).await
    }

    /// Adds the place of a batch.
    pub fn add_place(&mut self, batch: BatchId, place: LoggedBatch) {
        self.places.insert(batch, place);
    }

    /// Adds a run whose manifest at `sequence` lists the batch.
    pub fn add_listing(&mut self, batch: BatchId, run: String, sequence: i64) {
        self.listed.entry(batch).or_default().push((run, sequence));
    }

    /// All batches with their places.
    pub fn places(&self) -> impl Iterator<Item = (&BatchId, &LoggedBatch)> {
        self.places.iter()
    }

    /// True if the batch counts in the view. A batch without a known place does not count.
    pub fn is_visible(&self, batch: &BatchId, states: &RunStates, view: &View) -> bool {
        let Some(place) = self.places.get(batch).filter(|place| place.sequence <= view.up_to) else {
            return false;
        };
        let is_listed =
            |(run, sequence): &(String, i64)| *sequence <= view.up_to && states.is_visible(run, view);
        states.is_visible(&place.run, view) || self.listed.get(batch).into_iter().flatten().any(is_listed)
    }

    /// Runs of the batches that do not count now.
    pub fn hidden_runs(&self, states: &RunStates) -> Vec<String> {
        let newest = View::newest();
        let hidden = self.places.iter().filter(|(batch, _)| !self.is_visible(batch, states, &newest));
        let runs: BTreeSet<&str> = hidden
            .flat_map(|(batch, place)| {
                let listed = self.listed.get(batch).into_iter().flatten().map(|(run, _)| run.as_str());
                std::iter::once(&*place.run).chain(listed)
            })
            .collect();
        runs.into_iter().map(str::to_owned).collect()
    }

    /// Log sequences at which the visibility of a batch may have changed since it was published.
    pub fn change_sequences(&self, batch: &BatchId, states: &RunStates) -> BTreeSet<i64> {
        let listed = self.listed.get(batch).into_iter().flatten();
        let mut sequences: BTreeSet<i64> = listed.clone().map(|(_, sequence)| *sequence).collect();
        let runs = self.places.get(batch).map(|place| &*place.run).into_iter();
        let runs = runs.chain(listed.map(|(run, _)| run.as_str()));
        sequences.extend(runs.flat_map(|run| states.change_sequences(run)));
        sequences
    }
}

/// Index from the id of a record batch to its place in the log. It is a cache: the caller reads a missing place from
/// Postgres and then adds it.
pub trait BatchIndex {
    /// Place of a batch; `None` if the index does not contain the batch.
    fn find(&self, batch: &BatchId) -> Option<LoggedBatch>;
    /// Adds the place of a batch, after it was read from Postgres.
    fn insert(&self, batch: BatchId, place: LoggedBatch);
}

/// Index that is always empty, for callers without a cache. The place of every record batch is read from Postgres.
#[derive(Debug, Clone, Copy)]
pub struct EmptyBatchIndex;

impl BatchIndex for EmptyBatchIndex {
    fn find(&self, _: &BatchId) -> Option<LoggedBatch> {
        None
    }
    fn insert(&self, _: BatchId, _: LoggedBatch) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_visible_while_one_of_its_runs_is() {
        let (mut owners, mut states, batch) = (BatchOwners::default(), RunStates::default(), [1; 16]);
        owners.add_place(batch, LoggedBatch { sequence: 10, has_prices: false, run: "a".into() });
        owners.add_listing(batch, "b".to_owned(), 30);
        states.add("a", 20, RunVisibility::Excluded);
        states.add("b", 40, RunVisibility::Held);
        states.add("a", 50, RunVisibility::Visible);
        let visible = |view: &View| owners.is_visible(&batch, &states, view);
        let seen: Vec<bool> = [9, 10, 19, 20, 29, 30, 39, 40, 49, 50].map(|at| visible(&View::at(at))).into();
        assert_eq!(seen, [false, true, true, false, false, true, true, false, false, true]);
        assert!(visible(&View::newest()) && !visible(&View::newest().without_run("a")));
        assert!(visible(&View::at(30).without_run("a")) && !visible(&View::at(30).without_run("b")));
        assert_eq!(owners.change_sequences(&batch, &states), [20, 30, 40, 50].into());
        assert!(!owners.is_visible(&[2; 16], &states, &View::newest()));
    }

    #[test]
    fn a_state_that_is_fixed_for_a_fact_set_stays() {
        let mut states = RunStates::default();
        states.add("a", 0, RunVisibility::Excluded);
        states.add("a", 7, RunVisibility::Visible);
        assert!(!states.is_visible("a", &View::newest()) && states.is_visible("b", &View::newest()));
    }
}
