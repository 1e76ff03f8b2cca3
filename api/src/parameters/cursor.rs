//! Pagination cursors: signed, and bound to the request's filters. A cursor contains the sort keys of the page's last
//! row.
//!
//! Invariant: only cursors that the service issued are accepted.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Length of the truncated signature in bytes (128 bits).
const SIGNATURE: usize = 16;

/// Signer and verifier of cursors. With a shared secret, each instance of the service accepts the cursors of all
/// instances.
#[derive(Debug, Clone)]
pub(crate) struct CursorSigner {
    mac: Hmac<Sha256>,
    /// Previous secret during a rotation. It verifies cursors, but does not sign them.
    previous: Option<Hmac<Sha256>>,
}

impl CursorSigner {
    /// Creates a signer. Without `secret`, a random secret is used, and cursors are valid only in this process.
    pub(crate) fn new(
        secret: Option<&SecretString>,
        previous: Option<&SecretString>,
    ) -> Result<Self, hmac::digest::InvalidLength> {
        let random: [u8; 32] = rand::random();
        let key = secret.map_or(&random[..], |secret| secret.expose_secret().as_bytes());
        let previous = previous.map(|secret| Hmac::new_from_slice(secret.expose_secret().as_bytes()));
        Ok(Self { mac: Hmac::new_from_slice(key)?, previous: previous.transpose()? })
    }

    /// Creates a signer for the cursors of a response with this data version.
    pub(crate) fn of_response(&self, version: String) -> ResponseSigner<'_> {
        ResponseSigner { signer: self, version }
    }

    /// Encodes and signs a cursor. The next page begins after the row with the sort key values in `key`. The cursor is
    /// valid only for a request with the same `filters`.
    pub(crate) fn seal(&self, key: &[Option<String>], filters: &str) -> String {
        let payload = serde_json::json!(key).to_string().into_bytes();
        let mut bytes = sign(&self.mac, &payload, filters).to_vec();
        bytes.extend_from_slice(&payload);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Verifies a cursor and returns its key values. `None` if the cursor is invalid or belongs to other filters.
    pub(crate) fn open(&self, cursor: &str, filters: &str) -> Option<Vec<Option<String>>> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (signature, payload) = bytes.split_at_checked(SIGNATURE)?;
        let is_of = |mac| bool::from(sign(mac, payload, filters).ct_eq(signature));
        let genuine = is_of(&self.mac) || self.previous.as_ref().is_some_and(is_of);
        if genuine { serde_json::from_slice(payload).ok() } else { None }
    }
}

/// Signer of the cursors of one response. Each cursor contains the response's data version, so that the next page is
/// not read from older data.
#[derive(Debug)]
pub(crate) struct ResponseSigner<'a> {
    pub(super) signer: &'a CursorSigner,
    pub(super) version: String,
}

fn sign(mac: &Hmac<Sha256>, payload: &[u8], filters: &str) -> [u8; SIGNATURE] {
    let mut mac = mac.clone();
    mac.update(&(payload.len() as u64).to_le_bytes());
    mac.update(payload);
    mac.update(filters.as_bytes());
    let full = mac.finalize().into_bytes();
    let mut cut = [0; SIGNATURE];
    cut.copy_from_slice(&full[..SIGNATURE]);
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signer() -> CursorSigner {
        CursorSigner::new(Some(&"secret".into()), None).expect("any length is a key")
    }

    #[test]
    fn instances_share_cursors_and_strangers_do_not() {
        let cursor = signer().seal(&[Some("A".into())], "/v1/stocks?");
        assert_eq!(signer().open(&cursor, "/v1/stocks?"), Some(vec![Some("A".into())]));
        let stranger = CursorSigner::new(None, None).expect("a random key");
        assert_eq!(stranger.open(&cursor, "/v1/stocks?"), None);
    }

    #[test]
    fn a_changed_secret_opens_what_the_one_before_signed() {
        let changed =
            CursorSigner::new(Some(&"new".into()), Some(&"secret".into())).expect("any length is a key");
        let old = signer().seal(&[None], "f");
        assert_eq!(changed.open(&old, "f"), Some(vec![None]));
        let new = changed.seal(&[None], "f");
        assert_eq!((changed.open(&new, "f"), signer().open(&new, "f")), (Some(vec![None]), None));
    }

    proptest! {
        #[test]
        fn comes_back_as_it_left(key in proptest::collection::vec(proptest::option::of(".{0,20}"), 0..4), filters in ".{0,30}") {
            let cursor = signer().seal(&key, &filters);
            prop_assert_eq!(signer().open(&cursor, &filters), Some(key));
        }

        #[test]
        fn changed_ones_are_refused(key in ".{0,20}", position in 0usize..1000, bit in 0u8..6) {
            let cursor = signer().seal(&[Some(key)], "f");
            let mut bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap_or_default();
            let position = position % bytes.len();
            bytes[position] ^= 1 << bit;
            prop_assert_eq!(signer().open(&URL_SAFE_NO_PAD.encode(bytes), "f"), None);
            prop_assert_eq!(signer().open(&cursor, "g"), None);
        }

        #[test]
        fn any_text_is_survived(text in ".{0,600}") {
            prop_assert_eq!(signer().open(&text, "f"), None);
        }
    }
}
