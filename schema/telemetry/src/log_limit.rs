//! Rate limit of a log message: during an outage it is logged once per interval, not once per request.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Minimum interval between two logged occurrences of a message.
const INTERVAL: Duration = Duration::from_secs(10);

/// Rate limit of one log message, declared as a `static` where the message is logged.
#[derive(Debug)]
pub struct LogLimit(Mutex<LastLine>);

#[derive(Debug)]
struct LastLine {
    at: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// Creates a limit that admits the first occurrence of its message.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> Self {
        Self(Mutex::new(LastLine { at: None, suppressed: 0 }))
    }

    /// Number of suppressed occurrences since the message was last logged; `None` if this occurrence must be suppressed
    /// too.
    pub fn admit(&self) -> Option<u64> {
        let mut last = self.0.lock();
        if last.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            last.suppressed += 1;
            return None;
        }
        last.at = Some(Instant::now());
        Some(std::mem::take(&mut last.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_interval_counts_the_others() {
        let limit = LogLimit::new();
        assert_eq!([limit.admit(), limit.admit(), limit.admit()], [Some(0), None, None]);
        limit.0.lock().at = Instant::now().checked_sub(INTERVAL);
        assert_eq!([limit.admit(), limit.admit()], [Some(2), None]);
    }
}
