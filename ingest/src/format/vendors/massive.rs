//! Polygon / Massive: dividends and splits old and new, tickers, aggregates, and the flat files of day aggregates.
//!
//! Answers are pages, lists of results, or one result per line. Aggregates of the API are adjusted for splits up to
//! the day of the request, unless the answer states otherwise. Flat files are as traded.

use chrono::{DateTime, NaiveDate, Timelike, Utc};
use chrono_tz::America::New_York;
use market::event::Kind;

use crate::batch::accumulator::RowAccumulator;
use crate::format::canonical::RecordBuilder;
use crate::format::day::SeriesDates;
use crate::format::head::FileHead;
use crate::format::reading::{FeedReadError, VendorFile, VendorFormat, SymbolScope};
use crate::format::vendor::{VendorRow, read_rows};
use crate::normalize::{RowError, shown};
use crate::source::files::Encoding;

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "massive",
    about: "Polygon / Massive JSON (dividends, splits, tickers, aggregates) and flat files of day aggregates",
    needs: "results of dividends, splits, tickers or aggregates, or the columns ticker, window_start and close, are needed",
    recognise,
    read,
};

fn recognise(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let found = match head.encoding {
        Encoding::Csv => head.has(&["ticker"]) && head.has(&["windowstart"]) && head.has(&["close"]),
        _ => {
            let record = head.record_keys();
            let has = |name: &str| record.iter().any(|key| key == name);
            let page = head.has(&["results", "requestid"]) && head.has(&["status", "requestid"]);
            has("ticker")
                && (has("cash_amount") || has("split_from") || has("primary_exchange") || has("locale"))
                || page && has("t") && has("o") && has("c")
                || page && (record.is_empty() || head.has(&["resultscount"]))
        }
    };
    found.then_some(Ok(SymbolScope::Rows))
}

fn read(reading: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let currency = reading.currency();
    let flat_file = reading.encoding == Encoding::Csv;
    let asked_on = rows.observed_at().date_naive().to_string();
    let mut days = SeriesDates::default();
    read_rows(reading, rows, |row, rows| {
        if row.has(&["cashamount"]) {
            dividend(row, &currency).accept(row.line, row.raw.len(), rows)
        } else if row.has(&["splitfrom"]) {
            split(row).accept(row.line, row.raw.len(), rows)
        } else if row.has(&["market", "locale", "primaryexchange"]) {
            ticker(row, &asked_on, rows)
        } else if row.has(&["c", "close"]) {
            let adjusted = !flat_file && row.text(&["adjusted"]) != Some("false");
            let date = session_of(row.text(&["t", "windowstart"]))?;
            aggregate(row, date, adjusted.then_some(asked_on.as_str())).accept(
                row.line,
                row.raw.len(),
                rows,
            )?;
            days.push(date);
            Ok(())
        } else {
            let message = "is no dividend, split, ticker or aggregate of Massive";
            Err(RowError::new("unknown_kind", message))
        }
    })?;
    days.check_daily()?;
    Ok(())
}

/// Symbol of a row; preferred shares have a small p before their class: `BACpL`.
fn symbol(row: &VendorRow<'_>) -> Option<String> {
    let ticker = row.text(&["ticker", "T"])?;
    let preferred = ticker.split_once('p').filter(|(root, class)| {
        !root.is_empty() && [root, class].iter().all(|part| part.bytes().all(|b| b.is_ascii_uppercase()))
    });
    Some(preferred.map_or_else(|| ticker.to_owned(), |(root, class)| format!("{root}.PR{class}")))
}

fn dividend<'a>(row: &'a VendorRow<'_>, currency: &'a str) -> RecordBuilder<'a> {
    let type_text = row.text(&["dividendtype", "distributiontype"]);
    let r#type = match type_text {
        Some("CD" | "recurring") => Some("regular"),
        Some("SC") => Some("special"),
        Some("LT") => Some("capital_gain_long"),
        Some("ST") => Some("capital_gain_short"),
        other => other,
    };
    RecordBuilder::new(Kind::Dividend)
        .with("id", row.text(&["id"]))
        .with("symbol", symbol(row))
        .with("amount", row.text(&["cashamount"]))
        .with("currency", row.text(&["currency"]).or(Some(currency)))
        .with("type", r#type)
        .with("type_text", type_text)
        .with("frequency", row.text(&["frequency"]))
        .with("ex_date", row.date(&["exdividenddate"]))
        .with("record_date", row.date(&["recorddate"]))
        .with("payment_date", row.date(&["paydate"]))
        .with("declaration_date", row.date(&["declarationdate"]))
}

