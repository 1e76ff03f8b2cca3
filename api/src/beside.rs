//! What computes for long without waiting, beside the threads that answer everybody.
//!
//! Invariant: where there is no core for all, what is here comes last.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// One a core: more at once would be done no sooner, and hold memory meanwhile.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(cores()));

/// Does work on a thread that gives way; work that nobody waits for any more is not begun.
pub(crate) async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let place = PLACES.acquire().await;
    let working = spawn_blocking(move || {
        give_way();
        let done = work();
        drop(place);
        done
    });
    working.await
}

/// The machine's cores, as far as the process may use them.
pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Gives this thread about a tenth of the share that another has of a core, where there is no core for all.
pub(crate) fn give_way() {
    // Linux says it of the thread, others would of the process. A thread that may not is as important as before.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn no_more_is_computed_at_once_than_there_are_cores() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        let work = || {
            let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
            std::thread::sleep(Duration::from_millis(5));
            NOW.fetch_sub(1, Ordering::SeqCst);
            now
        };
        let done = join_all((0..cores() * 4).map(|_| compute(work))).await;
        let most = done.into_iter().map(|now| now.expect("is done")).max();
        assert!(most.is_some_and(|most| most <= cores()), "{most:?} at once");
    }

    #[tokio::test]
    async fn work_that_panics_holds_no_place() {
        for _ in 0..cores() * 2 {
            compute(|| panic!("of the test")).await.expect_err("panics");
        }
        compute(|| ()).await.expect("is done");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_gives_way() {
        let niceness = || rustix::process::getpriority_process(None);
        assert_eq!(compute(niceness).await.expect("is done"), Ok(10));
    }
}
