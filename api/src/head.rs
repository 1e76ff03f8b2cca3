//! A response's head: an answer's headers are begun as a copy, for a header copied costs a fraction of one put in by its name.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::access::headers;
use crate::request_id::REQUEST_ID_HEADER;

/// What every answer has of its own.
const OWN: [HeaderName; 4] =
    [header::ETAG, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CACHE_CONTROL];
/// What every response has beside its limits.
const EVERY: [HeaderName; 3] = [REQUEST_ID_HEADER, header::X_CONTENT_TYPE_OPTIONS, header::VARY];

static BEGUN: LazyLock<HeaderMap> = LazyLock::new(|| {
    let names = OWN.into_iter().chain(EVERY).chain(headers::OF_ACCOUNT);
    names.map(|name| (name, HeaderValue::from_static(""))).collect()
});

/// The head of an account's answer, of which everything is still empty: [`fill`] puts its own headers in, and those of every
/// response follow where it leaves.
pub(crate) fn begun() -> HeaderMap {
    BEGUN.clone()
}

/// Puts headers in. Those that are there already, in the same order, need not be looked for.
pub(crate) fn fill(headers: &mut HeaderMap, values: impl IntoIterator<Item = (HeaderName, HeaderValue)>) {
    let mut values = values.into_iter().peekable();
    // Where none has two values, to replace one is to replace it whole.
    if headers.len() == headers.keys_len() {
        for (name, there) in headers.iter_mut() {
            if let Some((_, value)) = values.next_if(|(next, _)| next == name) {
                *there = value;
            }
        }
    }
    for (name, value) in values {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_head_that_was_filled_has_each_header_once(
            there in prop::collection::vec(0..OWN.len(), 0..4),
            values in prop::collection::vec((0..OWN.len(), "[a-z]{1,4}"), 0..6),
        ) {
            let of = |(name, value): &(usize, String)| (OWN[*name].clone(), HeaderValue::from_str(value).expect("text"));
            let mut filled: HeaderMap =
                there.iter().map(|name| (OWN[*name].clone(), HeaderValue::from_static(""))).collect();
            let mut inserted = filled.clone();
            fill(&mut filled, values.iter().map(of));
            for (name, value) in values.iter().map(of) {
                inserted.insert(name, value);
            }
            prop_assert_eq!(filled, inserted);
        }
    }
}
