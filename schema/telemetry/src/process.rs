//! Process: graceful shutdown with one handle for SIGINT and SIGTERM, resident memory, and failpoints.
//!
//! Failpoints are named points of the code at which a test kills or stops the process, to check the recovery from disk.
//! The macro [`failpoint!`](crate::failpoint) is empty in release builds.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// Handle for waiting for SIGINT or SIGTERM.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Installs the signal handlers.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            tracing::info!("shutdown requested");
            sender.send_replace(true);
            // Keep the sender alive, because dropping it would look like a request to stop.
            tokio::time::sleep(Duration::MAX).await;
        });
        Ok(Self(receiver))
    }

    /// True if the process has received one of the signals.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Runs a future, unless the process receives one of the signals. `None` after a signal.
    pub async fn or_stop<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut signal = self.clone();
        tokio::select! {
            biased;
            () = signal.wait() => None,
            output = future => Some(output),
        }
    }

    /// Waits until the process receives one of the signals.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|requested| *requested).await;
    }
}

/// Resident set size in bytes, from `/proc`; `None` on a system without `/proc`.
pub fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = rss.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Environment variable of the form `name:count:signal`. For example, `projector.committed:2:KILL` kills the process
/// when it reaches this failpoint for the second time.
const VARIABLE: &str = "FAILPOINT";

struct Armed {
    name: String,
    count: u64,
    signal: String,
}

/// Marks a failpoint: a point of the code at which a test can kill or stop the process.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::process::pass_failpoint($name);
    };
}

/// Counts the call if the environment variable names the failpoint `name`. Sends the variable's signal to the process
/// when the variable's count is reached.
pub fn pass_failpoint(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let Some(armed) = ARMED.get_or_init(armed).as_ref().filter(|armed| armed.name == name) else { return };
    if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == armed.count {
        // Another process sends the signal, so that no code of this process runs after a `KILL`.
        let command = format!("kill -s {} \"$PPID\"", armed.signal);
        let sent = Command::new("sh").args(["-c", &command]).status();
        assert!(sent.is_ok_and(|status| status.success()), "failpoint {name}: no signal was sent");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's switch is no setting of the service")]
fn armed() -> Option<Armed> {
    let text = std::env::var(VARIABLE).ok()?;
    let parsed = parse(&text);
    assert!(parsed.is_some(), "{VARIABLE}={text} is not name:count:signal");
    parsed
}

fn parse(text: &str) -> Option<Armed> {
    let mut parts = text.split(':');
    let (name, count, signal) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    Some(Armed { name: name.to_owned(), count, signal: signal.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_to_is_taken() {
        let before = resident_bytes().unwrap();
        let written = vec![1u8; 64 << 20];
        assert!(resident_bytes().unwrap() > before + (32 << 20), "{} bytes", written.len());
    }
}
