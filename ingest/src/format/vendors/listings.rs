//! Exchange listings: files of the Nasdaq symbol directory, and tables of the GitHub collection `datasets`.
//!
//! Warrants, rights and units are loaded as stocks. Test symbols of the exchanges are rejected.

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError, SymbolScope,
    VendorFile, VendorFormat, VendorRow, read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "listings",
    about: "Listings of Nasdaq, NYSE and other exchanges: CSV of the datasets collection on GitHub, and files of the Nasdaq symbol directory",
    needs: "the columns Symbol and Security Name, or ACT Symbol, are needed",
    detect,
    read,
};

const SYMBOL: [&str; 3] = ["symbol", "actsymbol", "nasdaqsymbol"];
const NAME: [&str; 2] = ["securityname", "companyname"];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let nasdaq = head.has_column(&["symbol"]) && head.has_column(&["securityname"]);
    let other = head.has_column(&["actsymbol"]) && head.has_column(&NAME);
    (head.encoding == Encoding::Csv && (nasdaq || other)).then_some(Ok(SymbolScope::Rows))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
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
        Some("A") => "XASE",
        Some("N") => "XNYS",
        Some("P") => "ARCX",
        Some("Z") => "BATS",
        Some("V") => "IEXG",
        Some(other) => other,
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
