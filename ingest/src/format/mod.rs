//! Feed formats: one file each, with what recognises it and what reads it.
//!
//! A file is recognised before anything of it is loaded; one of another kind is refused with what it looks like.

use std::io::Read;

use chrono::NaiveDate;
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::collect::Collector;
use crate::normalize::parse_date;
use crate::source::{Encoding, FeedFile};

mod alphavantage;
mod answer;
pub mod canonical;
mod day;
mod eodhd;
mod file_symbol;
mod head;
mod ishares;
mod json;
mod listings;
mod massive;
mod ratio;
mod reading;
mod sec;
mod sp500;
mod symbol_from;
mod table;
#[cfg(test)]
mod testing;
mod tiingo;
mod vendor;
mod wiki;
mod yahoo;

pub(crate) use answer::{is_throttle, notice};
pub use head::Head;
pub use reading::{Choice, Format, Options, ReadError, Vendor};
use reading::{Reading, Whose};
pub use symbol_from::SymbolFrom;

/// Every choice; files are recognised in this order, the canonical format last.
static CHOICES: [Choice; 12] = [
    Choice::Auto,
    Choice::Canonical,
    Choice::Vendor(&wiki::FORMAT),
    Choice::Vendor(&tiingo::FORMAT),
    Choice::Vendor(&alphavantage::FORMAT),
    Choice::Vendor(&eodhd::FORMAT),
    Choice::Vendor(&massive::FORMAT),
    Choice::Vendor(&ishares::FORMAT),
    Choice::Vendor(&sp500::FORMAT),
    Choice::Vendor(&listings::FORMAT),
    Choice::Vendor(&sec::FORMAT),
    Choice::Vendor(&yahoo::FORMAT),
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
    /// Finds the format of a file by its head.
    pub fn recognise(file: &FeedFile, head: &Head, options: &Options) -> Result<Self, String> {
        if let Some(reason) = answer::refusal(head) {
            return Err(reason);
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
            Self::CanonicalNdjson => canonical::read_ndjson(reader, options, rows),
            Self::Vendor { vendor, encoding, symbol, date } => {
                let (encoding, date, symbol) = (*encoding, *date, symbol.as_ref());
                (vendor.read)(Reading { source: reader, encoding, symbol, date, options }, rows)
            }
        }
    }
}

/// The first date in a file's name: `constituents-financials_2018-02-08`.
fn date_in(stem: &str) -> Option<NaiveDate> {
    stem.as_bytes().windows(10).find_map(parse_date)
}

/// Why no format fits, with what the file looks like and what to do.
fn refusal(head: &Head, choice: Choice) -> String {
    let wanted = match choice {
        Choice::Auto => "is no format this program loads".to_owned(),
        Choice::Canonical => format!("is not canonical: {}", canonical::expectation(head)),
        Choice::Vendor(vendor) => format!("is not {}: {}", vendor.name, vendor.needs),
    };
    match (head.looks_like(), head.encoding) {
        (Some(guess), _) => format!("{wanted}; it looks like {guess}"),
        (None, Encoding::Csv) => format!("{wanted}; its columns are: {}", head.columns_for_people()),
        (None, _) => format!("{wanted}; it begins with: {}", head.beginning()),
    }
}

#[cfg(test)]
mod tests {
    use market::symbol::Symbol;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::testing::{bodies, options};
    use super::*;

    /// Pieces of every format, of which texts are made that no vendor sends.
    const PIECES: [&str; 40] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\n",
        "\"",
        ";",
        "\t",
        "|",
        "null",
        "\"results\":[",
        "\"data\":[",
        "{\"ticker\":\"A\",",
        "\"cash_amount\":",
        "\"t\":1112331600000,",
        "\"T\":\"é\",",
        "\"o\":1,\"h\":2,\"l\":1,\"c\":",
        "\"status\":\"OK\",\"request_id\":\"x\"",
        "\"Meta Data\":{\"2. Symbol\":\"A\"},",
        "\"Time Series (Daily)\":{",
        "\"2020-01-02\":{",
        "\"facts\":{\"us-gaap\":{",
        "\"entityName\":\"x\",",
        "\"units\":{\"USD\":[{\"start\":\"0001-01-01\",\"end\":\"9999-12-31\",\"val\":1e99}]}",
        "ticker,volume,open,close,high,low,window_start,transactions\n",
        "date,close,divCash,splitFactor\n",
        "Date,Open,High,Low,Close,Adjusted_close,Volume\n",
        "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n",
        "timestamp,open,high,low,close,volume\n",
        "Fund Holdings as of,\"Dec 06, 2024\"\nTicker,Name,Weight (%)\n",
        "Symbol|Security Name|Test Issue\n",
        "symbol,price/earnings,market cap\n",
        "Symbol,GICS Sector\n",
        "2024-01-02,1,2,1,2,9999999999999999999,0.5",
        "99999999999999999999999999999",
        "-1e-400",
        "\u{feff}",
        "1/0",
    ];

    proptest! {
        #[test]
        fn no_input_panics(
            pieces in prop::collection::vec(select(PIECES.as_slice()), 0..24),
            name in select(["A.csv", "A.json", "A.ndjson", "prices.csv", "é_x.txt", "-.json"].as_slice()),
            choice in select(CHOICES.as_slice()),
        ) {
            let options = Options { choice, symbol: Symbol::parse("A").ok(), ..options() };
            let _ = bodies(name, &pieces.concat(), &options);
        }

        #[test]
        fn what_is_cut_short_is_read_or_refused(end in 0usize..400, name in select(["A.csv", "A.json"].as_slice())) {
            let page = r#"{"results":[{"cash_amount":0.59375,"ex_dividend_date":"2025-06-12","ticker":"CSSEN"}],"status":"OK","request_id":"x"}"#;
            let cut = &page[..end.min(page.len())];
            let found = bodies(name, cut, &options());
            prop_assert_eq!(found.is_ok_and(|rows| !rows.is_empty()), end >= page.len());
        }
    }

    #[test]
    fn a_date_in_a_name_is_found() {
        assert_eq!(date_in("constituents-financials_2018-02-08"), NaiveDate::from_ymd_opt(2018, 2, 8));
        assert_eq!(date_in("2018-13-08é"), None);
    }

    #[test]
    fn choices_have_names_of_their_own() {
        let mut names: Vec<&str> = CHOICES.iter().map(|choice| choice.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHOICES.len());
    }
}
