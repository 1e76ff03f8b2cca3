//! The numbers a client sees about its limits.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::BytesMut;
use chrono::{DateTime, Utc};
use smallvec::SmallVec;

use super::caller::Charge;
use super::throttle::Left;
use crate::head;

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const QUOTA_LIMIT: HeaderName = HeaderName::from_static("x-quota-limit");
const QUOTA_REMAINING: HeaderName = HeaderName::from_static("x-quota-remaining");
const QUOTA_RESET: HeaderName = HeaderName::from_static("x-quota-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
/// As many as a response has for an account.
const MANY: usize = 8;
/// What a response for an account has, in this order.
pub(crate) const OF_ACCOUNT: [HeaderName; MANY] =
    [RATE_LIMIT, RATE_REMAINING, RATE_RESET, QUOTA_LIMIT, QUOTA_REMAINING, QUOTA_RESET, POLICY, STATE];
/// What a response for an address has not.
const OF_ACCOUNT_ALONE: [HeaderName; 5] = [QUOTA_LIMIT, QUOTA_REMAINING, QUOTA_RESET, POLICY, STATE];
/// Bytes of all values together, seldom more.
const ROOM: usize = 256;

/// Writes what an account has left.
pub(crate) fn write(headers: &mut HeaderMap, charge: &Charge) {
    let usage = &charge.usage;
    let bucket = &usage.bucket;
    let (remaining, reset) = match charge.quota_refused {
        true => (0, usage.quota_reset()),
        false => (bucket.remaining(), usage.reset()),
    };
    let mut values = Values::default();
    values.rate(i64::from(bucket.rate_per_minute), remaining, reset);
    values.number(QUOTA_LIMIT, usage.quota);
    values.number(QUOTA_REMAINING, usage.quota_left());
    values.number(QUOTA_RESET, usage.quota_reset());
    let (burst, window) = (bucket.burst, bucket.window());
    let (quota, month) = (usage.quota, usage.month());
    let rate = [("\"rate\";q=", i64::from(burst)), (";w=", window)];
    values.named(POLICY, [rate, [(", \"month\";q=", quota), (";w=", month)]]);
    let (calls, until_full) = (bucket.whole(), bucket.until_full());
    let (left, until_reset) = (usage.quota_left(), usage.until_quota_reset());
    let rate = [("\"rate\";r=", calls), (";t=", until_full)];
    values.named(STATE, [rate, [(", \"month\";r=", left), (";t=", until_reset)]]);
    head::fill(headers, values.all);
}

/// Writes what an address has left, for responses without an account.
pub(crate) fn write_address(headers: &mut HeaderMap, left: Left, now: DateTime<Utc>) {
    let full = now.timestamp_micros() + left.until_full.cast_signed();
    let reset = full.div_euclid(1_000_000) + i64::from(full.rem_euclid(1_000_000) > 0);
    let (limit, remaining) = (left.limit.cast_signed(), left.remaining.cast_signed());
    debug_assert!(limit >= 0 && remaining >= 0, "settings bound both");
    let mut values = Values::default();
    values.rate(limit, remaining, reset.max(now.timestamp() + 1));
    head::fill(headers, values.all);
    for name in OF_ACCOUNT_ALONE {
        headers.remove(name);
    }
}

/// Headers whose values share one piece of memory.
struct Values {
    all: SmallVec<[(HeaderName, HeaderValue); MANY]>,
    text: BytesMut,
    digits: itoa::Buffer,
}

impl Default for Values {
    fn default() -> Self {
        Self { all: SmallVec::new(), text: BytesMut::with_capacity(ROOM), digits: itoa::Buffer::new() }
    }
}

impl Values {
    /// The three headers every response has.
    fn rate(&mut self, limit: i64, remaining: i64, reset: i64) {
        self.number(RATE_LIMIT, limit);
        self.number(RATE_REMAINING, remaining);
        self.number(RATE_RESET, reset);
    }

    /// A header of one number.
    fn number(&mut self, name: HeaderName, value: i64) {
        self.text.extend_from_slice(self.digits.format(value).as_bytes());
        self.end(name);
    }

    /// A header of numbers, each behind its name.
    fn named(&mut self, name: HeaderName, values: [[(&str, i64); 2]; 2]) {
        for (name, value) in values.as_flattened() {
            self.text.extend_from_slice(name.as_bytes());
            self.text.extend_from_slice(self.digits.format(*value).as_bytes());
        }
        self.end(name);
    }

    /// A header of what was written since the one before.
    fn end(&mut self, name: HeaderName) {
        if let Ok(value) = HeaderValue::from_maybe_shared(self.text.split().freeze()) {
            self.all.push((name, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bucket::{Bucket, Usage};
    use super::*;

    #[test]
    fn an_account_sees_its_minute_its_month_and_the_exact_state() {
        let usage = Usage {
            bucket: Bucket { rate_per_minute: 10, burst: 20, tokens: 19.0 },
            now: DateTime::from_timestamp_millis(1_000_250).expect("a time"),
            quota: 5_000,
            used: 1,
            month: 0..2_678_400,
        };
        let mut charge = Charge { account: 1, key: 1, usage, counted: true, quota_refused: false };
        let mut headers = HeaderMap::new();
        write(&mut headers, &charge);
        let expected = [
            ("x-ratelimit-limit", "10"),
            ("x-ratelimit-remaining", "9"),
            ("x-ratelimit-reset", "1007"),
            ("x-quota-limit", "5000"),
            ("x-quota-remaining", "4999"),
            ("x-quota-reset", "2678400"),
            ("ratelimit-policy", "\"rate\";q=20;w=120, \"month\";q=5000;w=2678400"),
            ("ratelimit", "\"rate\";r=19;t=6, \"month\";r=4999;t=2677400"),
        ];
        for (name, value) in expected {
            assert_eq!(headers[name], value, "{name}");
        }
        charge.quota_refused = true;
        write(&mut headers, &charge);
        assert_eq!(
            (&headers["x-ratelimit-remaining"], &headers["x-ratelimit-reset"]),
            (&HeaderValue::from(0), &HeaderValue::from(2_678_400))
        );
    }
}
