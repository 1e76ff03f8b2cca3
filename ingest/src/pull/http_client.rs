//! HTTP client of a connector.
//!
//! Invariants: the time, size and speed of a response are limited. Only the vendor's hosts receive the credential.
//! Hosts that the manifest does not name must have a public address.
//!
//! Check that an address belongs to the public internet. A vendor's response must not direct a pull to the operator's
//! own network.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use market::event::Bookmark;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
    RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use super::args::PullArgs;
use super::batch::PageFile;
use super::connector::Connector;
use super::credential::Credential;
use crate::format::{is_throttle_notice, parse_service_message};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Responses up to this size, in bytes, are checked for an error message. A larger response is always data.
const MAX_NOTICE_BYTES: u64 = 64 * 1024;
/// Maximum length of an `ETag` that is stored in the log, in bytes. A longer one is ignored, as if it were missing.
const MAX_VALIDATOR_BYTES: usize = 256;
/// Minimum average speed of a response, in bytes per second. A slower response fails, but not before
/// [`PullArgs::timeout`] has passed.
const MIN_BYTES_PER_SECOND: u64 = 1024;

/// HTTP client of a connector.
pub(super) struct HttpClient<'a> {
    pub args: &'a PullArgs,
    pub connector: &'a Connector,
    credential: &'a Credential,
    client: Client,
    /// Client for hosts that the manifest does not name. It connects to public addresses only.
    public_client: Client,
}

/// Result of a request to the vendor.
#[derive(Debug)]
pub(super) enum VendorResponse {
    /// The vendor sent data, which are now in the target file. `etag` and `last_modified` are the response headers
    /// `ETag` and `Last-Modified`, for a conditional request next time. A missing header is `None`.
    Data { etag: Option<String>, last_modified: Option<String> },
    /// 304 Not Modified: the data are the same as at the previous request.
    NotModified,
    /// The vendor has no data: 404 Not Found, 410 Gone or 204 No Content.
    NotFound,
    /// Redirect to another address.
    Redirect(Url),
}

/// Errors of one HTTP call.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// Transient error: too many requests. `wait` is the pause that the vendor asks for; `None` if it asks for no
    /// pause.
    #[error("too many requests: {message}")]
    Throttled { message: String, wait: Option<Duration> },
    #[error("{0}")]
    Transient(String),
    /// Permanent error: the vendor refuses the credential, so every call of this connector fails.
    #[error("the vendor refuses the credential: {0}")]
    Unauthorised(String),
    /// Permanent error of this call. A retry does not help, but other calls may succeed.
    #[error("{0}")]
    Failed(String),
}

