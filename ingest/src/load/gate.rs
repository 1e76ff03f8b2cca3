//! Gate: a load is held, compared with the expectations of its source, and released only if it meets all of them.
//!
//! `projector gate` makes the comparison.

use std::path::Path;
use std::time::Duration;

use event_log::stream::StreamSettings;
use market::event::{RunChange, RunVisibility};
use market::expectation::GateVerdict;
use serde::Serialize;
use telemetry::process::Shutdown;
use telemetry::report::Report;
use telemetry::{failpoint, shorten};

use crate::load::args::LoadArgs;
use crate::load::effect::ProjectorProgram;
use crate::load::publication::LoadError;
use crate::log::publisher::now;
use crate::log::reader::Log;
use crate::log::run_states::{Runs, encode_change};

/// Maximum time until the projector has applied a load.
const WAIT_SECONDS: &str = "600";
/// Maximum duration of the wait and the comparison.
const MAX_COMPARISON: Duration = Duration::from_secs(3_600);
/// Maximum length of a reason in the log, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Result of the gate.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum GateResult {
    /// The load was compared with the expectations.
    Verdict(GateVerdict),
    /// The load could not be compared.
    Failed {
        /// Cause.
        error: String,
    },
}

impl GateResult {
    pub(crate) fn failed(cause: &str) -> Self {
        Self::Failed { error: format!("cannot compare the load: {cause}") }
    }

    pub(crate) fn is_met(&self) -> bool {
        matches!(self, Self::Verdict(verdict) if verdict.met)
    }

    /// Reason of the run's next state.
    fn reason(&self) -> String {
        match self {
            Self::Verdict(verdict) => match verdict.failed().next() {
                Some(check) => format!("gate: {check}"),
                None => "gate: all expectations are met".to_owned(),
            },
            Self::Failed { error } => shorten(&format!("gate: {error}"), MAX_REASON_CHARS),
        }
    }

    /// Adds the verdict. `run` is a published run, which can be judged later.
    pub(crate) fn add_to(&self, run: Option<&str>, report: &mut Report) {
        match self {
            Self::Verdict(verdict) => verdict.lines().into_iter().for_each(|line| report.add_fact(line)),
            Self::Failed { error } => {
                report.add_fact(format!("gate: {error}"));
                if let Some(run) = run {
                    report.add_fact(format!("  → to judge it: projector gate {run}"));
                }
            }
        }
    }
}

/// Compares a held run with the expectations, and releases it if all are met. The log has the result as a change of the
/// run's state. Also returns the state of the run.
pub(crate) async fn judge_run(
    run: &str,
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<(GateResult, RunVisibility), LoadError> {
    let result = ask_projector(&[run, "--wait", WAIT_SECONDS], args, settings, shutdown).await?;
    let new_state = if result.is_met() { RunVisibility::Visible } else { RunVisibility::Held };
    let state = change_state([run, &args.source], new_state, result.reason(), settings).await?;
    Ok((result, state))
}

/// Ends the hold of a run whose files were refused. The run has no rows.
pub(crate) async fn release_empty_run(
    run: &str,
    source: &str,
    settings: &StreamSettings,
) -> Result<RunVisibility, LoadError> {
    change_state([run, source], RunVisibility::Visible, "gate: no rows".to_owned(), settings).await
}

/// Changes the state of a held run. An operator may have released or undone the run since it was published; it then keeps
/// its state. Returns the state of the run.
async fn change_state(
    [run, source]: [&str; 2],
    new_state: RunVisibility,
    reason: String,
    settings: &StreamSettings,
) -> Result<RunVisibility, LoadError> {
    let log = Log::open_existing(settings).await?;
    let mut runs = Runs::default();
    loop {
        runs.read_new(&log).await?;
        let state = runs.states.state(run);
        if state != RunVisibility::Held {
            return Ok(state);
        }
        let (run, reason, operator) = (run.to_owned(), reason.clone(), "ingest load --gate".to_owned());
        let change = RunChange { run, new_state, reason, at: now(), operator };
        let (_, headers, body) = encode_change(source, change)?;
        failpoint!("gate.judged");
        if log.publish_manifest(headers, body, Some(runs.end)).await? {
            return Ok(new_state);
        }
    }
}

/// Compares the rows of a dry run with the expectations. `candidate` is `None` if the rows are too many.
pub(crate) async fn judge_candidate(
    candidate: Option<&Path>,
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<GateResult, LoadError> {
    match candidate {
        Some(path) => {
            ask_projector(&["--candidate", &path.display().to_string()], args, settings, shutdown).await
        }
        None => Ok(GateResult::failed("a dry run of so many rows cannot be compared; use --stage")),
    }
}

async fn ask_projector(
    target: &[&str],
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<GateResult, LoadError> {
    let Some(program) = ProjectorProgram::find() else {
        let needs = "it needs the program projector next to ingest, and PROJECTOR_DATABASE_URL";
        return Ok(GateResult::failed(needs));
    };
    let replaces = args.replaces.iter().flat_map(|source| ["--replaces", source]).collect();
    let arguments = [vec!["gate", "--json"], target.to_vec(), replaces].concat();
    let output = shutdown.or_stop(program.run(&arguments, settings, MAX_COMPARISON)).await;
    Ok(match output.ok_or(LoadError::Interrupted)? {
        Ok(output) => match serde_json::from_slice(&output.stdout) {
            Ok(verdict) => GateResult::Verdict(verdict),
            Err(_) => GateResult::failed(String::from_utf8_lossy(&output.stderr).trim()),
        },
        Err(error) => GateResult::failed(&error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dry_run_of_too_many_rows_is_not_compared() {
        let options = ["--gate", "--dry-run"].map(str::to_owned);
        let args = LoadArgs::parse_options("prices.csv", "test", options.iter()).unwrap();
        let settings = StreamSettings {
            nats_url: "nats://127.0.0.1:1".to_owned(),
            nats_stream: "MARKET".to_owned(),
            nats_subject_prefix: "market".to_owned(),
            nats_replicas: 1,
        };
        let shutdown = Shutdown::listen().unwrap();
        let result = judge_candidate(None, &args, &settings, &shutdown).await.unwrap();
        assert!(result.reason().contains("so many rows cannot be compared; use --stage"), "{result:?}");
        assert!(!result.is_met());
    }
}
