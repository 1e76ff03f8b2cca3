//! A response's head: headers begun as a copy cost a fraction of as many put in by their names, if those who write them know it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

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
    use axum::http::header;
    use proptest::prelude::*;

    use super::*;

    const NAMES: [HeaderName; 4] =
        [header::ETAG, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CACHE_CONTROL];

    proptest! {
        #[test]
        fn a_head_that_was_filled_has_each_header_once(
            there in prop::collection::vec(0..NAMES.len(), 0..4),
            values in prop::collection::vec((0..NAMES.len(), "[a-z]{1,4}"), 0..6),
        ) {
            let of = |(name, value): &(usize, String)| (NAMES[*name].clone(), HeaderValue::from_str(value).expect("text"));
            let mut filled: HeaderMap =
                there.iter().map(|name| (NAMES[*name].clone(), HeaderValue::from_static(""))).collect();
            let mut inserted = filled.clone();
            fill(&mut filled, values.iter().map(of));
            for (name, value) in values.iter().map(of) {
                inserted.insert(name, value);
            }
            prop_assert_eq!(filled, inserted);
        }
    }
}
