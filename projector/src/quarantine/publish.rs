//! Publication of decisions as one record batch. NATS acknowledges the batch after it is on disk.

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use event_log::record_batch::{BatchId, Body, RecordBatch, schema_name};
use event_log::stream::StreamSettings;
use market::event::{Action, Decision, EventRow, Kind};
use market::metrics::source_preference::MANUAL;

/// Maximum wait for the acknowledgement of NATS.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Publishes decisions, with the current time as their observation time.
pub(super) async fn publish_decisions(
    log: &StreamSettings,
    decisions: Vec<(Action, Decision)>,
) -> anyhow::Result<()> {
    let context = log.connect("projector-quarantine").await?;
    // If the stream is missing, fail instead of creating it. Decisions in a new stream would refer to rows that are
    // lost.
    log.open_existing(&context).await?;
    let (headers, body) = encode_decisions(decisions, Utc::now())?.encode()?;
    let published = context.publish_with_headers(log.subject(Kind::Decision), headers, body);
    let acknowledged = tokio::time::timeout(PUBLISH_TIMEOUT, async { published.await?.await });
    acknowledged
        .await
        .context("cannot publish the decision: NATS does not answer")?
        .context("cannot publish the decision")?;
    Ok(())
}

fn encode_decisions(decisions: Vec<(Action, Decision)>, now: DateTime<Utc>) -> anyhow::Result<RecordBatch> {
    // Times in the log have microsecond precision.
    let observed_at = DateTime::from_timestamp_micros(now.timestamp_micros())
        .context("cannot use the system time: it is out of range")?;
    let rows: Vec<EventRow<Decision>> = decisions
        .into_iter()
        .zip(1..)
        .map(|((action, record), line)| EventRow {
            line,
            id: None,
            revision: 0,
            action,
            observed_at,
            security_ref: None,
            record,
        })
        .collect();
    let encoded = serde_json::to_string(&rows)?;
    let id = BatchId::from_provenance(MANUAL, &encoded, 0, &schema_name(Kind::Decision));
    let run = format!("quarantine-{id}");
    let body = Body::Decisions(rows);
    Ok(RecordBatch {
        id,
        source: MANUAL.to_owned(),
        run,
        chunk: 0,
        file: "projector quarantine".to_owned(),
        line: 1,
        body,
    })
}