fn split<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Split)
        .with("id", row.text(&["id"]))
        .with("symbol", symbol(row))
        .with("ex_date", row.date(&["executiondate"]))
        .with("from", row.text(&["splitfrom"]))
        .with("to", row.text(&["splitto"]))
        .with("type", row.text(&["adjustmenttype"]))
}

fn aggregate<'a>(row: &'a VendorRow<'_>, date: NaiveDate, basis_as_of: Option<&'a str>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Price)
        .with("symbol", symbol(row))
        .with("date", Some(date.to_string()))
        .with("open", row.text(&["o", "open"]))
        .with("high", row.text(&["h", "high"]))
        .with("low", row.text(&["l", "low"]))
        .with("close", row.text(&["c", "close"]))
        .with("volume", row.text(&["v", "volume"]))
        .with("vwap", row.text(&["vw"]))
        .with("trade_count", row.text(&["n", "transactions"]))
        .with("basis", basis_as_of.map(|_| "split_adjusted"))
        .with("basis_as_of", basis_as_of)
}

/// Adds a security, and the size figures of a ticker's details.
fn ticker(row: &VendorRow<'_>, asked_on: &str, rows: &mut RowAccumulator) -> Result<(), RowError> {
    if let Some(market) = row.text(&["market"]).filter(|market| !matches!(*market, "stocks" | "otc")) {
        return Err(RowError::new("unsupported_market", format_args!("market {market} is not of securities")));
    }
    let r#type = match row.text(&["type"]).unwrap_or_default() {
        "ETF" | "ETN" | "ETV" | "ETS" => "etf",
        "ADRC" | "ADRP" | "ADRR" | "ADRW" | "GDR" | "NYRS" => "adr",
        "PFD" => "preferred",
        "FUND" => "closed_end_fund",
        "LT" => "trust",
        // Warrants, rights and units are listed together with common stock.
        _ => "stock",
    };
    let delisted = row.text(&["active"]) == Some("false");
    let gone_on = row.text(&["delistedutc"]).and_then(|time| time.get(..10));
    RecordBuilder::new(Kind::Security)
        .with("symbol", symbol(row))
        .with("name", row.text(&["name"]))
        .with("type", Some(r#type))
        .with("exchange", row.text(&["primaryexchange"]))
        .with("currency", row.text(&["currencyname", "currencysymbol"]).map(str::to_ascii_uppercase))
        .with("country", row.text(&["locale"]).filter(|locale| *locale != "global"))
        .with("industry", row.text(&["sicdescription"]))
        .with("description", row.text(&["description"]))
        .with("website", row.text(&["homepageurl"]))
        .with("employees", row.text(&["totalemployees"]))
        .with("ipo_date", row.date(&["listdate"]))
        .with("cik", row.text(&["cik"]))
        .with("figi", row.text(&["compositefigi"]))
        .with("status", delisted.then_some("delisted"))
        .with("delisted_on", gone_on.filter(|_| delisted))
        .accept(row.line, row.raw.len(), rows)?;
    if !row.has(&["marketcap", "shareclasssharesoutstanding"]) {
        return Ok(());
    }
    RecordBuilder::new(Kind::Fundamentals)
        .with("symbol", symbol(row))
        .with("as_of", Some(asked_on))
        .with("market_cap", row.text(&["marketcap"]))
        .with("shares_outstanding", row.text(&["shareclasssharesoutstanding"]))
        .with("shares_as_of", row.text(&["shareclasssharesoutstanding"]).map(|_| asked_on))
        .accept(row.line, row.raw.len(), rows)
}

/// Session of a time in milliseconds or nanoseconds. A day has the time of midnight or of its close.
fn session_of(time: Option<&str>) -> Result<NaiveDate, RowError> {
    let text = time.ok_or_else(|| RowError::missing("t"))?;
    let number: Option<i64> = text.parse().ok();
    let instant = number.and_then(|number| match text.len() {
        ..=14 => DateTime::<Utc>::from_timestamp_millis(number),
        _ => Some(DateTime::from_timestamp_nanos(number)),
    });
    let message = format_args!("t {:?} is not a time in milliseconds or nanoseconds", shown(text.as_bytes()));
    let local = instant.ok_or_else(|| RowError::new("bad_date", message))?.with_timezone(&New_York);
    match (local.hour(), local.minute(), local.second()) {
        (0 | 16, 0, 0) => Ok(local.date_naive()),
        _ => Err(RowError::new(
            "intraday_row",
            format_args!("t {text} is {} in New York: only daily rows are loaded", local.format("%F %T")),
        )),
    }
}
