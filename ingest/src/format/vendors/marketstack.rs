//! Marketstack: end-of-day prices of one or many symbols, as CSV and JSON.
//!
//! Prices are as traded, and `dividend` is as paid. `adj_close` is used only to check which dividends were paid (R40).
//! The other `adj_…` columns are not read.

use super::{
    Encoding, FeedReadError, FileHead, RowAccumulator, SymbolScope, TradingDay, VendorFile, VendorFormat,
    normalize_column_name, parse_session_date, read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "marketstack",
    about: "Marketstack end-of-day CSV and JSON, of one or many symbols",
    needs: "symbol, date, close, split_factor and dividend are needed",
    detect,
    read,
};

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let names = if head.encoding == Encoding::Csv { head.columns.clone() } else { head.record_keys() };
    let has = |wanted: &str| names.iter().any(|name| normalize_column_name(name) == wanted);
    let needed = ["symbol", "date", "close", "splitfactor", "dividend"];
    needed.into_iter().all(has).then_some(Ok(SymbolScope::Rows))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let options = file.options;
    read_rows(file, rows, |row, rows| {
        let symbol = row.symbol("symbol")?;
        let date = parse_session_date("date", row.bytes(&["date"]), rows.zone())?;
        let (dividend, ratio) = (("dividend", "dividend"), ("split_factor", "splitfactor"));
        let day = TradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio)?;
        TradingDay { has_dividends: true, ..day }.add_raw(options, rows)
    })
}
