//! Concurrency: limiter of expensive work, low-priority threads, background tasks, refreshed values.
//!
//! Background tasks of the server and their shutdown, batches of requests, and low-priority threads for long computations and expensive
//! responses.
//!
//! Invariants: if [`BackgroundTasks::stop`] returns `true`, every task has ended. The threads of the server's runtime keep
//! the normal priority, because the whole process needs them.

pub(crate) mod limiter;
pub(crate) mod refreshed;

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::Duration;
use std::{io, result};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// Background tasks of one component.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundTasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl BackgroundTasks {
    /// Spawns a task that ends without a signal. For example, a worker ends when its last handle is dropped.
    /// [`BackgroundTasks::stop`] waits for the task.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn(work)
    }

    /// Spawns an endless task, which [`BackgroundTasks::stop`] cancels.
    pub(crate) fn spawn_until_stopped(&self, work: impl Future<Output: Send> + Send + 'static) {
        self.tracker.spawn(self.stopping.clone().run_until_cancelled_owned(work));
    }

    /// Token that [`BackgroundTasks::stop`] cancels, for a task of [`BackgroundTasks::spawn`] with work left to do.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Cancels the endless tasks and waits for all other tasks. Returns `false` if tasks still run after `time_limit`.
    pub(crate) async fn stop(&self, time_limit: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        tokio::time::timeout(time_limit, self.tracker.wait()).await.is_ok()
    }
}

/// Endless pauses between attempts to connect. They grow from `min` to `max`.
pub(crate) fn connection_pauses(min: Duration, max: Duration) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(min)
        .with_max_delay(max)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Maximum number of task yields before a batch is sent. During each yield, new requests can join the batch.
const PASSES: usize = 4;

/// Lets other ready tasks run, so that they can add their requests to a batch of at most `limit` requests. A larger
/// batch costs less per request.
pub(crate) async fn gather<T>(waiting: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, limit: usize) {
    for _ in 0..PASSES {
        tokio::task::yield_now().await;
        let room = limit.saturating_sub(batch.len());
        if room == 0 || waiting.recv_many(batch, room).now_or_never().is_none_or(|joined| joined == 0) {
            break;
        }
    }
}

/// Niceness of a low-priority thread. Such a thread gets about a tenth of the CPU time of a normal thread.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// Maximum number of threads for responses. The limiter of expensive requests allows fewer.
const MAX_RESPONSES: usize = 512;

/// Runtimes of which only the blocking threads are used: one thread per core for computations, and the threads for
/// responses. A response may wait for a computation, so it must not use the same threads.
static COMPUTATIONS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| build_runtime("computation", cores()));
static RESPONSES: LazyLock<io::Result<Runtime>> = LazyLock::new(|| build_runtime("response", MAX_RESPONSES));

/// Errors of work on a low-priority thread.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LowPriorityError {
    #[error("cannot start a low-priority thread")]
    Start(#[source] &'static io::Error),
    #[error("a computation on a low-priority thread panicked")]
    Panicked(#[source] JoinError),
}

type Result<T> = result::Result<T, LowPriorityError>;

/// Runs a computation on a low-priority thread; at most one per core at the same time. If the caller's future is
/// dropped before the computation starts, the computation does not run.
pub(crate) async fn run_low_priority<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let runtime = COMPUTATIONS.as_ref().map_err(LowPriorityError::Start)?;
    AbortOnDropHandle::new(runtime.spawn_blocking(work)).await.map_err(LowPriorityError::Panicked)
}

/// Starts to write a response on a low-priority thread.
pub(crate) fn spawn_response<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Ok(RESPONSES.as_ref().map_err(LowPriorityError::Start)?.spawn_blocking(work))
}

fn build_runtime(name: &str, threads: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.max_blocking_threads(threads).thread_name(name).on_thread_start(lower_thread_priority).build()
}

/// Number of cores that the process may use.
pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

fn lower_thread_priority() {
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
    async fn a_panic_is_an_error_and_leaves_the_threads_usable() {
        for _ in 0..cores() * 2 {
            let outcome = run_low_priority(|| panic!("of the test")).await;
            assert!(matches!(outcome, Err::<(), _>(LowPriorityError::Panicked(_))));
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
