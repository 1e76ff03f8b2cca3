//! Background tasks of the server and their shutdown.
//!
//! Invariant: if [`BackgroundTasks::stop`] returns `true`, every task has ended.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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

    /// Cancels the endless tasks and waits for all other tasks. Returns `false` if tasks still run after `time_limit`.
    pub(crate) async fn stop(&self, time_limit: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        tokio::time::timeout(time_limit, self.tracker.wait()).await.is_ok()
    }
}
