//! Polygon / Massive: dividends, splits, tickers and daily bars of the API, and flat files of daily bars.
//!
//! Bars of the API are split-adjusted, unless the response has `adjusted: false`. Bars of flat files are as traded.

use chrono::{DateTime, NaiveDate, Timelike, Utc};
use chrono_tz::America::New_York;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError, SeriesDates,
    SymbolScope, VendorFile, VendorFormat, VendorRow, abbreviate, dividend_dates, fields, meaning_of,
    read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "massive",
    about: "Polygon / Massive JSON (dividends, splits, tickers, aggregates) and flat files of day aggregates",
    needs: "results of dividends, splits, tickers or aggregates, or the columns ticker, window_start and close, are needed",
    detect,
    read,
};

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let found = match head.encoding {
        Encoding::Csv => head.has_columns(&["ticker", "windowstart", "close"]),
        _ => {
            let record = head.record_keys();
            let has = |name: &str| record.iter().any(|key| key == name);
            let page =
                head.has_column(&["results", "requestid"]) && head.has_column(&["status", "requestid"]);
            has("ticker")
                && (has("cash_amount") || has("split_from") || has("primary_exchange") || has("locale"))
                || page && has("t") && has("o") && has("c")
                || page && (record.is_empty() || head.has_column(&["resultscount"]))
        }
    };
    found.then_some(Ok(SymbolScope::Rows))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let flat_file = file.encoding == Encoding::Csv;
    let fetched_on = rows.observed_at.date_naive().to_string();
    let mut days = SeriesDates::default();
    read_rows(file, rows, |row, rows| {
        if row.has(&["cashamount"]) {
            dividend(row).add_of_row(row, rows)
        } else if row.has(&["splitfrom"]) {
            split(row).add_of_row(row, rows)
        } else if row.has(&["market", "locale", "primaryexchange"]) {
            ticker(row, &fetched_on, rows)
        } else if row.has(&["c", "close"]) {
            let adjusted = !flat_file && row.text(&["adjusted"]) != Some("false");
            let date = session_of(row.text(&["t", "windowstart"]))?;
            aggregate(row, date, adjusted.then_some(fetched_on.as_str())).add_of_row(row, rows)?;
            days.push(date);
            Ok(())
        } else {
            let message = "is not a dividend, split, ticker or aggregate of Massive";
            Err(RowError::new("unknown_kind", message))
        }
    })?;
    days.check_daily()?;
    Ok(())
}

/// Symbol of a row. Preferred shares have a lower-case p before their class: `BACpL`.
fn symbol(row: &VendorRow<'_>) -> Option<String> {
    let ticker = row.text(&["ticker", "T"])?;
    let preferred = ticker.split_once('p').filter(|(root, class)| {
        !root.is_empty() && [root, class].iter().all(|part| part.bytes().all(|b| b.is_ascii_uppercase()))
    });
    Some(preferred.map_or_else(|| ticker.to_owned(), |(root, class)| format!("{root}.PR{class}")))
}

fn dividend<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    let type_text = row.text(&["dividendtype", "distributiontype"]);
    let r#type = type_text.map(|text| meaning_of("massive dividend type", text).unwrap_or(text));
    RecordBuilder::new(Kind::Dividend)
        .with_value("symbol", symbol(row))
        .with_value("type", r#type)
        .with_value("type_text", type_text)
        .with_values(fields! { row.text => id, amount: cashamount, currency, frequency })
        .with_values(dividend_dates(row))
}

fn split<'a>(row: &'a VendorRow<'_>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Split)
        .with_value("symbol", symbol(row))
        .with_values(fields! { row.date => ex_date: executiondate })
        .with_values(fields! { row.text => id, from: splitfrom, to: splitto, type: adjustmenttype })
}

fn aggregate<'a>(row: &'a VendorRow<'_>, date: NaiveDate, basis_as_of: Option<&'a str>) -> RecordBuilder<'a> {
    RecordBuilder::new(Kind::Price)
        .with_value("symbol", symbol(row))
        .with_value("date", Some(date.to_string()))
        .with_values(fields! {
            row.text =>
                open: o | open, high: h | high, low: l | low, close: c | close, volume: v | volume, vwap: vw,
                trade_count: n | transactions,
        })
        .with_value("basis", basis_as_of.map(|_| "split_adjusted"))
        .with_value("basis_as_of", basis_as_of)
}

/// Adds a security record. If the response also has a market value or a share count, adds them in a fundamentals
/// record.
fn ticker(row: &VendorRow<'_>, fetched_on: &str, rows: &mut RowAccumulator) -> Result<(), RowError> {
    if let Some(market) = row.text(&["market"]).filter(|market| !matches!(*market, "stocks" | "otc")) {
        let message = format_args!("market {market} is not a securities market");
        return Err(RowError::new("unsupported_market", message));
    }
    // Types without a canonical word, such as warrants, rights and units, are loaded as stocks.
    let r#type = row.text(&["type"]).and_then(|code| meaning_of("massive security type", code));
    let delisted = row.text(&["active"]) == Some("false");
    let gone_on = row.text(&["delistedutc"]).and_then(|time| time.get(..10));
    RecordBuilder::new(Kind::Security)
        .with_value("symbol", symbol(row))
        .with_value("type", r#type.or(Some("stock")))
        .with_value("currency", row.text(&["currencyname", "currencysymbol"]).map(str::to_ascii_uppercase))
        .with_value("country", row.text(&["locale"]).filter(|locale| *locale != "global"))
        .with_value("status", delisted.then_some("delisted"))
        .with_value("delisted_on", gone_on.filter(|_| delisted))
        .with_values(fields! {
            row.text =>
                name, exchange: primaryexchange, industry: sicdescription, description, website: homepageurl,
                employees: totalemployees, cik, figi: compositefigi,
        })
        .with_values(fields! { row.date => ipo_date: listdate })
        .add_of_row(row, rows)?;
    if !row.has(&["marketcap", "shareclasssharesoutstanding"]) {
        return Ok(());
    }
    RecordBuilder::new(Kind::Fundamentals)
        .with_value("symbol", symbol(row))
        .with_value("as_of", Some(fetched_on))
        .with_values(
            fields! { row.text => market_cap: marketcap, shares_outstanding: shareclasssharesoutstanding },
        )
        .with_value("shares_as_of", row.text(&["shareclasssharesoutstanding"]).map(|_| fetched_on))
        .add_of_row(row, rows)
}

/// Session of a Unix time in milliseconds or nanoseconds. The local time in New York must be midnight or 16:00.
fn session_of(time: Option<&str>) -> Result<NaiveDate, RowError> {
    let text = time.ok_or_else(|| RowError::missing_value("t"))?;
    let number: Option<i64> = text.parse().ok();
    let instant = number.and_then(|number| match text.len() {
        ..=14 => DateTime::<Utc>::from_timestamp_millis(number),
        _ => Some(DateTime::from_timestamp_nanos(number)),
    });
    let message =
        format_args!("t {:?} is not a time in milliseconds or nanoseconds", abbreviate(text.as_bytes()));
    let local = instant.ok_or_else(|| RowError::new("bad_date", message))?.with_timezone(&New_York);
    match (local.hour(), local.minute(), local.second()) {
        (0 | 16, 0, 0) => Ok(local.date_naive()),
        _ => Err(RowError::new(
            "intraday_row",
            format_args!("t {text} is {} in New York: only daily rows are loaded", local.format("%F %T")),
        )),
    }
}
