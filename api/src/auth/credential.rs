//! API keys: format, checksum, hash, and extraction from request headers.
//!
//! Invariants: a key with a wrong checksum is not looked up. Only the hash of a key is stored.

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, HeaderName, Uri, header};
use rand::RngExt;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// Prefix of every key. Secret scanners recognize leaked keys by this prefix.
const PREFIX: &str = "dds_live_";
/// Path prefix of a one-time link. The rest of the path is the secret.
const LINK: &str = "/link/";
const RANDOM: usize = 30;
const CHECKSUM: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// New key. The key is shown once, and only its hash is stored.
#[derive(Debug)]
pub(crate) struct GeneratedKey {
    pub(crate) text: SecretString,
    /// SHA-256 of the key.
    pub(crate) hash: [u8; 32],
    /// Last four characters of the key, for display.
    pub(crate) last_four: String,
}

impl GeneratedKey {
    /// Generates a key with 30 random base62 characters (178 bits).
    pub(crate) fn generate() -> Self {
        let mut generator = rand::rng();
        let random: String =
            (0..RANDOM).map(|_| char::from(BASE62[generator.random_range(0..BASE62.len())])).collect();
        let check: String = checksum(&random).map(char::from).iter().collect();
        let text = format!("{PREFIX}{random}{check}");
        let last_four = text.chars().skip(text.len() - 4).collect();
        Self { hash: hash(text.as_bytes()), last_four, text: text.into() }
    }
}

/// Well-formed key that a request contains, as its SHA-256. The key may still be unknown or expired.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PresentedKey(pub(crate) [u8; 32]);

impl PresentedKey {
    /// Parses an API key and verifies the checksum; `None` for any text that is not a well-formed key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let formed = rest.len() == RANDOM + CHECKSUM && rest.bytes().all(|b| b.is_ascii_alphanumeric());
        let (random, check) = if formed { rest.split_at(RANDOM) } else { return None };
        if checksum(random) != check.as_bytes() {
            return None;
        }
        Some(Self(hash(text.as_bytes())))
    }
}

impl fmt::Debug for PresentedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Presented(***)")
    }
}

/// Checksum of a key: the CRC32 of its random part, as base62 digits.
fn checksum(random: &str) -> [u8; CHECKSUM] {
    let mut rest = crc32fast::hash(random.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// True if the query string contains a key, or a parameter in which other services expect one.
pub(crate) fn has_key_in_query(uri: &Uri) -> bool {
    uri.query().is_some_and(contains_key)
}

/// Reads the API key in `Authorization` or `X-API-Key`. Returns `None` for a missing, malformed or ambiguous key, or if
/// the query string contains a key.
pub(crate) fn read_key(headers: &HeaderMap, uri: &Uri) -> Option<PresentedKey> {
    if has_key_in_query(uri) {
        return None;
    }
    let bearer = single_header_value(headers, &header::AUTHORIZATION)?;
    let plain = single_header_value(headers, &API_KEY)?;
    let bearer = match bearer {
        Some(value) => Some(bearer_token(value)?),
        None => None,
    };
    match (bearer, plain) {
        (Some(bearer), Some(plain)) if bearer != plain => None,
        (Some(key), _) | (None, Some(key)) => PresentedKey::parse(key),
        (None, None) => None,
    }
}

/// Value of a header that may occur at most once. Returns `Some(None)` if the header is absent, and `None` if the
/// header is repeated or not text.
fn single_header_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_at_checked("bearer".len())?;
    let rest = rest.strip_prefix(' ').filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
    Some(rest.trim_start_matches(' '))
}

fn contains_key(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes()).any(|(given, value)| {
        let name: String =
            given.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        value.contains(PREFIX)
            || given.contains(PREFIX)
            || matches!(
                name.as_str(),
                "apikey" | "apitoken" | "xapikey" | "accesstoken" | "token" | "authorization"
            )
    })
}

