//! Running processes of a stack, in the order in which they are stopped.

use std::time::Duration;

use anyhow::{Result, bail};

use super::progress::Progress;
use crate::api::Api;
use crate::process::{Daemon, Signal};
use crate::servers::Servers;

const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) api: Option<Api>,
    pub(super) projector: Option<Daemon>,
    pub(super) servers: Option<Servers>,
    /// True after the user was informed that NATS has ended, so that the message is printed only once.
    pub(super) without_log: bool,
}

impl Running {
    /// Watches the processes. If the API, the projector or Postgres ends, returns an error with the last lines of its
    /// log. If NATS ends, prints a message and continues, because the API can still serve the loaded data.
    pub(super) async fn watch(&mut self, progress: &Progress) -> Result<()> {
        loop {
            for daemon in self.api.as_mut().map(|api| &mut api.process).into_iter().chain(&mut self.projector)
            {
                if let Some(status) = daemon.exit_status()? {
                    let log = daemon.log_path().display();
                    bail!("{} ended ({status}); {log} ends:\n{}", daemon.name(), daemon.log_tail(20));
                }
            }
            if let Some(servers) = &self.servers {
                if let Some(death) = servers.nats.exit_message().await
                    && !std::mem::replace(&mut self.without_log, true)
                {
                    progress.say(format_args!(
                        "{death}\nthe API goes on serving what is there; start the stack again to load and project"
                    ));
                }
                if let Some(death) = servers.postgres.exit_message().await {
                    bail!(death);
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub(super) async fn stop(&mut self, progress: &Progress) {
        if let Some(mut api) = self.api.take() {
            tell(progress, "the API", api.process.stop(Signal::TERM, PATIENCE).await.map(drop));
        }
        if let Some(mut projector) = self.projector.take() {
            tell(progress, "the projector", projector.stop(Signal::TERM, PATIENCE).await.map(drop));
        }
        if let Some(servers) = self.servers.take() {
            if servers.nats.is_own() {
                tell(progress, "NATS", servers.nats.stop().await);
            }
            if servers.postgres.is_own() {
                tell(progress, "Postgres", servers.postgres.stop().await);
            }
        }
    }
}

fn tell(progress: &Progress, what: &str, stopped: Result<()>) {
    if let Err(error) = stopped {
        progress.say(format_args!("stopping {what}: {error:#}"));
    }
}
