//! Credentials of connectors, such as API keys, from environment variables. They are sent only to the vendor, and never
//! printed.
//!
//! Invariant: no secret leaves this file, except in a request to the vendor.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Text that replaces a secret in printed messages.
const REDACTED: &str = "***";
/// Minimum length of the secrets that are overwritten in downloaded files, in bytes. A shorter secret is not
/// overwritten, because the same bytes could occur in the data by chance.
const MIN_MASKED_LENGTH: usize = 6;

/// Authentication method of a vendor.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum CredentialSpec {
    /// HTTP header, such as `Authorization: Bearer …`.
    Header {
        variable: String,
        header: String,
        #[serde(default)]
        prefix: String,
    },
    /// Query parameter, such as `?apikey=…`.
    Query { variable: String, parameter: String },
    /// Signature of the request (AWS Signature Version 4), for object stores.
    Aws { key_id: String, secret: String, region: String },
}

/// Credential of a connector, with the secrets from the environment variables.
pub(super) struct Credential {
    /// Method; `None` for a vendor without authentication.
    method: Option<CredentialSpec>,
    /// Secrets of the method: the secret itself, and for [`CredentialSpec::Aws`] the key id before it.
    secrets: Vec<SecretString>,
}

/// Reads an environment variable. Fails if the variable is empty or not set.
fn read_variable(name: &str) -> Result<SecretString, String> {
    #[expect(clippy::disallowed_methods, reason = "the manifest names the variables of its credentials")]
    let value = std::env::var(name).unwrap_or_default();
    let value = value.trim();
    if value.is_empty() {
        Err(format!("{name} is not set: set this variable to the credential"))
    } else {
        Ok(value.into())
    }
}

impl Credential {
    pub(super) fn read_secrets(method: Option<&CredentialSpec>) -> Result<Self, String> {
        let variables: &[&String] = match method {
            None => &[],
            Some(CredentialSpec::Header { variable, .. } | CredentialSpec::Query { variable, .. }) => {
                &[variable]
            }
            Some(CredentialSpec::Aws { key_id, secret, .. }) => &[key_id, secret],
        };
        let secrets = variables.iter().map(|name| read_variable(name)).collect::<Result<_, _>>()?;
        if let Some(CredentialSpec::Header { header, .. }) = method {
            header_name(header)?;
        }
        Ok(Self { method: method.cloned(), secrets })
    }

