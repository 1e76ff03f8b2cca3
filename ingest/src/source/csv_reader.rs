//! Reader of lines and CSV records from a feed.
//!
//! The format is RFC 4180 with extensions: LF line ends, other delimiters, and lines above the header. A record that is
//! much longer than [`MAX_RECORD`] causes an error.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

/// Approximate maximum length of a line or record, in bytes. Reading a longer line fails, because the file is probably
/// not a feed.
pub(crate) const MAX_RECORD: usize = 1024 * 1024;
const CHUNK: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines of a feed, numbered from 1.
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Position of the current record in the buffer. `next` is the next line, and `end` the end of the bytes read.
    start: usize,
    next: usize,
    end: usize,
    finished: bool,
    line: u64,
    lines_read: u64,
    /// True if the buffer contains a quotation mark. Records without quotation marks are split faster.
    quotes: bool,
}

impl<R: Read> LineReader<R> {
    /// Creates a line reader, and skips a byte-order mark.
    pub(crate) fn new(reader: R) -> io::Result<Self> {
        let mut lines = Self {
            reader,
            buffer: vec![0; CHUNK],
            start: 0,
            next: 0,
            end: 0,
            finished: false,
            line: 0,
            lines_read: 0,
            quotes: false,
        };
        while lines.end < BYTE_ORDER_MARK.len() && !lines.finished {
            lines.fill()?;
        }
        if lines.buffer[..lines.end].starts_with(BYTE_ORDER_MARK) {
            lines.next = BYTE_ORDER_MARK.len();
        }
        Ok(lines)
    }

    /// Returns the next line and its number. The line end is removed.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        Ok(if self.begin()? { Some((self.line, self.current())) } else { None })
    }

    /// Begins a record at the next line. Returns false at the end of the feed.
    fn begin(&mut self) -> io::Result<bool> {
        self.start = self.next;
        let found = self.extend()?;
        self.line = self.lines_read;
        Ok(found)
    }

    /// Appends the next line to the current record. Returns false at the end of the feed.
    fn extend(&mut self) -> io::Result<bool> {
        let mut searched = self.next;
        loop {
            if let Some(offset) = memchr(b'\n', &self.buffer[searched..self.end]) {
                self.next = searched + offset + 1;
                break;
            }
            if self.finished {
                if self.next == self.end {
                    return Ok(false);
                }
                self.next = self.end;
                break;
            }
            searched = self.end - self.start;
            self.fill()?;
        }
        self.lines_read += 1;
        Ok(true)
    }

    /// Returns a copy of the next line for which `wanted` is true; `None` if no such line is found. All lines remain
    /// unread.
    fn peek_line(&mut self, wanted: impl Fn(&[u8]) -> bool) -> io::Result<Option<Vec<u8>>> {
        /// Maximum number of lines examined.
        const MAX_LINES: usize = 100;
        let (end, lines_read) = (self.next - self.start, self.lines_read);
        let mut found = None;
        for _ in 0..MAX_LINES {
            let begin = self.next - self.start;
            if !self.extend()? {
                break;
            }
            let line = self.current().get(begin..).unwrap_or_default();
            if wanted(line) {
                found = Some(line.to_vec());
                break;
            }
        }
        (self.next, self.lines_read) = (self.start + end, lines_read);
        Ok(found)
    }

    /// Moves the current record to the front of the buffer, and reads more bytes after it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.next -= self.start;
        self.end -= self.start;
        self.start = 0;
        if self.end >= MAX_RECORD {
            let message = format!("line {} is longer than 1 MiB: this is not a feed", self.lines_read + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.resize(self.end + CHUNK, 0);
        }
        let read = self.reader.read(&mut self.buffer[self.end..])?;
        self.end += read;
        self.finished = read == 0;
        self.quotes = memchr(b'"', &self.buffer[..self.end]).is_some();
        Ok(())
    }

    /// Current record without its line end.
    fn current(&self) -> &[u8] {
        let record = &self.buffer[self.start..self.next];
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        record.strip_suffix(b"\r").unwrap_or(record)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct CsvRecord<'a> {
    pub line: u64,
    /// Text of the record as in the file, with quotation marks, but without the line end.
    pub raw: &'a [u8],
    text: &'a [u8],
    fields: &'a [(u32, u32)],
    /// Delimiter of the fields.
    pub delimiter: u8,
    /// True if a quoted field has no closing quote. The record must then be rejected.
    pub unclosed: bool,
}

