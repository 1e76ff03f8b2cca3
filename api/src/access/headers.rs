//! The numbers a client sees about its limits.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use chrono::{DateTime, Utc};

use super::ledger::Charge;
use super::throttle::Left;

/// Writes what an account has left.
pub(crate) fn write(headers: &mut HeaderMap, charge: &Charge) {
    let usage = &charge.usage;
    let bucket = &usage.bucket;
    let (remaining, reset) = match charge.quota_refused {
        true => (0, usage.quota_reset()),
        false => (bucket.remaining(), usage.reset()),
    };
    write_rate(headers, i64::from(bucket.rate_per_minute), remaining, reset);
    put(headers, "x-quota-limit", usage.quota);
    put(headers, "x-quota-remaining", usage.quota_left());
    put(headers, "x-quota-reset", usage.quota_reset());
    let (burst, window) = (bucket.burst, bucket.window());
    let (quota, month) = (usage.quota, usage.month());
    text(
        headers,
        "ratelimit-policy",
        &format!("\"rate\";q={burst};w={window}, \"month\";q={quota};w={month}"),
    );
    let (calls, until_full) = (bucket.whole(), bucket.until_full().ceil());
    let (left, until_reset) = (usage.quota_left(), usage.until_quota_reset());
    text(
        headers,
        "ratelimit",
        &format!("\"rate\";r={calls};t={until_full}, \"month\";r={left};t={until_reset}"),
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
    use super::super::bucket::{Bucket, Usage};
    use super::*;

    #[test]
    fn an_account_sees_its_minute_its_month_and_the_exact_state() {
        let usage = Usage {
            bucket: Bucket { rate_per_minute: 10, burst: 20, tokens: 19.0 },
            now: 1_000.25,
            quota: 5_000,
            used: 1,
            month_start: 0.0,
            month_end: 2_678_400.0,
        };
        let mut charge = Charge { account: 1, usage, counted: true, quota_refused: false };
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
