//! Context of a request besides its content: client, route and limits; and the response headers with the limits.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::MatchedPath;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use smallvec::SmallVec;

use super::decision::{AdmissionDecision, AdmissionVerdict};
use super::token_bucket::Bucket;
use crate::auth::address_throttle::RemainingCalls;
use crate::connection::ClientConnection;

/// Context of a request: its client, its route, and its admission decision.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// Client address to which the limits apply.
    pub(crate) client: IpAddr,
    /// True if the request came through a trusted proxy.
    pub(crate) is_proxied: bool,
    connection: Arc<ClientConnection>,
    route: OnceLock<MatchedPath>,
    limits: OnceLock<ReportedLimits>,
}

/// Limits in the response headers. If none is set, the headers report the remaining calls of the client address.
#[derive(Debug, Clone)]
pub(crate) enum ReportedLimits {
    /// Number of invalid credentials that the client address may still send.
    FailedCredentials(RemainingCalls),
    /// Decision on a known key. The request may be admitted or refused.
    Account(AdmissionDecision),
}

impl RequestContext {
    /// Creates the context of a request that has no route and no decision yet.
    pub(crate) fn new(client: IpAddr, is_proxied: bool, connection: Arc<ClientConnection>) -> Arc<Self> {
        let (route, limits) = Default::default();
        Arc::new(Self { client, is_proxied, connection, route, limits })
    }

    /// Context in a request's extensions; `None` for a request without a connection.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<&Arc<Self>> {
        extensions.get::<Arc<Self>>()
    }

    /// Records the matched route.
    pub(crate) fn set_route(&self, route: &MatchedPath) {
        // Only the first route is stored. An MCP tool, or a feed such as `/calendar.ics`, calls API endpoints within
        // its request. The request keeps the route of the tool or feed.
        let _ = self.route.set(route.clone());
    }

    /// Matched route; `None` without a match.
    pub(crate) fn route(&self) -> Option<&MatchedPath> {
        self.route.get()
    }

    /// Records the decision on a known key.
    pub(crate) fn set_decision(&self, admitted: &AdmissionDecision) {
        self.connection.record_valid_key();
        // A request has only one admission decision, so the limits are not set yet.
        let _ = self.limits.set(ReportedLimits::Account(admitted.clone()));
    }

    /// Records how many invalid credentials the client address may still send.
    pub(crate) fn set_remaining_failures(&self, left: RemainingCalls) {
        let _ = self.limits.set(ReportedLimits::FailedCredentials(left));
    }

    /// Limits for the response headers; `None` if neither a decision nor a failed credential was recorded.
    pub(crate) fn limits(&self) -> Option<&ReportedLimits> {
        self.limits.get()
    }

    /// Decision on a known key; `None` without one.
    pub(crate) fn decision(&self) -> Option<&AdmissionDecision> {
        match self.limits()? {
            ReportedLimits::Account(decision) => Some(decision),
            ReportedLimits::FailedCredentials(_) => None,
        }
    }
}

/// Names of the headers, in the order in which their values are written. The response to a request without an account
/// has only the first three headers.
static NAMES: [HeaderName; 8] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-quota-limit"),
    HeaderName::from_static("x-quota-remaining"),
    HeaderName::from_static("x-quota-reset"),
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit"),
];
/// Initial capacity of the buffer for all values, in bytes. It is usually sufficient.
const ROOM: usize = 256;

/// Writes the remaining limits of an account into the headers.
pub(crate) fn write_account_limits(headers: &mut HeaderMap, decision: &AdmissionDecision) {
    let usage = &decision.usage;
    let bucket = &usage.bucket;
    let (remaining, reset) = match decision.verdict {
        AdmissionVerdict::Quota => (0, usage.month.end),
        _ => (bucket.remaining_within_rate(), usage.full_at_unix()),
    };
    let left = (usage.quota - usage.used).max(0);
    let Bucket { rate_per_minute, capacity, .. } = *bucket;
    let mut values = LimitHeaderValues::default();
    values.push_number(rate_per_minute.into());
    values.push_number(remaining);
    values.push_number(reset);
    values.push_number(usage.quota);
    values.push_number(left);
    values.push_number(usage.month.end);
    values.push_pair([("\"rate\";q=", capacity.into()), (";w=", bucket.seconds_to_fill_empty())]);
    values.push_pair([(", \"month\";q=", usage.quota), (";w=", usage.month.end - usage.month.start)]);
    values.end();
    values.push_pair([("\"rate\";r=", bucket.available_calls()), (";t=", bucket.seconds_until_full())]);
    values.push_pair([(", \"month\";r=", left), (";t=", usage.seconds_until_quota_reset())]);
    values.end();
    values.insert(headers, &NAMES);
}

