//! Alpha Vantage: daily prices, `DIVIDENDS`, `SPLITS` and `OVERVIEW`, as JSON and CSV.
//!
//! Daily prices and dividends are as traded and paid; the adjusted close is not read. CSV answers name no symbol.

use std::borrow::Cow;

use market::event::Kind;
use market::symbol::Symbol;

use super::canonical::Draft;
use super::day::{Days, RawDay, local_date, split_shares};
use super::head::Head;
use super::json::Json;
use super::reading::{Options, ReadError, Reading, Vendor, Whose};
use super::vendor::{VendorRow, read_documents, read_rows, take_row};
use crate::bar::PriceCells;
use crate::collect::Collector;
use crate::normalize::Fault;
use crate::source::Encoding;

pub(super) static FORMAT: Vendor = Vendor {
    name: "alphavantage",
    about: "Alpha Vantage TIME_SERIES_DAILY(_ADJUSTED), DIVIDENDS, SPLITS as JSON and CSV, OVERVIEW JSON",
    needs: "a daily time series, a symbol with dividends or splits, or an overview is needed",
    recognise,
    read,
};

const DAILY: [&str; 6] = ["timestamp", "open", "high", "low", "close", "volume"];

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
    if head.encoding == Encoding::Csv {
        let daily = DAILY.iter().all(|name| head.has(&[name]))
            && (head.columns.len() == DAILY.len() || head.has(&["adjustedclose"]));
        let named = head.has(&["symbol"]);
        let events = head.has(&["exdividenddate"]) && head.has(&["amount"])
            || head.has(&["effectivedate"]) && head.has(&["splitfactor"]);
        return ((daily || events) && !named).then_some(Ok(Whose::File));
    }
    let series = head.columns.iter().find(|name| name.contains("Time Series"));
    if let Some(series) = series.filter(|_| head.has(&["metadata"])) {
        let daily = *series == "Time Series (Daily)";
        let refused = || format!("is {series:?} of Alpha Vantage: only daily rows are loaded");
        return Some(daily.then_some(Whose::Rows).ok_or_else(refused));
    }
    let record = head.record_keys();
    let has = |name: &str| record.iter().any(|key| key == name);
    let events = head.has(&["symbol"])
        && head.has(&["data"])
        && (record.is_empty() || has("ex_dividend_date") || has("effective_date"));
    let overview =
        head.has(&["symbol"]) && head.has(&["assettype"]) && head.has(&["latestquarter", "exdividenddate"]);
    (events || overview).then_some(Ok(Whose::Rows))
}

fn read(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    let (options, file, currency) = (reading.options, reading.symbol.cloned(), reading.currency());
    let mut days = Days::default();
    if reading.encoding == Encoding::Csv {
        read_rows(reading, rows, |row, rows| {
            read_row(row, file.as_ref(), &currency, options, &mut days, rows)
        })?;
    } else {
        read_documents(reading, rows, |document, line, rows| {
            let symbol = document.get("Meta Data").map(|meta| VendorRow::of_json(meta, line));
            let symbol = symbol.as_ref().and_then(|meta| meta.text(&["symbol"])).map(str::to_owned);
            let mut read = |row: &VendorRow<'_>, rows: &mut Collector| {
                read_row(row, file.as_ref(), &currency, options, &mut days, rows)
            };
            for row in records(document, symbol, line) {
                take_row(&row, rows, &mut read);
            }
        })?;
    }
    days.check_daily()?;
    Ok(())
}

