//! Past of the demo market: loads that revise it, each of them served before the next.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use synthetic_market::REVISIONS;

use super::folder::StackFolder;
use super::services::Services;
use crate::api::Api;
use crate::eventually::eventually;
use crate::nats::NatsServer;

/// File in the data folder with the [`FirstVersion`].
pub(super) const FILE: &str = "first-version.json";
/// Folder with the later files, in the folder of the demo market.
pub(super) const LATER: &str = "later";
/// Maximum time until a revision is served.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
const REASON: &str = "halved amounts; the source desk replaces it";

/// Version of the demo market before its revisions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FirstVersion {
    pub(super) data_version: String,
    /// Instant at which this version was served.
    pub(super) known_at: String,
}

/// Loads the revisions of the demo market, and stores its first version.
pub(super) async fn revise_market(
    services: &Services<'_>,
    api: &Api,
    nats: &NatsServer,
    stream: &str,
    folder: &StackFolder,
) -> Result<()> {
    if folder.read_json::<FirstVersion>(FILE).is_none() {
        let (data_version, known_at) =
            (served_version(api).await?, Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true));
        folder.write_json(FILE, &FirstVersion { data_version, known_at })?;
    }
    let wait = async || wait_until_served(api, nats.last_sequence(stream).await?).await;
    for revision in &REVISIONS {
        let files = folder.path().join("demo").join(LATER).join(revision.folder);
        let files = files.to_str().context("the path of the data folder is not UTF-8")?;
        services.ingest(&["load", files, "--source", revision.source, "--effect-wait", "0"]).await?;
        wait().await?;
        if let Some(source) = revision.replaces {
            let run = find_run(services, source).await?;
            services.ingest(&["undo", &run, "--reason", REASON, "--operator", "demo"]).await?;
            wait().await?;
        }
    }
    Ok(())
}

/// Id of the newest run of a source.
async fn find_run(services: &Services<'_>, source: &str) -> Result<String> {
    let runs = services.ingest(&["runs", "--json"]).await?;
    let mut manifests = runs.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let run = manifests.rfind(|run| run["source"] == source).context("no run of the source")?;
    Ok(run["run"].as_str().context("a run without an id")?.to_owned())
}

async fn served_version(api: &Api) -> Result<String> {
    let health = api.get("/v1/health", None).await?.json()?;
    let version = health.pointer("/data/components/projection/data_version").and_then(|name| name.as_str());
    Ok(version.with_context(|| format!("no data version in {health}"))?.to_owned())
}

/// Waits until the API serves the data of the log up to a sequence. Data versions have names such as `g1.121`.
async fn wait_until_served(api: &Api, sequence: u64) -> Result<()> {
    eventually(SERVED_WITHIN, async || {
        let version = served_version(api).await?;
        let served: u64 = version.split('.').nth(1).unwrap_or_default().parse()?;
        ensure!(served >= sequence, "{version} is served, not {sequence}");
        Ok(())
    })
    .await
}
