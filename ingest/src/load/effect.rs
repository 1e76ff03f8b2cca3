//! Effect of a load on the figures that the API serves, as `projector audit --since` measures it.
//!
//! Only the projector accesses Postgres, so ingest runs the program `projector` in its folder, or names the command to
//! run. Candidate file: the record batches of a dry run. `projector audit --candidate` reports the effect that their load
//! would have.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use chrono::DateTime;
use event_log::archive::{ArchiveError, ArchiveWriter};
use event_log::message::LogMessage;
use event_log::sequence::Sequence;
use event_log::stream::StreamSettings;
use serde::Serialize;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::process::Command;

use crate::batch::batch_spool::EncodedBatch;
use crate::load::args::LoadArgs;

/// Effect of a run on the figures that the API serves, with the command that prints it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LoadEffect {
    /// Command that prints the effect.
    #[serde(rename = "effect_command")]
    command: String,
    /// Output of `projector audit --since RUN --json`, or of the same report about a dry run. Absent if the projector gave no output, or if the summary is
    /// text.
    #[serde(rename = "effect", skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
    /// Output of `projector audit --since RUN` as text. `None` if the projector gave no output, or if the summary is in
    /// JSON.
    #[serde(skip)]
    text: Option<String>,
}

impl LoadEffect {
    /// Measures the effect of a run. `args` sets the output format and the maximum wait.
    pub(crate) async fn measure(run: &str, args: &LoadArgs, settings: &StreamSettings) -> Self {
        let command = format!("projector audit --since {run}");
        let output = ask_projector(["--since", run], args, settings).await;
        Self::new(command, output, args)
    }

    /// Measures the effect that the load of a candidate file would have; `None` if the projector gave no output.
    pub(crate) async fn measure_candidate(
        candidate: &Path,
        args: &LoadArgs,
        settings: &StreamSettings,
    ) -> Option<Self> {
        let path = candidate.to_str()?;
        let output = ask_projector(["--candidate", path], args, settings).await?;
        Some(Self::new("ingest load --dry-run".to_owned(), Some(output), args))
    }

    fn new(command: String, output: Option<String>, args: &LoadArgs) -> Self {
        if !args.json {
            return Self { command, json: None, text: output };
        }
        let json = output.and_then(|output| RawValue::from_string(output).ok());
        Self { command, json, text: None }
    }

    /// Text of the effect. If the effect is unknown, the command that prints it.
    pub(crate) fn describe(&self) -> String {
        match &self.text {
            Some(text) => text.trim_end().to_owned(),
            None => format!("effect on served figures: {}", self.command),
        }
    }
}

/// Runs `projector audit` and returns its output. `None` if the program cannot run, fails, or exceeds the maximum wait.
async fn ask_projector(report: [&str; 2], args: &LoadArgs, settings: &StreamSettings) -> Option<String> {
    let wait = args.effect_wait.to_string();
    let mut arguments = vec!["audit", report[0], report[1], "--limit", "5", "--wait", &wait];
    arguments.extend(args.json.then_some("--json"));
    let limit = Duration::from_secs(args.effect_wait);
    let output = ProjectorProgram::find_for_effect(args)?.run(&arguments, settings, limit).await.ok()?;
    output.status.success().then_some(())?;
    String::from_utf8(output.stdout).ok()
}

/// Maximum number of rows. The projector holds the rows of a candidate in memory.
const MAX_ROWS: u64 = 2_000_000;

/// Candidate file in a temporary folder, which is deleted when the value is dropped.
pub(crate) struct CandidateFile {
    archive: Option<ArchiveWriter>,
    path: PathBuf,
    _folder: TempDir,
    source: String,
    run: String,
    rows: u64,
    batches: u64,
}

impl CandidateFile {
    pub(crate) fn create(source: &str, run: &str) -> Result<Self, ArchiveError> {
        let path = std::env::temp_dir().display().to_string();
        let folder = tempfile::Builder::new().prefix("dividend-data-service-").tempdir();
        let folder = folder.map_err(|source| ArchiveError::File { path, source })?;
        let path = folder.path().join("dry-run.candidate");
        Ok(Self {
            archive: Some(ArchiveWriter::create(&path, String::new())?),
            path,
            _folder: folder,
            source: source.to_owned(),
            run: run.to_owned(),
            rows: 0,
            batches: 0,
        })
    }

    /// Adds a batch of the input with this digest. Rows above the limit are left out.
    pub(crate) fn add_batch(
        &mut self,
        input_digest: &str,
        label: &str,
        batch: EncodedBatch,
    ) -> Result<(), ArchiveError> {
        self.rows += batch.rows;
        let Some(archive) = self.archive.as_mut().filter(|_| self.rows <= MAX_ROWS) else { return Ok(()) };
        self.batches += 1;
        let (envelope, payload) =
            batch.into_message((&self.source, &self.run), input_digest, label, self.batches);
        archive.append_message(&LogMessage {
            sequence: Sequence::default(),
            subject: envelope.kind.to_string(),
            headers: Some(envelope.to_headers()),
            malformed_headers: None,
            payload,
            stored_at: DateTime::UNIX_EPOCH,
        })
    }

    /// Completes the file and returns its path; `None` if the dry run has too many rows.
    pub(crate) fn finish(&mut self) -> Result<Option<&Path>, ArchiveError> {
        let Some(archive) = self.archive.take().filter(|_| self.rows <= MAX_ROWS) else { return Ok(None) };
        archive.finish()?;
        Ok(Some(&self.path))
    }
}

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

    /// Finds the program; `None` without it, or if the summary must not wait for the effect.
    pub(crate) fn find_for_effect(args: &LoadArgs) -> Option<Self> {
        if args.effect_wait == 0 { None } else { Self::find() }
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use event_log::record_batch::Codec;
    use market::event::Kind;

    use super::*;

    #[test]
    fn a_dry_run_of_too_many_rows_leaves_no_file() {
        let is_complete = |name: &str, rows: &[u64]| {
            let mut candidate = CandidateFile::create("test", name).unwrap();
            let path = candidate.path.clone();
            for rows in rows.iter().copied() {
                let (kind, codec, body) = (Kind::Price, Codec::ALL[0], Bytes::new());
                let batch = EncodedBatch { kind, codec, chunk: 0, rows, line: 1, body };
                candidate.add_batch("digest", "prices.csv", batch).unwrap();
            }
            let found = candidate.finish().unwrap().map(Path::to_owned);
            assert!(found.iter().all(|found| *found == path && path.exists()));
            drop(candidate);
            assert!(!path.exists() && !path.with_extension("partial").exists());
            found.is_some()
        };
        assert!(is_complete("limit", &[MAX_ROWS - 1, 1]));
        assert!(!is_complete("above", &[MAX_ROWS - 1, 1, 1]));
    }
}
