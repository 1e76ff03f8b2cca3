//! Decisions into the log, one frame, acknowledged when it is on disk.

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use event_log::frame::{Body, Frame, FrameId, schema_name};
use event_log::stream::StreamSettings;
use market::event::{Action, Decision, Kind, Row};
use market::measure::policy::MANUAL;

/// How long the log may take to have it on disk.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Publishes them as said now.
pub(super) async fn publish_decisions(
    log: &StreamSettings,
    decisions: Vec<(Action, Decision)>,
) -> anyhow::Result<()> {
    let context = log.connect("projector-quarantine").await?;
    // A log that is gone is not an empty one: the decision would be about rows that nobody has.
    log.existing(&context).await?;
    let (headers, body) = encode_decisions(decisions, Utc::now())?.encode()?;
    let published = context.publish_with_headers(log.subject(Kind::Decision), headers, body);
    let acknowledged = tokio::time::timeout(PUBLISH_TIMEOUT, async { published.await?.await });
    acknowledged.await.context("the log did not answer")?.context("the log did not take the decision")?;
    Ok(())
}

fn encode_decisions(decisions: Vec<(Action, Decision)>, now: DateTime<Utc>) -> anyhow::Result<Frame> {
    // The log keeps microseconds.
    let observed_at =
        DateTime::from_timestamp_micros(now.timestamp_micros()).context("the clock is wrong")?;
    let rows: Vec<Row<Decision>> = decisions
        .into_iter()
        .zip(1..)
        .map(|((action, record), line)| Row {
            line,
            id: None,
            revision: 0,
            action,
            observed_at,
            security_ref: None,
            record,
        })
        .collect();
    let said = serde_json::to_string(&rows)?;
    let id = FrameId::of(MANUAL, &said, 0, &schema_name(Kind::Decision));
    let run = format!("quarantine-{id}");
    let body = Body::Decisions(rows);
    Ok(Frame {
        id,
        source: MANUAL.to_owned(),
        run,
        chunk: 0,
        file: "projector quarantine".to_owned(),
        line: 1,
        body,
    })
}
