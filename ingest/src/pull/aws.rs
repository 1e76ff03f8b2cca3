//! AWS Signature Version 4 of a GET request without a body, for S3 and compatible object stores.
//!
//! Source: "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference. The tests use its
//! examples.

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

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
