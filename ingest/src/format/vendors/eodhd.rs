//! EODHD: prices, dividends and splits of one symbol, the last day of a whole exchange, and fundamentals.
//!
//! Prices are as traded. `adjusted_close` is derived and not read. The `value` of a dividend is adjusted for later
//! splits; the declared `unadjustedValue` is preferred.

use market::event::Kind;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use crate::batch::accumulator::RowAccumulator;
use crate::format::canonical::RecordBuilder;
use crate::format::day::{SeriesDates, split_shares};
use crate::format::head::FileHead;
use crate::format::json::RawJson;
use crate::format::reading::{FeedReadError, VendorFile, VendorFormat, SymbolScope};
use crate::format::vendor::{VendorRow, read_documents, read_rows, take_row};
use crate::normalize::{RowError, parse_date};
use crate::source::files::Encoding;

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "eodhd",
    about: "EODHD eod, div and splits as CSV and JSON, bulk last day, fundamentals JSON",
    needs: "date with adjusted_close, value or split, or code, exchange and date, are needed",
    recognise,
    read,
};

const CODE: [&str; 1] = ["code"];
const EXCHANGE: [&str; 3] = ["exchangeshortname", "exchange", "ex"];
const DIVIDEND: [&str; 3] = ["unadjustedvalue", "value", "dividend"];

fn recognise(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if head.has(&["general"]) && head.has(&["highlights", "valuation", "sharesstats", "etfdata"]) {
        return Some(Ok(SymbolScope::Rows));
    }
    if !head.has(&["date"]) {
        return None;
    }
    let kinds = ["close", "split", "dividend", "dividends", "stocksplits"];
    if head.has(&CODE) && head.has(&EXCHANGE) && head.has(&kinds) {
        return Some(Ok(SymbolScope::Rows));
    }
    // Other vendors' tables also have an Adjusted Close, with prices that are adjusted for splits.
    let adjusted = head.columns.iter().any(|column| column.eq_ignore_ascii_case("adjusted_close"));
    let prices = head.has(&["close"]) && adjusted;
    let dividends = head.has(&["unadjustedvalue"]) || head.has(&["value"]) && head.has(&["currency"]);
    let splits = head.has(&["split"]) && head.columns.len() <= 3;
    (prices || dividends || splits).then_some(Ok(SymbolScope::File))
}

fn read(mut reading: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    if reading.encoding != Encoding::Csv && reading.symbol.is_none() {
        return read_bulk_or_fundamentals(reading, rows);
    }
    let mut days = SeriesDates::default();
    let file = reading.symbol.take().cloned();
    let currency = reading.currency();
    read_rows(reading, rows, |row, rows| read_row(row, file.as_ref(), &currency, &mut days, rows))?;
    days.check_daily()?;
    Ok(())
}

fn read_bulk_or_fundamentals(reading: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let currency = reading.currency();
    let mut days = SeriesDates::default();
    let mut number = 0;
    read_documents(reading, rows, |document, line, rows| {
        for record in if document.is_list() { document.items() } else { vec![document] } {
            number += 1;
            let line = if document.is_list() { number } else { line };
            let row = VendorRow::of_json(record, line);
            match record.get("General") {
                Some(general) => {
                    take_row(&row, rows, &mut |row, rows| fundamentals(row, general, record, rows))
                }
                None => {
                    take_row(&row, rows, &mut |row, rows| read_row(row, None, &currency, &mut days, rows))
                }
            }
        }
    })
}

fn read_row(
    row: &VendorRow<'_>,
    file: Option<&Symbol>,
    currency: &str,
    days: &mut SeriesDates,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let symbol = symbol_of(row, file);
    let (line, bytes) = (row.line, row.raw.len());
    if row.has(&["close"]) {
        let price = RecordBuilder::new(Kind::Price)
            .with("symbol", symbol)
            .with("date", row.date(&["date"]))
            .with("open", row.text(&["open"]))
            .with("high", row.text(&["high"]))
            .with("low", row.text(&["low"]))
            .with("close", row.text(&["close"]))
            .with("volume", row.text(&["volume"]));
        price.accept(line, bytes, rows)?;
        if let (Some(_), Some(date)) =
            (file, row.date(&["date"]).and_then(|date| parse_date(date.as_bytes())))
        {
            days.push(date);
        }
        return Ok(());
    }
    if row.has(&["split", "stocksplits"]) {
        let shares = split_shares("split", row.bytes(&["split", "stocksplits"]))?;
        let (from, to) = shares.ok_or_else(|| RowError::missing("split"))?;
        return RecordBuilder::new(Kind::Split)
            .with("symbol", symbol)
            .with("ex_date", row.date(&["date"]))
            .with("from", Some(from.to_string()))
            .with("to", Some(to.to_string()))
            .accept(line, bytes, rows);
    }
    let adjusted = row.text(&["unadjustedvalue"]).is_none();
    let asked_on = rows.observed_at().date_naive().to_string();
    RecordBuilder::new(Kind::Dividend)
        .with("symbol", symbol)
        .with("amount", row.text(&DIVIDEND).or_else(|| row.text(&["dividends"])))
        .with("amount_basis", adjusted.then_some("split_adjusted"))
        .with("basis_as_of", adjusted.then_some(asked_on))
        .with("currency", row.text(&["currency"]).or(Some(currency)))
        .with("frequency", row.text(&["period"]).and_then(frequency))
        .with("type_text", row.text(&["period"]))
        .with("ex_date", row.date(&["date"]))
        .with("record_date", row.date(&["recorddate"]))
        .with("payment_date", row.date(&["paymentdate"]))
        .with("declaration_date", row.date(&["declarationdate"]))
        .accept(line, bytes, rows)
}

