//! HTTP client for the API of a vendor. It keeps to the call budget. It retries a call after a temporary error, unless
//! the pause before the retry would exceed the maximum wait.
//!
//! Retry delays of calls to vendors.

use std::time::Duration;

use chrono::Utc;
use market::event::Bookmark;
use reqwest::Url;
use telemetry::{Shutdown, failpoint};

use super::args::PullError;
use super::batch::PageFile;
use super::connector::RequestTemplate;
use super::http_client::{CallError, HttpClient, VendorResponse};
use super::state_log::StateLog;

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: u32 = 5;

/// HTTP client that sends the requests of a connector. It keeps to the call budget of the vendor.
pub(super) struct VendorClient<'a> {
    pub shutdown: &'a Shutdown,
    pub state_log: StateLog<'a>,
    pub http: HttpClient<'a>,
    /// Number of calls made, as the budget counts them: a request may cost several calls.
    pub calls: u64,
}

/// Reason why a request has no response.
pub(super) enum RequestError {
    Failed(String),
    /// The server does not answer, or reports an error of its own, even after several attempts.
    NoResponse(String),
    /// The sync run must end now. The next sync run can send requests after `wait`; `None` if waiting does not help.
    Stop {
        reason: String,
        wait: Option<Duration>,
    },
    /// The whole pull ends with this error.
    Pull(PullError),
}

impl From<PullError> for RequestError {
    fn from(error: PullError) -> Self {
        Self::Pull(error)
    }
}

impl VendorClient<'_> {
    /// Sends the request for a page, with retries after temporary errors. Fails after [`MAX_ATTEMPTS`] attempts, or if
    /// a pause would exceed the maximum wait.
    pub(super) async fn request_page(
        &mut self,
        template: &RequestTemplate,
        url: &Url,
        bookmark: Option<&Bookmark>,
        target: &PageFile,
    ) -> Result<VendorResponse, RequestError> {
        let (mut url, mut redirects, mut attempts) = (url.clone(), 0, 0);
        loop {
            self.charge_request(template).await?;
            failpoint!("pull.charged");
            let called = self.shutdown.or_stop(self.http.fetch_to_file(&url, bookmark, target)).await;
            let (reason, wait) = match called.ok_or(PullError::Interrupted)? {
                Ok(VendorResponse::Redirect(to)) if redirects < MAX_REDIRECTS => {
                    (url, redirects) = (to, redirects + 1);
                    continue;
                }
                Ok(response) => return Ok(response),
                Err(CallError::Failed(reason)) => return Err(RequestError::Failed(reason)),
                Err(error @ CallError::Unauthorised(_)) => {
                    return Err(RequestError::Stop { reason: error.to_string(), wait: None });
                }
                Err(CallError::Throttled { message, wait }) => {
                    (format!("too many requests: {message}"), Some(wait))
                }
                Err(CallError::Transient(reason)) => (reason, None),
            };
            let pause = retry_pause(attempts, wait.flatten());
            attempts += 1;
            if attempts >= MAX_ATTEMPTS || pause > self.http.args.patience {
                return Err(match wait {
                    Some(_) => RequestError::Stop { reason, wait: Some(pause) },
                    None => RequestError::NoResponse(reason),
                });
            }
            tracing::info!(
                connector = self.http.connector.name,
                reason,
                pause_s = pause.as_secs(),
                "retrying a call"
            );
            self.sleep(pause).await?;
        }
    }

    /// Charges the calls of a request to the budget, and waits until the budget allows them. If this wait would be too
    /// long, fails with [`RequestError::Stop`].
    async fn charge_request(&mut self, template: &RequestTemplate) -> Result<(), RequestError> {
        let budgets = &self.http.connector.budgets;
        while !budgets.is_empty()
            && let Some(moment) = self.state_log.charge_calls(budgets, template.cost).await?
        {
            let wait = (moment - Utc::now()).to_std().unwrap_or_default();
            if wait > self.http.args.patience {
                let budgets: Vec<String> = budgets
                    .iter()
                    .map(|budget| format!("{} a {}", budget.calls, budget.per.as_str()))
                    .collect();
                let reason = format!(
                    "the call budget ({}) is used up until {}",
                    budgets.join(", "),
                    moment.format("%Y-%m-%d %H:%M:%S UTC")
                );
                return Err(RequestError::Stop { reason, wait: Some(wait) });
            }
            tracing::info!(
                connector = self.http.connector.name,
                wait_s = wait.as_secs() + 1,
                "waiting: the call budget is used up"
            );
            self.sleep(wait + Duration::from_millis(1)).await?;
        }
        self.calls += template.cost;
        Ok(())
    }

    async fn sleep(&self, time: Duration) -> Result<(), PullError> {
        self.shutdown.or_stop(tokio::time::sleep(time)).await.ok_or(PullError::Interrupted)
    }
}

/// Maximum number of attempts per call.
pub(super) const MAX_ATTEMPTS: u32 = 5;
/// Pause after the first failed attempt. Each further pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Pause after a failed attempt. `attempts` is the number of attempts before the failed one: 0 if the first attempt
/// failed. If the vendor asks for a delay, the pause is this delay, but at least [`FIRST_PAUSE`].
pub(super) fn retry_pause(attempts: u32, vendor_delay: Option<Duration>) -> Duration {
    vendor_delay
        .map_or(FIRST_PAUSE * 2u32.saturating_pow(attempts), |vendor_delay| vendor_delay.max(FIRST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_unless_the_vendor_says() {
        assert_eq!([0, 1, 2, 3].map(|attempts| retry_pause(attempts, None).as_secs()), [1, 2, 4, 8]);
        assert_eq!(retry_pause(3, Some(Duration::from_secs(7))).as_secs(), 7);
        assert_eq!(retry_pause(0, Some(Duration::ZERO)).as_secs(), 1);
    }
}
