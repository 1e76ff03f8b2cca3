//! Who may do costly work next: accounts take turns, and none has more than a few answers in work.
//!
//! Invariants: as many answers are rendered at once as there are connections for them; a turn that is given to a caller
//! who has gone is given on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Costly answers of one account in work, until they are written.
const IN_WORK: usize = 4;
/// Calls that wait in an account's line.
const LINE: usize = 60;

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TurnError {
    #[error("too many costly calls of the account wait")]
    LineFull,
    #[error("a costly call waited too long")]
    Late,
}

/// The lines of all accounts.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Answers rendered at once.
    renderers: usize,
    /// The longest wait in a line.
    patience: Duration,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    rendering: usize,
    accounts: HashMap<i64, Line>,
    /// Accounts with somebody waiting, each once, in the order of their turns.
    order: VecDeque<i64>,
}

#[derive(Debug, Default)]
struct Line {
    in_work: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// What one costly answer may take.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) rendering: Rendering,
    pub(crate) place: Arc<Place>,
}

/// Leave to render, until it is dropped.
#[derive(Debug)]
pub(crate) struct Rendering(Arc<Turns>);

/// A place among the account's answers in work, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    turns: Arc<Turns>,
    account: i64,
}

impl Turns {
    /// No lines yet, for so many answers rendered at once and so long a wait.
    pub(crate) fn new(renderers: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { renderers: renderers.max(1), patience, lines: Mutex::default() })
    }

    /// Waits for the account's turn.
    pub(crate) async fn wait(self: &Arc<Self>, account: i64) -> Result<Turn, TurnError> {
        let (sender, turn) = oneshot::channel();
        {
            let mut lines = self.lines();
            let line = lines.accounts.entry(account).or_default();
            let was_empty = line.waiting.is_empty();
            if line.waiting.len() >= LINE {
                line.waiting.retain(|waiting| !waiting.is_closed());
            }
            if line.waiting.len() >= LINE {
                return Err(TurnError::LineFull);
            }
            line.waiting.push_back(sender);
            if was_empty {
                lines.order.push_back(account);
            }
        }
        self.give();
        match tokio::time::timeout(self.patience, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(TurnError::Late),
        }
    }

    /// Gives out what turns there are.
    fn give(self: &Arc<Self>) {
        // A turn nobody takes is dropped, and given on, after the lines are free again.
        let mut untaken = Vec::new();
        let mut lines = self.lines();
        while lines.rendering < self.renderers {
            let Some((account, waiting)) = lines.next() else { break };
            let place = Arc::new(Place { turns: Arc::clone(self), account });
            let turn = Turn { rendering: Rendering(Arc::clone(self)), place };
            untaken.extend(waiting.send(turn).err());
        }
        drop(lines);
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Takes the first waiting call of the next account that may have another in work.
    fn next(&mut self) -> Option<(i64, oneshot::Sender<Turn>)> {
        let accounts = &mut self.accounts;
        let may = |account: &i64| accounts.get(account).is_some_and(|line| line.in_work < IN_WORK);
        let position = self.order.iter().position(may)?;
        let account = self.order.remove(position)?;
        let line = accounts.get_mut(&account)?;
        let waiting = line.waiting.pop_front()?;
        if !line.waiting.is_empty() {
            self.order.push_back(account);
        }
        line.in_work += 1;
        self.rendering += 1;
        Some((account, waiting))
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        self.0.lines().rendering -= 1;
        self.0.give();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut lines = self.turns.lines();
            if let Some(line) = lines.accounts.get_mut(&self.account) {
                line.in_work -= 1;
                if line.in_work == 0 && line.waiting.is_empty() {
                    lines.accounts.remove(&self.account);
                }
            }
        }
        self.turns.give();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn accounts_take_turns() {
        let turns = Turns::new(1, LONG);
        let first = turns.wait(1).await.expect("nobody else is there");
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(turns.wait(1))).collect();
        assert!(greedy.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut other = Box::pin(turns.wait(2));
        assert!((&mut other).now_or_never().is_none());
        let Turn { rendering, place: _written } = first;
        drop(rendering);
        assert!((&mut greedy[0]).now_or_never().is_some_and(|turn| turn.is_ok()), "it came first");
        let turn = (&mut other).now_or_never().expect("its turn").expect("a turn");
        assert!((&mut greedy[1]).now_or_never().is_none());
        drop(turn);
        assert!((&mut greedy[1]).now_or_never().is_some());
    }

    #[tokio::test]
    async fn an_account_has_four_in_work_until_they_are_written() {
        let turns = Turns::new(100, LONG);
        let mut places = Vec::new();
        for _ in 0..IN_WORK {
            places.push(turns.wait(1).await.expect("a turn").place);
        }
        let mut fifth = Box::pin(turns.wait(1));
        assert!((&mut fifth).now_or_never().is_none());
        assert!(turns.wait(2).now_or_never().is_some(), "others are not held up");
        let shared = places.pop().map(|place| (Arc::clone(&place), place));
        let Some((writer, reader)) = shared else { return };
        drop(writer);
        assert!((&mut fifth).now_or_never().is_none(), "it is not written yet");
        drop(reader);
        assert!((&mut fifth).now_or_never().is_some());
    }

    #[tokio::test]
    async fn lines_are_bounded_in_length_and_time() {
        let turns = Turns::new(1, Duration::from_millis(10));
        let turn = turns.wait(1).await.expect("a turn");
        let outcomes = join_all((0..LINE + 5).map(|_| turns.wait(1))).await;
        let full = outcomes.iter().filter(|outcome| matches!(outcome, Err(TurnError::LineFull))).count();
        let late = outcomes.iter().filter(|outcome| matches!(outcome, Err(TurnError::Late))).count();
        assert_eq!((full, late), (5, LINE));
        drop(turn);
        drop(turns.wait(1).await.expect("those who left hold nothing"));
        assert!(turns.lines().accounts.is_empty() && turns.lines().order.is_empty());
    }
}
