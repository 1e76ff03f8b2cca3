//! EODHD: prices, dividends and splits of one symbol, the last day of a whole exchange, and fundamentals.
//!
//! Prices are as traded. `adjusted_close` is used only to check which dividends were paid (R40). The `value` of a
//! dividend is split-adjusted.

use market::event::ShareBasis;
use rust_decimal::Decimal;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RawJson, RecordBuilder, RowAccumulator, RowError, SeriesDates,
    Symbol, SymbolScope, VendorFile, VendorFormat, VendorRow, count_row, dividend_dates, fields, meaning_of,
    parse_date, parse_split_shares, read_objects, read_rows,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "eodhd",
    about: "EODHD eod, div and splits as CSV and JSON, bulk last day, fundamentals JSON",
    needs: "date with adjusted_close, value or split, or code, exchange and date, are needed",
    detect,
    read,
};

const CODE: [&str; 1] = ["code"];
const EXCHANGE: [&str; 3] = ["exchangeshortname", "exchange", "ex"];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    if head.has_column(&["general"])
        && head.has_column(&["highlights", "valuation", "sharesstats", "etfdata"])
    {
        return Some(Ok(SymbolScope::Rows));
    }
    if !head.has_column(&["date"]) {
        return None;
    }
    let kinds = ["close", "split", "dividend", "dividends", "stocksplits"];
    if head.has_column(&CODE) && head.has_column(&EXCHANGE) && head.has_column(&kinds) {
        return Some(Ok(SymbolScope::Rows));
    }
    // Only EODHD spells the column `adjusted_close`. A file with the column `Adjusted Close` comes from another vendor,
    // and its prices are split-adjusted.
    let adjusted = head.columns.iter().any(|column| column.eq_ignore_ascii_case("adjusted_close"));
    let prices = head.has_column(&["close"]) && adjusted;
    let dividends = head.has_column(&["unadjustedvalue"]) || head.has_columns(&["value", "currency"]);
    let splits = head.has_column(&["split"]) && head.columns.len() <= 3;
    (prices || dividends || splits).then_some(Ok(SymbolScope::File))
}

fn read(mut file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let mut days = SeriesDates::default();
    let file_symbol = file.symbol.take().cloned();
    let mut read =
        |row: &VendorRow<'_>, rows: &mut RowAccumulator| read_row(row, file_symbol.as_ref(), &mut days, rows);
    if file.encoding == Encoding::Csv || file_symbol.is_some() {
        read_rows(file, rows, read)?;
        days.check_daily()?;
        return Ok(());
    }
    // Bulk prices of many symbols, or fundamentals.
    read_objects(file, rows, |record, _, line, rows| {
        let row = VendorRow::of_json(record, line);
        match record.get("General") {
            Some(general) => count_row(&row, rows, &mut |row, rows| fundamentals(row, general, record, rows)),
            None => count_row(&row, rows, &mut read),
        }
    })
}

fn read_row(
    row: &VendorRow<'_>,
    file_symbol: Option<&Symbol>,
    days: &mut SeriesDates,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let symbol = symbol_of(row, file_symbol);
    if row.has(&["close"]) {
        let date = row.date(&["date"]).and_then(|date| parse_date(date.as_bytes()));
        if let (Some(Ok(symbol)), Some(date)) = (symbol.as_deref().map(Symbol::parse), date) {
            let closes = (row.bytes(&["close"]), row.bytes(&["adjustedclose"]));
            rows.evidence.add_adjusted_close(&symbol, date, closes, ShareBasis::Raw, row.line);
        }
        RecordBuilder::new(Kind::Price)
            .with_value("symbol", symbol)
            .with_values(fields! { row.date => date })
            .with_values(fields! { row.text => open, high, low, close, volume })
            .add_of_row(row, rows)?;
        if let (Some(_), Some(date)) = (file_symbol, date) {
            days.push(date);
        }
        return Ok(());
    }
    if row.has(&["split", "stocksplits"]) {
        let shares = parse_split_shares("split", row.bytes(&["split", "stocksplits"]))?;
        let shares = shares.ok_or_else(|| RowError::missing_value("split"))?;
        return RecordBuilder::new(Kind::Split)
            .with_value("symbol", symbol)
            .with_values(fields! { row.date => ex_date: date })
            .with_shares(shares)
            .add_of_row(row, rows);
    }
    let frequency = |period: &str| meaning_of("eodhd frequency", &period.to_ascii_lowercase());
    let adjusted = row.text(&["unadjustedvalue"]).is_none();
    let fetched_on = rows.observed_at.date_naive().to_string();
    RecordBuilder::new(Kind::Dividend)
        .with_value("symbol", symbol)
        .with_value("amount_basis", adjusted.then_some("split_adjusted"))
        .with_value("basis_as_of", adjusted.then_some(fetched_on))
        .with_value("frequency", row.text(&["period"]).and_then(frequency))
        .with_values(fields! {
            row.text =>
                amount: unadjustedvalue | value | dividend | dividends, currency, type_text: period,
        })
        .with_values(dividend_dates(row))
        .with_values(fields! { row.date => ex_date: date })
        .add_of_row(row, rows)
}

