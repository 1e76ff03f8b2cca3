//! Progress of a long command: a bar on a terminal, log lines otherwise.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const LOG_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct ProgressReport {
    /// Start of the log line, for example `derived` in `derived 400 of 1000 securities`.
    action: &'static str,
    /// Plural noun after the count, for example `securities`.
    unit: &'static str,
    done: u64,
    total: u64,
    started: Instant,
    logged: Instant,
    /// Progress bar; `None` if stderr is not a terminal.
    bar: Option<ProgressBar>,
}

impl ProgressReport {
    pub(crate) fn new(action: &'static str, unit: &'static str, total: u64) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| new_bar(unit, total));
        Self { action, unit, done: 0, total, started: now, logged: now, bar }
    }

    pub(crate) fn add(&mut self, count: u64) {
        self.done += count;
        match &self.bar {
            Some(bar) => bar.inc(count),
            None if self.logged.elapsed() >= LOG_INTERVAL => {
                self.logged = Instant::now();
                tracing::info!("{}", self.format());
            }
            None => {}
        }
    }

    /// Ends the report: removes the progress bar, or logs the total.
    pub(crate) fn finish(self) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => tracing::info!("{}", self.format()),
        }
    }

    fn format(&self) -> String {
        format_progress(self.action, self.unit, self.done, self.total, self.started.elapsed())
    }
}

fn new_bar(unit: &str, total: u64) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit} {{per_sec}} eta {{eta}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}

/// Formats the progress, for example `derived 400 of 1000 securities, 80/s, 7 s left`.
fn format_progress(action: &str, unit: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let begun = format!("{action} {done} of {total} {unit}");
    let millis = elapsed.as_millis().max(1);
    let rate = u128::from(done) * 1000 / millis;
    if done >= total {
        return format!("{begun} in {}.{} s, {rate}/s", millis / 1000, millis % 1000 / 100);
    }
    if done == 0 {
        return begun;
    }
    let left = u128::from(total - done) * millis / u128::from(done) / 1000;
    format!("{begun}, {rate}/s, {left} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_remaining_time() {
        let check = |done, millis, expected: &str| {
            assert_eq!(
                format_progress("derived", "securities", done, 1000, Duration::from_millis(millis)),
                expected
            );
        };
        check(0, 5000, "derived 0 of 1000 securities");
        check(400, 5000, "derived 400 of 1000 securities, 80/s, 7 s left");
        check(1000, 12_340, "derived 1000 of 1000 securities in 12.3 s, 81/s");
    }
}
