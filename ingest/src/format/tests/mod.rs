//! Tests of every file format. A test reads a text, and compares each resulting row with an expected line of text.

use market::symbol::Symbol;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

mod alphavantage;
mod canonical;
mod column_map;
mod eodhd;
mod ishares;
mod listings;
mod local_days;
mod marketstack;
mod massive;
mod price_evidence;
pub(crate) mod read_helper;
mod sec;
mod sp500;
mod tiingo;
mod wiki;
mod yahoo;

use read_helper::{bodies, options};

/// A property test joins these fragments of all formats into random texts.
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
        let options = ReaderOptions { choice, symbol: Symbol::parse("A").ok(), ..options() };
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