/// Symbol of a row or file. Symbols of the United States have no market suffix.
fn symbol_of(row: &VendorRow<'_>, file_symbol: Option<&Symbol>) -> Option<String> {
    if let Some(symbol) = file_symbol {
        return Some(symbol.to_string());
    }
    let code = row.text(&CODE)?;
    Some(match row.text(&EXCHANGE) {
        None | Some("US") => code.strip_suffix(".US").unwrap_or(code).to_owned(),
        Some(exchange) => format!("{code}.{exchange}"),
    })
}

/// Converts the data of one company to a security record and a fundamentals record. Fractions are converted to percent.
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
    let r#type = company.text(&["type"]).and_then(|text| meaning_of("eodhd security type", text));
    let delisted = company.text(&["isdelisted"]) == Some("true");
    RecordBuilder::new(Kind::Security)
        .with_value("symbol", symbol.clone())
        .with_value("type", r#type.or(Some("stock")))
        .with_value("status", delisted.then_some("delisted"))
        .with_value("delisted_on", company.date(&["delisteddate"]).filter(|_| delisted))
        .with_values(fields! {
            company.text =>
                name, exchange, currency: currencycode, country: countryiso | countryname,
                sector: gicsector | sector, industry: gicsubindustry | industry, description, website: weburl,
                employees: fulltimeemployees, cik, figi: openfigi, isin, cusip,
        })
        .with_values(fields! { company.date => ipo_date: ipodate })
        .add_of_row(whole, rows)?;
    let mut figures = VendorRow::of_json(document, whole.line);
    for section in ["Highlights", "Valuation", "SharesStats", "Technicals"] {
        if let Some(section) = document.get(section) {
            figures.add(section);
        }
    }
    let fetched_on = rows.observed_at.date_naive().to_string();
    let as_of = company.date(&["updatedat"]).map_or(fetched_on, str::to_owned);
    RecordBuilder::new(Kind::Fundamentals)
        .with_value("symbol", symbol)
        .with_value("as_of", Some(as_of))
        .with_value("peg_ratio", non_zero(figures.text(&["pegratio"])))
        .with_value("forward_pe", non_zero(figures.text(&["forwardpe"])))
        .with_value("shares_outstanding", non_zero(figures.text(&["sharesoutstanding"])))
        .with_value("float_shares", non_zero(figures.text(&["sharesfloat"])))
        .with_values(
            fields! { figures.date => eps_as_of: mostrecentquarter, fiscal_period_end: mostrecentquarter },
        )
        .with_values(fields! {
            figures.text =>
                market_cap: marketcapitalization, eps_ttm: dilutedepsttm | earningsshare,
                book_value_per_share: bookvalue, revenue_ttm: revenuettm, ps_ratio: pricesalesttm,
                ev_to_ebitda: enterprisevalueebitda, enterprise_value: enterprisevalue, beta,
        })
        .with_values(fields! {
            figures.percent =>
                net_margin: profitmargin, operating_margin: operatingmarginttm, roa: returnonassetsttm,
                roe: returnonequityttm,
        })
        .add_of_row(whole, rows)
}

/// Company figure; `None` for 0, which the vendor writes for an unknown figure.
fn non_zero(text: Option<&str>) -> Option<&str> {
    text.filter(|text| market::decimal::parse_figure(text).is_ok_and(|figure| figure.value != Decimal::ZERO))
}
