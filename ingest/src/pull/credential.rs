//! Credentials of connectors, such as API keys, from environment variables. They are sent only to the vendor, and never
//! printed.
//!
//! Invariant: no secret leaves this file, except in a request to the vendor.
//!
//! AWS Signature Version 4 of a GET request without a body, for S3 and compatible object stores.
//!
//! Source: "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference. The tests use its
//! examples.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};

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
pub(super) enum Credential {
    Header { header: HeaderName, value: SecretString, secret: SecretString },
    Query { parameter: String, secret: SecretString },
    Aws { key_id: SecretString, secret: SecretString, region: String },
    None,
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
    pub(super) fn read_secrets(spec: Option<&CredentialSpec>) -> Result<Self, String> {
        Ok(match spec {
            None => Self::None,
            Some(CredentialSpec::Header { variable: name, header, prefix }) => {
                let secret = read_variable(name)?;
                let value = format!("{prefix}{}", secret.expose_secret()).into();
                let header = header.parse().map_err(|_| format!("{header:?} is not a header name"))?;
                Self::Header { header, value, secret }
            }
            Some(CredentialSpec::Query { variable: name, parameter }) => {
                Self::Query { parameter: parameter.clone(), secret: read_variable(name)? }
            }
            Some(CredentialSpec::Aws { key_id, secret, region }) => Self::Aws {
                key_id: read_variable(key_id)?,
                secret: read_variable(secret)?,
                region: region.clone(),
            },
        })
    }

    /// Adds the credential to a request for `url`.
    pub(super) fn add_to_request(&self, url: &mut Url, headers: &mut HeaderMap) -> Result<(), String> {
        match self {
            Self::None => {}
            Self::Query { parameter, secret } => {
                *url = set_parameter(url, parameter, secret.expose_secret());
            }
            Self::Header { header, value, .. } => {
                let mut value = HeaderValue::from_str(value.expose_secret())
                    .map_err(|_| "the credential has characters that are invalid in a header".to_owned())?;
                value.set_sensitive(true);
                headers.insert(header.clone(), value);
            }
            Self::Aws { key_id, secret, region } => {
                let signer =
                    RequestSigner { key_id: key_id.expose_secret(), secret: secret.expose_secret(), region };
                signer.sign(url, headers, chrono::Utc::now())?;
            }
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
        let (first, second) = match self {
            Self::Header { secret, .. } | Self::Query { secret, .. } => (Some(secret), None),
            Self::Aws { key_id, secret, .. } => (Some(secret), Some(key_id)),
            Self::None => (None, None),
        };
        first.into_iter().chain(second).map(ExposeSecret::expose_secret)
    }
}

/// Sets a query parameter. An existing parameter of the same name is replaced.
pub(super) fn set_parameter(url: &Url, parameter: &str, value: &str) -> Url {
    let mut set = url.clone();
    let others = url.query_pairs().filter(|(name, _)| name != parameter);
    set.query_pairs_mut().clear().extend_pairs(others).append_pair(parameter, value);
    set
}

/// SHA-256 of an empty body.
const NO_BODY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Signer of requests, with the access key of the user and the region of the object store.
pub(super) struct RequestSigner<'a> {
    pub key_id: &'a str,
    pub secret: &'a str,
    pub region: &'a str,
}

impl RequestSigner<'_> {
    /// Signs a request by adding the headers of the signature. The signature also covers the existing headers.
    pub(super) fn sign(&self, url: &Url, headers: &mut HeaderMap, now: DateTime<Utc>) -> Result<(), String> {
        let (time, day) = (now.format("%Y%m%dT%H%M%SZ").to_string(), now.format("%Y%m%d").to_string());
        let host = url.host_str().ok_or("cannot sign a URL without a host")?;
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        insert_header(headers, "x-amz-content-sha256", NO_BODY)?;
        insert_header(headers, "x-amz-date", &time)?;
        let mut signed = vec![("host".to_owned(), host)];
        for (name, value) in headers.iter() {
            let value = value.to_str().map_err(|error| error.to_string())?;
            signed.push((name.as_str().to_owned(), value.trim().to_owned()));
        }
        signed.sort();
        let names = signed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let request = format!("GET\n{}\n{}\n{lines}\n{names}\n{NO_BODY}", url.path(), canonical_query(url));
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request)));
        let mut key = hmac_sha256(format!("AWS4{}", self.secret).as_bytes(), &day)?;
        for part in [self.region, "s3", "aws4_request"] {
            key = hmac_sha256(&key, part)?;
        }
        let signature = hex(&hmac_sha256(&key, &text)?);
        let key_id = self.key_id;
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={key_id}/{scope},SignedHeaders={names},Signature={signature}"
        );
        insert_header(headers, "authorization", &authorization)
    }
}

/// Query of a URL in the form that is signed: parameters sorted by name, blanks as `%20`.
fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<&str> =
        url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    let whole = |pair: &&str| if pair.contains('=') { (*pair).to_owned() } else { format!("{pair}=") };
    pairs.iter().map(whole).collect::<Vec<_>>().join("&").replace('+', "%20")
}

fn insert_header(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), String> {
    let mut value = HeaderValue::from_str(value).map_err(|_| format!("cannot write {name} as a header"))?;
    value.set_sensitive(name == "authorization");
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

fn hmac_sha256(key: &[u8], text: &str) -> Result<Vec<u8>, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sent_and_not_told() {
        let credential = Credential::Query { parameter: "apikey".to_owned(), secret: "s3cret".into() };
        let (mut url, mut headers) = (Url::parse("https://example.com/q?a=1").unwrap(), HeaderMap::new());
        credential.add_to_request(&mut url, &mut headers).unwrap();
        assert_eq!(url.query(), Some("a=1&apikey=s3cret"));
        let mut named = Url::parse("https://example.com/q?apikey=***&page=2").unwrap();
        credential.add_to_request(&mut named, &mut headers).unwrap();
        assert_eq!(named.query(), Some("page=2&apikey=s3cret"));
        assert_eq!(credential.redact("your key s3cret has …"), "your key *** has …");
        assert!(credential.appears_in(b"xs3cretx") && !credential.appears_in(b"s3cre"));
        assert!(Credential::None.redact("s3cret").contains("s3cret"));
    }

    #[test]
    fn a_secret_is_blanked_wherever_a_file_quotes_it() {
        let path = std::env::temp_dir().join(format!("ingest-blanked-{}", std::process::id()));
        let credential = Credential::Query { parameter: "apikey".to_owned(), secret: "s3cret-of-9".into() };
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
}

#[cfg(test)]
mod aws_tests {
    use super::*;

    fn signature(url: &str, range: Option<&str>) -> String {
        let signer = RequestSigner {
            key_id: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let mut headers = HeaderMap::new();
        if let Some(range) = range {
            headers.insert("range", HeaderValue::from_str(range).unwrap());
        }
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        signer.sign(&Url::parse(url).unwrap(), &mut headers, now).unwrap();
        let authorization = headers["authorization"].to_str().unwrap();
        authorization.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    #[test]
    fn the_documented_examples_are_signed_as_documented() {
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/test.txt", Some("bytes=0-9")),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/?lifecycle", None),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", None),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }
}