impl<'a> CsvRecord<'a> {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Field at `index`, unquoted; empty if the record has fewer fields.
    pub(crate) fn field(&self, index: usize) -> &'a [u8] {
        match self.fields.get(index) {
            Some((start, end)) => &self.text[*start as usize..*end as usize],
            None => &[],
        }
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &'a [u8]> {
        let text = self.text;
        self.fields.iter().map(move |(start, end)| &text[*start as usize..*end as usize])
    }
}

/// CSV records of a feed. Blank lines and rows of empty cells are skipped.
pub(crate) struct CsvReader<R> {
    lines: LineReader<R>,
    /// Delimiter of the fields; `None` until it is detected from the first record.
    delimiter: Option<u8>,
    /// True after the first record was read. Comments are allowed only before it.
    begun: bool,
    /// True if comment lines may come before the header.
    comments: bool,
    fields: Vec<(u32, u32)>,
    unquoted: Vec<u8>,
}

impl<R: Read> CsvReader<R> {
    /// Creates a reader that detects the delimiter.
    pub(crate) fn new(reader: R) -> io::Result<Self> {
        Self::with_delimiter(reader, None)
    }

    /// Creates a reader for files with the given delimiter. With `None`, the delimiter is detected from the first
    /// record.
    pub(crate) fn with_delimiter(reader: R, delimiter: Option<u8>) -> io::Result<Self> {
        let (lines, fields, unquoted) = (LineReader::new(reader)?, Vec::new(), Vec::new());
        Ok(Self { lines, delimiter, begun: false, comments: true, fields, unquoted })
    }

    /// Disables comments. A line that begins with `#` is then a record.
    pub(crate) fn without_comments(mut self) -> Self {
        self.comments = false;
        self
    }

    /// Returns the next record.
    pub(crate) fn next_record(&mut self) -> io::Result<Option<CsvRecord<'_>>> {
        loop {
            if !self.lines.begin()? {
                return Ok(None);
            }
            let line = self.lines.current();
            if let Some(sign) = separator(line).filter(|_| !self.begun) {
                self.delimiter = Some(sign);
            } else if !is_blank(line, self.delimiter) && !self.is_comment()? {
                break;
            }
        }
        self.begun = true;
        let delimiter = *self.delimiter.get_or_insert_with(|| detect_delimiter(self.lines.current()));
        self.fields.clear();
        let quoted = self.lines.quotes && memchr(b'"', self.lines.current()).is_some();
        let unclosed = quoted && !self.read_quoted(delimiter)?;
        let raw = self.lines.current();
        if !quoted {
            split(raw, delimiter, &mut self.fields);
        }
        let text: &[u8] = if quoted { &self.unquoted } else { raw };
        Ok(Some(CsvRecord { line: self.lines.line, raw, text, fields: &self.fields, delimiter, unclosed }))
    }

    /// True if the current line is a comment above the header. The header itself may also begin with `#`.
    fn is_comment(&mut self) -> io::Result<bool> {
        let line = self.lines.current();
        // A header may have a first column named `#`.
        let marked =
            line.starts_with(b"#") && !matches!(line.get(1), None | Some(b',' | b';' | b'\t' | b'|'));
        if self.begun || !self.comments || !marked {
            return Ok(false);
        }
        let delimiter = self.delimiter.unwrap_or_else(|| detect_delimiter(line));
        let fields = width(line, delimiter);
        // A header has as many fields as the next line.
        let below = self.lines.peek_line(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))?;
        Ok(fields < 2 || below.is_none_or(|below| width(&below, delimiter) != fields))
    }

    /// Delimiter of the fields; a comma until it is detected.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter.unwrap_or(b',')
    }

    /// Splits a record that contains quotation marks, and may extend over several lines. Returns false if a quoted
    /// field is never closed.
    fn read_quoted(&mut self, delimiter: u8) -> io::Result<bool> {
        /// Maximum number of lines in a record. If a quoted field is still open after this number of lines, only the
        /// first line is rejected. The other lines are read again as separate records.
        const MAX_LINES: usize = 1000;
        let (first_end, first_lines_read) = (self.lines.next - self.lines.start, self.lines.lines_read);
        for _ in 0..MAX_LINES {
            if unquote(self.lines.current(), delimiter, &mut self.unquoted, &mut self.fields) {
                return Ok(true);
            }
            if !self.lines.extend()? {
                break;
            }
        }
        // The lines after the first line of the record are read again as separate records.
        self.lines.next = self.lines.start + first_end;
        self.lines.lines_read = first_lines_read;
        Ok(false)
    }
}

