//! Program `projector` in the folder of `ingest`. Only the projector accesses Postgres, so ingest runs this program to
//! compare a load with the served data.

use std::io;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use event_log::stream::StreamSettings;
use tokio::process::Command;

/// Environment variables with the database URL of the projector.
const DATABASES: [&str; 2] = ["PROJECTOR_DATABASE_URL", "DATABASE_URL"];

/// Program `projector` that has a database URL.
pub(crate) struct ProjectorProgram(PathBuf);

impl ProjectorProgram {
    /// Finds the program; `None` without it, or without a database URL.
    pub(crate) fn find() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "the variables belong to the projector, not to ingest")]
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|url| !url.is_empty());
        if !DATABASES.into_iter().any(is_set) {
            return None;
        }
        let program = std::env::current_exe().ok()?.with_file_name("projector");
        program.is_file().then_some(Self(program))
    }

    /// Runs a command with the connection to the log. Ends the program and fails after `limit`.
    pub(crate) async fn run(
        &self,
        arguments: &[&str],
        settings: &StreamSettings,
        limit: Duration,
    ) -> io::Result<Output> {
        let mut command = Command::new(&self.0);
        command.args(arguments);
        command.args(["--nats-url", &settings.nats_url, "--nats-stream", &settings.nats_stream]);
        command.args(["--nats-subject-prefix", &settings.nats_subject_prefix]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(limit, command.output()).await?
    }
}
