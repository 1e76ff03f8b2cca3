//! Open tables of reference data: reference rates of the European Central Bank, the S&P 500 and exchange listings. The
//! tables of the S&P 500 and some listings are of the GitHub collection `datasets`.

use chrono::NaiveDate;
use market::reference::Country;
use rust_decimal::Decimal;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError, SymbolScope,
    VendorFile, VendorFormat, VendorRow, fields, is_absent_value, meaning_of, read_rows, scale_number,
};

/// Reference rates of the European Central Bank (R41): a row per day, a column per currency, units of the currency per
/// euro. "N/A" and an empty cell mean that the currency has no rate on this day.
pub(crate) static ECB: VendorFormat = VendorFormat {
    name: "ecb",
    about: "Euro reference rates CSV of the European Central Bank (eurofxref-hist.csv, eurofxref.csv)",
    needs: "the columns Date, USD, JPY and GBP are needed",
    detect: detect_ecb,
    read: read_ecb,
};

fn detect_ecb(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let is_table = head.has_columns(&["date", "usd", "jpy", "gbp"]);
    (head.encoding == Encoding::Csv && is_table).then_some(Ok(SymbolScope::Rows))
}

fn read_ecb(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    read_rows(file, rows, |row, rows| {
        // The currencies are the records, so that one bad cell rejects no other rate.
        rows.stats.records -= 1;
        let date = row.date(&["date"]);
        let rates = row
            .fields()
            .filter(|(name, rate)| !name.is_empty() && *name != "date" && !is_absent_value(rate.as_bytes()));
        for (currency, rate) in rates {
            rows.stats.records += 1;
            let record = RecordBuilder::new(Kind::Fx)
                .with_value("date", date)
                .with_value("base", Some("EUR"))
                .with_value("quote", Some(currency.to_ascii_uppercase()))
                .with_value("rate", Some(rate));
            if let Err(fault) = record.validate_into(row.line, rate.len(), rows) {
                rows.add_reject(row.line, row.raw, fault);
            }
        }
        Ok(())
    })
}

/// Tables of the S&P 500: constituents, and financials of one date.
pub(crate) static SP500: VendorFormat = VendorFormat {
    name: "sp500",
    about: "S&P 500 constituents and financials CSV of the datasets collection on GitHub",
    needs: "the columns Symbol and GICS Sector, or Symbol, Price/Earnings and Market Cap, are needed",
    detect: detect_sp500,
    read: read_sp500,
};

/// Market values below this number are in billions of dollars, the unit of files up to 2016. All other values are in
/// dollars.
const MIN_MARKET_CAP: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
const BILLION: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

fn detect_sp500(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if head.encoding != Encoding::Csv || !head.has_column(&["symbol"]) {
        return None;
    }
    let constituents = head.has_column(&["gicssector"]);
    let financials = head.has_columns(&["priceearnings", "marketcap"]);
    (constituents || financials).then_some(Ok(if financials {
        SymbolScope::Dated
    } else {
        SymbolScope::Rows
    }))
}

fn read_sp500(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
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
    let as_of = date.unwrap_or_else(|| rows.observed_at.date_naive());
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

/// Exchange listings. Warrants, rights and units are loaded as stocks. Test symbols of the exchanges are rejected.
pub(crate) static LISTINGS: VendorFormat = VendorFormat {
    name: "listings",
    about: "Listings of Nasdaq, NYSE and other exchanges: CSV of the datasets collection on GitHub, and files of the Nasdaq symbol directory",
    needs: "the columns Symbol and Security Name, or ACT Symbol, are needed",
    detect: detect_listings,
    read: read_listings,
};

const SYMBOL: [&str; 3] = ["symbol", "actsymbol", "nasdaqsymbol"];
const NAME: [&str; 2] = ["securityname", "companyname"];

fn detect_listings(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let nasdaq = head.has_columns(&["symbol", "securityname"]);
    let other = head.has_column(&["actsymbol"]) && head.has_column(&NAME);
    (head.encoding == Encoding::Csv && (nasdaq || other)).then_some(Ok(SymbolScope::Rows))
}

fn read_listings(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    read_rows(file, rows, |row, rows| {
        // The last line of a directory file is its creation time, not a listing.
        if row.text(&SYMBOL).is_some_and(|symbol| symbol.starts_with("File Creation Time")) {
            rows.stats.records -= 1;
            return Ok(());
        }
        listing(row, rows)
    })
}

fn listing(row: &VendorRow<'_>, rows: &mut RowAccumulator) -> Result<(), RowError> {
    if row.text(&["testissue"]) == Some("Y") {
        return Err(RowError::new("test_issue", "is a test symbol of the exchange"));
    }
    let name = row.text(&NAME).ok_or_else(|| RowError::missing_value("Security Name"))?;
    // A list of one exchange has no exchange column. Lists of NYSE have a column `ACT Symbol`, lists of Nasdaq do not.
    let exchange = match row.text(&["exchange"]) {
        Some(code) => meaning_of("nasdaq exchange", code).unwrap_or(code),
        None if row.has(&["actsymbol"]) => "XNYS",
        None => "XNAS",
    };
    RecordBuilder::new(Kind::Security)
        .with_value("symbol", row.text(&SYMBOL).map(canonical_symbol))
        .with_value("name", Some(name.trim()))
        .with_value("type", Some(type_of(name, row.text(&["etf"]) == Some("Y"))))
        .with_value("exchange", Some(exchange))
        .add_of_row(row, rows)
}

/// Canonical form of a symbol. The directory writes preferred shares as `ABR$D` and warrants as `GTX.W`.
fn canonical_symbol(symbol: &str) -> String {
    match (symbol.split_once('$'), symbol.strip_suffix(".W")) {
        (Some((root, class)), _) => format!("{root}.PR{class}"),
        (_, Some(root)) => format!("{root}.WS"),
        _ => symbol.to_owned(),
    }
}

/// Security type that the full name indicates.
fn type_of(name: &str, is_fund: bool) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if is_fund || name.ends_with(" ETF") {
        "etf"
    } else if has(&["Depositary Share", "Depository Share", "ADR"]) && has(&["American", "ADS", "ADR"]) {
        "adr"
    } else if has(&["Preferred", "Preference Share"]) {
        "preferred"
    } else if has(&["REIT", "Real Estate Investment Trust"]) {
        "reit"
    } else {
        "stock"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_the_directory_are_spelled_as_everywhere() {
        assert_eq!(
            ["ABR$D", "GTX.W", "AAC.U", "BRK.B"].map(canonical_symbol),
            ["ABR.PRD", "GTX.WS", "AAC.U", "BRK.B"]
        );
    }
}
