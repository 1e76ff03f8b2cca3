//! Graceful shutdown: one handle for both SIGINT and SIGTERM.

use std::time::Duration;

use tokio::sync::watch;

/// Handle for waiting for SIGINT or SIGTERM.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Installs the signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            tracing::info!("shutdown requested");
            sender.send_replace(true);
            // Keep the sender alive, because dropping it would look like a request to stop.
            tokio::time::sleep(Duration::MAX).await;
        });
        Ok(Self(receiver))
    }

    /// True if the process has received one of the signals.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the process receives one of the signals.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|requested| *requested).await;
    }
}
