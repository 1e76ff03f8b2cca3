//! A response's head: headers begun as a copy cost a fraction of as many put in by their names, if those who write them know it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header that carries a request's id, both ways.
pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// What every response has beside its limits, in this order.
pub(crate) static OF_EVERY: [HeaderName; 3] =
    [REQUEST_ID_HEADER, header::X_CONTENT_TYPE_OPTIONS, header::VARY];

/// Puts headers in. Those that are there already, in the same order, need not be looked for.
pub(crate) fn fill<const N: usize>(
    headers: &mut HeaderMap,
    names: &[HeaderName; N],
    mut values: [HeaderValue; N],
) {
    let mut placed = 0;
    // Where none has two values, to replace one is to replace it whole.
    if headers.len() == headers.keys_len() {
        for (name, there) in headers.iter_mut() {
            match names.get(placed).zip(values.get_mut(placed)) {
                Some((next, value)) if next == name => std::mem::swap(there, value),
                Some(_) => continue,
                None => break,
            }
            placed += 1;
        }
    }
    for (place, value) in values.into_iter().enumerate() {
        if place >= placed {
            headers.insert(&names[place], value);
        }
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
            values in prop::array::uniform5((0..NAMES.len(), "[a-z]{1,4}")),
        ) {
            let names = values.each_ref().map(|(name, _)| NAMES[*name].clone());
            let values = values.each_ref().map(|(_, value)| HeaderValue::from_str(value).expect("text"));
            let mut filled: HeaderMap =
                there.iter().map(|name| (NAMES[*name].clone(), HeaderValue::from_static(""))).collect();
            let mut inserted = filled.clone();
            fill(&mut filled, &names, values.clone());
            for (name, value) in names.into_iter().zip(values) {
                inserted.insert(name, value);
            }
            prop_assert_eq!(filled, inserted);
        }
    }
}