/// Writes the remaining calls of a client address into the headers, for a request without an account.
pub(crate) fn write_address_limits(headers: &mut HeaderMap, left: RemainingCalls, now: DateTime<Utc>) {
    let full = now.timestamp_micros() + left.until_full_us.cast_signed();
    let reset = full.div_euclid(1_000_000) + i64::from(full.rem_euclid(1_000_000) > 0);
    let (limit, remaining) = (left.limit.cast_signed(), left.remaining.cast_signed());
    debug_assert!(limit >= 0 && remaining >= 0, "settings bound both");
    let mut values = LimitHeaderValues::default();
    values.push_number(limit);
    values.push_number(remaining);
    values.push_number(reset.max(now.timestamp() + 1));
    values.insert(headers, &NAMES[..3]);
}

/// Values of the headers in order, in one shared buffer.
struct LimitHeaderValues {
    text: Vec<u8>,
    /// Byte offset in `text` at which each value ends.
    ends: SmallVec<[usize; 8]>,
    digits: itoa::Buffer,
}

impl Default for LimitHeaderValues {
    fn default() -> Self {
        Self { text: Vec::with_capacity(ROOM), ends: SmallVec::new(), digits: itoa::Buffer::new() }
    }
}

impl LimitHeaderValues {
    /// Appends a value that consists of one number.
    fn push_number(&mut self, value: i64) {
        self.text.extend_from_slice(self.digits.format(value).as_bytes());
        self.end();
    }

    /// Appends two numbers to the current value, each with its label before it.
    fn push_pair(&mut self, numbers: [(&str, i64); 2]) {
        for (name, number) in numbers {
            self.text.extend_from_slice(name.as_bytes());
            self.text.extend_from_slice(self.digits.format(number).as_bytes());
        }
    }

    /// Ends the current value.
    fn end(&mut self) {
        self.ends.push(self.text.len());
    }

    /// Inserts the values into the headers, under these names and in this order.
    fn insert(self, headers: &mut HeaderMap, names: &[HeaderName]) {
        debug_assert_eq!(self.ends.len(), names.len(), "a value for each name");
        let (text, mut start) = (Bytes::from(self.text), 0);
        for (name, end) in names.iter().zip(self.ends) {
            // Digits and ASCII letters always form a valid value.
            if let Ok(value) = HeaderValue::from_maybe_shared(text.slice(start..end)) {
                headers.insert(name, value);
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::token_bucket::{CALL, RemainingLimits};
    use crate::auth::Tier;

    #[test]
    fn an_account_sees_its_minute_its_month_and_the_exact_state() {
        let usage = RemainingLimits {
            bucket: Bucket { rate_per_minute: 10, capacity: 20, tokens: 19 * CALL },
            now: DateTime::from_timestamp_millis(1_000_250).expect("a time"),
            quota: 5_000,
            used: 1,
            month: 0..2_678_400,
        };
        let mut decision =
            AdmissionDecision { usage, counted: true, ..AdmissionDecision::uncharged(Tier::Free) };
        let mut headers = HeaderMap::new();
        write_account_limits(&mut headers, &decision);
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
        decision.verdict = AdmissionVerdict::Quota;
        write_account_limits(&mut headers, &decision);
        assert_eq!(
            (&headers["x-ratelimit-remaining"], &headers["x-ratelimit-reset"]),
            (&HeaderValue::from(0), &HeaderValue::from(2_678_400))
        );
    }
}
