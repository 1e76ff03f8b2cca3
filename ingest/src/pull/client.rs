//! Requests to a vendor, with retries, within the call budget and the maximum wait.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;
use market::event::Bookmark;
use reqwest::Url;
use telemetry::{Shutdown, failpoint};

use super::args::PullArgs;
use super::call::{Answer, CallError, Caller};
use super::connector::{Connector, Request};
use super::error::PullError;
use super::ledger::Ledger;
use super::retry::{TRIES, pause};

/// Maximum number of redirects.
const MOST_HOPS: u32 = 5;

/// Sender of a connector's requests.
pub(super) struct Asker<'a> {
    pub args: &'a PullArgs,
    pub connector: &'a Connector,
    pub shutdown: &'a Shutdown,
    pub ledger: Ledger,
    pub caller: Caller<'a>,
    /// Calls made, in units of the budget.
    pub calls: u64,
}

/// Reason for an early end of a round.
pub(super) struct Stop {
    pub reason: String,
    /// Time after which the round may continue.
    pub wait: Option<Duration>,
}

/// Result of requesting one page.
pub(super) enum Asked {
    Answer(Answer),
    Failed(String),
    /// The vendor's server does not answer.
    Silent(String),
    Stop(Stop),
}

impl Asker<'_> {
    /// Sends a request and retries it, until an answer arrives or the wait or the budget is exhausted.
    pub(super) async fn ask(
        &mut self,
        request: &Request,
        url: &Url,
        known: Option<&Bookmark>,
        into: &Path,
    ) -> Result<Asked, PullError> {
        let (mut url, mut hops, mut tried) = (url.clone(), 0, 0);
        loop {
            if let Some(stop) = self.charge(request).await? {
                return Ok(Asked::Stop(stop));
            }
            failpoint!("pull.charged");
            let mut shutdown = self.shutdown.clone();
            let called = tokio::select! {
                called = self.caller.call(&url, known, into) => called,
                () = shutdown.wait() => return Err(PullError::Interrupted),
            };
            let (reason, wait) = match called {
                Ok(Answer::Elsewhere(to)) if hops < MOST_HOPS => {
                    (url, hops) = (to, hops + 1);
                    continue;
                }
                Ok(answer) => return Ok(Asked::Answer(answer)),
                Err(CallError::Failed(reason)) => return Ok(Asked::Failed(reason)),
                Err(error @ CallError::Unauthorised(_)) => {
                    return Ok(Asked::Stop(Stop { reason: error.to_string(), wait: None }));
                }
                Err(CallError::Throttled { said, wait }) => (format!("asked too much: {said}"), Some(wait)),
                Err(CallError::Transient(reason)) => (reason, None),
            };
            let pause = pause(tried, wait.flatten());
            tried += 1;
            if tried >= TRIES || pause > self.args.patience {
                let stop = Stop { reason: reason.clone(), wait: Some(pause) };
                return Ok(if wait.is_some() { Asked::Stop(stop) } else { Asked::Silent(reason) });
            }
            tracing::info!("{}: {reason}; asks again in {} s", self.connector.name, pause.as_secs());
            self.sleep(pause).await?;
        }
    }

    /// Charges a request to the budget; returns a stop if the budget is exhausted.
    async fn charge(&mut self, request: &Request) -> Result<Option<Stop>, PullError> {
        let budgets = &self.connector.budgets;
        if budgets.is_empty() {
            self.calls += request.cost;
            return Ok(None);
        }
        while let Some(moment) = self.ledger.charge(budgets, request.cost).await? {
            let wait = (moment - Utc::now()).to_std().unwrap_or_default();
            if wait > self.args.patience {
                let budgets: Vec<String> = budgets
                    .iter()
                    .map(|budget| format!("{} a {}", budget.calls, budget.per.as_str()))
                    .collect();
                let reason = format!(
                    "the budget of calls ({}) is used up until {}",
                    budgets.join(", "),
                    moment.format("%Y-%m-%d %H:%M:%S UTC")
                );
                return Ok(Some(Stop { reason, wait: Some(wait) }));
            }
            tracing::info!(
                "{}: the budget of calls is used up, waits {} s",
                self.connector.name,
                wait.as_secs() + 1
            );
            self.sleep(wait + Duration::from_millis(1)).await?;
        }
        self.calls += request.cost;
        Ok(None)
    }

    async fn sleep(&self, time: Duration) -> Result<(), PullError> {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = shutdown.wait() => Err(PullError::Interrupted),
        }
    }
}
