use super::*;

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
