//! OpenLineage events of a run, sent to a data catalogue over HTTP. Sending never fails or delays a load for long.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use reqwest::{Client, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum time to send one event, and maximum wait at the end of a load.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// True if the last event of this process could not be sent.
static IS_FAILING: AtomicBool = AtomicBool::new(false);

/// Settings of the data catalogue.
#[derive(Debug, Clone, Args)]
pub(crate) struct LineageSettings {
    /// Base URL of a data catalogue that accepts OpenLineage events. Each load sends its events to URL/api/v1/lineage.
    /// If the catalogue does not accept them, the log has a warning; the load continues
    #[arg(long, env = "OPENLINEAGE_URL", hide_env_values = true, value_name = "URL", value_parser = UrlParser)]
    openlineage_url: Option<CatalogueUrl>,
    /// API key for the data catalogue, sent as a bearer token
    #[arg(long, env = "OPENLINEAGE_API_KEY", hide_env_values = true, value_name = "KEY")]
    openlineage_api_key: Option<SecretString>,
    /// Namespace of the jobs in the data catalogue
    #[arg(long, env = "OPENLINEAGE_NAMESPACE", value_name = "NAME", default_value = "dividend-data-service")]
    pub(crate) openlineage_namespace: String,
}

/// Origin of files that a pull fetched, as an OpenLineage dataset.
#[derive(Debug, Clone)]
pub(crate) struct FetchedDataset {
    /// Scheme and host.
    pub namespace: String,
    /// Path, with the placeholders of the manifest.
    pub name: String,
}

/// Base URL; `None` for an empty setting.
#[derive(Debug, Clone)]
struct CatalogueUrl(Option<Url>);

/// Parser of the base URL. Its error does not repeat the URL, because the URL may contain a password.
#[derive(Clone)]
struct UrlParser;

impl TypedValueParser for UrlParser {
    type Value = CatalogueUrl;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<CatalogueUrl, clap::Error> {
        if value.is_empty() {
            return Ok(CatalogueUrl(None));
        }
        let url = value.to_str().and_then(|text| Url::parse(text).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        url.map(|url| CatalogueUrl(Some(url))).ok_or_else(|| {
            let message =
                "cannot use OPENLINEAGE_URL: it is not an http or https URL, such as http://127.0.0.1:5000\n";
            clap::Error::raw(ErrorKind::ValueValidation, message)
        })
    }
}

/// Sender of the events of one run. A separate task sends them in order.
pub(crate) struct EventSender {
    events: mpsc::UnboundedSender<Value>,
    task: JoinHandle<()>,
    /// True if the events of the previous run could not be sent.
    was_failing: bool,
}

impl LineageSettings {
    /// Starts a sender; `None` without a data catalogue.
    pub(crate) fn start_sender(&self) -> Option<EventSender> {
        let mut url = self.openlineage_url.as_ref()?.0.clone()?;
        url.path_segments_mut().ok()?.pop_if_empty().extend(["api", "v1", "lineage"]);
        let (events, queue) = mpsc::unbounded_channel();
        let was_failing = IS_FAILING.load(Ordering::Relaxed);
        let task = tokio::spawn(send_events(url, self.openlineage_api_key.clone(), queue));
        Some(EventSender { events, task, was_failing })
    }
}

impl EventSender {
    pub(crate) fn send(&self, event: Value) {
        // The queue is closed only if the task panicked.
        let _ = self.events.send(event);
    }

    /// Waits for the last events, unless those of the previous run could not be sent. Later events are still sent while
    /// the program runs.
    pub(crate) async fn finish(self) {
        drop(self.events);
        if !self.was_failing && timeout(SEND_TIMEOUT, self.task).await.is_err() {
            set_failing("no answer in time");
        }
    }
}

async fn send_events(url: Url, api_key: Option<SecretString>, mut queue: mpsc::UnboundedReceiver<Value>) {
    let client = Client::builder()
        .user_agent(concat!("ingest/", env!("CARGO_PKG_VERSION")))
        .timeout(SEND_TIMEOUT)
        .redirect(redirect::Policy::none())
        .build();
    let client = match client {
        Ok(client) => client,
        Err(error) => return set_failing(&describe_error(error)),
    };
    while let Some(event) = queue.recv().await {
        let mut request = client.post(url.clone()).json(&event);
        if let Some(api_key) = &api_key {
            request = request.bearer_auth(api_key.expose_secret());
        }
        match request.send().await {
            Ok(response) if response.status().is_success() => IS_FAILING.store(false, Ordering::Relaxed),
            Ok(response) => set_failing(&format!("it answered {}", response.status())),
            Err(error) => set_failing(&describe_error(error)),
        }
    }
}

/// Text of an error with its causes, but without its URL, because the URL may contain a password.
fn describe_error(error: reqwest::Error) -> String {
    format!("{:#}", anyhow::Error::new(error.without_url()))
}

/// Logs the first failure since the last event that was sent.
fn set_failing(reason: &str) {
    if !IS_FAILING.swap(true, Ordering::Relaxed) {
        tracing::warn!(reason, "cannot send lineage events to OPENLINEAGE_URL; loads continue without them");
    }
}
