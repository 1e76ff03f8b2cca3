//! Beginning of a file, for the detection of its format.
//!
//! Vocabulary of vendors' files: words by topic, for example the column names that mean a closing price.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;
use std::sync::LazyLock;

use market::event::Kind;
use telemetry::list_names;

use crate::normalize::abbreviate;
use crate::source::csv_reader::CsvReader;
use crate::source::feed_files::{Encoding, FeedFile};

/// Number of bytes read for detection.
const HEAD_BYTES: u64 = 64 * 1024;

/// Beginning of a file, for the detection of its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHead {
    /// Encoding of the records, detected from the bytes. If the bytes are ambiguous, the encoding comes from the file
    /// name.
    pub encoding: Encoding,
    /// CSV: column names of the header, unchanged. JSON: names of the members of the first object.
    pub columns: Vec<String>,
    /// CSV: fields of the first row after the header.
    pub first_row: Vec<String>,
    /// First 64 KiB of the file.
    pub(super) text: String,
}

/// Column name in lower case without blanks and punctuation: `Adj. Close` is `adjclose`.
pub(crate) fn normalize_column_name(column: &str) -> String {
    column.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Name without a remark in brackets: `Dividend` for `Dividend ($/sh)`.
pub(crate) fn without_remark(name: &str) -> &str {
    name.split(['(', '[']).next().unwrap_or_default()
}

/// Lower-case words of a name, without a remark in brackets: `pay` and `date` for `payDate`.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in without_remark(name).chars() {
        let begins = !last.is_alphanumeric() || last.is_lowercase() && c.is_uppercase();
        if c.is_alphanumeric() {
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        last = c;
    }
    words
}

impl FileHead {
    /// Reads the beginning of a file.
    pub fn read(file: &FeedFile, reader: &mut dyn Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        reader.take(HEAD_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let encoding = encoding_of(text.trim_start_matches('\u{feff}').trim_start(), file.encoding);
        let mut head = Self { encoding, columns: Vec::new(), first_row: Vec::new(), text };
        match encoding {
            Encoding::Csv => {
                let mut records = CsvReader::new(bytes.as_slice())?;
                let mut next = || -> io::Result<Vec<String>> {
                    let record = records.next_record()?;
                    let fields = record.iter().flat_map(|record| {
                        record.fields().map(|f| String::from_utf8_lossy(f).trim().to_owned())
                    });
                    Ok(fields.collect())
                };
                head.columns = next()?;
                head.first_row = next()?;
            }
            Encoding::Ndjson => {
                let lines = head.text.trim_start_matches('\u{feff}').lines().take(100);
                let first = lines.map(str::trim).find(|line| !line.is_empty());
                head.columns = first.map(keys).unwrap_or_default();
            }
            Encoding::Json => head.columns = keys(&head.text),
        }
        Ok(head)
    }

    /// Names of the members of the first record of a JSON response. If the response has a member `results` or `data`,
    /// the record is in this member. Otherwise the first object is the record.
    pub(super) fn record_keys(&self) -> Vec<String> {
        let inside = |wrapper: &str| {
            let rest = self.text.split_once(wrapper)?.1.trim_start().strip_prefix(':')?.trim_start();
            rest.starts_with(['[', '{']).then(|| keys(rest))
        };
        inside("\"results\"").or_else(|| inside("\"data\"")).unwrap_or_else(|| self.columns.clone())
    }

    /// Position of the first column whose normalized name is in `names`.
    pub fn position_of(&self, names: &[&str]) -> Option<usize> {
        self.columns.iter().position(|column| names.contains(&normalize_column_name(column).as_str()))
    }

    /// True if a column's normalized name is in `names`.
    pub fn has_column(&self, names: &[&str]) -> bool {
        self.position_of(names).is_some()
    }

    /// True if each of these normalized names is that of a column.
    pub fn has_columns(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.has_column(&[name]))
    }

    /// Column with the symbol of each row. It is recognized by its name. If the name is ambiguous, the first cell must
    /// look like a ticker.
    pub(super) fn symbol_column(&self) -> Option<&str> {
        let keys = if self.encoding == Encoding::Csv { Vec::new() } else { self.record_keys() };
        if let Some(column) = self.columns.iter().find(|name| is_symbol_column(name)) {
            return Some(column);
        }
        if keys.iter().any(|key| is_symbol_column(key)) {
            return Some("symbol");
        }
        let named = |name: &str| is_word_of("ambiguous symbol column", &normalize_column_name(name));
        let is_ticker = |cell: &str| {
            (1..=6).contains(&cell.len())
                && cell.bytes().all(|b| b.is_ascii_uppercase() || b == b'.' || b == b'-')
        };
        let mut columns = self.columns.iter().zip(&self.first_row);
        columns.find(|(name, cell)| named(name) && is_ticker(cell)).map(|(name, _)| name.as_str())
    }

