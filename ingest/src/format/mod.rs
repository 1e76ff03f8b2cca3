//! Feed formats: one file per format, with its detection and its reader.
//!
//! A file is recognized before any row is loaded. A file of an unknown format is refused, with its likely origin.

use std::io::Read;

use chrono::NaiveDate;
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::batch::accumulator::Collector;
use crate::normalize::parse_date;
use crate::source::files::{Encoding, FeedFile};

mod answer;
pub mod canonical;
mod day;
mod file_symbol;
mod head;
mod json;
mod mapped;
mod newest_basis;
mod ratio;
mod reading;
mod symbol_from;
mod table;
#[cfg(test)]
mod tests;
mod vendor;
mod vendors;

pub(crate) use answer::{is_throttle, notice};
pub use head::Head;
pub(crate) use head::plain;
pub(crate) use mapped::is_date;
pub use mapped::{Map, MapError, MapFile, SHIPPED};
pub use reading::{Choice, Format, Options, ReadError, Vendor};
use reading::{Reading, Whose};
pub use symbol_from::SymbolFrom;

/// Values of `--format`. Files are recognized in this order, the canonical format last.
static CHOICES: [Choice; 12] = [
    Choice::Auto,
    Choice::Canonical,
    Choice::Vendor(&vendors::wiki::FORMAT),
    Choice::Vendor(&vendors::tiingo::FORMAT),
    Choice::Vendor(&vendors::alphavantage::FORMAT),
    Choice::Vendor(&vendors::eodhd::FORMAT),
    Choice::Vendor(&vendors::massive::FORMAT),
    Choice::Vendor(&vendors::ishares::FORMAT),
    Choice::Vendor(&vendors::sp500::FORMAT),
    Choice::Vendor(&vendors::listings::FORMAT),
    Choice::Vendor(&vendors::sec::FORMAT),
    Choice::Vendor(&vendors::yahoo::FORMAT),
];

impl ValueEnum for Choice {
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

impl Format {
    /// Detects the format of a file from its head.
    pub fn recognise(file: &FeedFile, head: &Head, options: &Options) -> Result<Self, String> {
        if let Some(reason) = answer::refusal(head) {
            return Err(reason);
        }
        if let Some(map) = &options.map {
            return mapped::recognise(map, file, head, options);
        }
        let (vendors, canonical) = match &options.choice {
            Choice::Auto => (CHOICES.as_slice(), true),
            Choice::Canonical => ([].as_slice(), true),
            vendor => (std::slice::from_ref(vendor), false),
        };
        let mut vendors = vendors.iter().filter_map(|choice| choice.vendor());
        let found = vendors.find_map(|vendor| Some((vendor, (vendor.recognise)(head)?)));
        if let Some((vendor, whose)) = found {
            let whose = whose?;
            let date = if whose == Whose::Dated { date_in(file.stem()) } else { None };
            let symbol = file_symbol::resolve(file, whose, options)?;
            return Ok(Self::Vendor { vendor, encoding: head.encoding, symbol, date });
        }
        let found = if canonical { canonical::recognise(file, head) } else { None };
        found.unwrap_or_else(|| Err(refusal(head, options.choice)))
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
            Self::CanonicalRecords { kind, encoding } => {
                let reading =
                    Reading { source: reader, encoding: *encoding, symbol: None, date: None, options };
                canonical::read_records(*kind, reading, rows)
            }
            Self::Vendor { vendor, encoding, symbol, date } => {
                let (encoding, date, symbol) = (*encoding, *date, symbol.as_ref());
                (vendor.read)(Reading { source: reader, encoding, symbol, date, options }, rows)
            }
            Self::Mapped { map, encoding, symbol, mended } => {
                let (encoding, symbol) = (*encoding, symbol.as_ref());
                let reading = Reading { source: reader, encoding, symbol, date: None, options };
                mapped::read(map, *mended, reading, rows)
            }
        }
    }
}

/// First date in a file's name: `constituents-financials_2018-02-08`.
fn date_in(stem: &str) -> Option<NaiveDate> {
    stem.as_bytes().windows(10).find_map(parse_date)
}

/// Reason why no format fits, with the likely origin of the file and a hint.
fn refusal(head: &Head, choice: Choice) -> String {
    if head.beginning().is_empty() {
        return "is empty".to_owned();
    }
    let wanted = match choice {
        Choice::Auto => "is no format this program loads".to_owned(),
        Choice::Canonical => format!("is not canonical: {}", canonical::expectation(head)),
        Choice::Vendor(vendor) => format!("is not {}: {}", vendor.name, vendor.needs),
    };
    if let Some(map) = mapped::shipped_for(&head.columns) {
        return format!(
            "{wanted}; it looks like what a map reads that ships with the program: see `ingest map {map}`, then say --map {map}"
        );
    }
    let mut vendors = CHOICES.iter().filter_map(|choice| choice.vendor());
    if let Some(Vendor { name, .. }) = vendors.find(|vendor| matches!((vendor.recognise)(head), Some(Ok(_))))
    {
        return format!("{wanted}; it looks like {name}: leave --format out or say --format {name}");
    }
    match (head.looks_like(), head.encoding) {
        (Some(guess), _) => format!("{wanted}; it looks like {guess}"),
        (None, Encoding::Csv) => {
            format!(
                "{wanted}; its columns are: {}; `ingest map FILE` proposes a map for it",
                head.columns_for_people()
            )
        }
        (None, _) => format!(
            "{wanted}; it begins with: {}; a map says where its values stand (`ingest map nasdaq` shows one; in [columns] names of members, and in [file] records = \"data.rows\", the member that holds the records)",
            head.beginning()
        ),
    }
}
