//! Shared types of the format readers: format registry entry, reader options, read errors.
//!
//! Nothing here knows which vendors there are, so that a vendor's file can be read without all the others.

use std::io::{self, Read};
use std::sync::Arc;

use chrono::NaiveDate;
use market::event::Kind;
use market::metrics::currency::Currency;
use market::symbol::Symbol;

use super::head::Head;
use super::mapped::map::Map;
use super::symbol_from::SymbolFrom;
use crate::batch::accumulator::Collector;
use crate::source::files::Encoding;

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Recognise each file by its header or JSON shape.
    #[default]
    Auto,
    /// This project's own CSV or NDJSON.
    Canonical,
    /// The layout of one vendor's files.
    Vendor(&'static Vendor),
}

impl Choice {
    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Canonical => "canonical",
            Self::Vendor(vendor) => vendor.name,
        }
    }

    /// The vendor, where the choice is one.
    pub(super) fn vendor(self) -> Option<&'static Vendor> {
        match self {
            Self::Vendor(vendor) => Some(vendor),
            Self::Auto | Self::Canonical => None,
        }
    }
}

/// How the rows of one file are read: its format, and what its format needs to know beside the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// This project's CSV: all rows are of one kind, by the file's name.
    CanonicalCsv(Kind),
    /// This project's JSON: each record may name its kind.
    CanonicalRecords {
        /// The kind of records that name none, by the file's name.
        kind: Option<Kind>,
        /// A record a line, or all in one document.
        encoding: Encoding,
    },
    /// As a vendor writes it.
    Vendor {
        /// Whose layout it is.
        vendor: &'static Vendor,
        /// CSV, a record a line, or all in one document.
        encoding: Encoding,
        /// The symbol of a file whose rows name none.
        symbol: Option<Symbol>,
        /// The date in the name of a file whose rows name none.
        date: Option<NaiveDate>,
    },
    /// As a map says.
    Mapped {
        /// Says what each column is, and how dates and numbers are written.
        map: Arc<Map>,
        /// CSV, a record a line, or all in one document.
        encoding: Encoding,
        /// The symbol of a file whose rows name none.
        symbol: Option<Symbol>,
        /// Refused rows that were written to be mended: UTF-8 under one line of names, whatever the map says.
        mended: bool,
    },
}

impl Format {
    /// Name for people and manifests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CanonicalCsv(_) | Self::CanonicalRecords { .. } => "canonical",
            Self::Vendor { vendor, .. } => vendor.name,
            Self::Mapped { .. } => "map",
        }
    }

    /// What the rows depend on beside the content: part of the input's identity. Empty where the content says all.
    pub fn reading(&self) -> String {
        match self {
            Self::CanonicalRecords { kind: None, .. } => String::new(),
            Self::CanonicalCsv(kind) | Self::CanonicalRecords { kind: Some(kind), .. } => {
                format!("canonical/{kind}")
            }
            Self::Vendor { vendor, symbol, date, .. } => {
                let symbol = symbol.as_ref().map(|symbol| format!("/{symbol}")).unwrap_or_default();
                let date = date.map(|date| format!("@{date}")).unwrap_or_default();
                format!("{}{symbol}{date}", vendor.name)
            }
            Self::Mapped { map, symbol, .. } => {
                let symbol = symbol.as_ref().map(|symbol| format!("/{symbol}")).unwrap_or_default();
                format!("map/{}{symbol}", map.digest())
            }
        }
    }
}

/// What the command line says about reading.
#[derive(Debug, Clone)]
pub struct Options {
    /// The format of the files; says nothing where there is a map.
    pub choice: Choice,
    /// Reads every file, where it is given.
    pub map: Option<Arc<Map>>,
    /// The symbol of files whose rows name none, whatever the files are called.
    pub symbol: Option<Symbol>,
    /// Where the symbol stands in the names of files.
    pub symbol_from: Option<SymbolFrom>,
    /// Currency of amounts in formats that name none.
    pub currency: Currency,
    /// True if columns and fields of unknown names are read past instead of refused.
    pub ignore_unknown: bool,
    /// The day that tells which dates are in the future.
    pub today: NaiveDate,
}

/// Why a file is not loaded at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its bytes cannot be read or unpacked.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Its content does not fit its format; the text goes on after the name of the file.
    #[error("{0}")]
    Refused(String),
}

/// A vendor's format.
pub struct Vendor {
    /// Its word on the command line.
    pub name: &'static str,
    /// What it is, for `--help`.
    pub about: &'static str,
    /// What a file of it has, for the refusal of one that has not.
    pub(super) needs: &'static str,
    pub(super) recognise: fn(&Head) -> Option<Result<Whose, String>>,
    pub(super) read: fn(Reading<'_>, &mut Collector) -> Result<(), ReadError>,
}

impl std::fmt::Debug for Vendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Vendor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Vendor {}

/// Where a file says whose its rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Every row names its symbol.
    Rows,
    /// All rows are of one symbol, which the content does not name.
    File,
    /// Every row names its symbol, and the file's name the date they are of.
    Dated,
}

/// A vendor's file being read.
pub(super) struct Reading<'a> {
    pub(super) source: &'a mut dyn Read,
    pub(super) encoding: Encoding,
    /// The symbol of a file whose rows name none.
    pub(super) symbol: Option<&'a Symbol>,
    /// The date in the file's name.
    pub(super) date: Option<NaiveDate>,
    pub(super) options: &'a Options,
}

impl Reading<'_> {
    /// The currency of amounts that name none, as a feed spells it.
    pub(super) fn currency(&self) -> String {
        let currency = &self.options.currency;
        currency.minor.map_or_else(|| currency.code.clone(), str::to_owned)
    }

    /// The symbol of a file whose rows name none.
    pub(super) fn file_symbol(&self) -> Result<&Symbol, ReadError> {
        self.symbol
            .ok_or_else(|| ReadError::Refused("does not say whose rows it holds: say --symbol".to_owned()))
    }
}
