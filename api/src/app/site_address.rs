//! Public address of the service.
//!
//! Invariants: `PUBLIC_URL` has precedence over the headers of a request. `X-Forwarded-Proto` is used only from a
//! trusted proxy.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, header};

/// Public address of the service for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteAddress {
    /// Scheme, host and port of the service. They appear in the command examples of the pages.
    pub(crate) origin: String,
    /// True if the client reaches the service over HTTPS. If `PUBLIC_URL` is set, its scheme decides this. Otherwise,
    /// the `X-Forwarded-Proto` header of a trusted proxy decides it.
    pub(crate) is_secure: bool,
    /// True if the browser and the service run on the same machine, and the connection does not use HTTPS.
    pub(crate) is_local: bool,
}

/// Public address of the service, set by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    host: String,
    is_secure: bool,
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches('/');
        let secure = text.strip_prefix("https://").map(|host| (host, true));
        let found = secure.or_else(|| text.strip_prefix("http://").map(|host| (host, false)));
        let (host, is_secure) = found
            .filter(|(host, _)| is_plain(host))
            .ok_or("must be http:// or https:// with a host, for example https://data.example.com")?;
        Ok(Self { host: host.to_owned(), is_secure })
    }
}

impl PublicUrl {
    /// Scheme, host and port of the public address.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
    }
}

impl SiteAddress {
    /// Derives the public address from a request. `is_proxied` is true if the request came from a trusted proxy.
    pub(crate) fn from_request(
        headers: &HeaderMap,
        client: IpAddr,
        is_proxied: bool,
        public: Option<&PublicUrl>,
    ) -> Self {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let asked = host.filter(|host| is_plain(host)).unwrap_or("localhost");
        let is_secure = is_https(headers, is_proxied, public);
        // If `PUBLIC_URL` is set, its host decides whether browser and service run on one machine. The client address
        // cannot decide this: in a container it is never loopback, even for a local browser.
        let is_near = public.map_or(client.is_loopback(), |public| is_loopback(&public.host));
        let is_local = !is_secure && is_near && is_loopback(asked);
        let site = PublicUrl { host: public.map_or(asked, |public| &public.host).to_owned(), is_secure };
        Self { origin: site.origin(), is_secure, is_local }
    }
}

/// True if the client reaches the service over HTTPS.
pub(crate) fn is_https(headers: &HeaderMap, is_proxied: bool, public: Option<&PublicUrl>) -> bool {
    let is_forwarded_https = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    public.map_or(is_proxied && is_forwarded_https, |public| public.is_secure)
}

/// True if a host is safe in a shell command. Readers copy commands with the host from the pages.
fn is_plain(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b))
}

fn is_loopback(host: &str) -> bool {
    if let Ok(socket) = host.parse::<SocketAddr>() {
        return socket.ip().is_loopback();
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        let site = |client: &str, pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            SiteAddress::from_request(&headers, client.parse().unwrap(), true, None)
        };
        for host in ["127.0.0.1:8080", "localhost:8080", "localhost", "[::1]:8080", "127.0.0.1"] {
            assert!(site("127.0.0.1", &[("host", host)]).is_local, "{host}");
        }
        assert!(!site("10.0.0.1", &[("host", "localhost")]).is_local);
        assert!(!site("127.0.0.1", &[("host", "data.example.com")]).is_local);
        let proxied = site("127.0.0.1", &[("host", "localhost"), ("x-forwarded-proto", "https")]);
        assert!(!proxied.is_local && proxied.is_secure);
        assert_eq!(site("127.0.0.1", &[("host", "a'; rm -rf ~")]).origin, "http://localhost");
    }

    #[test]
    fn the_operator_is_believed_and_of_others_only_a_trusted_proxy() {
        let site = |host: &str, scheme: &str, is_proxied: bool, public: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            headers.insert("x-forwarded-proto", scheme.parse().unwrap());
            let public: Option<PublicUrl> = public.map(|url| url.parse().unwrap());
            let site = SiteAddress::from_request(
                &headers,
                "172.18.0.1".parse().unwrap(),
                is_proxied,
                public.as_ref(),
            );
            (site.origin, site.is_secure, site.is_local)
        };
        let (far, near) = ("data.example.com", "127.0.0.1:8080");
        let of = |origin: &str, is_secure, is_local| (origin.to_owned(), is_secure, is_local);
        assert_eq!(site(far, "https", false, None), of("http://data.example.com", false, false));
        assert_eq!(site(far, "https", true, None), of("https://data.example.com", true, false));
        let secure = Some("https://data.example.com/");
        assert_eq!(site(near, "http", false, secure), of("https://data.example.com", true, false));
        let local = Some("http://127.0.0.1:8080");
        assert_eq!(site(near, "https", true, local), of("http://127.0.0.1:8080", false, true));
        // A request for another host is not local, even if `PUBLIC_URL` names this machine.
        assert!(!site(far, "https", true, local).2);
        for bad in ["data.example.com", "ftp://data.example.com", "https://", "https://a/b", "https://a b"] {
            assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
        }
    }
}
