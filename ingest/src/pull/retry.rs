//! Retry delays of calls to vendors.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Maximum number of attempts per call.
pub(super) const MAX_ATTEMPTS: u32 = 5;
/// Pause after the first failed attempt. Each further pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Parses a `Retry-After` header, which contains seconds or an HTTP date. Returns the remaining delay; `None` if the
/// value is invalid.
pub(super) fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(value.trim()).ok()?;
    Some((until.to_utc() - now).to_std().unwrap_or_default())
}

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
    fn a_vendor_says_when_in_seconds_or_as_a_date() {
        let now = "2015-10-21T07:27:30Z".parse().unwrap();
        assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:26:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }

    #[test]
    fn pauses_double_unless_the_vendor_says() {
        assert_eq!([0, 1, 2, 3].map(|attempts| retry_pause(attempts, None).as_secs()), [1, 2, 4, 8]);
        assert_eq!(retry_pause(3, Some(Duration::from_secs(7))).as_secs(), 7);
        assert_eq!(retry_pause(0, Some(Duration::ZERO)).as_secs(), 1);
    }
}
