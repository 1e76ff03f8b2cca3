//! Background tasks of the server and their shutdown.
//!
//! Invariant: once [`Tasks::stop`] has returned in time, nothing that was started here is left.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one part of the service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl Tasks {
    /// Runs work to its own end: a worker's comes when nobody is left who could give it work.
    pub(crate) fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tracker.spawn(work)
    }

    /// Runs work that has no end of its own, until the tasks are stopped.
    pub(crate) fn spawn_until_stopped<F>(&self, work: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tracker.spawn(self.stopping.clone().run_until_cancelled_owned(work));
    }

    /// Ends what has no end of its own and waits for the rest; `false` when some went on beyond the patience.
    pub(crate) async fn stop(&self, patience: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait()).await.is_ok()
    }
}