impl<'a> HttpClient<'a> {
    pub(super) fn new(
        args: &'a PullArgs,
        connector: &'a Connector,
        credential: &'a Credential,
    ) -> Result<Self, String> {
        let builder = || {
            Client::builder()
                .user_agent(concat!("ingest/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(args.timeout)
                .timeout(RESPONSE_TIMEOUT)
                // Redirects are followed outside of the client, because a query or a header may contain a credential.
                .redirect(redirect::Policy::none())
        };
        let client = builder().build().map_err(|error| error.to_string())?;
        let public_client = builder().dns_resolver(Arc::new(PublicResolver)).build();
        let public_client = public_client.map_err(|error| error.to_string())?;
        Ok(Self { args, connector, credential, client, public_client })
    }

    /// Sends a request, and writes the data of the response to a file.
    pub(super) async fn fetch_to_file(
        &self,
        url: &Url,
        bookmark: Option<&Bookmark>,
        target: &PageFile,
    ) -> Result<VendorResponse, CallError> {
        let (mut request_url, mut headers) = (url.clone(), HeaderMap::new());
        if let Some(bookmark) = bookmark {
            insert_validator(&mut headers, IF_NONE_MATCH, bookmark.etag.as_deref());
            // If-Modified-Since is sent only without an ETag. Its time has a precision of only one second, and some
            // servers prefer it to the ETag.
            let moment = bookmark.last_modified.as_deref().filter(|_| bookmark.etag.is_none());
            insert_validator(&mut headers, IF_MODIFIED_SINCE, moment);
        }
        if self.connector.may_receive_credential(url) {
            self.credential.add_to_request(&mut request_url, &mut headers).map_err(CallError::Failed)?;
        } else if self.credential.appears_in(url.as_str().as_bytes()) {
            let message = "cannot follow a redirect with the credential in its URL: its host is not trusted; add it to hosts";
            return Err(CallError::Failed(message.to_owned()));
        }
        let client = if self.connector.is_own_host(url) {
            &self.client
        } else if leads_to_private_address(url).await {
            let host = url.host_str().unwrap_or_default();
            return Err(CallError::Failed(format!(
                "cannot follow the answer to {host}: its address is private or local; add it to hosts if it is the vendor's"
            )));
        } else {
            &self.public_client
        };
        let sent = client.get(request_url).headers(headers).send().await;
        let response = sent.map_err(|error| CallError::Transient(self.describe_error(error)))?;
        match response.status() {
            StatusCode::OK => self.write_body(response, target).await,
            StatusCode::NO_CONTENT | StatusCode::NOT_FOUND | StatusCode::GONE => Ok(VendorResponse::NotFound),
            StatusCode::NOT_MODIFIED => Ok(VendorResponse::NotModified),
            status if status.is_redirection() => redirect_target(url, &response),
            status => Err(self.read_error(status, response).await),
        }
    }

    async fn write_body(
        &self,
        mut response: Response,
        target: &PageFile,
    ) -> Result<VendorResponse, CallError> {
        let validator = |name| header(&response, name).filter(|value| value.len() <= MAX_VALIDATOR_BYTES);
        let [etag, last_modified] = [ETAG, LAST_MODIFIED].map(|name| validator(name).map(str::to_owned));
        let too_large = || {
            CallError::Failed(format!(
                "the answer is larger than {} bytes: raise --max-bytes",
                self.args.max_bytes
            ))
        };
        if response.content_length().is_some_and(|length| length > self.args.max_bytes) {
            return Err(too_large());
        }
        let cannot_store =
            |error: std::io::Error| CallError::Failed(format!("cannot store the answer: {error}"));
        let mut file = target.create().map_err(cannot_store)?;
        let (mut bytes, begun) = (0, Instant::now());
        while let Some(chunk) =
            response.chunk().await.map_err(|error| CallError::Transient(self.describe_error(error)))?
        {
            bytes += chunk.len() as u64;
            if bytes > self.args.max_bytes {
                return Err(too_large());
            }
            let elapsed = begun.elapsed();
            if elapsed > self.args.timeout && bytes < elapsed.as_secs() * MIN_BYTES_PER_SECOND {
                return Err(CallError::Transient(format!(
                    "the answer is too slow: {bytes} bytes in {} s, at least {MIN_BYTES_PER_SECOND} bytes per second are expected",
                    elapsed.as_secs()
                )));
            }
            file.write_all(&chunk).map_err(cannot_store)?;
        }
        self.credential.overwrite_secrets(&file).map_err(cannot_store)?;
        file.sync_all().map_err(cannot_store)?;
        self.find_notice(&file, bytes)
            .map_err(cannot_store)?
            .map_or(Ok(VendorResponse::Data { etag, last_modified }), Err)
    }

    /// Error in a response with the status 200. Some vendors send an error message, such as a rate limit notice, in
    /// place of data. Returns `None` if the response has no error message. Only small responses are checked.
    fn find_notice(&self, file: &File, bytes: u64) -> std::io::Result<Option<CallError>> {
        if bytes > MAX_NOTICE_BYTES {
            return Ok(None);
        }
        let mut content = vec![0; usize::try_from(bytes).unwrap_or_default()];
        file.read_exact_at(&mut content, 0)?;
        let text = self.credential.redact(&String::from_utf8_lossy(&content));
        Ok(parse_service_message(&text).map(|notice| match notice.throttled {
            true => CallError::Throttled { message: notice.message, wait: None },
            false => CallError::Failed(notice.message),
        }))
    }

    async fn read_error(&self, status: StatusCode, mut response: Response) -> CallError {
        let wait = header(&response, RETRY_AFTER).and_then(|value| retry_after(value, Utc::now()));
        // The first chunk of the body is enough for an error message.
        let body = response.chunk().await.ok().flatten().unwrap_or_default();
        // Redaction precedes truncation, because half a secret would not be recognized.
        let body = self.credential.redact(&String::from_utf8_lossy(&body));
        let body: String = body.trim().chars().take(300).collect();
        let message = format!("{status} {body}");
        match status {
            StatusCode::UNAUTHORIZED => CallError::Unauthorised(message),
            StatusCode::TOO_MANY_REQUESTS => CallError::Throttled { message, wait },
            StatusCode::SERVICE_UNAVAILABLE if wait.is_some() => CallError::Throttled { message, wait },
            // Some vendors report an exhausted daily quota with the status code 402 or 403.
            StatusCode::PAYMENT_REQUIRED | StatusCode::FORBIDDEN if is_throttle_notice(&message) => {
                CallError::Throttled { message, wait }
            }
            status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
                CallError::Transient(message)
            }
            _ => CallError::Failed(message),
        }
    }

    /// Text of an error with its causes, but without its URL, because the URL may contain the credential.
    fn describe_error(&self, error: reqwest::Error) -> String {
        self.credential.redact(&format!("{:#}", anyhow::Error::new(error.without_url())))
    }
}

fn insert_validator(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

fn header(response: &Response, name: HeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}

/// Parses a `Retry-After` header, which contains seconds or an HTTP date. Returns the remaining delay; `None` if the
/// value is invalid.
fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = DateTime::parse_from_rfc2822(value.trim()).ok()?;
    Some((until.to_utc() - now).to_std().unwrap_or_default())
}

/// Target of a redirect. A redirect from https to http is refused.
fn redirect_target(from: &Url, response: &Response) -> Result<VendorResponse, CallError> {
    let to = header(response, LOCATION).and_then(|location| from.join(location).ok());
    match to {
        Some(to) if to.scheme() == "https" || to.scheme() == "http" && from.scheme() == "http" => {
            Ok(VendorResponse::Redirect(to))
        }
        _ => Err(CallError::Failed(format!(
            "cannot follow the redirect ({}): it has no valid or safe target",
            response.status()
        ))),
    }
}

/// DNS resolver that returns only public addresses.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("its address is not public".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// True if a URL has no host, or if any address of its host is not public. False if the host name cannot be resolved.
pub(super) async fn leads_to_private_address(url: &Url) -> bool {
    match url.host_str().map(|host| host.trim_start_matches('[').trim_end_matches(']')) {
        None => true,
        Some(host) => match host.parse() {
            Ok(address) => !is_public(address),
            Err(_) => tokio::net::lookup_host((host, 0))
                .await
                .is_ok_and(|mut found| found.any(|address| !is_public(address.ip()))),
        },
    }
}

/// True for addresses of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // Special addresses, in the order of the patterns: "this network", carrier-grade NAT, IETF protocol assignments,
    // benchmarks, and multicast together with reserved addresses.
    let special = matches!(
        address.octets(),
        [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] | [224..=255, ..]
    );
    !(special || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let embedded =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (first, second, third, fourth, fifth, sixth) {
        // IPv6 addresses that contain an IPv4 address: mapped or compatible, NAT64, and 6to4. The IPv4 address decides.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => embedded(seventh, eighth),
        (0x2002, ..) => embedded(second, third),
        // Global unicast addresses are public, except Teredo, which also contains an IPv4 address.
        (0x2001, 0, ..) => false,
        (0x2000..=0x3fff, ..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_own_networks_are_not_public() {
        for address in
            ["8.8.8.8", "172.15.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::808:808"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:0:1::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_vendor_says_when_in_seconds_or_as_a_date() {
        let now = "2015-10-21T07:27:30Z".parse().unwrap();
        assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:26:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }
}
