//! The numbers a client sees about its limits.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use chrono::{DateTime, Utc};

use super::admission::Usage;
use super::ledger::Entry;
use super::throttle::Left;
use crate::error::ApiError;

/// Absorbs binary rounding at the very moment a token is full, in calls; the store does the same.
const EPSILON: f64 = 1e-6;

impl Usage {
    fn rate_per_second(&self) -> f64 {
        f64::from(self.rate_per_minute.max(1)) / 60.0
    }

    /// Whole calls left in the bucket.
    fn whole(&self) -> i64 {
        seconds(self.tokens + EPSILON)
    }

    /// Calls left of the minute's; the burst reserve beyond them is not shown.
    fn remaining(&self) -> i64 {
        (self.whole() - i64::from(self.burst - self.rate_per_minute))
            .clamp(0, i64::from(self.rate_per_minute))
    }

    /// Seconds until the bucket is full.
    fn until_full(&self) -> f64 {
        ((f64::from(self.burst) - self.tokens) / self.rate_per_second()).max(0.0)
    }

    /// Unix second at which the bucket is full, after now.
    fn reset(&self) -> i64 {
        seconds((self.now + self.until_full()).ceil()).max(seconds(self.now) + 1)
    }

    /// Seconds until the next call passes, at least 1.
    pub(crate) fn retry_after(&self) -> u64 {
        let wait = ((1.0 - EPSILON - self.tokens) / self.rate_per_second()).ceil();
        u64::try_from(seconds(wait)).unwrap_or(0).max(1)
    }

    /// Seconds until the quota begins anew, at least 1.
    fn until_month_end(&self) -> i64 {
        seconds((self.month_end - self.now).ceil()).max(1)
    }

    fn quota_left(&self) -> i64 {
        (self.quota - self.used).max(0)
    }

    /// The refusal of a call beyond the quota.
    pub(crate) fn quota_exceeded(&self) -> ApiError {
        let retry_after = u64::try_from(self.until_month_end()).unwrap_or(1);
        ApiError::QuotaExceeded { current: self.used, limit: self.quota, retry_after }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "times and call counts are far below 2^53")]
fn seconds(value: f64) -> i64 {
    value.floor() as i64
}

/// Writes what an account has left.
pub(crate) fn write(headers: &mut HeaderMap, entry: &Entry) {
    let usage = &entry.usage;
    let (remaining, reset) = match entry.quota_refused {
        true => (0, seconds(usage.month_end.ceil())),
        false => (usage.remaining(), usage.reset()),
    };
    write_rate(headers, i64::from(usage.rate_per_minute), remaining, reset);
    put(headers, "x-quota-limit", usage.quota);
    put(headers, "x-quota-remaining", usage.quota_left());
    put(headers, "x-quota-reset", seconds(usage.month_end.ceil()));
    let window = seconds((f64::from(usage.burst) / usage.rate_per_second()).round());
    let month = seconds((usage.month_end - usage.month_start).round());
    text(
        headers,
        "ratelimit-policy",
        &format!("\"rate\";q={};w={window}, \"month\";q={};w={month}", usage.burst, usage.quota),
    );
    let until_full = seconds(usage.until_full().ceil());
    text(
        headers,
        "ratelimit",
        &format!(
            "\"rate\";r={};t={until_full}, \"month\";r={};t={}",
            usage.whole().max(0),
            usage.quota_left(),
            usage.until_month_end()
        ),
    );
}

/// Writes what an address has left, for responses without an account.
pub(crate) fn write_address(headers: &mut HeaderMap, left: Left, now: DateTime<Utc>) {
    let full = now.timestamp_micros().saturating_add(i64::try_from(left.until_full).unwrap_or(i64::MAX));
    let reset = full.div_euclid(1_000_000) + i64::from(full.rem_euclid(1_000_000) > 0);
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    write_rate(headers, whole(left.limit), whole(left.remaining), reset.max(now.timestamp() + 1));
}

/// Writes the three headers every response has.
fn write_rate(headers: &mut HeaderMap, limit: i64, remaining: i64, reset: i64) {
    put(headers, "x-ratelimit-limit", limit);
    put(headers, "x-ratelimit-remaining", remaining);
    put(headers, "x-ratelimit-reset", reset);
}

fn put(headers: &mut HeaderMap, name: &'static str, value: i64) {
    headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
}

fn text(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: f64) -> Usage {
        Usage {
            rate_per_minute: 10,
            burst: 20,
            tokens,
            now: 1_000.25,
            quota: 5_000,
            used: 1,
            month_start: 0.0,
            month_end: 2_678_400.0,
        }
    }

    #[test]
    fn remaining_counts_the_minute_and_hides_the_reserve() {
        for (tokens, remaining) in [(20.0, 10), (19.0, 9), (10.0, 0), (10.999_999_9, 1), (0.5, 0), (0.0, 0)] {
            assert_eq!(usage(tokens).remaining(), remaining, "{tokens}");
        }
    }

    #[test]
    fn reset_is_when_the_bucket_is_full_and_always_ahead() {
        assert_eq!(usage(19.0).reset(), 1_007);
        assert_eq!(usage(20.0).reset(), 1_001);
    }

    #[test]
    fn retry_is_when_one_call_is_there() {
        for (tokens, wait) in [(0.0, 6), (0.5, 3), (0.99, 1), (1.0, 1)] {
            assert_eq!(usage(tokens).retry_after(), wait, "{tokens}");
        }
    }

    #[test]
    fn the_modern_form_is_exact() {
        let mut headers = HeaderMap::new();
        write(&mut headers, &Entry { account: 1, usage: usage(19.0), counted: true, quota_refused: false });
        assert_eq!(headers["ratelimit-policy"], "\"rate\";q=20;w=120, \"month\";q=5000;w=2678400");
        assert_eq!(headers["ratelimit"], "\"rate\";r=19;t=6, \"month\";r=4999;t=2677400");
    }
}
