//! Yahoo-style CSV with daily rows of one symbol, or of many symbols with a symbol column.
//!
//! Prices and dividends are split-adjusted, or raw if `Adj Close` is after `Volume` (older files). `Adj Close` is used
//! only to check which dividends were paid (R40).
//!
//! Yahoo chart responses (v8, JSON): daily prices, with dividends, splits and capital gains.
//!
//! Prices and dividends are split-adjusted. `adjclose` is used only to check which dividends were paid (R40). Times are
//! converted to dates of the exchange's time zone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate};
use chrono_tz::Tz;
use market::event::ShareBasis;
use market::metrics::currency::Currency;
use telemetry::counted;

use super::{
    DayColumns, Encoding, FeedReadError, FileHead, HeaderedTable, NONE, RawJson, ReaderOptions,
    RowAccumulator, RowError, Symbol, SymbolScope, TradingDay, VendorFile, VendorFormat, is_absent_value,
    normalize_column_name, parse_cash_amount, parse_split_shares, parse_symbol, read_documents,
};
use crate::format::trading_day::AdjustedRowReader;
use crate::price::bar_parser::PriceCells;

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
    if head.encoding != Encoding::Csv && head.has_column(&["chart"]) {
        return Some(Ok(SymbolScope::Rows));
    }
    if head.encoding != Encoding::Csv || !head.has_column(&DATE) {
        return None;
    }
    let prices = head.has_columns(&["open", "high", "low", "close", "volume"]);
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

/// Parses the symbol of a row, in a file with a symbol column.
fn ticker(cell: &[u8]) -> Result<Symbol, RowError> {
    let cell = cell.trim_ascii();
    if is_absent_value(cell) {
        return Err(RowError::missing_value("Ticker"));
    }
    parse_symbol("Ticker", &String::from_utf8_lossy(cell))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    if file.encoding != Encoding::Csv {
        return read_chart(file, rows);
    }
    let file_symbol = file.symbol;
    let table = HeaderedTable::open(file.source, normalize_column_name)?;
    let tickers = table.position_of(&TICKER);
    let date = if table.position_of(&["date"]) == NONE { "Datetime" } else { "Date" };
    let columns = DayColumns::find_in(&table, [date, "Dividends", "Capital Gains", "Stock Splits"]);
    let raw = columns.prices.volume < columns.adjusted_close && columns.adjusted_close != NONE;
    let basis = if raw { ShareBasis::Raw } else { ShareBasis::SplitAdjusted };
    let mut reader = AdjustedRowReader::new(file_symbol.is_some(), basis);
    table.for_each_record(rows, |record, rows| {
        let symbol =
            file_symbol.map_or_else(|| ticker(record.field(tickers)), |symbol| Ok(symbol.clone()))?;
        reader.add(&columns.day(&symbol, record, rows)?, rows)
    })?;
    reader.finish(rows)
}

const COLUMNS: [&str; 5] = ["open", "high", "low", "close", "volume"];

/// Reads all rows. A symbol on the command line overrides the symbol of the response.
pub(crate) fn read_chart(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let (symbol, options) = (file.options.symbol.clone(), file.options);
    let mut outcome = Ok(());
    read_documents(file, rows, |document, _, rows| {
        if outcome.is_ok() {
            outcome = read_response(document, symbol.as_ref(), options, rows);
        }
    })?;
    outcome
}

fn read_response(
    document: RawJson<'_>,
    symbol: Option<&Symbol>,
    options: &ReaderOptions,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let Some(chart) = document.get("chart") else {
        return Err(FeedReadError::Refused("has no chart".to_owned()));
    };
    let results = chart.get("result").map(RawJson::items).unwrap_or_default();
    if results.is_empty() {
        let description = chart.get("error").and_then(|error| error.get("description")?.text());
        let message = format!("is a service's message, not data: {:?}", description.unwrap_or_default());
        return Err(FeedReadError::Refused(message));
    }
    for result in results {
        read_result(result, symbol, options, rows)?;
    }
    Ok(())
}

fn read_result(
    result: RawJson<'_>,
    symbol: Option<&Symbol>,
    options: &ReaderOptions,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let refused = |reason: &str| FeedReadError::Refused(reason.to_owned());
    let meta = result.get("meta").ok_or_else(|| refused("has no meta"))?;
    let text_of = |name: &str| meta.get(name).and_then(RawJson::text);
    match text_of("dataGranularity").as_deref() {
        None | Some("1d") => {}
        Some(other) => return Err(refused(&format!("has {other} rows: only daily rows are loaded"))),
    }
    let zone = text_of("exchangeTimezoneName").and_then(|name| name.parse::<Tz>().ok());
    let zone = zone.ok_or_else(|| refused("names no time zone (exchangeTimezoneName)"))?;
    let own = text_of("symbol").and_then(|text| Symbol::parse(&text).ok());
    let symbol = symbol.or(own.as_ref()).ok_or_else(|| refused("names no symbol: add --symbol SYMBOL"))?;
    let currency = text_of("currency").and_then(|text| Currency::parse(&text));
    let currency = currency.or_else(|| options.currency.clone());
    rows.set_currency(currency.clone(), currency);
    let mut reader = AdjustedRowReader::new(true, ShareBasis::SplitAdjusted);
    let has_dividends = result.get("events").is_some_and(|events| events.get("dividends").is_some());
    let days = days_of(result, zone).map_err(|reason| refused(&reason))?;
    let with_prices = days.iter().filter(|(_, day)| day.prices.is_some()).map(|(date, _)| *date);
    let newest = with_prices.filter(|date| rows.check_not_future("date", *date).is_ok()).max();
    for (line, (date, day)) in (1..).zip(days) {
        rows.stats.records += 1;
        let raw = day.canonical(symbol, date, newest);
        let added =
            day.read(symbol, date, line, raw.len(), has_dividends).and_then(|day| reader.add(&day, rows));
        if let Err(fault) = added {
            rows.add_reject(line, raw.as_bytes(), fault);
        }
    }
    reader.finish(rows)
}

