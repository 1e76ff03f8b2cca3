//! Client that checks the health of a running program. The `health` commands use this client. A container runs such a
//! command as its health check.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Time limit of the request.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Exit code for a healthy program.
pub const HEALTHY: u8 = 0;
/// Exit code for a program that reports a failure.
pub const UNHEALTHY: u8 = 1;
/// Exit code if the program does not respond.
pub const UNREACHABLE: u8 = 3;

/// Requests `path` from the program at `address`, prints the body of the response and returns the exit code.
pub async fn check_health(address: SocketAddr, path: &str) -> u8 {
    let address = loopback_of(address);
    let response = tokio::time::timeout(TIMEOUT, get(address, path)).await;
    match response.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok((status, body)) => {
            crate::outln!("{}", body.trim_end());
            if status == 200 { HEALTHY } else { UNHEALTHY }
        }
        Err(error) => {
            tracing::error!(%address, %error, "cannot reach the health endpoint");
            UNREACHABLE
        }
    }
}

/// Replaces an unspecified address (`0.0.0.0` or `::`) by the loopback address.
fn loopback_of(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Sends a GET request by HTTP/1.0. Returns the status and the body of the response.
async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut response).await?;
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP response");
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(invalid)?, body.to_owned()))
}
