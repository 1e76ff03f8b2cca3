//! How far a long command is: a bar on a terminal, a plain line now and then anywhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two plain lines.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// A count that rises to a known total.
#[derive(Debug)]
pub struct Progress {
    /// What is done, as a participle: `derived`.
    what: &'static str,
    /// What is counted: `securities`.
    unit: &'static str,
    done: u64,
    total: u64,
    started: Instant,
    said: Instant,
    /// On a terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Nothing is done yet.
    pub fn new(what: &'static str, unit: &'static str, total: u64) -> Self {
        let now = Instant::now();
        let bar = std::io::stderr().is_terminal().then(|| bar(unit, total));
        Self { what, unit, done: 0, total, started: now, said: now, bar }
    }

    /// So many more are done.
    pub fn add(&mut self, count: u64) {
        self.done += count;
        match &self.bar {
            Some(bar) => bar.inc(count),
            None if self.said.elapsed() >= SAY_EVERY => {
                self.said = Instant::now();
                tracing::info!("{}", self.line());
            }
            None => {}
        }
    }

    /// Says what was done in all.
    pub fn finish(self) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => tracing::info!("{}", self.line()),
        }
    }

    fn line(&self) -> String {
        line(self.what, self.unit, self.done, self.total, self.started.elapsed())
    }
}

fn bar(unit: &str, total: u64) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit} {{per_sec}} eta {{eta}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}

/// `derived 400 of 1000 securities, 80/s, 8 s left`.
fn line(what: &str, unit: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let begun = format!("{what} {done} of {total} {unit}");
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
    fn a_line_says_rate_and_time_left() {
        let check = |done, millis, expected: &str| {
            assert_eq!(line("derived", "securities", done, 1000, Duration::from_millis(millis)), expected);
        };
        check(0, 5000, "derived 0 of 1000 securities");
        check(400, 5000, "derived 400 of 1000 securities, 80/s, 7 s left");
        check(1000, 12_340, "derived 1000 of 1000 securities in 12.3 s, 81/s");
    }
}
