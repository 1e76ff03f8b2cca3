//! EODHD: prices, dividends and splits of one symbol, the last day of a whole exchange, and fundamentals.
//!
//! Prices are as traded; `adjusted_close` is a conclusion and is not read. A dividend's `value` is adjusted for later
//! splits, `unadjustedValue` is what was declared and is preferred.

use market::event::Kind;
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::canonical::Draft;
use super::day::{Days, split_shares};
use super::head::Head;
use super::json::Json;
use super::reading::{ReadError, Reading, Vendor, Whose};
use super::vendor::{VendorRow, read_documents, read_rows, take_row};
use crate::collect::Collector;
use crate::normalize::{Fault, parse_date};
use crate::source::Encoding;

pub(super) static FORMAT: Vendor = Vendor {
    name: "eodhd",
    about: "EODHD eod, div and splits as CSV and JSON, bulk last day, fundamentals JSON",
    needs: "date with adjusted_close, value or split, or code, exchange and date, are needed",
    recognise,
    read,
};

const CODE: [&str; 1] = ["code"];
const EXCHANGE: [&str; 3] = ["exchangeshortname", "exchange", "ex"];
const DIVIDEND: [&str; 3] = ["unadjustedvalue", "value", "dividend"];

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
    if head.has(&["general"]) && head.has(&["highlights", "valuation", "sharesstats", "etfdata"]) {
        return Some(Ok(Whose::Rows));
    }
    if !head.has(&["date"]) {
        return None;
    }
    let kinds = ["close", "split", "dividend", "dividends", "stocksplits"];
    if head.has(&CODE) && head.has(&EXCHANGE) && head.has(&kinds) {
        return Some(Ok(Whose::Rows));
    }
    let prices = head.has(&["close"]) && head.has(&["adjustedclose"]);
    let dividends = head.has(&["unadjustedvalue"]) || head.has(&["value"]) && head.has(&["currency"]);
    let splits = head.has(&["split"]) && head.columns.len() <= 3;
    (prices || dividends || splits).then_some(Ok(Whose::File))
}

fn read(mut reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    if reading.encoding != Encoding::Csv && reading.symbol.is_none() {
        return read_bulk_or_fundamentals(reading, rows);
    }
    let mut days = Days::default();
    let file = reading.symbol.take().cloned();
    let currency = reading.currency();
    read_rows(reading, rows, |row, rows| read_row(row, file.as_ref(), &currency, &mut days, rows))?;
    days.check_daily()?;
    Ok(())
}

fn read_bulk_or_fundamentals(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    let currency = reading.currency();
    let mut days = Days::default();
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
    days: &mut Days,
    rows: &mut Collector,
) -> Result<(), Fault> {
    let symbol = symbol_of(row, file);
    let (line, bytes) = (row.line, row.raw.len());
    if row.has(&["close"]) {
        let price = Draft::new(Kind::Price)
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
        let (from, to) = shares.ok_or_else(|| Fault::missing("split"))?;
        return Draft::new(Kind::Split)
            .with("symbol", symbol)
            .with("ex_date", row.date(&["date"]))
            .with("from", Some(from.to_string()))
            .with("to", Some(to.to_string()))
            .accept(line, bytes, rows);
    }
    let adjusted = row.text(&["unadjustedvalue"]).is_none();
    let asked_on = rows.observed_at().date_naive().to_string();
    Draft::new(Kind::Dividend)
        .with("symbol", symbol)
        .with("amount", row.text(&DIVIDEND).or_else(|| row.text(&["dividends"])))
        .with("amount_basis", adjusted.then_some("split_adjusted"))
        .with("basis_as_of", adjusted.then_some(asked_on))
        .with("currency", row.text(&["currency"]).or(Some(currency)))
        .with("frequency", row.text(&["period"]).and_then(frequency))
        .with("ex_date", row.date(&["date"]))
        .with("record_date", row.date(&["recorddate"]))
        .with("payment_date", row.date(&["paymentdate"]))
        .with("declaration_date", row.date(&["declarationdate"]))
        .accept(line, bytes, rows)
}

/// The symbol of a row or file; that of the home market bears no market.
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

