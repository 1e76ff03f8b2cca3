//! Writer of log events to standard error. It indents every line of an event except the first. External text therefore
//! cannot forge an event.

use std::io::{self, Stderr, Write};

/// Indentation of every line of an event except the first.
const INDENT: &[u8] = b"    ";

/// Writer of complete events. Each call of `write` must contain one event.
#[derive(Debug)]
pub(crate) struct EventWriter(pub(crate) Stderr);

impl Write for EventWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&indent_continuation_lines(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn indent_continuation_lines(event: &[u8]) -> Vec<u8> {
    let text = event.strip_suffix(b"\n").unwrap_or(event);
    let mut lines = Vec::with_capacity(event.len() + INDENT.len());
    for byte in text {
        match byte {
            b'\n' => lines.extend([b"\n", INDENT].concat()),
            b'\r' => lines.extend(b"\\r"),
            byte => lines.push(*byte),
        }
    }
    lines.push(b'\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_begin_a_line() {
        assert_eq!(indent_continuation_lines(b"WARN a\nERROR b\rc\n"), b"WARN a\n    ERROR b\\rc\n");
        assert_eq!(indent_continuation_lines(b"WARN a\n"), b"WARN a\n");
    }
}
