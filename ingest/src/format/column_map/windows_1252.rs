//! Decoder of Windows-1252, the one-byte encoding of older Western European programs.

use std::io::{self, Read};

use encoding_rs::WINDOWS_1252;

/// Reader that converts Windows-1252 to UTF-8.
pub(super) struct Windows1252<R> {
    inner: R,
    /// Decoded text that the caller has not read yet.
    text: io::Cursor<Vec<u8>>,
}

impl<R: Read> Windows1252<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, text: io::Cursor::default() }
    }
}

impl<R: Read> Read for Windows1252<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        let mut bytes = [0; 64 * 1024];
        let read = self.inner.read(&mut bytes)?;
        // Every byte is one character, so a chunk never splits a character.
        let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes[..read]);
        self.text = io::Cursor::new(text.into_owned().into_bytes());
        self.text.read(buffer)
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

    #[test]
    fn every_byte_is_a_character() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        Windows1252::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert!(!text.contains('\u{fffd}'), "{text}");
    }
}