/// A company's sections as a security and its figures; fractions become percent.
fn fundamentals(
    whole: &VendorRow<'_>,
    general: Json<'_>,
    document: Json<'_>,
    rows: &mut Collector,
) -> Result<(), Fault> {
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
    Draft::new(Kind::Security)
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
    Draft::new(Kind::Fundamentals)
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

/// A figure for which the vendor writes 0 when it has none.
fn positive(text: Option<&str>) -> Option<&str> {
    text.filter(|text| market::value::parse_figure(text).is_ok_and(|figure| figure.value != Decimal::ZERO))
}

#[cfg(test)]
mod tests {
    use crate::format::testing::{read_text, refused};

    #[test]
    fn prices_are_raw_in_csv_and_json() {
        let csv = "Date,Open,High,Low,Close,Adjusted_close,Volume\n2017-01-05,119.34,120.2,119.1,119.7,103.6748,4261100\n";
        let json = r#"[{"date":"2017-01-05","open":119.34,"high":120.2,"low":119.1,"close":119.7,"adjusted_close":103.6748,"volume":4261100}]"#;
        let row = ["price MCD 2017-01-05 o=119.34 h=120.20 l=119.10 c=119.70 v=4261100 raw"];
        assert_eq!(read_text("MCD.US.csv", csv), row);
        assert_eq!(read_text("MCD.json", json), row);
    }

    #[test]
    fn dividends_are_as_declared_where_that_is_said() {
        let json = r#"[{"date":"2014-05-08","declarationDate":"2014-04-23","recordDate":"0000-00-00","paymentDate":"2014-05-15","period":"Quarterly","value":0.1175,"unadjustedValue":3.29,"currency":"USD"},
            {"date":"2014-08-07","value":"0.1175","unadjustedValue":null,"currency":"USD"}]"#;
        assert_eq!(
            read_text("AAPL.json", json),
            [
                "dividend AAPL 2014-05-08 3.29 USD regular raw",
                "dividend AAPL 2014-08-07 0.1175 USD regular split_adjusted@1970-01-01"
            ]
        );
    }

    #[test]
    fn splits_and_bulk_tables() {
        assert_eq!(
            read_text("AAPL.json", r#"[{"date":"2014-06-09","split":"7.000000/1.000000"}]"#),
            ["split AAPL 2014-06-09 1:7"]
        );
        let bulk = "Code,Ex,Date,Open,High,Low,Close,Adjusted_close,Volume\nA,US,2024-01-02,1,2,1,2,2,100\nVOD,LSE,2024-01-02,1,2,1,2,2,100\n";
        assert_eq!(
            read_text("bulk.csv", bulk),
            [
                "price A 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw",
                "price VOD.LSE 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw"
            ]
        );
        let json = r#"[{"code":"A","exchange_short_name":"US","date":"2024-01-02","open":1,"high":2,"low":1,"close":2,"adjusted_close":2,"volume":100}]"#;
        assert_eq!(read_text("bulk.json", json), ["price A 2024-01-02 o=1 h=2 l=1 c=2 v=100 raw"]);
    }

    #[test]
    fn fundamentals_have_percent_in_points() {
        let json = r#"{"General":{"Code":"AAPL","Type":"Common Stock","Name":"Apple Inc","Exchange":"NASDAQ","CurrencyCode":"USD","CountryISO":"US","Sector":"Technology","UpdatedAt":"2024-03-01","IsDelisted":false},
            "Highlights":{"MarketCapitalization":2700000000000,"ProfitMargin":0.2631,"PEGRatio":0,"DilutedEpsTTM":6.43},"SharesStats":{"SharesOutstanding":15441900000}}"#;
        let found = read_text("AAPL.US.json", json);
        assert!(found[0].contains(r#""sector":"Information Technology""#), "{found:?}");
        assert!(found[1].contains(r#""net_margin":"26.31""#) && !found[1].contains("peg_ratio"), "{found:?}");
    }

    #[test]
    fn a_vendors_message_is_no_data() {
        assert!(
            refused("AAPL.json", r#"{"error":"Forbidden. Please contact support@eodhistoricaldata.com"}"#)
                .contains("Forbidden")
        );
    }
}
