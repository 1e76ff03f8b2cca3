//! Who may do costly work next: accounts take turns, and none has more than a few answers in work.
//!
//! Invariants: as many answers are rendered at once as there are connections for them; a turn that is given to a caller
//! who has gone is given on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
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

/// A place for one costly answer: first to render it, then to write it.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    account: i64,
    is_rendering: bool,
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
            let turn = Turn { turns: Arc::clone(self), account, is_rendering: true };
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

impl Turn {
    /// Lets others render; the answer still has to be written.
    pub(crate) fn rendered(&mut self) {
        if std::mem::take(&mut self.is_rendering) {
            self.turns.lines().rendering -= 1;
            self.turns.give();
        }
    }

    /// Bytes that hold the turn until the last of them is written.
    pub(crate) fn holding(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held { bytes, _turn: self })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut lines = self.turns.lines();
            lines.rendering -= usize::from(self.is_rendering);
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

struct Held {
    bytes: Bytes,
    _turn: Turn,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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
        let mut first = turns.wait(1).await.expect("nobody else is there");
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(turns.wait(1))).collect();
        assert!(greedy.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut other = Box::pin(turns.wait(2));
        assert!((&mut other).now_or_never().is_none());
        first.rendered();
        assert!((&mut greedy[0]).now_or_never().is_some_and(|turn| turn.is_ok()), "it came first");
        let turn = (&mut other).now_or_never().expect("its turn").expect("a turn");
        assert!((&mut greedy[1]).now_or_never().is_none());
        drop(turn);
        assert!((&mut greedy[1]).now_or_never().is_some());
    }

    #[tokio::test]
    async fn an_account_has_four_in_work_until_they_are_written() {
        let turns = Turns::new(100, LONG);
        let mut bodies = Vec::new();
        for _ in 0..IN_WORK {
            let mut turn = turns.wait(1).await.expect("a turn");
            turn.rendered();
            bodies.push(turn.holding(Bytes::from_static(b"body")));
        }
        let mut fifth = Box::pin(turns.wait(1));
        assert!((&mut fifth).now_or_never().is_none());
        assert!(turns.wait(2).now_or_never().is_some(), "others are not held up");
        let part = bodies.pop().map(|body| body.slice(1..));
        assert!((&mut fifth).now_or_never().is_none(), "a part is not written yet");
        drop(part);
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