    /// Adds the credential to a request for `url`.
    pub(super) fn add_to_request(&self, url: &mut Url, headers: &mut HeaderMap) -> Result<(), String> {
        let secrets: Vec<&str> = self.secrets().collect();
        match (&self.method, secrets.as_slice()) {
            (Some(CredentialSpec::Query { parameter, .. }), [secret]) => {
                *url = set_parameter(url, parameter, secret);
            }
            (Some(CredentialSpec::Header { header, prefix, .. }), [secret]) => {
                let mut value = header_value(&format!("{prefix}{secret}"))?;
                value.set_sensitive(true);
                headers.insert(header_name(header)?, value);
            }
            (Some(CredentialSpec::Aws { region, .. }), [key_id, secret]) => {
                header_value(&format!("{key_id}{region}"))?;
                let [key_id, secret_key] = [key_id, secret].map(|text| (*text).to_owned());
                let key = AwsCredential { key_id, secret_key, token: None };
                sign_request(&key, region, url, headers)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces every secret in a text by `***`.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets().fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
    }

    /// Overwrites the secrets in a file with `*`, byte by byte. The positions of all other bytes do not change.
    pub(super) fn overwrite_secrets(&self, file: &File) -> io::Result<()> {
        const PIECE: usize = 1 << 20;
        // Short secrets are not overwritten, because the same bytes could occur in data by chance.
        let secrets: Vec<&[u8]> =
            self.secrets().map(str::as_bytes).filter(|secret| secret.len() >= MIN_MASKED_LENGTH).collect();
        let Some(longest) = secrets.iter().map(|secret| secret.len()).max() else { return Ok(()) };
        let (mut buffer, mut carried, mut at) = (vec![0; PIECE + longest], 0, 0);
        loop {
            let read = file.read_at(&mut buffer[carried..], at + carried as u64)?;
            if read == 0 {
                return Ok(());
            }
            let piece = &buffer[..carried + read];
            for secret in &secrets {
                for hit in memchr::memmem::find_iter(piece, secret) {
                    file.write_all_at(&vec![b'*'; secret.len()], at + hit as u64)?;
                }
            }
            // A secret may begin in this piece and end in the next piece, so the pieces overlap.
            let end = piece.len();
            let overlap = end.min(longest - 1);
            buffer.copy_within(end - overlap..end, 0);
            (carried, at) = (overlap, at + (end - overlap) as u64);
        }
    }

    /// True if the bytes contain a secret.
    pub(super) fn appears_in(&self, bytes: &[u8]) -> bool {
        self.secrets().any(|secret| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(ExposeSecret::expose_secret)
    }
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    text.parse().map_err(|_| format!("{text:?} is not a header name"))
}

fn header_value(text: &str) -> Result<HeaderValue, String> {
    let invalid = |_| "the credential has characters that are invalid in a header".to_owned();
    HeaderValue::from_str(text).map_err(invalid)
}

/// Sets a query parameter. An existing parameter of the same name is replaced.
pub(super) fn set_parameter(url: &Url, parameter: &str, value: &str) -> Url {
    let mut set = url.clone();
    let others = url.query_pairs().filter(|(name, _)| name != parameter);
    set.query_pairs_mut().clear().extend_pairs(others).append_pair(parameter, value);
    set
}

/// Signs a GET request to an object store by adding the headers of the signature. The signature also covers the existing
/// headers.
fn sign_request(key: &AwsCredential, region: &str, url: &Url, headers: &mut HeaderMap) -> Result<(), String> {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = url.as_str().parse().map_err(|_| format!("cannot sign the URL {url}"))?;
    *request.headers_mut() = std::mem::take(headers);
    let signed = AwsAuthorizer::new(key, "s3", region).try_authorize(&mut request, None);
    signed.map_err(|error| format!("cannot sign a request: {error}"))?;
    *headers = std::mem::take(request.headers_mut());
    headers.get_mut(AUTHORIZATION).into_iter().for_each(|value| value.set_sensitive(true));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(secret: &str) -> Credential {
        let (variable, parameter) = (String::new(), "apikey".to_owned());
        let method = Some(CredentialSpec::Query { variable, parameter });
        Credential { method, secrets: vec![secret.into()] }
    }

    #[test]
    fn a_secret_is_sent_and_not_told() {
        let credential = query("s3cret");
        let (mut url, mut headers) = (Url::parse("https://example.com/q?a=1").unwrap(), HeaderMap::new());
        credential.add_to_request(&mut url, &mut headers).unwrap();
        assert_eq!(url.query(), Some("a=1&apikey=s3cret"));
        let mut named = Url::parse("https://example.com/q?apikey=***&page=2").unwrap();
        credential.add_to_request(&mut named, &mut headers).unwrap();
        assert_eq!(named.query(), Some("page=2&apikey=s3cret"));
        assert_eq!(credential.redact("your key s3cret has …"), "your key *** has …");
        assert!(credential.appears_in(b"xs3cretx") && !credential.appears_in(b"s3cre"));
        assert!(Credential::read_secrets(None).unwrap().redact("s3cret").contains("s3cret"));
    }

    #[test]
    fn a_secret_is_blanked_wherever_a_file_quotes_it() {
        let path = std::env::temp_dir().join(format!("ingest-blanked-{}", std::process::id()));
        let credential = query("s3cret-of-9");
        // Secrets at the beginning, across two pieces, and at the end.
        let filler = "1,".repeat((1 << 19) - 3);
        let text = format!("s3cret-of-9{filler}s3cret-of-9,2{filler}{filler}s3cret-of-9");
        std::fs::write(&path, &text).unwrap();
        credential.overwrite_secrets(&File::options().read(true).write(true).open(&path).unwrap()).unwrap();
        let blanked = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(blanked == text.replace("s3cret-of-9", "***********"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let spec =
            CredentialSpec::Query { variable: "NO_SUCH_VARIABLE_1".to_owned(), parameter: "k".to_owned() };
        assert!(
            Credential::read_secrets(Some(&spec)).is_err_and(|error| error.contains("NO_SUCH_VARIABLE_1"))
        );
    }

    #[test]
    fn a_signature_names_its_key_and_covers_the_headers() {
        let (key_id, secret, region) = (String::new(), String::new(), "us-east-1".to_owned());
        let method = Some(CredentialSpec::Aws { key_id, secret, region });
        let with = |key_id: &str| Credential {
            method: method.clone(),
            secrets: vec![key_id.into(), "wJalrXUtnFEMI".into()],
        };
        let mut url = Url::parse("https://examplebucket.s3.amazonaws.com/test.txt?prefix=J").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("if-none-match", HeaderValue::from_static("x"));
        with("AKIAIOSFODNN7EXAMPLE").add_to_request(&mut url, &mut headers).unwrap();
        let value = &headers["authorization"];
        let text = value.to_str().unwrap();
        assert!(text.starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/"), "{text}");
        assert!(text.contains("SignedHeaders=host;if-none-match;x-amz-"), "{text}");
        assert!(value.is_sensitive() && !text.contains("wJalrXUtnFEMI"));
        assert!(with("ä\n").add_to_request(&mut url, &mut headers).is_err());
    }
}
