//! Types for the formats of feed files: chosen and detected format, reader options, and errors of readers.
//!
//! The module does not depend on any vendor's module.

use std::io::{self, Read};
use std::sync::Arc;

use chrono::NaiveDate;
use market::event::Kind;
use market::metrics::currency::Currency;
use market::symbol::Symbol;

use super::column_map::map::ColumnMap;
use super::column_map::name_pattern::SymbolPattern;
use super::file_head::FileHead;
use crate::batch::row_accumulator::RowAccumulator;
use crate::source::feed_files::Encoding;

/// Value of `--format`: one format for all files, or detection per file.
#[derive(Debug, Clone, Copy, Default)]
pub enum FormatChoice {
    /// Detection of each file's format by its header or JSON shape.
    #[default]
    Auto,
    /// This project's own CSV or NDJSON.
    Canonical,
    /// Layout of one vendor's files.
    Vendor(&'static VendorFormat),
}

impl FormatChoice {
    /// Value of `--format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Canonical => "canonical",
            Self::Vendor(vendor) => vendor.name,
        }
    }

    /// Vendor of the chosen format; `None` for other choices.
    pub(super) fn vendor(self) -> Option<&'static VendorFormat> {
        match self {
            Self::Vendor(vendor) => Some(vendor),
            Self::Auto | Self::Canonical => None,
        }
    }
}

/// Format of one file. It includes the symbol and the date if the rows do not contain them.
#[derive(Debug, Clone)]
pub struct FileFormat {
    pub(super) layout: FileLayout,
    /// Syntax of the file: CSV, JSON lines, or one JSON document.
    pub(super) encoding: Encoding,
    /// Symbol of all rows, for a file without symbols in its rows.
    pub(super) symbol: Option<Symbol>,
    /// Date in the file name, for a file without dates in its rows.
    pub(super) date: Option<NaiveDate>,
}

/// Layout of the records in a file.
#[derive(Debug, Clone)]
pub(super) enum FileLayout {
    /// Canonical layout, with the kind in the file name. It is the kind of all records that do not contain a kind.
    /// `None` for a JSON file whose first record contains its kind.
    Canonical(Option<Kind>),
    Vendor(&'static VendorFormat),
    /// Layout described by a map.
    Mapped {
        map: Arc<ColumnMap>,
        /// True for a file of exported rejects. Such a file is always UTF-8 with one header line, even if the map has
        /// other settings.
        is_reject_export: bool,
    },
}

impl FileFormat {
    /// Name of the format, for messages and for the manifest of a load.
    pub fn name(&self) -> &'static str {
        match &self.layout {
            FileLayout::Canonical(_) => "canonical",
            FileLayout::Vendor(vendor) => vendor.name,
            FileLayout::Mapped { .. } => "map",
        }
    }

    /// True for a layout described by a map.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.layout, FileLayout::Mapped { .. })
    }

    /// Format, symbol, date and map as text, for example `tiingo/AAPL`, for the digest of an input. The content and
    /// this text determine the rows of a file.
    pub fn identity_context(&self) -> String {
        let symbol = self.symbol.as_ref().map(|symbol| format!("/{symbol}")).unwrap_or_default();
        let date = self.date.map(|date| format!("@{date}")).unwrap_or_default();
        match &self.layout {
            FileLayout::Canonical(None) => String::new(),
            FileLayout::Canonical(Some(kind)) => format!("canonical/{kind}"),
            FileLayout::Vendor(vendor) => format!("{}{symbol}{date}", vendor.name),
            FileLayout::Mapped { map, .. } => format!("map/{}{symbol}", map.digest),
        }
    }
}

/// Reader options from the command line.
#[derive(Debug, Clone, Default)]
pub struct ReaderOptions {
    /// Format of the files. It is ignored if `map` is set.
    pub choice: FormatChoice,
    /// Map for every file.
    pub map: Option<Arc<ColumnMap>>,
    /// Symbol of all rows, for files without symbols in their rows. It overrides the file names.
    pub symbol: Option<Symbol>,
    /// Pattern for the symbol in file names.
    pub symbol_from: Option<SymbolPattern>,
    /// Currency of amounts in formats without currencies. If `None`, the security's currency is used.
    pub currency: Option<Currency>,
    /// True if unknown columns and fields are ignored, false if they are refused.
    pub ignore_unknown: bool,
    /// Current date. Prices and sessions may have this date or the next day. Rows with a later date are rejected.
    pub today: NaiveDate,
}

/// Errors that prevent loading a file.
#[derive(Debug, thiserror::Error)]
pub enum FeedReadError {
    /// The file cannot be read or unpacked.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The content does not fit the format. The text completes a message that begins with the file name.
    #[error("{0}")]
    Refused(String),
}

/// Format of a vendor.
#[derive(Debug)]
pub struct VendorFormat {
    /// Value of `--format`.
    pub name: &'static str,
    /// Description for `--help`.
    pub about: &'static str,
    /// Columns or members that a file in this format needs, as text for an error message.
    pub(super) needs: &'static str,
    pub(super) detect: fn(&FileHead) -> Option<Result<SymbolScope, String>>,
    pub(super) read: fn(VendorFile<'_>, &mut RowAccumulator) -> Result<(), FeedReadError>,
}

/// Location of the symbol in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolScope {
    /// Every row contains its symbol.
    Rows,
    /// All rows have one symbol. It comes from the command line or the file name, not from the content.
    File,
    /// Every row contains its symbol. The date of all rows comes from the file name, if the name contains a date.
    Dated,
}

/// Open file, with the context that a reader needs.
pub(super) struct VendorFile<'a> {
    pub(super) source: &'a mut dyn Read,
    pub(super) encoding: Encoding,
    /// Symbol of all rows, for a file without symbols in its rows.
    pub(super) symbol: Option<&'a Symbol>,
    /// Date in the file name, for a file without dates in its rows.
    pub(super) date: Option<NaiveDate>,
    pub(super) options: &'a ReaderOptions,
}

impl VendorFile<'_> {
    /// Symbol of all rows, for a file without symbols in its rows. Fails if the symbol is unknown.
    pub(super) fn file_symbol(&self) -> Result<&Symbol, FeedReadError> {
        self.symbol.ok_or_else(|| FeedReadError::Refused("names no symbol: add --symbol SYMBOL".to_owned()))
    }
}