/// Trading day of a chart response. Numbers are texts with the digits of the response. An empty text is a missing
/// value.
#[derive(Default)]
struct ChartDay<'a> {
    /// Cells in the order of [`COLUMNS`]; `None` on a day without a price.
    prices: Option<[Cow<'a, str>; 5]>,
    /// Close that is adjusted for splits and dividends.
    adjusted_close: Cow<'a, str>,
    dividend: Cow<'a, str>,
    capital_gain: Cow<'a, str>,
    split: Cow<'a, str>,
}

/// Days of a response. A day may have two entries: one for the closed session, one for the current session. The later
/// entry is used.
fn days_of(result: RawJson<'_>, zone: Tz) -> Result<BTreeMap<NaiveDate, ChartDay<'_>>, String> {
    let day_of = |time: RawJson<'_>| -> Result<NaiveDate, String> {
        let seconds = time.raw().parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let moment = seconds.ok_or_else(|| format!("has the invalid time {}", time.raw()))?;
        Ok(moment.with_timezone(&zone).date_naive())
    };
    let times = result.get("timestamp").map(RawJson::items).unwrap_or_default();
    let quotes = result.get("indicators").and_then(|indicators| indicators.get("quote"));
    let quote = quotes.and_then(|quotes| quotes.items().first().copied());
    let columns =
        COLUMNS.map(|name| quote.and_then(|quote| quote.get(name)).map(RawJson::items).unwrap_or_default());
    if let Some(short) = columns.iter().position(|column| !column.is_empty() && column.len() != times.len()) {
        let (name, values) = (COLUMNS[short], columns[short].len());
        let (days, values) = (counted(times.len(), "day"), counted(values, "value"));
        return Err(format!("has {days} and {values} of {name}"));
    }
    let adjusted = result.get("indicators").and_then(|indicators| indicators.get("adjclose"));
    let adjusted = adjusted.and_then(|lists| lists.items().first()?.get("adjclose"));
    let adjusted =
        adjusted.map(RawJson::items).filter(|values| values.len() == times.len()).unwrap_or_default();
    let mut days: BTreeMap<NaiveDate, ChartDay<'_>> = BTreeMap::new();
    for (index, time) in times.into_iter().enumerate() {
        let cells = columns.each_ref();
        let cells = cells.map(|column| column.get(index).and_then(|cell| cell.text()).unwrap_or_default());
        let day = days.entry(day_of(time)?).or_default();
        day.prices = Some(cells);
        day.adjusted_close = adjusted.get(index).and_then(|cell| cell.text()).unwrap_or_default();
    }
    let events = result.get("events");
    for name in ["dividends", "capitalGains", "splits"] {
        let of_name = events.and_then(|events| events.get(name)).map(RawJson::members).unwrap_or_default();
        for (_, event) in of_name {
            let value = |name| event.get(name).and_then(RawJson::text).unwrap_or_default();
            let time = event.get("date").ok_or_else(|| format!("has {name} without a date"))?;
            let day = days.entry(day_of(time)?).or_default();
            match name {
                "dividends" => day.dividend = value("amount"),
                "capitalGains" => day.capital_gain = value("amount"),
                _ => day.split = format!("{}:{}", value("numerator"), value("denominator")).into(),
            }
        }
    }
    Ok(days)
}

impl ChartDay<'_> {
    fn read<'d>(
        &'d self,
        symbol: &'d Symbol,
        date: NaiveDate,
        line: u64,
        bytes: usize,
        has_dividends: bool,
    ) -> Result<TradingDay<'d>, RowError> {
        let prices = self.prices.as_ref().map(|cells| {
            let [open, high, low, close, volume] = cells.each_ref().map(|cell| cell.as_bytes());
            PriceCells { open, high, low, close, volume, ..PriceCells::default() }
        });
        Ok(TradingDay {
            symbol,
            date,
            prices,
            dividend: parse_cash_amount("amount", self.dividend.as_bytes())?,
            capital_gain: parse_cash_amount("amount", self.capital_gain.as_bytes())?,
            has_dividends,
            adjusted_close: self.adjusted_close.as_bytes(),
            split: parse_split_shares("split", self.split.as_bytes())?,
            line,
            bytes,
        })
    }

    /// Price of the day as a canonical record. If the day is rejected, this record is stored in the reject, so that it
    /// can be corrected.
    fn canonical(&self, symbol: &Symbol, date: NaiveDate, newest: Option<NaiveDate>) -> String {
        let cells = self.prices.iter().flat_map(|cells| COLUMNS.iter().zip(cells));
        let filled = cells.filter(|(_, cell)| !cell.is_empty());
        let cells: String = filled.map(|(name, cell)| format!(",\"{name}\":{:?}", &**cell)).collect();
        let as_of = newest.unwrap_or(date);
        let basis = format!("\"basis\":\"split_adjusted\",\"basis_as_of\":\"{as_of}\"");
        format!("{{\"kind\":\"price\",\"symbol\":\"{symbol}\",\"date\":\"{date}\",{basis}{cells}}}")
    }
}
