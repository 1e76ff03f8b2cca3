//! Fair queue for expensive requests. Accounts are served round-robin; each has at most `MAX_IN_FLIGHT` responses in
//! progress.
//!
//! Invariants: concurrent renderings never exceed the connections reserved for them. A permit whose waiter has left
//! returns to the queue. The stack depth does not depend on the number of waiters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Expensive responses of one account that are rendered or sent at the same time.
const MAX_IN_FLIGHT: usize = 4;
/// Waiting requests of one account.
const MAX_QUEUED: usize = 60;

/// Errors of a request for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueError {
    #[error("too many expensive requests of the account are waiting")]
    Full,
    #[error("the wait for a permit timed out")]
    Timeout,
}

/// Waiting expensive requests of all accounts.
#[derive(Debug)]
pub(crate) struct FairQueue {
    /// Responses rendered at once.
    renderers: usize,
    /// Longest wait for a permit.
    timeout: Duration,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    rendering: usize,
    accounts: HashMap<i64, AccountQueue>,
    /// Accounts with a waiter, each once, in round-robin order.
    order: VecDeque<i64>,
}

#[derive(Debug, Default)]
struct AccountQueue {
    in_flight: usize,
    waiters: VecDeque<oneshot::Sender<Reservation>>,
}

/// Permit for one expensive response.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) render: RenderPermit,
    pub(crate) slot: Arc<AccountSlot>,
}

/// Permit to render, returned on drop.
#[derive(Debug)]
pub(crate) struct RenderPermit(Arc<FairQueue>);

/// One of an account's responses in progress, returned on drop.
#[derive(Debug)]
pub(crate) struct AccountSlot {
    queue: Arc<FairQueue>,
    account: i64,
}

/// Permit in transit to a waiter. If it is dropped before `claim`, it returns to the queue.
#[derive(Debug)]
struct Reservation {
    queue: Option<Arc<FairQueue>>,
    account: i64,
}

impl FairQueue {
    /// Creates an empty queue for `renderers` responses at once and waits of at most `timeout`.
    pub(crate) fn new(renderers: usize, timeout: Duration) -> Arc<Self> {
        Arc::new(Self { renderers: renderers.max(1), timeout, state: Mutex::default() })
    }

    /// Waits for a permit of the account.
    pub(crate) async fn acquire(self: &Arc<Self>, account: i64) -> Result<Permit, QueueError> {
        let (sender, reservation) = oneshot::channel();
        self.state().push(account, sender)?;
        self.dispatch();
        match tokio::time::timeout(self.timeout, reservation).await {
            Ok(Ok(reservation)) => reservation.claim().ok_or(QueueError::Timeout),
            Ok(Err(_)) | Err(_) => Err(QueueError::Timeout),
        }
    }

