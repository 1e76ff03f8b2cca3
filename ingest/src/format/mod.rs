//! Feed formats: one file per format, with its detection and its reader.
//!
//! The format of a file is detected before any row is loaded. A file of an unknown format is refused with a message
//! about its probable origin.

use std::io::Read;

use chrono::NaiveDate;
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::parse_date;
use crate::source::feed_files::{Encoding, FeedFile};

pub mod canonical;
mod column_map;
mod error_response;
mod file_format;
mod file_head;
mod file_records;
mod file_symbol;
mod raw_json;
mod split_ratio;
#[cfg(test)]
pub(crate) mod tests;
mod trading_day;
mod utc_times;
mod vendors;

pub use column_map::name_pattern::SymbolPattern;
pub use column_map::{ColumnMap, MapError, MapFile, SHIPPED};
pub(crate) use column_map::{date_parser, factor_in_name};
pub(crate) use error_response::{is_throttle_notice, parse_service_message};
pub use file_format::{FeedReadError, FileFormat, FormatChoice, ReaderOptions, VendorFormat};
use file_format::{FileLayout, SymbolScope, VendorFile};
pub use file_head::FileHead;
pub(crate) use file_head::normalize_column_name;
pub(crate) use file_head::{canonical_column_of, is_word_of, without_remark, words_of, words_of_topic};
pub(crate) use raw_json::find_repeated_member;

/// Values of `--format`. The first vendor format in this order that recognizes a file is used. The canonical format is
/// used if no vendor format recognizes the file.
static CHOICES: [FormatChoice; 14] = [
    FormatChoice::Auto,
    FormatChoice::Canonical,
    FormatChoice::Vendor(&vendors::raw_prices::WIKI),
    FormatChoice::Vendor(&vendors::raw_prices::MARKETSTACK),
    FormatChoice::Vendor(&vendors::tiingo::FORMAT),
    FormatChoice::Vendor(&vendors::alphavantage::FORMAT),
    FormatChoice::Vendor(&vendors::eodhd::FORMAT),
    FormatChoice::Vendor(&vendors::massive::FORMAT),
    FormatChoice::Vendor(&vendors::ishares::FORMAT),
    FormatChoice::Vendor(&vendors::sp500::FORMAT),
    FormatChoice::Vendor(&vendors::ecb::FORMAT),
    FormatChoice::Vendor(&vendors::listings::FORMAT),
    FormatChoice::Vendor(&vendors::sec::FORMAT),
    FormatChoice::Vendor(&vendors::yahoo::FORMAT),
];

impl ValueEnum for FormatChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::Auto => "Recognise each file by its header or JSON shape",
            Self::Canonical => {
                "This project's own CSV or NDJSON; CSV files are named by their kind (prices.csv, dividends-2024.csv.gz)"
            }
            Self::Vendor(vendor) => vendor.about,
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl FileFormat {
    /// Detects the format of a file from its head.
    pub fn detect(file: &FeedFile, head: &FileHead, options: &ReaderOptions) -> Result<Self, String> {
        if let Some(reason) = error_response::refusal_reason(head) {
            return Err(reason);
        }
        if let Some(map) = &options.map {
            return column_map::detect(map, file, head, options);
        }
        if head.encoding == Encoding::Csv && head.is_blank() {
            return Err("is empty: a header row is needed".to_owned());
        }
        let (vendors, canonical) = match &options.choice {
            FormatChoice::Auto => (CHOICES.as_slice(), true),
            FormatChoice::Canonical => ([].as_slice(), true),
            vendor => (std::slice::from_ref(vendor), false),
        };
        let mut vendors = vendors.iter().filter_map(|choice| choice.vendor());
        let found = vendors.find_map(|vendor| Some((vendor, (vendor.detect)(head)?)));
        if let Some((vendor, symbol_scope)) = found {
            let symbol_scope = symbol_scope?;
            if let (SymbolScope::File, Some(column)) = (symbol_scope, head.symbol_column()) {
                return Err(format!(
                    "has symbols in its column {column:?}, but a {} file has one symbol: read it under a map that names the symbol column (ingest map FILE)",
                    vendor.name
                ));
            }
            let date = if symbol_scope == SymbolScope::Dated { date_in(file.stem()) } else { None };
            let symbol = file_symbol::resolve_file_symbol(&file.label, symbol_scope, options)?;
            return Ok(Self { layout: FileLayout::Vendor(vendor), encoding: head.encoding, symbol, date });
        }
        let found = if canonical { canonical::detect(file, head) } else { None };
        found.unwrap_or_else(|| Err(refusal(head, options.choice)))
    }

    /// Reads all rows of a file into `rows`.
    pub(crate) fn read(
        &self,
        reader: &mut dyn Read,
        options: &ReaderOptions,
        rows: &mut RowAccumulator,
    ) -> Result<(), FeedReadError> {
        let Self { layout, encoding, symbol, date } = self;
        let (encoding, date, symbol) = (*encoding, *date, symbol.as_ref());
        let file = VendorFile { source: reader, encoding, symbol, date, options };
        let of_prices = match layout {
            // A map converts its prices to the major unit.
            FileLayout::Mapped { map, .. } if map.price_currency().is_some() => map.price_currency(),
            _ => options.currency.clone(),
        };
        rows.set_currency(options.currency.clone(), of_prices);
        match layout {
            FileLayout::Canonical(kind) => canonical::read(*kind, file, rows),
            FileLayout::Vendor(vendor) => (vendor.read)(file, rows),
            FileLayout::Mapped { map, is_reject_export } => {
                column_map::read(map, *is_reject_export, file, rows)
            }
        }
    }
}

/// First date in a file's name: `constituents-financials_2018-02-08`.
fn date_in(stem: &str) -> Option<NaiveDate> {
    stem.as_bytes().windows(10).find_map(parse_date)
}

/// Error message for a file that no format fits. It contains the likely origin of the file and a hint.
fn refusal(head: &FileHead, choice: FormatChoice) -> String {
    if head.display_beginning().is_empty() {
        return "is empty".to_owned();
    }
    let wanted = match choice {
        FormatChoice::Auto => "has no format that ingest loads".to_owned(),
        FormatChoice::Canonical => format!("is not canonical: {}", canonical::expectation(head)),
        FormatChoice::Vendor(vendor) => format!("is not {}: {}", vendor.name, vendor.needs),
    };
    if let Some(map) = column_map::find_shipped_map(&head.columns) {
        return format!("{wanted}; a shipped map reads it: see `ingest map {map}`, then add --map {map}");
    }
    let mut vendors = CHOICES.iter().filter_map(|choice| choice.vendor());
    if let Some(VendorFormat { name, .. }) =
        vendors.find(|vendor| matches!((vendor.detect)(head), Some(Ok(_))))
    {
        return format!("{wanted}; it looks like {name}: omit --format or use --format {name}");
    }
    match (head.guess_origin(), head.encoding) {
        (Some(guess), _) => format!("{wanted}; it looks like {guess}"),
        (None, Encoding::Csv) => {
            format!(
                "{wanted}; its columns are: {}; `ingest map FILE` proposes a map for it",
                head.display_columns()
            )
        }
        (None, _) => format!(
            "{wanted}; it begins with: {}; a map can locate its values: [columns] has the names of the members, and records in [file] is the path of the record list, such as \"data.rows\" (example of a map: `ingest map nasdaq`)",
            head.display_beginning()
        ),
    }
}
