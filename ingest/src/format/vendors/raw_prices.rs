//! Formats whose rows have a raw price, a dividend as paid and a split: Quandl / Nasdaq Data Link WIKI prices as CSV,
//! Marketstack end-of-day prices of one or many symbols as CSV and JSON, and files of Tiingo.
//!
//! The adjusted close is used only to check which dividends were paid (R40). Other adjusted columns are not read.

use super::{
    DayColumns, Encoding, FeedReadError, FileHead, HeaderedTable, Kind, RecordBuilder, RowAccumulator,
    RowError, SeriesDates, Symbol, SymbolScope, TradingDay, VendorFile, VendorFormat, VendorRow,
    dividend_dates, fields, meaning_of, normalize_column_name, parse_session_date, read_rows,
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
    let found = head.encoding == Encoding::Csv && head.has_columns(&needed);
    found.then_some(Ok(if head.has_column(&TICKER) { SymbolScope::Rows } else { SymbolScope::File }))
}

fn read_wiki(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let VendorFile { source, symbol, .. } = file;
    let table = HeaderedTable::open(source, normalize_column_name)?;
    let tickers = table.position_of(&TICKER);
    // The files have no capital gains.
    let columns = DayColumns::find_in(&table, ["date", "ex-dividend", "capital gains", "split_ratio"]);
    table.for_each_record(rows, |record, rows| {
        let symbol = symbol.map_or_else(|| ticker(record.field(tickers)), |symbol| Ok(symbol.clone()))?;
        columns.day(&symbol, record, rows)?.add_raw(rows)
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
    read_rows(file, rows, |row, rows| {
        let symbol = row.symbol("symbol")?;
        let date = parse_session_date("date", row.bytes(&["date"]), rows.zone)?;
        let (dividend, ratio) = (("dividend", "dividend"), ("split_factor", "splitfactor"));
        let day = TradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio)?;
        TradingDay { has_dividends: true, ..day }.add_raw(rows)
    })
}

/// Tiingo: end-of-day prices as CSV and JSON, corporate actions, and the description of a ticker.
pub(crate) static TIINGO: VendorFormat = VendorFormat {
    name: "tiingo",
    about: "Tiingo end-of-day CSV and JSON, one symbol a file, and corporate actions JSON",
    needs: "date, close and divCash, or exDate with distribution or splitFrom, are needed",
    detect: detect_tiingo,
    read: read_tiingo,
};

fn detect_tiingo(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let prices = head.has_columns(&["date", "close"]) && head.has_column(&["divcash", "adjopen"]);
    let actions = head.has_column(&["exdate"])
        && head.has_column(&["distribution", "splitfrom"])
        && head.has_column(&["ticker"]);
    let described = head.has_columns(&["exchangecode", "enddate", "ticker"]);
    let symbol_scope = if head.has_column(&["ticker"]) { SymbolScope::Rows } else { SymbolScope::File };
    (prices || actions || described).then_some(Ok(symbol_scope))
}

fn read_tiingo(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let symbol = file.symbol;
    let mut days = SeriesDates::default();
    read_rows(file, rows, |row, rows| {
        if row.has(&["distribution"]) {
            tiingo_dividend(row).add_of_row(row, rows)
        } else if row.has(&["splitfrom"]) {
            tiingo_split(row).add_of_row(row, rows)
        } else if row.has(&["exchangecode"]) {
            tiingo_security(row).add_of_row(row, rows)
        } else {
            let symbol = symbol.map_or_else(|| row.symbol("ticker"), |symbol| Ok(symbol.clone()))?;
            let date = parse_session_date("date", row.bytes(&["date"]), rows.zone)?;
            let (dividend, ratio) = (("divCash", "divcash"), ("splitFactor", "splitfactor"));
            TradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio)?.add_raw(rows)?;
            days.push(date);
            Ok(())
        }
    })?;
    days.check_daily()?;
    Ok(())
}

/// Dividend record. The vendor misspells the frequency field as `distributionFreqency`. The correct spelling is read
/// too.
fn tiingo_dividend<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    let code = row.text(&["distributionfreqency", "distributionfrequency", "distributionfreq"]);
    RecordBuilder::new(Kind::Dividend)
        .with_values(fields! { row.text => symbol: ticker, security_ref: permaticker, amount: distribution })
        .with_value("frequency", code.and_then(|code| meaning_of("tiingo frequency", code)))
        .with_value("type_text", code)
        .with_values(dividend_dates(row))
        .with_value("action", (code == Some("c")).then_some("retract"))
}

fn tiingo_split<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Split)
        .with_values(
            fields! { row.text => symbol: ticker, security_ref: permaticker, from: splitfrom, to: splitto },
        )
        .with_values(fields! { row.date => ex_date: exdate })
        .with_value("action", (row.text(&["splitstatus"]) == Some("c")).then_some("retract"))
}

/// Security record. The vendor's description does not distinguish funds from stocks, so the type is always stock.
fn tiingo_security<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Security)
        .with_values(fields! { row.text => symbol: ticker, name, exchange: exchangecode, description })
        .with_value("type", Some("stock"))
}
