//! Feed formats: one file each, with what recognises it and what reads it.
//!
//! A file is recognised before anything of it is loaded; one of another kind is refused with what it looks like.

use std::io::{self, Read};

use chrono::NaiveDate;
use clap::ValueEnum;
use market::event::Kind;
use market::symbol::Symbol;

use crate::collect::Collector;
use crate::normalize::Currency;
use crate::source::{Encoding, FeedFile};

pub mod canonical;
mod day;
mod file_symbol;
mod head;
mod ratio;
mod table;
#[cfg(test)]
mod testing;
pub mod wiki;
pub mod yahoo;

pub use head::Head;

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Choice {
    /// Recognise each file by its header or JSON shape
    #[default]
    Auto,
    /// This project's own CSV or NDJSON; CSV files are named by their kind (prices.csv, dividends-2024.csv.gz)
    Canonical,
    /// Quandl / Nasdaq Data Link WIKI prices CSV
    Wiki,
    /// Yahoo-style prices CSV, one symbol a file
    Yahoo,
}

/// How the rows of one file are read: its format, and what its format needs to know beside the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    CanonicalCsv(Kind),
    CanonicalNdjson,
    /// The symbol of a file without a symbol column.
    Wiki(Option<Symbol>),
    Yahoo(Symbol),
}

/// What the command line says about reading.
#[derive(Debug, Clone)]
pub struct Options {
    pub choice: Choice,
    pub symbol: Option<Symbol>,
    /// Currency of amounts in formats that name none.
    pub currency: Currency,
    pub ignore_unknown: bool,
    pub today: NaiveDate,
}

/// Why a file is not loaded at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Format {
    /// Name for people and manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CanonicalCsv(_) | Self::CanonicalNdjson => "canonical",
            Self::Wiki(_) => "wiki",
            Self::Yahoo(_) => "yahoo",
        }
    }

    /// What the rows depend on beside the content: part of the input's identity. Empty where the content says all.
    pub fn reading(&self) -> String {
        match self {
            Self::CanonicalNdjson => String::new(),
            Self::CanonicalCsv(kind) => format!("canonical/{kind}"),
            Self::Wiki(None) => "wiki".to_owned(),
            Self::Wiki(Some(symbol)) => format!("wiki/{symbol}"),
            Self::Yahoo(symbol) => format!("yahoo/{symbol}"),
        }
    }

    /// Finds the format of a file by its head.
    pub fn recognise(file: &FeedFile, head: &Head, options: &Options) -> Result<Self, String> {
        let symbol = options.symbol.as_ref();
        let found = match options.choice {
            Choice::Auto => wiki::recognise(file, head, symbol)
                .or_else(|| yahoo::recognise(file, head, symbol))
                .or_else(|| canonical::recognise(file, head)),
            Choice::Canonical => canonical::recognise(file, head),
            Choice::Wiki => wiki::recognise(file, head, symbol),
            Choice::Yahoo => yahoo::recognise(file, head, symbol),
        };
        found.unwrap_or_else(|| Err(refusal(file, head, options.choice)))
    }

    /// Reads all rows of a file into `rows`.
    pub(crate) fn read(
        &self,
        reader: &mut dyn Read,
        options: &Options,
        rows: &mut Collector,
    ) -> Result<(), ReadError> {
        match self {
            Self::CanonicalCsv(kind) => canonical::read_csv(*kind, reader, options, rows),
            Self::CanonicalNdjson => canonical::read_ndjson(reader, options, rows),
            Self::Wiki(symbol) => wiki::read(symbol.as_ref(), reader, options, rows),
            Self::Yahoo(symbol) => yahoo::read(symbol, reader, options, rows),
        }
    }
}

/// Why no format fits, with what the file looks like and what to do.
fn refusal(file: &FeedFile, head: &Head, choice: Choice) -> String {
    let wanted = match choice {
        Choice::Auto => "is no format this program loads".to_owned(),
        Choice::Canonical => format!("is not canonical: {}", canonical::expectation(file)),
        Choice::Wiki => "is not wiki: columns date, close, ex-dividend and split_ratio are needed".to_owned(),
        Choice::Yahoo => {
            "is not yahoo: columns Date, Open, High, Low, Close, Adj Close and Volume are needed".to_owned()
        }
    };
    match (head.looks_like(), file.encoding) {
        (Some(guess), _) => format!("{wanted}; it looks like {guess}"),
        (None, Encoding::Csv) => format!("{wanted}; its columns are: {}", head.columns_for_people()),
        (None, _) => format!("{wanted}; it begins with: {}", head.beginning()),
    }
}
