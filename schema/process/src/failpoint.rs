//! Failpoints: named steps at which a test kills or stops the process, to see that the next start continues from disk.
//!
//! Invariant: only development builds have them; in a release build the macro is empty. The signal is sent by another
//! process, so no code of this one runs after a kill.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// `name:count:signal`: `projector.committed:2:KILL` kills the process when it reaches that step the second time.
const VARIABLE: &str = "FAILPOINT";

/// The step at which this process gets a signal, and how often it must have been reached.
struct Armed {
    name: String,
    passing: u64,
    signal: String,
}

/// Marks a step; see [`failpoint`](mod@crate::failpoint).
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::failpoint::pass($name);
    };
}

/// Counts that a step is reached, and sends the signal when the variable names this step and this count.
pub fn pass(name: &str) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let Some(armed) = ARMED.get_or_init(armed).as_ref().filter(|armed| armed.name == name) else { return };
    if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == armed.passing {
        let command = format!("kill -s {} \"$PPID\"", armed.signal);
        let sent = Command::new("sh").args(["-c", &command]).status();
        assert!(sent.is_ok_and(|status| status.success()), "failpoint {name}: no signal was sent");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's switch is no setting of the service")]
fn armed() -> Option<Armed> {
    let text = std::env::var(VARIABLE).ok()?;
    let parsed = parse(&text);
    assert!(parsed.is_some(), "{VARIABLE}={text} is not name:passing:signal");
    parsed
}

fn parse(text: &str) -> Option<Armed> {
    let mut parts = text.split(':');
    let (name, passing, signal) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    Some(Armed { name: name.to_owned(), passing, signal: signal.to_owned() })
}
