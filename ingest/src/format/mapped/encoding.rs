//! Windows-1252, the one-byte encoding of Western Europe's older programs, as UTF-8.

use std::io::{self, Read};

/// What the bytes 0x80 to 0x9f are; five of them are nothing.
const UPPER: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Text in Windows-1252, read as UTF-8.
pub(super) struct Windows1252<R> {
    inner: R,
    /// What was recoded and not yet taken.
    text: io::Cursor<Vec<u8>>,
}

impl<R: Read> Windows1252<R> {
    /// Recodes `inner`.
    pub(super) fn new(inner: R) -> Self {
        Self { inner, text: io::Cursor::default() }
    }
}

impl<R: Read> Read for Windows1252<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.text.read(buffer)?;
        if taken > 0 || buffer.is_empty() {
            return Ok(taken);
        }
        let mut bytes = [0; 64 * 1024];
        let read = self.inner.read(&mut bytes)?;
        let text: String = bytes[..read].iter().map(|byte| decoded(*byte)).collect();
        self.text = io::Cursor::new(text.into_bytes());
        self.text.read(buffer)
    }
}

fn decoded(byte: u8) -> char {
    match byte {
        0x80..=0x9f => UPPER[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn umlauts_and_the_euro_are_recoded() {
        let mut text = String::new();
        Windows1252::new(&b"Er\xf6ffnung;\x80;A"[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "Eröffnung;€;A");
    }
}
