//! Alpha Vantage: daily prices, `DIVIDENDS`, `SPLITS` and `OVERVIEW`, as JSON and CSV.
//!
//! Prices are as traded, and dividends are as paid. The adjusted close is used only to check which dividends were paid
//! (R40). CSV files contain no symbol.

use std::borrow::Cow;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RecordBuilder, RowAccumulator, RowError, SeriesDates, Symbol,
    SymbolScope, TradingDay, VendorFile, VendorFormat, VendorRow, count_row, dividend_dates, fields,
    parse_session_date, parse_split_shares, parse_symbol, read_objects, read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "alphavantage",
    about: "Alpha Vantage TIME_SERIES_DAILY(_ADJUSTED), DIVIDENDS, SPLITS as JSON and CSV, OVERVIEW JSON",
    needs: "a daily time series, a symbol with dividends or splits, or an overview is needed",
    detect,
    read,
};

const DAILY: [&str; 6] = ["timestamp", "open", "high", "low", "close", "volume"];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if head.encoding == Encoding::Csv {
        let daily = head.has_columns(&DAILY)
            && (head.columns.len() == DAILY.len() || head.has_column(&["adjustedclose"]));
        let named = head.has_column(&["symbol"]);
        let events = head.has_columns(&["exdividenddate", "amount"])
            || head.has_columns(&["effectivedate", "splitfactor"]);
        return ((daily || events) && !named).then_some(Ok(SymbolScope::File));
    }
    let series = head.columns.iter().find(|name| name.contains("Time Series"));
    if let Some(series) = series.filter(|_| head.has_column(&["metadata"])) {
        let daily = *series == "Time Series (Daily)";
        let refused = || format!("is {series:?} of Alpha Vantage: only daily rows are loaded");
        return Some(daily.then_some(SymbolScope::Rows).ok_or_else(refused));
    }
    let record = head.record_keys();
    let has = |name: &str| record.iter().any(|key| key == name);
    let events = head.has_columns(&["symbol", "data"])
        && (record.is_empty() || has("ex_dividend_date") || has("effective_date"));
    let overview =
        head.has_columns(&["symbol", "assettype"]) && head.has_column(&["latestquarter", "exdividenddate"]);
    (events || overview).then_some(Ok(SymbolScope::Rows))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let file_symbol = file.symbol.cloned();
    let mut days = SeriesDates::default();
    let mut read =
        |row: &VendorRow<'_>, rows: &mut RowAccumulator| read_row(row, file_symbol.as_ref(), &mut days, rows);
    if file.encoding == Encoding::Csv {
        read_rows(file, rows, read)?;
    } else {
        read_objects(file, rows, |object, wrapper, line, rows| {
            let Some(series) = object.get("Time Series (Daily)") else {
                return count_row(&VendorRow::of_object(object, wrapper, line), rows, &mut read);
            };
            let meta = object.get("Meta Data").map(|meta| VendorRow::of_json(meta, line));
            let symbol = meta.as_ref().and_then(|meta| meta.text(&["symbol"]));
            for (number, (date, values)) in (1..).zip(series.members()) {
                let mut row = VendorRow::of_json(values, number);
                row.set("timestamp", date);
                symbol.into_iter().for_each(|symbol| row.set("symbol", Cow::Owned(symbol.to_owned())));
                count_row(&row, rows, &mut read);
            }
        })?;
    }
    days.check_daily()?;
    Ok(())
}

fn read_row(
    row: &VendorRow<'_>,
    file_symbol: Option<&Symbol>,
    days: &mut SeriesDates,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let symbol = file_symbol.map(Symbol::as_str).or_else(|| row.text(&["symbol"]));
    let symbol = symbol.ok_or_else(|| RowError::missing_value("symbol"))?;
    if row.has(&["close"]) {
        let date = parse_session_date("timestamp", row.bytes(&["timestamp"]), rows.zone)?;
        let symbol = parse_symbol("symbol", symbol)?;
        let dividend = ("dividend amount", "dividendamount");
        let ratio = ("split coefficient", "splitcoefficient");
        TradingDay::of_row(row, &symbol, date, "adjustedclose", dividend, ratio)?.add_raw(rows)?;
        days.push(date);
        return Ok(());
    }
    if row.has(&["assettype"]) {
        return overview(row, symbol, rows);
    }
    if row.has(&["effectivedate"]) {
        let shares = parse_split_shares("split_factor", row.bytes(&["splitfactor"]))?;
        let shares = shares.ok_or_else(|| RowError::missing_value("split_factor"))?;
        return RecordBuilder::new(Kind::Split)
            .with_value("symbol", Some(symbol))
            .with_values(fields! { row.date => ex_date: effectivedate })
            .with_shares(shares)
            .add_of_row(row, rows);
    }
    RecordBuilder::new(Kind::Dividend)
        .with_value("symbol", Some(symbol))
        .with_values(fields! { row.text => amount })
        .with_values(dividend_dates(row))
        .add_of_row(row, rows)
}

/// Converts a company overview to a security record and a fundamentals record. The vendor gives margins and returns as
/// fractions, such as 0.25 for 25 %.
fn overview(row: &VendorRow<'_>, symbol: &str, rows: &mut RowAccumulator) -> Result<(), RowError> {
    let asked_on = rows.observed_at.date_naive().to_string();
    let quarter = row.date(&["latestquarter"]);
    let shares = row.text(&["sharesoutstanding"]);
    RecordBuilder::new(Kind::Security)
        .with_value("symbol", Some(symbol))
        .with_value("type", Some(if row.text(&["assettype"]) == Some("ETF") { "etf" } else { "stock" }))
        .with_values(fields! {
            row.text =>
                name, exchange, currency, country, sector, industry, description, website: officialsite, cik,
        })
        .add_of_row(row, rows)?;
    RecordBuilder::new(Kind::Fundamentals)
        .with_value("symbol", Some(symbol))
        .with_value("as_of", Some(asked_on))
        .with_value("shares_outstanding", shares)
        .with_value("shares_as_of", quarter.filter(|_| shares.is_some()))
        .with_values(fields! { row.date => eps_as_of: latestquarter, fiscal_period_end: latestquarter })
        .with_values(fields! {
            row.text =>
                eps_ttm: dilutedepsttm | eps, market_cap: marketcapitalization, float_shares: sharesfloat,
                book_value_per_share: bookvalue, revenue_ttm: revenuettm, forward_pe: forwardpe,
                peg_ratio: pegratio, ps_ratio: pricetosalesratiottm, ev_to_ebitda: evtoebitda, beta,
        })
        .with_values(fields! {
            row.percent =>
                net_margin: profitmargin, operating_margin: operatingmarginttm, roa: returnonassetsttm,
                roe: returnonequityttm,
        })
        .add_of_row(row, rows)
}
