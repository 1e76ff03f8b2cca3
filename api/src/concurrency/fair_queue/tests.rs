use futures::FutureExt;
use futures::future::join_all;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn new(renderers: usize, timeout: Duration) -> Arc<FairQueue<u32>> {
    FairQueue::new(QueueLimits::of_responses(renderers, timeout))
}

fn is_empty<K: QueueKey>(queue: &FairQueue<K>) -> bool {
    let state = queue.state.lock();
    state.keys.is_empty() && state.orders.iter().all(VecDeque::is_empty) && state.waiting == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Party(u32);

impl QueueKey for u32 {}

impl QueueKey for Party {
    fn is_urgent(self) -> bool {
        self.0 > 100
    }
}

#[tokio::test]
async fn accounts_are_served_round_robin() {
    let queue = new(1, LONG);
    let first = queue.acquire(1).await.expect("an empty queue");
    let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(queue.acquire(1))).collect();
    assert!(greedy.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
    let mut other = Box::pin(queue.acquire(2));
    assert!((&mut other).now_or_never().is_none());
    let Permit { work, slot: _sent } = first;
    drop(work);
    assert!((&mut greedy[0]).now_or_never().is_some_and(|permit| permit.is_ok()), "it came first");
    let permit = (&mut other).now_or_never().expect("its turn").expect("a permit");
    assert!((&mut greedy[1]).now_or_never().is_none());
    drop(permit);
    assert!((&mut greedy[1]).now_or_never().is_some());
}

#[tokio::test]
async fn half_the_permits_are_granted_beside_ordinary_requests() {
    let queue = new(4, LONG);
    let ordinary = [queue.begin_ordinary_request(), queue.begin_ordinary_request()];
    let mut permits = Vec::new();
    for account in 1..=2 {
        permits.push(queue.acquire(account).now_or_never().expect("half the permits").expect("a permit"));
    }
    let mut third = Box::pin(queue.acquire(3));
    assert!((&mut third).now_or_never().is_none());
    drop(ordinary);
    // Without ordinary requests, expensive requests may use all permits.
    permits.push(queue.acquire(4).now_or_never().expect("all permits").expect("a permit"));
    permits.push(third.now_or_never().expect("all permits").expect("a permit"));
    let mut last = Box::pin(queue.acquire(5));
    assert!((&mut last).now_or_never().is_none());
    let _ordinary = queue.begin_ordinary_request();
    permits.truncate(2);
    assert!((&mut last).now_or_never().is_none(), "half the permits are in use");
    permits.truncate(1);
    assert!((&mut last).now_or_never().is_some());
}

#[tokio::test]
async fn an_account_has_four_in_flight_until_they_are_sent() {
    let queue = new(100, LONG);
    let mut slots = Vec::new();
    for _ in 0..MAX_IN_PROGRESS_PER_ACCOUNT {
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
    let queue = new(1, Duration::from_millis(10));
    let permit = queue.acquire(1).await.expect("a permit");
    let outcomes = join_all((0..MAX_WAITERS_PER_ACCOUNT + 5).map(|_| queue.acquire(1))).await;
    let full = outcomes.iter().filter(|outcome| matches!(outcome, Err(QueueError::Full))).count();
    let late = outcomes.iter().filter(|outcome| matches!(outcome, Err(QueueError::Timeout))).count();
    assert_eq!((full, late), (5, MAX_WAITERS_PER_ACCOUNT));
    drop(permit);
    drop(queue.acquire(1).await.expect("expired waiters take no capacity"));
    assert!(is_empty(&queue));
}

/// Fails with a stack overflow if the queue skips the abandoned waiters by recursion instead of a loop.
#[tokio::test]
async fn a_permit_skips_any_number_of_expired_waiters() {
    let queue = new(1, LONG);
    let first = queue.acquire(0).await.expect("an empty queue");
    for account in 1..=50_000 {
        assert!(queue.acquire(account).now_or_never().is_none());
    }
    let mut last = Box::pin(queue.acquire(1));
    assert!((&mut last).now_or_never().is_none());
    drop(first);
    drop(last.now_or_never().expect("its turn").expect("a permit"));
    assert!(is_empty(&queue));
}

#[tokio::test]
async fn a_permit_that_was_sent_but_not_received_returns() {
    let queue = new(1, LONG);
    let first = queue.acquire(1).await.expect("an empty queue");
    let mut second = Box::pin(queue.acquire(2));
    let mut third = Box::pin(queue.acquire(3));
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    drop(first);
    drop(second);
    drop(third.now_or_never().expect("its turn").expect("a permit"));
    assert!(is_empty(&queue));
}

#[tokio::test]
async fn urgent_keys_come_first_and_a_full_queue_takes_from_the_greediest() {
    let limits = QueueLimits {
        max_permits: 1,
        max_permits_beside_others: 1,
        max_in_progress_per_key: 1,
        max_waiters_per_key: 9,
        max_waiters: 4,
        timeout: LONG,
    };
    let queue = FairQueue::new(limits);
    let first = queue.acquire(Party(0)).await.expect("an empty queue");
    let mut waiting: Vec<_> = [1, 1, 1, 2].map(|party| Box::pin(queue.acquire(Party(party)))).into();
    assert!(waiting.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
    // The queue is full. A waiter of another key replaces the newest waiter of key 1, which has three waiters. One more
    // waiter of key 1 is refused.
    let mut newcomer = Box::pin(queue.acquire(Party(3)));
    assert!((&mut newcomer).now_or_never().is_none());
    assert_eq!((&mut waiting[2]).now_or_never().map(|permit| permit.err()), Some(Some(QueueError::Full)));
    let refused = queue.acquire(Party(1)).now_or_never().map(|permit| permit.err());
    assert_eq!(refused, Some(Some(QueueError::Full)));
    let mut urgent = Box::pin(queue.acquire(Party(200)));
    assert!((&mut urgent).now_or_never().is_none());
    drop(first);
    let permit = (&mut urgent).now_or_never().expect("its turn").expect("a permit");
    assert!((&mut waiting[0]).now_or_never().is_none());
    drop(permit);
    drop((&mut waiting[0]).now_or_never().expect("its turn").expect("a permit"));
    drop((&mut waiting[3]).now_or_never().expect("its turn").expect("a permit"));
    drop(newcomer.now_or_never().expect("its turn").expect("a permit"));
    drop(waiting);
    assert!(is_empty(&queue));
}
