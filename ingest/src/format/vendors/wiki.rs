//! Quandl / Nasdaq Data Link WIKI prices: each row has a raw price, and optionally a dividend and a split.
//!
//! Three spellings of the header are known. Files without a ticker column have one symbol, from `--symbol` or the file
//! name. `adj_close` is evidence of dividends only; the other `adj_*` columns are not read.

use market::symbol::Symbol;

use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_format::{FeedReadError, SymbolScope, VendorFile, VendorFormat};
use crate::format::file_head::{FileHead, normalize_column_name};
use crate::format::headered_table::{HeaderedTable, PriceColumns};
use crate::format::raw_trading_day::RawTradingDay;
use crate::normalize::{RowError, parse_session_date, trim_blanks};
use crate::source::feed_files::Encoding;

const TICKER: [&str; 3] = ["ticker", "stock", "symbol"];

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "wiki",
    about: "Quandl / Nasdaq Data Link WIKI prices CSV",
    needs: "columns date, close, ex-dividend and split_ratio are needed",
    detect,
    read,
};

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let needed = ["date", "close", "exdividend", "splitratio"];
    let found = head.encoding == Encoding::Csv && needed.iter().all(|name| head.has_column(&[name]));
    found.then_some(Ok(if head.has_column(&TICKER) { SymbolScope::Rows } else { SymbolScope::File }))
}

struct WikiColumns {
    ticker: usize,
    date: usize,
    prices: PriceColumns,
    dividend: usize,
    ratio: usize,
    adjusted_close: usize,
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let VendorFile { source, symbol, options, .. } = file;
    let table = HeaderedTable::open(source, normalize_column_name)?;
    let columns = WikiColumns {
        ticker: table.position_of(&TICKER),
        date: table.position_of(&["date"]),
        prices: PriceColumns::find_in(&table),
        dividend: table.position_of(&["exdividend"]),
        ratio: table.position_of(&["splitratio"]),
        adjusted_close: table.position_of(&["adjclose"]),
    };
    table.for_each_record(rows, |record, rows| {
        let named;
        let symbol = match symbol {
            Some(symbol) => symbol,
            None => {
                named = ticker(record.field(columns.ticker))?;
                &named
            }
        };
        let day = RawTradingDay {
            symbol,
            date: parse_session_date("date", trim_blanks(record.field(columns.date)), rows.zone())?,
            prices: columns.prices.cells(record),
            has_dividends: true,
            adjusted_close: record.field(columns.adjusted_close),
            dividend: ("ex-dividend", record.field(columns.dividend)),
            ratio: ("split_ratio", record.field(columns.ratio)),
            line: record.line,
            bytes: record.raw.len(),
        };
        day.add_to(options, rows)
    })
}

/// Parses a ticker. WIKI writes share classes with an underscore: `BRK_B`.
fn ticker(cell: &[u8]) -> Result<Symbol, RowError> {
    let text = String::from_utf8_lossy(cell).replace('_', ".");
    Symbol::parse(&text).map_err(|_| RowError::invalid_symbol("ticker", cell))
}