/// Replaces an API key, or the secret of a one-time link, by `***`. Percent-encoded secrets are recognized too. Any
/// text that follows the secret is also removed.
pub(crate) fn redact_secrets(text: &str) -> Cow<'_, str> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    if let Some(start) = decoded.find(LINK) {
        return format!("{}{LINK}***", &decoded[..start]).into();
    }
    match decoded.find(PREFIX) {
        Some(start) => format!("{}dds_***", &decoded[..start]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| -> Option<_> {
            Some((name.parse::<HeaderName>().ok()?, value.parse().ok()?))
        };
        pairs.iter().filter_map(pair).collect()
    }

    fn accepted(pairs: &[(&str, &str)], uri: &str) -> bool {
        read_key(&headers(pairs), &uri.parse().expect("a path")).is_some()
    }

    #[test]
    fn a_key_comes_in_either_header() {
        let (one, two) = (GeneratedKey::generate(), GeneratedKey::generate());
        let (one, two) = (one.text.expose_secret(), two.text.expose_secret());
        let bearer = |key: &str| format!("Bearer {key}");
        assert!(accepted(&[("authorization", &bearer(one))], "/v1/stocks"));
        assert!(accepted(&[("authorization", &format!("bEARER   {one}"))], "/v1/stocks"));
        assert!(accepted(&[("x-api-key", one)], "/v1/stocks"));
        assert!(accepted(&[("x-api-key", one), ("authorization", &bearer(one))], "/v1/stocks"));
        for refused in [
            vec![],
            vec![("x-api-key", two), ("authorization", bearer(one).as_str())],
            vec![("x-api-key", one), ("x-api-key", one)],
            vec![("authorization", bearer(one).as_str()), ("authorization", bearer(one).as_str())],
            vec![("authorization", &format!("Basic {one}"))],
            vec![("authorization", one)],
            vec![("authorization", "Bearer ")],
            vec![("authorization", "Bearer")],
            vec![("x-api-key", "")],
            vec![("x-api-key", &one.repeat(100))],
            vec![("authorization", "Basic x"), ("x-api-key", one)],
        ] {
            assert!(!accepted(&refused, "/v1/stocks"), "{refused:?}");
        }
        assert!(!accepted(&[("x-api-key", one)], &format!("/v1/stocks?key={one}")));
        assert!(!accepted(&[("x-api-key", one)], "/v1/stocks?api_key=x"));
        assert!(!accepted(&[("x-api-key", one)], "/v1/stocks?apiToken=x"));
        assert!(!accepted(&[("x-api-key", one)], &format!("/v1/stocks?{one}")));
        assert!(!accepted(&[("x-api-key", one)], &format!("/v1/stocks?a={}", one.replace('_', "%5f"))));
    }

    #[test]
    fn a_wrong_checksum_is_no_key() {
        let secret = GeneratedKey::generate();
        let text = secret.text.expose_secret();
        assert_eq!(text.len(), 45);
        assert_eq!(PresentedKey::parse(text).map(|key| key.0), Some(secret.hash));
        let other = if text.ends_with('0') { "1" } else { "0" };
        assert!(PresentedKey::parse(&format!("{}{other}", &text[..44])).is_none());
    }

    #[test]
    fn secrets_do_not_print() {
        let secret = GeneratedKey::generate();
        let text = secret.text.expose_secret();
        let presented = PresentedKey::parse(text).expect("a key");
        assert!(!format!("{secret:?} {presented:?}").contains(&text[PREFIX.len()..PREFIX.len() + 4]));
        assert_eq!(redact_secrets("/v1/dds_live_abc"), "/v1/dds_***");
        assert_eq!(redact_secrets("/v1/dds%5flive%5Fabc"), "/v1/dds_***");
        assert_eq!(redact_secrets("/v1/sectors/a%20b"), "/v1/sectors/a%20b");
        assert_eq!(redact_secrets("/link/0123abc"), "/link/***");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,80}") {
            prop_assert!(PresentedKey::parse(&text).is_none());
        }
    }
}
