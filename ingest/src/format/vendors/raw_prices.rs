//! Formats whose rows have a raw price, a dividend as paid and a split: Quandl / Nasdaq Data Link WIKI prices as CSV, and
//! Marketstack end-of-day prices of one or many symbols as CSV and JSON.
//!
//! `adj_close` is used only to check which dividends were paid (R40). Other `adj_…` columns are not read.

use super::{
    DayColumns, Encoding, FeedReadError, FileHead, HeaderedTable, RowAccumulator, RowError, Symbol,
    SymbolScope, TradingDay, VendorFile, VendorFormat, normalize_column_name, parse_session_date, read_rows,
};

const TICKER: [&str; 3] = ["ticker", "stock", "symbol"];

pub(crate) static WIKI: VendorFormat = VendorFormat {
    name: "wiki",
    about: "Quandl / Nasdaq Data Link WIKI prices CSV",
    needs: "columns date, close, ex-dividend and split_ratio are needed",
    detect: detect_wiki,
    read: read_wiki,
};

fn detect_wiki(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let needed = ["date", "close", "exdividend", "splitratio"];
    let found = head.encoding == Encoding::Csv && needed.iter().all(|name| head.has_column(&[name]));
    found.then_some(Ok(if head.has_column(&TICKER) { SymbolScope::Rows } else { SymbolScope::File }))
}

fn read_wiki(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let VendorFile { source, symbol, options, .. } = file;
    let table = HeaderedTable::open(source, normalize_column_name)?;
    let tickers = table.position_of(&TICKER);
    // The files have no capital gains.
    let columns = DayColumns::find_in(&table, ["date", "ex-dividend", "capital gains", "split_ratio"]);
    table.for_each_record(rows, |record, rows| {
        let named = if symbol.is_some() { None } else { Some(ticker(record.field(tickers))?) };
        let symbol = symbol.or(named.as_ref()).ok_or_else(|| RowError::missing_value("ticker"))?;
        columns.day(symbol, record, rows)?.add_raw(options, rows)
    })
}

/// Parses a ticker. WIKI writes share classes with an underscore: `BRK_B`.
fn ticker(cell: &[u8]) -> Result<Symbol, RowError> {
    let text = String::from_utf8_lossy(cell).replace('_', ".");
    Symbol::parse(&text).map_err(|_| RowError::invalid_symbol("ticker", cell))
}

pub(crate) static MARKETSTACK: VendorFormat = VendorFormat {
    name: "marketstack",
    about: "Marketstack end-of-day CSV and JSON, of one or many symbols",
    needs: "symbol, date, close, split_factor and dividend are needed",
    detect: detect_marketstack,
    read: read_marketstack,
};

fn detect_marketstack(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let names = if head.encoding == Encoding::Csv { head.columns.clone() } else { head.record_keys() };
    let has = |wanted: &str| names.iter().any(|name| normalize_column_name(name) == wanted);
    let needed = ["symbol", "date", "close", "splitfactor", "dividend"];
    needed.into_iter().all(has).then_some(Ok(SymbolScope::Rows))
}

fn read_marketstack(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let options = file.options;
    read_rows(file, rows, |row, rows| {
        let symbol = row.symbol("symbol")?;
        let date = parse_session_date("date", row.bytes(&["date"]), rows.zone())?;
        let (dividend, ratio) = (("dividend", "dividend"), ("split_factor", "splitfactor"));
        let day = TradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio)?;
        TradingDay { has_dividends: true, ..day }.add_raw(options, rows)
    })
}
