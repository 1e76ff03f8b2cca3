//! Yahoo-style CSV with daily rows of one symbol, or of many symbols with a symbol column.
//!
//! Prices and dividends are split-adjusted, or raw if `Adj Close` is after `Volume` (older files). `Adj Close` is used
//! only to check which dividends were paid (R40).

use std::io::Read;

use market::event::ShareBasis;

use super::{
    CsvRecord, Encoding, FeedReadError, FileHead, HeaderedTable, NONE, PriceColumns, RowAccumulator,
    RowError, Symbol, SymbolScope, TradingDay, VendorFile, VendorFormat, is_absent_value,
    normalize_column_name, parse_cash_amount, parse_session_date, parse_split_shares, parse_symbol,
    yahoo_chart,
};
use crate::format::adjusted_row_reader::AdjustedRowReader;

const DATE: [&str; 2] = ["date", "datetime"];
const TICKER: [&str; 2] = ["symbol", "ticker"];
/// Normalized names of the columns in tables of dividends and splits, which have no prices.
const EVENTS: [&str; 3] = ["dividends", "stocksplits", "capitalgains"];

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "yahoo",
    about: "Yahoo-style prices, dividends and splits CSV, of one symbol or with a Ticker column, and chart answers (v8) in JSON",
    needs: "columns Date, Open, High, Low, Close, Adj Close and Volume are needed",
    detect,
    read,
};

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if yahoo_chart::is_yahoo_chart(head) {
        return Some(Ok(SymbolScope::Rows));
    }
    if head.encoding != Encoding::Csv || !head.has_column(&DATE) {
        return None;
    }
    let prices = ["open", "high", "low", "close", "volume"].iter().all(|name| head.has_column(&[name]));
    if prices && !head.has_column(&["adjclose"]) && head.has_column(&["stocksplits"]) {
        let message = "has no Adj Close: its prices are adjusted for dividends too; download it again unadjusted (auto_adjust=False)";
        return Some(Err(message.to_owned()));
    }
    let known = |column: &String| {
        let name = normalize_column_name(column);
        name.is_empty() || [&DATE[..], &TICKER, &EVENTS].iter().any(|names| names.contains(&name.as_str()))
    };
    let events = head.has_column(&EVENTS) && head.columns.iter().all(known);
    if !head.has_column(&TICKER) {
        return (events || prices && head.has_column(&["adjclose"])).then_some(Ok(SymbolScope::File));
    }
    // Other vendors may have tables with these price columns too. Only Yahoo spells the column `Adj Close`.
    let downloaded = prices && head.columns.iter().any(|column| column == "Adj Close");
    (events || downloaded).then_some(Ok(SymbolScope::Rows))
}

struct YahooColumns {
    ticker: usize,
    date: usize,
    prices: PriceColumns,
    dividends: usize,
    splits: usize,
    capital_gains: usize,
    adjusted_close: usize,
    basis: ShareBasis,
}

impl YahooColumns {
    fn of<R: Read>(table: &HeaderedTable<R>) -> Self {
        let prices = PriceColumns::find_in(table);
        let adjusted_close = table.position_of(&["adjclose"]);
        let raw = prices.volume < adjusted_close && adjusted_close != NONE;
        Self {
            ticker: table.position_of(&TICKER),
            date: table.position_of(&DATE),
            prices,
            dividends: table.position_of(&["dividends"]),
            splits: table.position_of(&["stocksplits"]),
            capital_gains: table.position_of(&["capitalgains"]),
            adjusted_close,
            basis: if raw { ShareBasis::Raw } else { ShareBasis::SplitAdjusted },
        }
    }

    /// Symbol of a row, in a file with a symbol column.
    fn symbol(&self, record: &CsvRecord<'_>) -> Result<Symbol, RowError> {
        let cell = record.field(self.ticker).trim_ascii();
        if is_absent_value(cell) {
            return Err(RowError::missing_value("Ticker"));
        }
        parse_symbol("Ticker", &String::from_utf8_lossy(cell))
    }

    fn day<'a>(
        &self,
        symbol: &'a Symbol,
        record: &CsvRecord<'a>,
        rows: &RowAccumulator,
    ) -> Result<TradingDay<'a>, RowError> {
        Ok(TradingDay {
            symbol,
            date: parse_session_date("Date", record.field(self.date).trim_ascii(), rows.zone())?,
            prices: (self.prices.close != NONE).then(|| self.prices.cells(record)),
            dividend: parse_cash_amount("Dividends", record.field(self.dividends))?,
            capital_gain: parse_cash_amount("Capital Gains", record.field(self.capital_gains))?,
            has_dividends: self.dividends != NONE,
            adjusted_close: record.field(self.adjusted_close),
            split: parse_split_shares("Stock Splits", record.field(self.splits))?,
            line: record.line,
            bytes: record.raw.len(),
        })
    }
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    if file.encoding != Encoding::Csv {
        return yahoo_chart::read_chart(file, rows);
    }
    let (file_symbol, options) = (file.symbol, file.options);
    let table = HeaderedTable::open(file.source, normalize_column_name)?;
    let columns = YahooColumns::of(&table);
    let mut reader = AdjustedRowReader::new(file_symbol.is_some(), columns.basis, options);
    table.for_each_record(rows, |record, rows| {
        let named = if file_symbol.is_some() { None } else { Some(columns.symbol(record)?) };
        let symbol = file_symbol.or(named.as_ref()).ok_or_else(|| RowError::missing_value("Ticker"))?;
        reader.add(&columns.day(symbol, record, rows)?, rows)
    })?;
    reader.finish(rows)
}