    /// Sends reservations to waiters while there is capacity.
    fn dispatch(self: &Arc<Self>) {
        let mut state = self.state();
        while state.rendering < self.renderers {
            let Some((account, waiter)) = state.next_waiter() else { break };
            let reservation = Reservation { queue: Some(Arc::clone(self)), account };
            if let Err(mut undelivered) = waiter.send(reservation) {
                // The waiter has just left. Dropping the reservation would lock the queue again and dispatch
                // recursively.
                undelivered.queue = None;
                state.release_render();
                state.release_slot(account);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn push(&mut self, account: i64, waiter: oneshot::Sender<Reservation>) -> Result<(), QueueError> {
        let queue = self.accounts.entry(account).or_default();
        let was_empty = queue.waiters.is_empty();
        if queue.waiters.len() >= MAX_QUEUED {
            queue.waiters.retain(|waiter| !waiter.is_closed());
        }
        if queue.waiters.len() >= MAX_QUEUED {
            return Err(QueueError::Full);
        }
        queue.waiters.push_back(waiter);
        if was_empty {
            self.order.push_back(account);
        }
        Ok(())
    }

    /// Removes the first waiter of the next account below its limit, and counts it as rendering. Expired waiters are
    /// skipped.
    fn next_waiter(&mut self) -> Option<(i64, oneshot::Sender<Reservation>)> {
        loop {
            let accounts = &self.accounts;
            let has_capacity =
                |account: &i64| accounts.get(account).is_some_and(|queue| queue.in_flight < MAX_IN_FLIGHT);
            let position = self.order.iter().position(has_capacity)?;
            let account = self.order.remove(position)?;
            let queue = self.accounts.get_mut(&account)?;
            while queue.waiters.front().is_some_and(oneshot::Sender::is_closed) {
                queue.waiters.pop_front();
            }
            let waiter = queue.waiters.pop_front();
            if !queue.waiters.is_empty() {
                self.order.push_back(account);
            }
            match waiter {
                Some(waiter) => {
                    queue.in_flight += 1;
                    self.rendering += 1;
                    return Some((account, waiter));
                }
                None => self.remove_if_idle(account),
            }
        }
    }

    fn release_render(&mut self) {
        debug_assert!(self.rendering > 0, "a render permit is returned once");
        self.rendering -= 1;
    }

    fn release_slot(&mut self, account: i64) {
        if let Some(queue) = self.accounts.get_mut(&account) {
            debug_assert!(queue.in_flight > 0, "a slot is returned once");
            queue.in_flight -= 1;
            self.remove_if_idle(account);
        }
    }

    fn remove_if_idle(&mut self, account: i64) {
        let is_idle = |queue: &AccountQueue| queue.in_flight == 0 && queue.waiters.is_empty();
        if self.accounts.get(&account).is_some_and(is_idle) {
            self.accounts.remove(&account);
        }
    }
}

impl Reservation {
    fn claim(mut self) -> Option<Permit> {
        let queue = self.queue.take()?;
        let slot = Arc::new(AccountSlot { queue: Arc::clone(&queue), account: self.account });
        Some(Permit { render: RenderPermit(queue), slot })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            {
                let mut state = queue.state();
                state.release_render();
                state.release_slot(self.account);
            }
            queue.dispatch();
        }
    }
}

impl Drop for RenderPermit {
    fn drop(&mut self) {
        self.0.state().release_render();
        self.0.dispatch();
    }
}

impl Drop for AccountSlot {
    fn drop(&mut self) {
        self.queue.state().release_slot(self.account);
        self.queue.dispatch();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn accounts_are_served_round_robin() {
        let queue = FairQueue::new(1, LONG);
        let first = queue.acquire(1).await.expect("an empty queue");
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(queue.acquire(1))).collect();
        assert!(greedy.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut other = Box::pin(queue.acquire(2));
        assert!((&mut other).now_or_never().is_none());
        let Permit { render, slot: _sent } = first;
        drop(render);
        assert!((&mut greedy[0]).now_or_never().is_some_and(|permit| permit.is_ok()), "it came first");
        let permit = (&mut other).now_or_never().expect("its turn").expect("a permit");
        assert!((&mut greedy[1]).now_or_never().is_none());
        drop(permit);
        assert!((&mut greedy[1]).now_or_never().is_some());
    }

    #[tokio::test]
    async fn an_account_has_four_in_flight_until_they_are_sent() {
        let queue = FairQueue::new(100, LONG);
        let mut slots = Vec::new();
        for _ in 0..MAX_IN_FLIGHT {
            slots.push(queue.acquire(1).await.expect("a permit").slot);
        }
        let mut fifth = Box::pin(queue.acquire(1));
        assert!((&mut fifth).now_or_never().is_none());
        assert!(queue.acquire(2).now_or_never().is_some(), "other accounts are not delayed");
        let shared = slots.pop().map(|slot| (Arc::clone(&slot), slot));
        let Some((writer, reader)) = shared else { return };
        drop(writer);
        assert!((&mut fifth).now_or_never().is_none(), "it is not sent yet");
        drop(reader);
        assert!((&mut fifth).now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiters_are_bounded_in_number_and_time() {
        let queue = FairQueue::new(1, Duration::from_millis(10));
        let permit = queue.acquire(1).await.expect("a permit");
        let outcomes = join_all((0..MAX_QUEUED + 5).map(|_| queue.acquire(1))).await;
        let full = outcomes.iter().filter(|outcome| matches!(outcome, Err(QueueError::Full))).count();
        let late = outcomes.iter().filter(|outcome| matches!(outcome, Err(QueueError::Timeout))).count();
        assert_eq!((full, late), (5, MAX_QUEUED));
        drop(permit);
        drop(queue.acquire(1).await.expect("expired waiters take no capacity"));
        assert!(queue.state().accounts.is_empty() && queue.state().order.is_empty());
    }

    /// Fails with a stack overflow if an undelivered permit dispatches the next one recursively.
    #[tokio::test]
    async fn a_permit_skips_any_number_of_expired_waiters() {
        let queue = FairQueue::new(1, LONG);
        let first = queue.acquire(0).await.expect("an empty queue");
        for account in 1..=50_000 {
            assert!(queue.acquire(account).now_or_never().is_none());
        }
        let mut last = Box::pin(queue.acquire(1));
        assert!((&mut last).now_or_never().is_none());
        drop(first);
        drop(last.now_or_never().expect("its turn").expect("a permit"));
        assert!(queue.state().accounts.is_empty() && queue.state().order.is_empty());
    }

    #[tokio::test]
    async fn a_permit_that_was_sent_but_not_received_returns() {
        let queue = FairQueue::new(1, LONG);
        let first = queue.acquire(1).await.expect("an empty queue");
        let mut second = Box::pin(queue.acquire(2));
        let mut third = Box::pin(queue.acquire(3));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        drop(first);
        drop(second);
        drop(third.now_or_never().expect("its turn").expect("a permit"));
        assert!(queue.state().accounts.is_empty() && queue.state().order.is_empty());
    }
}
