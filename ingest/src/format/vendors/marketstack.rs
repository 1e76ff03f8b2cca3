//! Marketstack: end-of-day prices of one or many symbols, as CSV and JSON.
//!
//! Prices are as traded, and `dividend` is as paid. `adj_close` is evidence of dividends only; the other `adj_…`
//! columns are not read.

use market::symbol::Symbol;

use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_format::{FeedReadError, SymbolScope, VendorFile, VendorFormat};
use crate::format::file_head::{FileHead, normalize_column_name};
use crate::format::raw_trading_day::RawTradingDay;
use crate::format::vendor_row::read_rows;
use crate::normalize::{RowError, parse_session_date};
use crate::source::feed_files::Encoding;

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
        let text = row.text(&["symbol"]).ok_or_else(|| RowError::missing_value("symbol"))?;
        let symbol = Symbol::parse(text).map_err(|_| RowError::invalid_symbol("symbol", text.as_bytes()))?;
        let date = parse_session_date("date", row.bytes(&["date"]), rows.zone())?;
        let day = RawTradingDay::of_row(
            row,
            &symbol,
            date,
            "adjclose",
            ("dividend", "dividend"),
            ("split_factor", "splitfactor"),
        );
        RawTradingDay { has_dividends: true, ..day }.add_to(options, rows)
    })
}
