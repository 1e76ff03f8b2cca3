//! Free ports on 127.0.0.1.

use std::collections::HashSet;
use std::iter;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result};

/// Ports that this process has given to its tests.
static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// Ports below those that Linux gives to outgoing connections, so that no connection takes a port before its server does.
const PORTS: Range<u16> = 10_000..32_768;

/// Finds a free port that no earlier call of this process has returned, because its caller may open it later. The port is
/// random, so that two processes rarely find the same one.
pub fn find_free() -> Result<u16> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = iter::repeat_with(|| rand::random_range(PORTS)).take(PORTS.len());
    random.find(|port| is_free(*port) && given.insert(*port)).context("finding a free port")
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
