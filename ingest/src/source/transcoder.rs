//! Conversion of text in other encodings to UTF-8.

use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding};

/// Reader that converts a text to UTF-8. An incomplete character at the end of the text becomes U+FFFD.
pub(crate) struct Transcoder<R> {
    inner: R,
    /// `None` after the end of the text.
    decoder: Option<Decoder>,
    /// Converted text that the caller has not read yet.
    text: io::Cursor<Vec<u8>>,
}

impl<R: Read> Transcoder<R> {
    /// Creates a reader for a text in `encoding`. A byte-order mark becomes the byte-order mark of UTF-8.
    pub(crate) fn new(inner: R, encoding: &'static Encoding) -> Self {
        let decoder = Some(encoding.new_decoder_without_bom_handling());
        Self { inner, decoder, text: io::Cursor::default() }
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.text.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let mut bytes = [0; 64 * 1024];
            let read = self.inner.read(&mut bytes)?;
            let length = decoder.max_utf8_buffer_length(read).unwrap_or_default();
            let mut text = String::with_capacity(length);
            // The decoder keeps the bytes of an incomplete character for the next call.
            let _ = decoder.decode_to_string(&bytes[..read], &mut text, read == 0);
            self.text = io::Cursor::new(text.into_bytes());
            if read == 0 {
                self.decoder = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{UTF_16LE, WINDOWS_1252};

    use super::*;

    #[test]
    fn umlauts_and_the_euro_are_recoded() {
        let mut text = String::new();
        Transcoder::new(&b"Er\xf6ffnung;\x80;A"[..], WINDOWS_1252).read_to_string(&mut text).unwrap();
        assert_eq!(text, "Eröffnung;€;A");
    }

    #[test]
    fn an_incomplete_character_at_the_end_is_replaced() {
        for rest in [&b"\x3d"[..], b"\x3d\xd8"] {
            let bytes = [&b"A\0;\0"[..], rest].concat();
            let mut text = String::new();
            Transcoder::new(&bytes[..], UTF_16LE).read_to_string(&mut text).unwrap();
            assert_eq!(text, "A;\u{fffd}");
        }
    }

    #[test]
    fn every_byte_is_a_character() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        Transcoder::new(&bytes[..], WINDOWS_1252).read_to_string(&mut text).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert!(!text.contains('\u{fffd}'), "{text}");
    }
}
