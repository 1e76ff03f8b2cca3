//! Free ports on 127.0.0.1.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// Asks the kernel for a free port. Another process may open the port before the caller does.
pub fn find_free() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