/// Symbol of a row or file. Symbols of the home market have no market suffix.
fn symbol_of(row: &VendorRow<'_>, file: Option<&Symbol>) -> Option<String> {
    if let Some(symbol) = file {
        return Some(symbol.to_string());
    }
    let code = row.text(&CODE)?;
    Some(match row.text(&EXCHANGE) {
        None | Some("US") => code.strip_suffix(".US").unwrap_or(code).to_owned(),
        Some(exchange) => format!("{code}.{exchange}"),
    })
}

fn frequency(period: &str) -> Option<&'static str> {
    match period.to_ascii_lowercase().as_str() {
        "weekly" => Some("weekly"),
        "monthly" => Some("monthly"),
        "quarterly" => Some("quarterly"),
        "semiannual" | "semi-annual" | "semiannually" | "interim" => Some("2"),
        "annual" | "annually" | "yearly" => Some("annual"),
        _ => None,
    }
}

/// Reads a company's sections as a security and its figures. Fractions become percent.
fn fundamentals(
    whole: &VendorRow<'_>,
    general: RawJson<'_>,
    document: RawJson<'_>,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let company = VendorRow::of_json(general, whole.line);
    let code = company.text(&CODE).map(str::to_owned);
    let home = matches!(company.text(&["countryiso"]), None | Some("US"));
    let symbol = code.map(|code| match company.text(&["exchange"]).filter(|_| !home) {
        Some(exchange) => format!("{code}.{exchange}"),
        None => code,
    });
    let bytes = whole.raw.len();
    let r#type = match company.text(&["type"]).unwrap_or_default() {
        "ETF" => "etf",
        "Preferred Stock" => "preferred",
        _ => "stock",
    };
    let delisted = company.text(&["isdelisted"]) == Some("true");
    RecordBuilder::new(Kind::Security)
        .with("symbol", symbol.clone())
        .with("name", company.text(&["name"]))
        .with("type", Some(r#type))
        .with("exchange", company.text(&["exchange"]))
        .with("currency", company.text(&["currencycode"]))
        .with("country", company.text(&["countryiso", "countryname"]))
        .with("sector", company.text(&["gicsector", "sector"]))
        .with("industry", company.text(&["gicsubindustry", "industry"]))
        .with("description", company.text(&["description"]))
        .with("website", company.text(&["weburl"]))
        .with("employees", company.text(&["fulltimeemployees"]))
        .with("ipo_date", company.date(&["ipodate"]))
        .with("cik", company.text(&["cik"]))
        .with("figi", company.text(&["openfigi"]))
        .with("isin", company.text(&["isin"]))
        .with("cusip", company.text(&["cusip"]))
        .with("status", delisted.then_some("delisted"))
        .with("delisted_on", company.date(&["delisteddate"]).filter(|_| delisted))
        .accept(whole.line, bytes, rows)?;
    let mut figures = VendorRow::of_json(document, whole.line);
    for section in ["Highlights", "Valuation", "SharesStats", "Technicals"] {
        if let Some(section) = document.get(section) {
            figures.add(section);
        }
    }
    let asked_on = rows.observed_at().date_naive().to_string();
    let as_of = company.date(&["updatedat"]).map_or(asked_on, str::to_owned);
    let quarter = figures.date(&["mostrecentquarter"]);
    RecordBuilder::new(Kind::Fundamentals)
        .with("symbol", symbol)
        .with("as_of", Some(as_of))
        .with("market_cap", figures.text(&["marketcapitalization"]))
        .with("eps_ttm", figures.text(&["dilutedepsttm", "earningsshare"]))
        .with("eps_as_of", quarter)
        .with("fiscal_period_end", quarter)
        .with("book_value_per_share", figures.text(&["bookvalue"]))
        .with("revenue_ttm", figures.text(&["revenuettm"]))
        .with("net_margin", figures.percent(&["profitmargin"]))
        .with("operating_margin", figures.percent(&["operatingmarginttm"]))
        .with("roa", figures.percent(&["returnonassetsttm"]))
        .with("roe", figures.percent(&["returnonequityttm"]))
        .with("peg_ratio", positive(figures.text(&["pegratio"])))
        .with("forward_pe", positive(figures.text(&["forwardpe"])))
        .with("ps_ratio", figures.text(&["pricesalesttm"]))
        .with("ev_to_ebitda", figures.text(&["enterprisevalueebitda"]))
        .with("enterprise_value", figures.text(&["enterprisevalue"]))
        .with("shares_outstanding", positive(figures.text(&["sharesoutstanding"])))
        .with("float_shares", positive(figures.text(&["sharesfloat"])))
        .with("beta", figures.text(&["beta"]))
        .accept(whole.line, bytes, rows)
}

/// Figure above zero; the vendor writes 0 for an unknown figure.
fn positive(text: Option<&str>) -> Option<&str> {
    text.filter(|text| market::decimal::parse_figure(text).is_ok_and(|figure| figure.value != Decimal::ZERO))
}
