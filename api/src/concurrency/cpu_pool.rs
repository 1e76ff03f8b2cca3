//! Thread pool for long computations: one thread per core, at low priority.
//!
//! Invariant: tokio's blocking threads keep the normal priority, because the whole process needs them.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tokio::sync::oneshot;

/// Niceness of a low-priority thread. Such a thread gets about a tenth of the CPU time of a normal thread.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

static POOL: LazyLock<Result<ThreadPool, ThreadPoolBuildError>> = LazyLock::new(|| {
    let builder = ThreadPoolBuilder::new().num_threads(cores()).thread_name(|number| format!("cpu-{number}"));
    builder.start_handler(|_| lower_thread_priority()).build()
});

/// Errors of a computation in the pool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CpuPoolError {
    #[error("cannot start the CPU pool")]
    Start(#[source] &'static ThreadPoolBuildError),
    #[error("a computation in the CPU pool panicked")]
    Panicked,
}

/// Runs a computation on a low-priority thread. If the caller's future is dropped before the computation starts, the
/// computation does not run.
pub(crate) async fn run_low_priority<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CpuPoolError> {
    let pool = POOL.as_ref().map_err(CpuPoolError::Start)?;
    let (sender, receiver) = oneshot::channel();
    pool.spawn_fifo(move || {
        if sender.is_closed() {
            return;
        }
        // rayon aborts the process on an uncaught panic. After a caught panic, the sender is dropped without a result,
        // so that the receiver returns an error.
        if let Ok(result) = catch_unwind(AssertUnwindSafe(work)) {
            let _ = sender.send(result);
        }
    });
    receiver.await.map_err(|_| CpuPoolError::Panicked)
}

/// Number of cores that the process may use.
pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Lowers the priority of the current thread. Threads that it starts inherit the priority.
pub(crate) fn lower_thread_priority() {
    // Only Linux has a priority per thread. Elsewhere, and after an error, the priority stays unchanged.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn at_most_one_computation_runs_per_core() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        let work = || {
            let now = NOW.fetch_add(1, Ordering::SeqCst) + 1;
            std::thread::sleep(Duration::from_millis(5));
            NOW.fetch_sub(1, Ordering::SeqCst);
            now
        };
        let done = join_all((0..cores() * 4).map(|_| run_low_priority(work))).await;
        let most = done.into_iter().map(|now| now.expect("a result")).max();
        assert!(most.is_some_and(|most| most <= cores()), "{most:?} at once");
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_leaves_the_pool_usable() {
        for _ in 0..cores() * 2 {
            let outcome = run_low_priority(|| panic!("of the test")).await;
            assert!(matches!(outcome, Err::<(), _>(CpuPoolError::Panicked)));
        }
        run_low_priority(|| ()).await.expect("a result");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn tokios_blocking_threads_keep_their_priority() {
        let niceness = || rustix::process::getpriority_process(None).expect("a priority");
        let normal = niceness();
        for lowered in join_all((0..cores() * 4).map(|_| run_low_priority(niceness))).await {
            assert_eq!(lowered.expect("a result"), NICENESS.max(normal));
        }
        let (barrier, threads) = (std::sync::Arc::new(std::sync::Barrier::new(8)), 0..8);
        let blocking = threads.map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            // The eight calls run at the same time, so that each has its own thread.
            tokio::task::spawn_blocking(move || {
                barrier.wait();
                niceness()
            })
        });
        for found in join_all(blocking).await {
            assert_eq!(found.expect("a result"), normal);
        }
    }
}
