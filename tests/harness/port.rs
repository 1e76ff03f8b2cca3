//! Free ports on 127.0.0.1.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result};

/// Ports that this process has given to its tests.
static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// Finds a free port that no earlier call of this process has returned. The kernel alone may give one port twice, because
/// the first caller opens it only later. Another process may still open the port before the caller does.
pub fn find_free() -> Result<u16> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    // All listeners stay open during the search, so that the kernel gives another port each time.
    let mut listeners = Vec::new();
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
        let port = listener.local_addr()?.port();
        if given.insert(port) {
            return Ok(port);
        }
        listeners.push(listener);
    }
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
