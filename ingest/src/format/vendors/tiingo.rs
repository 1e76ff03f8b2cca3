//! Tiingo: end-of-day prices as CSV and JSON, corporate actions, and the description of a ticker.
//!
//! Prices are as traded, and `divCash` is as paid. `adjClose` is used only to check which dividends were paid (R40).

use super::{
    FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, SeriesDates, SymbolScope, TradingDay,
    VendorFile, VendorFormat, VendorRow, fields, parse_session_date, read_rows,
};

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
            distribution(row, currency.as_deref()).add_of_row(row, rows)
        } else if row.has(&["splitfrom"]) {
            split(row).add_of_row(row, rows)
        } else if row.has(&["exchangecode"]) {
            security(row).add_of_row(row, rows)
        } else {
            let symbol = symbol.map_or_else(|| row.symbol("ticker"), |symbol| Ok(symbol.clone()))?;
            let date = parse_session_date("date", row.bytes(&["date"]), rows.zone())?;
            let (dividend, ratio) = (("divCash", "divcash"), ("splitFactor", "splitfactor"));
            TradingDay::of_row(row, &symbol, date, "adjclose", dividend, ratio)?.add_raw(options, rows)?;
            days.push(date);
            Ok(())
        }
    })?;
    days.check_daily()?;
    Ok(())
}

/// Dividend record. The vendor misspells the frequency field as `distributionFreqency`. The correct spelling is read
/// too.
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
        .with_values(fields! { row.text => symbol: ticker, security_ref: permaticker, amount: distribution })
        .with_value("currency", currency)
        .with_value("frequency", frequency)
        .with_value("type_text", code)
        .with_values(fields! {
            row.date =>
                ex_date: exdate, record_date: recorddate, payment_date: paymentdate,
                declaration_date: declarationdate,
        })
        .with_value("action", (code == Some("c")).then_some("retract"))
}

fn split<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Split)
        .with_values(
            fields! { row.text => symbol: ticker, security_ref: permaticker, from: splitfrom, to: splitto },
        )
        .with_values(fields! { row.date => ex_date: exdate })
        .with_value("action", (row.text(&["splitstatus"]) == Some("c")).then_some("retract"))
}

/// Security record. The vendor's description does not distinguish funds from stocks, so the type is always stock.
fn security<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Security)
        .with_values(fields! { row.text => symbol: ticker, name, exchange: exchangecode, description })
        .with_value("type", Some("stock"))
}
