//! Batched look-ups of single rows. Look-ups that arrive while a statement runs share the next statement.
//!
//! Invariant: every look-up with a waiting caller gets a result or an error.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use deadpool_postgres::Pool;
use foldhash::fast::RandomState;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use super::QueryError;
use crate::concurrency::background_tasks::BackgroundTasks;
use crate::concurrency::batch::gather;

/// Maximum number of waiting look-ups. Further look-ups are refused.
const QUEUE: usize = 16_384;
/// Maximum number of look-ups per statement.
const BATCH: usize = 256;

type LookupResult = Result<Option<Row>, QueryError>;

struct PendingLookup {
    /// Spellings of the symbol to look up, the most likely first.
    candidates: Vec<String>,
    found: oneshot::Sender<LookupResult>,
}

/// Queues of look-ups, one per statement. A queue is created when its statement is first used.
#[derive(Debug)]
pub(crate) struct LookupBatcher {
    tasks: BackgroundTasks,
    /// Cancelled when the database stops replying.
    unresponsive: CancellationToken,
    queues: Mutex<HashMap<&'static str, mpsc::Sender<PendingLookup>, RandomState>>,
}

impl LookupBatcher {
    pub(crate) fn new(tasks: BackgroundTasks, unresponsive: CancellationToken) -> Self {
        Self { tasks, unresponsive, queues: Mutex::default() }
    }

    /// Looks up the row of the first spelling in `candidates` that is a known symbol.
    ///
    /// The statement gets two arrays of equal length: look-up indexes and spellings. It returns the index in the column
    /// `ordinal`.
    pub(crate) async fn look_up_row(
        &self,
        pool: &Pool,
        statement: &'static str,
        candidates: Vec<String>,
    ) -> LookupResult {
        let (found, answer) = oneshot::channel();
        let full = |_| QueryError::QueueFull;
        self.queue(pool, statement).try_send(PendingLookup { candidates, found }).map_err(full)?;
        answer.await.map_err(|_| QueryError::TaskEnded)?
    }

    fn queue(&self, pool: &Pool, statement: &'static str) -> mpsc::Sender<PendingLookup> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (sender, waiting) = mpsc::channel(QUEUE);
            self.tasks.spawn(run_lookups(pool.clone(), self.unresponsive.clone(), statement, waiting));
            sender
        };
        queues.entry(statement).or_insert_with(start).clone()
    }
}

async fn run_lookups(
    pool: Pool,
    unresponsive: CancellationToken,
    statement: &'static str,
    mut waiting: mpsc::Receiver<PendingLookup>,
) {
    let mut queue = Vec::new();
    while waiting.recv_many(&mut queue, BATCH).await > 0 {
        gather(&mut waiting, &mut queue, BATCH).await;
        queue.retain(|waiting| !waiting.found.is_closed());
        if queue.is_empty() {
            continue;
        }
        let found = unresponsive.run_until_cancelled(look_up(&pool, statement, &queue)).await;
        match found.unwrap_or(Err(QueryError::Timeout)) {
            Ok(rows) => {
                queue.drain(..).zip(rows).for_each(|(waiting, row)| drop(waiting.found.send(Ok(row))))
            }
            Err(error) => queue.drain(..).for_each(|waiting| drop(waiting.found.send(Err(error.clone())))),
        }
    }
}

/// Runs the statement for one batch. Returns the rows in the order of the look-ups.
async fn look_up(
    pool: &Pool,
    statement: &'static str,
    queue: &[PendingLookup],
) -> Result<Vec<Option<Row>>, QueryError> {
    let spelled = queue.iter().zip(0i32..).flat_map(|(waiting, place)| {
        waiting.candidates.iter().map(move |candidate| (place, candidate.as_str()))
    });
    let (places, candidates): (Vec<i32>, Vec<&str>) = spelled.unzip();
    let client = pool.get().await?;
    let statement = client.prepare_cached(statement).await?;
    let mut found: Vec<Option<Row>> = queue.iter().map(|_| None).collect();
    for row in client.query(&statement, &[&places, &candidates]).await? {
        let place: i32 = row.try_get("ordinal")?;
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| found.get_mut(place)) {
            *slot = Some(row);
        }
    }
    Ok(found)
}
