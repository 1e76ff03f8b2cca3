//! The first lines of a file, by which its format is told.

use std::io::{self, Read};

use crate::normalize::shown;
use crate::records::{Lines, Records};
use crate::source::{Encoding, FeedFile};

/// How much of a file is looked at.
const HEAD_BYTES: u64 = 64 * 1024;

/// What the beginning of a file shows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Head {
    /// CSV: the header's columns as they stand; JSON: the first object's keys.
    pub columns: Vec<String>,
    /// CSV: the fields of the first row.
    pub first_row: Vec<String>,
    beginning: String,
}

/// A column's name without case, blanks and signs: `Adj. Close` is `adjclose`.
pub(super) fn plain(column: &str) -> String {
    column.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl Head {
    /// Reads the beginning of a file.
    pub fn read(file: &FeedFile, reader: &mut dyn Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        reader.take(HEAD_BYTES).read_to_end(&mut bytes)?;
        let beginning = shown(bytes.trim_ascii_start());
        let mut head = Self { beginning, ..Self::default() };
        match file.encoding {
            Encoding::Csv => {
                let mut records = Records::new(bytes.as_slice())?;
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
                let mut lines = Lines::new(bytes.as_slice())?;
                let line =
                    std::iter::from_fn(|| lines.next_line().ok().flatten().map(|(_, line)| line.to_vec()));
                head.columns = line
                    .take(100)
                    .find(|line| !line.trim_ascii().is_empty())
                    .map_or_else(Vec::new, |line| keys(&line));
            }
            Encoding::Json => head.columns = keys(&bytes),
        }
        Ok(head)
    }

    /// Position of the column whose plain name is one of `names`.
    pub fn position(&self, names: &[&str]) -> Option<usize> {
        self.columns.iter().position(|column| names.contains(&plain(column).as_str()))
    }

    /// Whether there is such a column.
    pub fn has(&self, names: &[&str]) -> bool {
        self.position(names).is_some()
    }

    /// The columns, for a message.
    pub fn columns_for_people(&self) -> String {
        if self.columns.is_empty() { "none, the file is empty".to_owned() } else { shown_list(&self.columns) }
    }

    /// The first characters, for a message.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }

    /// What a file of no known format seems to be, and what to do about it.
    pub fn looks_like(&self) -> Option<String> {
        let ohlc = self.has(&["open"]) && self.has(&["high"]) && self.has(&["low"]) && self.has(&["close"]);
        let dated = self.has(&["date", "day", "timestamp", "datetime"]);
        let guess = if self.columns.iter().any(|column| column.contains(';') || column.contains('\t')) {
            "a table separated by semicolons or tabs: separate it by commas"
        } else if self.has(&["exdividend"]) && self.has(&["splitratio"]) {
            "wiki: leave --format out or say --format wiki"
        } else if ohlc && self.has(&["adjclose"]) {
            "yahoo: leave --format out or say --format yahoo"
        } else if ohlc && dated && self.has(&["dividend"]) && self.has(&["split"]) {
            "a zipline csvdir file, whose prices are of no stated basis: convert it to canonical prices, dividends and splits"
        } else if ohlc
            && self
                .first_row
                .first()
                .is_some_and(|date| date.contains('-') && date.bytes().any(|b| b.is_ascii_alphabetic()))
        {
            "a Google Finance prices file, which names neither symbol nor basis: convert it to canonical prices (symbol,date,open,high,low,close,volume)"
        } else if self.has(&["symbol"]) && (dated || self.has(&["exdate"])) {
            "a canonical table under another name: name it by its kind, such as prices.csv or dividends-2024.csv"
        } else if ohlc && dated {
            "a table of prices without a symbol: add a symbol column and name it prices.csv"
        } else if self.columns.iter().any(|column| column.ends_with(".Open") || column.ends_with(".Close")) {
            "a chart's table with a symbol in its column names: convert it to canonical prices (symbol,date,open,high,low,close,volume)"
        } else if self.has(&["chart"]) {
            "a Yahoo chart answer in JSON: download it as CSV"
        } else if self.has(&["kind"]) {
            "canonical records: name the file .ndjson, one record a line"
        } else {
            return None;
        };
        Some(guess.to_owned())
    }
}

fn shown_list(columns: &[String]) -> String {
    let listed: Vec<String> = columns.iter().take(16).map(|column| shown(column.as_bytes())).collect();
    let more = if columns.len() > listed.len() { ", …" } else { "" };
    listed.join(", ") + more
}

/// Keys of the first JSON object, even when the text was cut short.
fn keys(bytes: &[u8]) -> Vec<String> {
    struct Keys(Vec<String>);
    impl<'de> serde::de::Visitor<'de> for &mut Keys {
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
    let mut keys = Keys(Vec::new());
    let mut deserializer =
        serde_json::Deserializer::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    // An error leaves the keys read so far, which is all that is asked for.
    let _ = serde::Deserializer::deserialize_map(&mut deserializer, &mut keys);
    keys.0
}
