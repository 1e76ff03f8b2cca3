//! Loads in progress, found from the run manifests in the log. During a load, the log reader waits for more messages.
//! Read tables from a partial load would have to be derived again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use event_log::message::LogMessage;
use event_log::record_batch::{Body, Envelope};
use market::event::{Kind, RunEvent, RunState};

/// A load without a message for this time counts as ended, because its process may have been killed.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);

/// Ids of runs that have started but not completed, each with the time of its latest message.
#[derive(Debug, Default)]
pub(crate) struct InFlightLoads(HashMap<String, Instant>);

impl InFlightLoads {
    /// Updates the loads in progress from a message of the log.
    pub(crate) fn observe(&mut self, message: &LogMessage, now: Instant) {
        let Ok(envelope) = Envelope::from_headers(message.headers.as_ref()) else { return };
        if envelope.kind == Kind::Run {
            self.0.retain(|_, latest| now.saturating_duration_since(*latest) < IDLE_TIMEOUT);
            let batches = message.decode_batches().unwrap_or_default();
            let body = batches.into_iter().next().map(|batch| batch.body);
            let Some(Body::Run(RunEvent::Manifest(run))) = body else { return };
            match run.state {
                RunState::Started => drop(self.0.insert(run.run, now)),
                RunState::Completed => drop(self.0.remove(&run.run)),
            }
        } else if let Some(latest) = self.0.get_mut(&envelope.run) {
            *latest = now;
        }
    }

    /// `true` if a load is in progress.
    pub(crate) fn has_any(&self, now: Instant) -> bool {
        self.0.values().any(|latest| now.saturating_duration_since(*latest) < IDLE_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use event_log::record_batch::{BatchId, RecordBatch};
    use event_log::sequence::Sequence;
    use market::event::RunManifest;

    use super::*;

    fn message(body: Body) -> LogMessage {
        let batch = RecordBatch {
            id: BatchId::default(),
            source: "test".to_owned(),
            run: "run-1".to_owned(),
            chunk: 0,
            file: "f".to_owned(),
            line: 1,
            body,
        };
        let (headers, payload) = batch.encode().unwrap();
        LogMessage {
            sequence: Sequence::default(),
            subject: "s".to_owned(),
            headers: Some(headers),
            malformed_headers: None,
            payload,
            stored_at: DateTime::UNIX_EPOCH,
        }
    }

    fn manifest(state: RunState) -> LogMessage {
        let [run, source, format] = ["run-1", "test", "canonical"].map(str::to_owned);
        message(Body::Run(RunEvent::Manifest(Box::new(RunManifest {
            state,
            ..RunManifest::started(run, source, format, DateTime::UNIX_EPOCH)
        }))))
    }

    #[test]
    fn a_load_is_in_progress_from_start_to_completion() {
        let (mut loads, now) = (InFlightLoads::default(), Instant::now());
        loads.observe(&message(Body::Dividends(Vec::new())), now);
        assert!(!loads.has_any(now), "no start was seen");
        loads.observe(&manifest(RunState::Started), now);
        assert!(loads.has_any(now));
        loads.observe(&manifest(RunState::Completed), now);
        assert!(!loads.has_any(now));
    }

    #[test]
    fn a_silent_load_times_out() {
        let (mut loads, now) = (InFlightLoads::default(), Instant::now());
        loads.observe(&manifest(RunState::Started), now);
        let later = now + IDLE_TIMEOUT / 2;
        loads.observe(&message(Body::Dividends(Vec::new())), later);
        assert!(loads.has_any(later + IDLE_TIMEOUT / 2));
        assert!(!loads.has_any(later + IDLE_TIMEOUT));
    }
}
