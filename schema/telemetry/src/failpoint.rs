//! Failpoints: named points of the code at which a test kills or stops the process, to check the recovery from disk.
//!
//! Invariant: the macro is empty in release builds.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
        $crate::failpoint::pass_failpoint($name);
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
