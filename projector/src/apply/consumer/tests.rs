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

#[test]
fn a_stall_times_out_from_the_limit_on_and_counts_from_its_first_check() {
    let first = Instant::now();
    let seconds = |count| first + Duration::from_secs(count);
    let stalled = DeliveryState::Current.after_stalled_check(first);
    assert_eq!(stalled, DeliveryState::Stalled { since: first });
    assert_eq!(stalled.after_stalled_check(seconds(14)), stalled);
    assert!(!stalled.has_timed_out(seconds(14)) && stalled.has_timed_out(seconds(15)));
    let pending = DeliveryState::Pending.after_stalled_check(seconds(15));
    assert_eq!(pending, DeliveryState::Stalled { since: seconds(15) });
    assert!(!pending.has_timed_out(seconds(15)));
}
