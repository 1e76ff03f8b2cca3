//! Tables of the S&P 500 from the datasets collection on GitHub: constituents, and their financials on the date in the
//! file name.

use chrono::NaiveDate;
use market::event::Kind;
use market::reference::Country;
use rust_decimal::Decimal;

use crate::batch::row_accumulator::RowAccumulator;
use crate::format::canonical::RecordBuilder;
use crate::format::file_format::{FeedReadError, SymbolScope, VendorFile, VendorFormat};
use crate::format::file_head::FileHead;
use crate::format::vendor_row::{VendorRow, read_rows, scale_number};
use crate::normalize::RowError;
use crate::source::feed_files::Encoding;

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "sp500",
    about: "S&P 500 constituents and financials CSV of the datasets collection on GitHub",
    needs: "the columns Symbol and GICS Sector, or Symbol, Price/Earnings and Market Cap, are needed",
    detect,
    read,
};

/// Minimum market value of a company, in dollars. A smaller number is in billions of dollars, as in files up to 2016.
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
        .with_value("symbol", row.text(&["symbol"]))
        .with_value("name", row.text(&["security", "name"]))
        .with_value("type", Some(if trust { "reit" } else { "stock" }))
        .with_value("sector", row.text(&["gicssector"]))
        .with_value("industry", industry)
        .with_value("country", country_name.and_then(Country::find).map(|country| country.code))
        .with_value("cik", row.text(&["cik"]))
        .with_value("indexes", Some("sp500"))
        .validate_into(row.line, row.raw.len(), rows)
}

/// Adds the figures as of the date in the file name, or else as of the date of the load.
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
        .with_value("symbol", row.text(&["symbol"]))
        .with_value("as_of", Some(as_of.to_string()))
        .with_value("eps_ttm", row.text(&["earningsshare"]))
        .with_value("market_cap", market_cap)
        .with_value("ps_ratio", row.text(&["pricesales"]))
        .with_value("book_value_per_share", row.text(&["bookvalue"]))
        .validate_into(row.line, row.raw.len(), rows)
}
