//! Tables of the S&P 500 from the GitHub collection `datasets`: constituents, and financials of one date.

use chrono::NaiveDate;
use market::reference::Country;
use rust_decimal::Decimal;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError, SymbolScope,
    VendorFile, VendorFormat, VendorRow, fields, read_rows, scale_number,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "sp500",
    about: "S&P 500 constituents and financials CSV of the datasets collection on GitHub",
    needs: "the columns Symbol and GICS Sector, or Symbol, Price/Earnings and Market Cap, are needed",
    detect,
    read,
};

/// Market values below this number are in billions of dollars, the unit of files up to 2016. All other values are in
/// dollars.
const MIN_MARKET_CAP: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
const BILLION: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if head.encoding != Encoding::Csv || !head.has_column(&["symbol"]) {
        return None;
    }
    let constituents = head.has_column(&["gicssector"]);
    let financials = head.has_column(&["priceearnings"]) && head.has_column(&["marketcap"]);
    (constituents || financials).then_some(Ok(if financials {
        SymbolScope::Dated
    } else {
        SymbolScope::Rows
    }))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let date = file.date;
    read_rows(file, rows, |row, rows| {
        if row.has(&["priceearnings"]) { financials(row, date, rows) } else { constituent(row, rows) }
    })
}

fn constituent(row: &VendorRow<'_>, rows: &mut RowAccumulator) -> Result<(), RowError> {
    let industry = row.text(&["gicssubindustry"]);
    let trust = industry.is_some_and(|industry| industry.ends_with("REITs"));
    let country_name = row.text(&["headquarterslocation"]).and_then(|location| location.rsplit(',').next());
    RecordBuilder::new(Kind::Security)
        .with_values(fields! { row.text => symbol, name: security | name, sector: gicssector, cik })
        .with_value("type", Some(if trust { "reit" } else { "stock" }))
        .with_value("industry", industry)
        .with_value("country", country_name.and_then(Country::find).map(|country| country.code))
        .with_value("indexes", Some("sp500"))
        .add_of_row(row, rows)
}

/// Adds the figures. `date` is the date in the file name; without it, the date of the load is used.
fn financials(
    row: &VendorRow<'_>,
    date: Option<NaiveDate>,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let as_of = date.unwrap_or_else(|| rows.observed_at().date_naive());
    let market_cap = row.text(&["marketcap"]).map(|text| {
        let small = market::decimal::parse_figure(text).is_ok_and(|cap| cap.value < MIN_MARKET_CAP);
        if small { scale_number(text, BILLION) } else { text.to_owned() }
    });
    RecordBuilder::new(Kind::Fundamentals)
        .with_value("as_of", Some(as_of.to_string()))
        .with_value("market_cap", market_cap)
        .with_values(fields! {
            row.text =>
                symbol, eps_ttm: earningsshare, ps_ratio: pricesales, book_value_per_share: bookvalue,
        })
        .add_of_row(row, rows)
}
