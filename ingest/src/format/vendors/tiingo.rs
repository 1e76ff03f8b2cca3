//! Tiingo: end-of-day prices as CSV and JSON, corporate actions, and the description of a ticker.
//!
//! Prices are as traded, and `divCash` is as paid. `adjClose` is evidence of dividends only; the other `adj…` columns
//! are not read.

use market::event::Kind;
use market::symbol::Symbol;

use crate::batch::row_accumulator::RowAccumulator;
use crate::format::canonical::RecordBuilder;
use crate::format::file_format::{FeedReadError, SymbolScope, VendorFile, VendorFormat};
use crate::format::file_head::FileHead;
use crate::format::raw_trading_day::{RawTradingDay, SeriesDates};
use crate::format::vendor_row::{VendorRow, read_rows};
use crate::normalize::{RowError, parse_session_date};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "tiingo",
    about: "Tiingo end-of-day CSV and JSON, one symbol a file, and corporate actions JSON",
    needs: "date, close and divCash, or exDate with distribution or splitFrom, are needed",
    detect,
    read,
};

const TICKER: [&str; 1] = ["ticker"];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let prices =
        head.has_column(&["date"]) && head.has_column(&["close"]) && head.has_column(&["divcash", "adjopen"]);
    let actions = head.has_column(&["exdate"])
        && head.has_column(&["distribution", "splitfrom"])
        && head.has_column(&TICKER);
    let described =
        head.has_column(&["exchangecode"]) && head.has_column(&["enddate"]) && head.has_column(&TICKER);
    let symbol_scope = if head.has_column(&TICKER) { SymbolScope::Rows } else { SymbolScope::File };
    (prices || actions || described).then_some(Ok(symbol_scope))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let (options, symbol, currency) = (file.options, file.symbol, file.currency());
    let mut days = SeriesDates::default();
    read_rows(file, rows, |row, rows| {
        if row.has(&["distribution"]) {
            distribution(row, currency.as_deref()).validate_into(row.line, row.raw.len(), rows)
        } else if row.has(&["splitfrom"]) {
            split(row).validate_into(row.line, row.raw.len(), rows)
        } else if row.has(&["exchangecode"]) {
            security(row).validate_into(row.line, row.raw.len(), rows)
        } else {
            let symbol = symbol.map_or_else(|| symbol_of(row), |symbol| Ok(symbol.clone()))?;
            let date = parse_session_date("date", row.bytes(&["date"]), rows.zone())?;
            let (dividend, ratio) = (("divCash", "divcash"), ("splitFactor", "splitfactor"));
            RawTradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio).add_to(options, rows)?;
            days.push(date);
            Ok(())
        }
    })?;
    days.check_daily()?;
    Ok(())
}

fn symbol_of(row: &VendorRow<'_>) -> Result<Symbol, RowError> {
    let text = row.text(&TICKER).ok_or_else(|| RowError::missing_value("ticker"))?;
    Symbol::parse(text).map_err(|_| RowError::invalid_symbol("ticker", text.as_bytes()))
}

/// Dividend record. The vendor misspells a name as `distributionFreqency`; the correct spelling is read too.
fn distribution<'a>(row: &'a VendorRow<'_>, currency: Option<&'a str>) -> RecordBuilder<'a> {
    let code = row.text(&["distributionfreqency", "distributionfrequency", "distributionfreq"]);
    let frequency = match code.unwrap_or_default() {
        "w" => Some("weekly"),
        "m" => Some("monthly"),
        "bm" => Some("6"),
        "tm" => Some("3"),
        "q" => Some("quarterly"),
        "sa" => Some("2"),
        "a" => Some("annual"),
        "ir" => Some("irregular"),
        _ => None,
    };
    RecordBuilder::new(Kind::Dividend)
        .with_value("symbol", row.text(&TICKER))
        .with_value("security_ref", row.text(&["permaticker"]))
        .with_value("amount", row.text(&["distribution"]))
        .with_value("currency", currency)
        .with_value("frequency", frequency)
        .with_value("type_text", code)
        .with_value("ex_date", row.date(&["exdate"]))
        .with_value("record_date", row.date(&["recorddate"]))
        .with_value("payment_date", row.date(&["paymentdate"]))
        .with_value("declaration_date", row.date(&["declarationdate"]))
        .with_value("action", (code == Some("c")).then_some("retract"))
}

fn split<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Split)
        .with_value("symbol", row.text(&TICKER))
        .with_value("security_ref", row.text(&["permaticker"]))
        .with_value("ex_date", row.date(&["exdate"]))
        .with_value("from", row.text(&["splitfrom"]))
        .with_value("to", row.text(&["splitto"]))
        .with_value("action", (row.text(&["splitstatus"]) == Some("c")).then_some("retract"))
}

/// Security record. The vendor's description does not distinguish funds from stocks.
fn security<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Security)
        .with_value("symbol", row.text(&TICKER))
        .with_value("name", row.text(&["name"]))
        .with_value("type", Some("stock"))
        .with_value("exchange", row.text(&["exchangecode"]))
        .with_value("description", row.text(&["description"]))
}