    /// Column names, shortened for an error message.
    pub fn display_columns(&self) -> String {
        if self.columns.is_empty() {
            return "none, the file is empty".to_owned();
        }
        let columns = self.columns.iter().map(|column| abbreviate(column.as_bytes()));
        list_names(columns, 16, self.columns.len())
    }

    /// True if the file has no text.
    pub(super) fn is_blank(&self) -> bool {
        let is_whole = (self.text.len() as u64) < HEAD_BYTES;
        is_whole && self.text.trim_start_matches('\u{feff}').trim_start().is_empty()
    }

    /// First characters of the file, for an error message.
    pub fn display_beginning(&self) -> String {
        abbreviate(self.text.trim_start().as_bytes())
    }

    /// Probable origin of a file in an unknown format, as a hint for the user.
    pub fn guess_origin(&self) -> Option<String> {
        let dated = self.has_column(&["date", "day", "timestamp", "datetime"]);
        let prices = dated && self.has_columns(&["open", "high", "low", "close"]);
        let canonical = |names: &[&str]| {
            names.iter().all(|name| self.columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
        };
        let guess = if let Some(table) = self.yfinance_multi_header_hint() {
            table
        } else if prices && self.has_columns(&["dividend", "split"]) {
            "a zipline csvdir file without a share basis: convert it to canonical prices, dividends and splits, or write a map for each (ingest map FILE)"
        } else if prices && self.first_row.first().is_some_and(|date| has_named_month(date)) {
            "a Google Finance prices file without symbol and share basis: read it under a map that sets both (ingest map FILE)"
        } else if prices && self.has_column(&["adjclose", "adjustedclose", "closeadj"]) {
            "a table of prices with two closes: read it under a map that sets Close as raw or adjusted for splits (ingest map FILE)"
        } else if canonical(&["symbol", "date", "close"]) || canonical(&["symbol", "ex_date", "amount"]) {
            "a canonical table under another name: name it by its kind, such as prices.csv or dividends-2024.csv"
        } else if prices && self.has_column(words_of_topic("many symbols")) {
            "a table of prices of many symbols: read it under a map that sets the symbol column and the share basis (ingest map FILE)"
        } else if prices {
            "a table of prices without a symbol: add a symbol column and name it prices.csv, or read it under a map (ingest map FILE)"
        } else if self.columns.iter().any(|column| column.ends_with(".Open") || column.ends_with(".Close")) {
            "a chart's table with a symbol in its column names: read it under a map (ingest map FILE)"
        } else if self.has_column(&["kind"]) {
            "canonical records: name the file .ndjson, one record a line"
        } else {
            return None;
        };
        Some(guess.to_owned())
    }

    /// Hint for the user of a yfinance file with several header lines: `Price,Adj Close,…`, `Ticker,KO,…`, `Date,,…`.
    /// `None` for other files.
    fn yfinance_multi_header_hint(&self) -> Option<&'static str> {
        let names = || self.columns.iter().chain(&self.first_row);
        let has = |name: &str| names().any(|cell| cell == name);
        let corner = [self.columns.first()?.as_str(), self.first_row.first()?.as_str()];
        match corner {
            ["Price", "Ticker"] | ["Ticker", "Price"] | ["", ""] if !has("Close") => None,
            ["Price", "Ticker"] | ["Ticker", "Price"] if !has("Adj Close") => Some(
                "a yfinance table without Adj Close; its prices are adjusted for dividends too: download it again unadjusted (auto_adjust=False)",
            ),
            ["Price", "Ticker"] => {
                Some("a yfinance table with several header lines: add --map yfinance-wide")
            }
            ["", ""] if self.columns.iter().any(|name| name == "Close") => Some(
                "a yfinance table with several header lines: add --map yfinance-wide, if it was downloaded unadjusted (auto_adjust=False)",
            ),
            ["Ticker", "Price"] | ["", ""] => Some(
                "a yfinance table with several header lines: read it under a map (ingest map FILE), if it was downloaded unadjusted (auto_adjust=False)",
            ),
            _ => None,
        }
    }
}

/// True if the column name shows that the cells are symbols.
pub(crate) fn is_symbol_column(name: &str) -> bool {
    is_word_of("symbol column", &normalize_column_name(name))
}

