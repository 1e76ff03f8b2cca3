//! Deprecated parameters: announcement, headers of the responses, and end of support. The page `/versions` lists them.
//!
//! Invariant: at least 24 months lie between announcement and removal.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use chrono::{NaiveDate, NaiveTime};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");
const PAGE: HeaderValue = HeaderValue::from_static("</versions>; rel=\"deprecation\"; type=\"text/html\"");

/// Deprecated parameter of an endpoint.
#[derive(Debug)]
pub(crate) struct Deprecation {
    pub(crate) path: &'static str,
    pub(crate) parameter: &'static str,
    pub(crate) replacement: &'static str,
    /// Day from which the parameter is deprecated, at the earliest the day of the announcement.
    pub(crate) announced: NaiveDate,
    /// Day before which the parameter is not removed.
    pub(crate) sunset: NaiveDate,
}

/// All deprecated parameters.
pub(crate) static DEPRECATIONS: [Deprecation; 1] = [Deprecation {
    path: "/v1/stocks",
    parameter: "has_dividends",
    replacement: "pays_dividend",
    announced: day(2026, 12, 1),
    sunset: day(2028, 12, 1),
}];

const fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(date) => date,
        None => panic!("no such day"),
    }
}

impl Deprecation {
    /// Deprecated parameter that a request uses.
    pub(crate) fn used_by(uri: &Uri) -> Option<&'static Self> {
        let (path, query) = (uri.path(), uri.query()?);
        let is_used = |part: &&Self| {
            (path == part.path || path.starts_with("/feed/") && path.ends_with(part.path))
                && form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == part.parameter)
        };
        DEPRECATIONS.iter().find(is_used)
    }

    /// Adds the headers of RFC 9745 and RFC 8594 to a response.
    pub(crate) fn add_headers(&self, target: &mut HeaderMap) {
        let announced = format!("@{}", self.announced.and_time(NaiveTime::MIN).and_utc().timestamp());
        let sunset = self.sunset.format("%a, %d %b %Y 00:00:00 GMT").to_string();
        for (name, value) in [(DEPRECATION, announced), (SUNSET, sunset)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                target.insert(name, value);
            }
        }
        target.append(header::LINK, PAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Months;

    #[test]
    fn a_parameter_is_removed_two_years_after_its_announcement_at_the_earliest() {
        for part in &DEPRECATIONS {
            assert!(part.sunset >= part.announced + Months::new(24), "{part:?}");
        }
    }

    #[test]
    fn only_a_request_with_the_parameter_is_marked() {
        let is_marked = |uri: &str| Deprecation::used_by(&uri.parse().expect("a URI")).is_some();
        assert!(
            is_marked("/v1/stocks?limit=1&has_dividends=true") && is_marked("/v1/stocks?has%5Fdividends")
        );
        assert!(is_marked("/feed/dds_key/v1/stocks?has_dividends=true"));
        for other in ["/v1/stocks", "/v1/stocks?pays_dividend=true", "/v1/etfs?has_dividends=true"] {
            assert!(!is_marked(other), "{other}");
        }
    }
}
