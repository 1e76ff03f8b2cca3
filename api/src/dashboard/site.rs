//! Where a browser finds this service: its address, and whether that is this machine's own.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, header};

/// The service's address as one request used it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// Scheme, host and port, for calls to copy.
    pub(crate) origin: String,
    /// Whether it was reached over HTTPS, as far as the request tells.
    pub(crate) is_secure: bool,
    /// Whether browser and service are on one machine, without HTTPS and without a proxy between them.
    pub(crate) is_local: bool,
}

impl Site {
    pub(crate) fn of(headers: &HeaderMap, client: IpAddr) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST.as_str()).filter(|host| is_plain(host)).unwrap_or("localhost");
        let is_secure = text("x-forwarded-proto") == Some("https");
        let is_local = !is_secure && client.is_loopback() && is_loopback(host);
        let scheme = if is_secure { "https" } else { "http" };
        Self { origin: format!("{scheme}://{host}"), is_secure, is_local }
    }
}

/// Whether a host can stand in a command that people copy.
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
            Site::of(&headers, client.parse().unwrap())
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
}
