//! Asking a running program of this machine how it is: what containers' health checks run.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// More than any answer about health.
const LONGEST: u64 = 64 * 1024;

/// Exit code of a program that is well.
pub const WELL: u8 = 0;
/// Exit code of one that says it is not.
pub const UNWELL: u8 = 1;
/// Exit code where nobody answers.
pub const SILENT: u8 = 3;

/// Prints what the program at an address says of its health, and gives the exit code for it.
pub async fn ask(address: SocketAddr, path: &str) -> u8 {
    let address = reachable(address);
    let answer = tokio::time::timeout(PATIENCE, get(address, path)).await;
    match answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok((status, body)) => {
            crate::outln!("{}", body.trim_end());
            if status == 200 { WELL } else { UNWELL }
        }
        Err(error) => {
            tracing::error!("nobody tells their health at {address}: {error}");
            SILENT
        }
    }
}

/// Where a listener on all addresses is reached from its own machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Status and body of an answer that ends with its connection, as HTTP/1.0 answers do.
async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer).await?;
    let no_answer = || io::Error::new(io::ErrorKind::InvalidData, "that was no answer of HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(no_answer)?;
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(no_answer)?, body.to_owned()))
}