/// The records of an answer: a series' days, the items of `data`, or the overview itself.
fn records(document: Json<'_>, symbol: Option<String>, line: u64) -> Vec<VendorRow<'_>> {
    let mut records = Vec::new();
    if let Some(series) = document.get("Time Series (Daily)") {
        for (number, (date, values)) in (1..).zip(series.members()) {
            let mut row = VendorRow::of_json(values, number);
            row.set("timestamp", date);
            if let Some(symbol) = symbol.clone() {
                row.set("symbol", Cow::Owned(symbol));
            }
            records.push(row);
        }
    } else if let Some(data) = document.get("data") {
        for (number, item) in (1..).zip(data.items()) {
            let mut row = VendorRow::of_json(item, number);
            row.add(document);
            records.push(row);
        }
    } else {
        records.push(VendorRow::of_json(document, line));
    }
    records
}

fn read_row(
    row: &VendorRow<'_>,
    file: Option<&Symbol>,
    currency: &str,
    options: &Options,
    days: &mut Days,
    rows: &mut Collector,
) -> Result<(), Fault> {
    let symbol = row.symbol(&["symbol"], file).ok_or_else(|| Fault::missing("symbol"))?;
    let (line, bytes) = (row.line, row.raw.len());
    if row.has(&["close"]) {
        let date = local_date("timestamp", row.bytes(&["timestamp"]))?;
        let day = RawDay {
            symbol: &Symbol::parse(&symbol).map_err(|_| Fault::symbol("symbol", symbol.as_bytes()))?,
            date,
            prices: PriceCells {
                open: row.bytes(&["open"]),
                high: row.bytes(&["high"]),
                low: row.bytes(&["low"]),
                close: row.bytes(&["close"]),
                volume: row.bytes(&["volume"]),
                ..PriceCells::default()
            },
            dividend: ("dividend amount", row.bytes(&["dividendamount"])),
            ratio: ("split coefficient", row.bytes(&["splitcoefficient"])),
            line,
            bytes,
        };
        day.accept(options, rows)?;
        days.push(date);
        return Ok(());
    }
    if row.has(&["assettype"]) {
        return overview(row, &symbol, rows);
    }
    if row.has(&["effectivedate"]) {
        let shares = split_shares("split_factor", row.bytes(&["splitfactor"]))?;
        let (from, to) = shares.ok_or_else(|| Fault::missing("split_factor"))?;
        return Draft::new(Kind::Split)
            .with("symbol", Some(symbol))
            .with("ex_date", row.date(&["effectivedate"]))
            .with("from", Some(from.to_string()))
            .with("to", Some(to.to_string()))
            .accept(line, bytes, rows);
    }
    Draft::new(Kind::Dividend)
        .with("symbol", Some(symbol))
        .with("amount", row.text(&["amount"]))
        .with("currency", Some(currency))
        .with("ex_date", row.date(&["exdividenddate"]))
        .with("record_date", row.date(&["recorddate"]))
        .with("payment_date", row.date(&["paymentdate"]))
        .with("declaration_date", row.date(&["declarationdate"]))
        .accept(line, bytes, rows)
}

/// A company and its figures; margins and returns are fractions there.
fn overview(row: &VendorRow<'_>, symbol: &str, rows: &mut Collector) -> Result<(), Fault> {
    let asked_on = rows.observed_at().date_naive().to_string();
    let quarter = row.date(&["latestquarter"]);
    let shares = row.text(&["sharesoutstanding"]);
    Draft::new(Kind::Security)
        .with("symbol", Some(symbol))
        .with("name", row.text(&["name"]))
        .with("type", Some(if row.text(&["assettype"]) == Some("ETF") { "etf" } else { "stock" }))
        .with("exchange", row.text(&["exchange"]))
        .with("currency", row.text(&["currency"]))
        .with("country", row.text(&["country"]))
        .with("sector", row.text(&["sector"]))
        .with("industry", row.text(&["industry"]))
        .with("description", row.text(&["description"]))
        .with("website", row.text(&["officialsite"]))
        .with("cik", row.text(&["cik"]))
        .accept(row.line, row.raw.len(), rows)?;
    Draft::new(Kind::Fundamentals)
        .with("symbol", Some(symbol))
        .with("as_of", Some(asked_on))
        .with("eps_ttm", row.text(&["dilutedepsttm", "eps"]))
        .with("eps_as_of", quarter)
        .with("fiscal_period_end", quarter)
        .with("market_cap", row.text(&["marketcapitalization"]))
        .with("shares_outstanding", shares)
        .with("shares_as_of", quarter.filter(|_| shares.is_some()))
        .with("float_shares", row.text(&["sharesfloat"]))
        .with("book_value_per_share", row.text(&["bookvalue"]))
        .with("revenue_ttm", row.text(&["revenuettm"]))
        .with("net_margin", row.percent(&["profitmargin"]))
        .with("operating_margin", row.percent(&["operatingmarginttm"]))
        .with("roa", row.percent(&["returnonassetsttm"]))
        .with("roe", row.percent(&["returnonequityttm"]))
        .with("forward_pe", row.text(&["forwardpe"]))
        .with("peg_ratio", row.text(&["pegratio"]))
        .with("ps_ratio", row.text(&["pricetosalesratiottm"]))
        .with("ev_to_ebitda", row.text(&["evtoebitda"]))
        .with("beta", row.text(&["beta"]))
        .accept(row.line, row.raw.len(), rows)
}

#[cfg(test)]
mod tests {
    use crate::format::testing::{read_text, refused};

    #[test]
    fn a_daily_series_is_raw_with_its_dividends() {
        let json = r#"{"Meta Data":{"1. Information":"Daily Time Series","2. Symbol":"IBM"},"Time Series (Daily)":{
            "2020-05-07":{"1. open":"122.9800","2. high":"123.2600","3. low":"120.8500","4. close":"121.2300","5. adjusted close":"100","6. volume":"4412047","7. dividend amount":"1.6300","8. split coefficient":"1.0000"}}}"#;
        let csv = "timestamp,open,high,low,close,adjusted_close,volume,dividend_amount,split_coefficient\n2020-05-07,122.98,123.26,120.85,121.23,100,4412047,1.6300,1.0\n";
        let rows = [
            "price IBM 2020-05-07 o=122.98 h=123.26 l=120.85 c=121.23 v=4412047 raw",
            "dividend IBM 2020-05-07 1.63 USD regular raw",
        ];
        assert_eq!(read_text("x.json", json), rows);
        assert_eq!(read_text("IBM.csv", csv), rows);
    }

    #[test]
    fn dividends_and_splits_may_lack_dates() {
        // Written by hand from the vendor's documents: no answer is recorded.
        let dividends = r#"{"symbol":"IBM","data":[{"ex_dividend_date":"2024-08-09","declaration_date":"2024-07-29","record_date":"2024-08-09","payment_date":"2024-09-10","amount":"1.67"},
            {"ex_dividend_date":"1999-02-08","declaration_date":"None","record_date":"None","payment_date":"None","amount":"0.22"}]}"#;
        assert_eq!(
            read_text("x.json", dividends),
            ["dividend IBM 2024-08-09 1.67 USD regular raw", "dividend IBM 1999-02-08 0.22 USD regular raw"]
        );
        let splits = r#"{"symbol":"IBM","data":[{"effective_date":"1999-05-27","split_factor":"2.0000"}]}"#;
        assert_eq!(read_text("x.json", splits), ["split IBM 1999-05-27 1:2"]);
        let csv = "ex_dividend_date,declaration_date,record_date,payment_date,amount\n2024-08-09,None,None,None,1.67\n";
        assert_eq!(read_text("IBM.csv", csv), ["dividend IBM 2024-08-09 1.67 USD regular raw"]);
    }

    #[test]
    fn an_overview_is_a_security_and_its_figures() {
        let json = r#"{"Symbol":"IBM","AssetType":"Common Stock","Name":"International Business Machines","CIK":"51143","Exchange":"NYSE","Currency":"USD","Country":"USA","Sector":"TECHNOLOGY","LatestQuarter":"2021-09-30","MarketCapitalization":"106626228000","ProfitMargin":"0.064","PEGRatio":"None","DilutedEPSTTM":"5.28","SharesOutstanding":"896320000"}"#;
        let found = read_text("x.json", json);
        for part in [r#""exchange":"XNYS""#, r#""sector":"Information Technology""#, r#""country":"US""#] {
            assert!(found[0].contains(part), "{part} in {found:?}");
        }
        assert!(
            found[1].contains(r#""net_margin":"6.4""#) && found[1].contains(r#""eps_ttm":"5.28""#),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_not_daily_and_notices_are_refused() {
        let weekly = r#"{"Meta Data":{"2. Symbol":"IBM"},"Weekly Time Series":{}}"#;
        assert!(refused("x.json", weekly).contains("only daily"));
        let note = r#"{"Note":"Thank you for using Alpha Vantage! Our standard API call frequency is 5 calls per minute."}"#;
        assert!(refused("x.json", note).contains("throttle notice"));
        assert!(refused("x.json", r#"{"Error Message":"Invalid API call."}"#).contains("Invalid API call"));
    }
}
