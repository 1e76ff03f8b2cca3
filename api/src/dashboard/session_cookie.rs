//! Session cookie, device cookie, and the CSRF token of forms.
//!
//! Invariants: scripts cannot read the cookies. Every form gets a new CSRF token, against the BREACH attack.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Names and lifetime of a cookie that contains a secret.
#[derive(Debug)]
pub(crate) struct SecretCookie {
    /// Name over HTTPS. With its prefix `__Host-`, browsers accept the cookie only from this host and for the path `/`.
    secure_name: &'static str,
    /// Name on loopback addresses, where there is no HTTPS.
    local_name: &'static str,
    /// Lifetime in seconds; `None` if the cookie ends with the browser's session.
    lifetime: Option<u32>,
}

/// Cookie with the secret of a session.
pub(crate) const SESSION: SecretCookie =
    SecretCookie { secure_name: "__Host-session", local_name: "session", lifetime: None };
/// Cookie with a secret that identifies this browser at later sign-ins. It lasts 30 days, and the database also
/// remembers a device for 30 days.
pub(crate) const DEVICE: SecretCookie =
    SecretCookie { secure_name: "__Host-device", local_name: "device", lifetime: Some(30 * 24 * 60 * 60) };
const NONCE: usize = 16;

impl SecretCookie {
    fn name(&self, is_local: bool) -> &'static str {
        if is_local { self.local_name } else { self.secure_name }
    }

    /// Reads the secret from the request's cookies; `None` if the cookie is absent or malformed.
    pub(crate) fn read(&self, headers: &HeaderMap, is_local: bool) -> Option<String> {
        let name = self.name(is_local);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|(given, _)| *given == name)?.1;
        let is_formed = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_formed.then(|| value.to_owned())
    }

    /// `Set-Cookie` header that sets the cookie, or deletes it if `secret` is `None`.
    pub(crate) fn header(&self, secret: Option<&str>, is_local: bool) -> Option<HeaderValue> {
        let (name, secure) = (self.name(is_local), if is_local { "" } else { "; Secure" });
        let lifetime = if secret.is_some() { self.lifetime } else { Some(0) };
        let age = lifetime.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        let secret = secret.unwrap_or_default();
        let text = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
        let mut value: HeaderValue = text.parse().ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Creates a CSRF token for a form. `secret` is the secret of the session.
pub(crate) fn create_csrf_token(secret: &str) -> String {
    let nonce = format!("{:016x}", rand::random::<u64>());
    let proof = keyed(secret, &nonce).map(|mac| URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
    nonce + &proof.unwrap_or_default()
}

/// True if the token was created for the session with this secret.
pub(crate) fn is_csrf_token(secret: &str, token: &str) -> bool {
    let Some((nonce, proof)) = token.split_at_checked(NONCE) else { return false };
    let proof = URL_SAFE_NO_PAD.decode(proof).unwrap_or_default();
    keyed(secret, nonce).is_some_and(|mac| mac.verify_slice(&proof).is_ok())
}

fn keyed(secret: &str, nonce: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(b"form ");
    mac.update(nonce.as_bytes());
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_session() {
        let (one, two) = ("a".repeat(64), "b".repeat(64));
        let token = create_csrf_token(&one);
        assert!(is_csrf_token(&one, &token));
        assert!(!is_csrf_token(&two, &token));
        assert_ne!(token, super::create_csrf_token(&one));
        for bad in ["", "ä", "0123456789abcdef", &token[..token.len() - 2], &format!("{token}00")] {
            assert!(!is_csrf_token(&one, bad), "{bad}");
        }
    }

    #[test]
    fn cookies_are_bound_to_the_host() {
        let secret = "c".repeat(64);
        let far = SESSION.header(Some(&secret), false).unwrap();
        let text = far.to_str().unwrap();
        assert!(
            text.starts_with("__Host-session=") && text.ends_with("Path=/; HttpOnly; SameSite=Lax; Secure")
        );
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("other=1; __Host-session={secret}").parse().unwrap());
        assert_eq!(SESSION.read(&headers, false), Some(secret));
        assert_eq!(SESSION.read(&headers, true), None);
    }
}