/// True if a line consists of delimiters and blanks.
fn is_blank(line: &[u8], delimiter: Option<u8>) -> bool {
    let delimiter = delimiter.unwrap_or_else(|| detect_delimiter(line));
    line.iter().all(|byte| byte.is_ascii_whitespace() || *byte == delimiter)
}

/// Number of fields in a line.
fn width(line: &[u8], delimiter: u8) -> usize {
    let (mut text, mut fields) = (Vec::new(), Vec::new());
    unquote(line, delimiter, &mut text, &mut fields);
    fields.len()
}

/// Delimiter from a line such as `sep=;`, which spreadsheets write above the header. `None` for other lines.
fn separator(line: &[u8]) -> Option<u8> {
    let (word, sign) = line.split_at_checked(4)?;
    match sign {
        [sign] if word.eq_ignore_ascii_case(b"sep=") => Some(*sign),
        _ => None,
    }
}

/// Detects the delimiter of a header. It is a comma if the header contains a comma. Otherwise, it is the most frequent
/// of semicolon, tab and `|`. If the header contains none of these characters, it is a comma.
pub(crate) fn detect_delimiter(header: &[u8]) -> u8 {
    let count = |sign: u8| memchr_iter(sign, header).count();
    let other = [b';', b'\t', b'|'].into_iter().max_by_key(|sign| count(*sign));
    other.filter(|sign| count(b',') == 0 && count(*sign) > 0).unwrap_or(b',')
}

#[expect(clippy::cast_possible_truncation, reason = "a record is at most MAX_RECORD bytes and a read")]
fn split(raw: &[u8], delimiter: u8, fields: &mut Vec<(u32, u32)>) {
    let mut start = 0;
    for comma in memchr_iter(delimiter, raw) {
        fields.push((start, comma as u32));
        start = comma as u32 + 1;
    }
    fields.push((start, raw.len() as u32));
}

/// Splits a record with quotation marks. `text` receives the unquoted fields in sequence, and `fields` receives the
/// start and end of each field in `text`. Returns false if a quoted field has no closing quotation mark.
#[expect(clippy::cast_possible_truncation, reason = "a record is at most MAX_RECORD bytes and a read")]
fn unquote(raw: &[u8], delimiter: u8, text: &mut Vec<u8>, fields: &mut Vec<(u32, u32)>) -> bool {
    text.clear();
    fields.clear();
    let mut rest = raw;
    loop {
        let start = text.len() as u32;
        if let Some(mut quoted) = rest.strip_prefix(b"\"") {
            loop {
                let Some(quote) = memchr(b'"', quoted) else { return false };
                text.extend_from_slice(&quoted[..quote]);
                quoted = &quoted[quote + 1..];
                let Some(after) = quoted.strip_prefix(b"\"") else { break };
                text.push(b'"');
                quoted = after;
            }
            rest = quoted;
        }
        let end = memchr(delimiter, rest);
        text.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        fields.push((start, text.len() as u32));
        match end {
            Some(comma) => rest = &rest[comma + 1..],
            None => return true,
        }
    }
}

#[cfg(test)]
mod tests;