/// True if the month of a date is written in letters: `2-Jan-24`.
fn has_named_month(date: &str) -> bool {
    date.split('-').nth(1).is_some_and(|month| month.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Encoding of a text. A text that begins with `[` is JSON. A text that begins with `{` is NDJSON or JSON, depending on
/// its first line. Any other text has the encoding `named`, from the file name.
fn encoding_of(text: &str, named: Encoding) -> Encoding {
    if text.starts_with('[') {
        return Encoding::Json;
    }
    if !text.starts_with('{') {
        return named;
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let whole = serde_json::from_str::<serde::de::IgnoredAny>(first).is_ok();
    match (whole, named) {
        (true, _) if !rest.trim().is_empty() => Encoding::Ndjson,
        // The text is ambiguous, so the file name decides. A complete first line without further lines fits both
        // encodings. An incomplete first line begins a JSON document, or is a damaged NDJSON record. A line with only
        // an opening brace always begins a JSON document.
        (_, Encoding::Ndjson) if whole || first.trim().len() > 1 => Encoding::Ndjson,
        _ => Encoding::Json,
    }
}

/// Member names of the first JSON object in a text. The object may be an item of a list. The text may be truncated.
fn keys(text: &str) -> Vec<String> {
    struct KeyVisitor(Vec<String>);
    impl<'de> serde::de::Visitor<'de> for &mut KeyVisitor {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                self.0.push(key);
                map.next_value::<serde::de::IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut keys = KeyVisitor(Vec::new());
    let object = text.trim_start_matches(|c: char| c == '[' || c == '\u{feff}' || c.is_ascii_whitespace());
    let mut deserializer = serde_json::Deserializer::from_str(object);
    // After an error, the keys read so far are enough.
    let _ = serde::Deserializer::deserialize_map(&mut deserializer, &mut keys);
    keys.0
}

static TOPICS: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let topics = include_str!("vocabulary.txt").lines().filter_map(|line| line.split_once(": "));
    topics.map(|(topic, words)| (topic, words.split('|').collect())).collect()
});

/// Words of a topic, in the order of `vocabulary.txt`.
pub(crate) fn words_of_topic(topic: &str) -> &'static [&'static str] {
    debug_assert!(TOPICS.contains_key(topic), "the vocabulary has no topic {topic}");
    TOPICS.get(topic).map_or(&[], Vec::as_slice)
}

/// True if a word belongs to a topic.
pub(crate) fn is_word_of(topic: &str, word: &str) -> bool {
    words_of_topic(topic).contains(&word)
}

/// Meaning of a word in a topic whose entries are words with their meanings: `EUR` for `€`.
pub(crate) fn meaning_of(topic: &str, word: &str) -> Option<&'static str> {
    let mut entries = words_of_topic(topic).iter().filter_map(|entry| entry.rsplit_once(' '));
    entries.find(|(known, _)| *known == word).map(|(_, meaning)| meaning)
}

/// Canonical column for a vendor's normalized column name, such as `close` for `closingprice`, and the reliability of the
/// name, from 1 to 3.
pub(crate) fn canonical_column_of(kind: Kind, name: &str) -> Option<(&'static str, u8)> {
    let columns = TOPICS
        .iter()
        .filter_map(|(topic, words)| Some((topic.strip_prefix(kind.as_str())?.strip_prefix(' ')?, words)));
    columns.into_iter().find_map(|(column, words)| {
        let mut names = words.iter().map(|word| word.split_once(' ').unwrap_or((word, "3")));
        let (_, reliability) = names.find(|(known, _)| *known == name)?;
        Some((column, reliability.parse().ok()?))
    })
}

/// Vendors' normalized names for a canonical column of a kind.
pub(crate) fn vendor_names_of(kind: Kind, column: &str) -> Vec<&'static str> {
    let words = TOPICS.get(format!("{kind} {column}").as_str());
    words.into_iter().flatten().map(|word| word.split_once(' ').map_or(*word, |(name, _)| name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_say_the_encoding_where_they_can() {
        let found = |text: &str, named| encoding_of(text, named);
        assert_eq!(found("[{\"a\":1}]", Encoding::Csv), Encoding::Json);
        assert_eq!(found("{\"a\":1}\n{\"a\":2}\n", Encoding::Json), Encoding::Ndjson);
        assert_eq!(found("{\"a\":1}", Encoding::Ndjson), Encoding::Ndjson);
        assert_eq!(found("{\n \"a\":1}", Encoding::Ndjson), Encoding::Json);
        assert_eq!(found("{broken\n{\"a\":2}\n", Encoding::Ndjson), Encoding::Ndjson);
        assert_eq!(found("a,b\n", Encoding::Csv), Encoding::Csv);
    }
}

#[cfg(test)]
mod vocabulary_tests {
    use super::*;

    #[test]
    fn a_column_name_means_one_column_of_a_kind() {
        for kind in ["price", "dividend", "split"] {
            let topics = TOPICS.iter().filter(|(topic, _)| topic.starts_with(kind));
            let mut names: Vec<&str> = topics.flat_map(|(_, words)| words.iter().copied()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(count >= 20 && names.len() == count, "{kind}: {count}");
        }
    }
}
