//! Tiingo: end-of-day prices as CSV and JSON, corporate actions, and the description of a ticker.
//!
//! Prices and `divCash` are as they were traded and paid; the `adj…` columns are conclusions and are not read.

use market::event::Kind;
use market::symbol::Symbol;

use super::canonical::Draft;
use super::day::{Days, RawDay, local_date};
use super::head::Head;
use super::reading::{ReadError, Reading, Vendor, Whose};
use super::vendor::{VendorRow, read_rows};
use crate::bar::PriceCells;
use crate::collect::Collector;
use crate::normalize::Fault;

pub(super) static FORMAT: Vendor = Vendor {
    name: "tiingo",
    about: "Tiingo end-of-day CSV and JSON, one symbol a file, and corporate actions JSON",
    needs: "date, close and divCash, or exDate with distribution or splitFrom, are needed",
    recognise,
    read,
};

const TICKER: [&str; 1] = ["ticker"];

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
    let prices = head.has(&["date"]) && head.has(&["close"]) && head.has(&["divcash", "adjopen"]);
    let actions = head.has(&["exdate"]) && head.has(&["distribution", "splitfrom"]) && head.has(&TICKER);
    let described = head.has(&["exchangecode"]) && head.has(&["enddate"]) && head.has(&TICKER);
    let whose = if head.has(&TICKER) { Whose::Rows } else { Whose::File };
    (prices || actions || described).then_some(Ok(whose))
}

fn read(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    let (options, symbol, currency) = (reading.options, reading.symbol, reading.currency());
    let mut days = Days::default();
    read_rows(reading, rows, |row, rows| {
        if row.has(&["distribution"]) {
            distribution(row, &currency).accept(row.line, row.raw.len(), rows)
        } else if row.has(&["splitfrom"]) {
            split(row).accept(row.line, row.raw.len(), rows)
        } else if row.has(&["exchangecode"]) {
            security(row).accept(row.line, row.raw.len(), rows)
        } else {
            let symbol = symbol.map_or_else(|| symbol_of(row), |symbol| Ok(symbol.clone()))?;
            let date = local_date("date", row.date(&["date"]).unwrap_or_default().as_bytes())?;
            let prices = PriceCells {
                open: row.bytes(&["open"]),
                high: row.bytes(&["high"]),
                low: row.bytes(&["low"]),
                close: row.bytes(&["close"]),
                volume: row.bytes(&["volume"]),
                ..PriceCells::default()
            };
            let (dividend, ratio) = (row.bytes(&["divcash"]), row.bytes(&["splitfactor"]));
            let (line, bytes) = (row.line, row.raw.len());
            let (dividend, ratio) = (("divCash", dividend), ("splitFactor", ratio));
            RawDay { symbol: &symbol, date, prices, dividend, ratio, line, bytes }.accept(options, rows)?;
            days.push(date);
            Ok(())
        }
    })?;
    days.check_daily()?;
    Ok(())
}

fn symbol_of(row: &VendorRow<'_>) -> Result<Symbol, Fault> {
    let text = row.text(&TICKER).ok_or_else(|| Fault::missing("ticker"))?;
    Symbol::parse(text).map_err(|_| Fault::symbol("ticker", text.as_bytes()))
}

/// The vendor's name of the frequency has lost a letter, `distributionFreqency`; both spellings are read.
fn distribution<'a>(row: &'a VendorRow<'_>, currency: &'a str) -> Draft<'a> {
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
    Draft::new(Kind::Dividend)
        .with("symbol", row.text(&TICKER))
        .with("security_ref", row.text(&["permaticker"]))
        .with("amount", row.text(&["distribution"]))
        .with("currency", Some(currency))
        .with("frequency", frequency)
        .with("ex_date", row.date(&["exdate"]))
        .with("record_date", row.date(&["recorddate"]))
        .with("payment_date", row.date(&["paymentdate"]))
        .with("declaration_date", row.date(&["declarationdate"]))
        .with("action", (code == Some("c")).then_some("retract"))
}

fn split<'a>(row: &'a VendorRow<'_>) -> Draft<'a> {
    Draft::new(Kind::Split)
        .with("symbol", row.text(&TICKER))
        .with("security_ref", row.text(&["permaticker"]))
        .with("ex_date", row.date(&["exdate"]))
        .with("from", row.text(&["splitfrom"]))
        .with("to", row.text(&["splitto"]))
        .with("action", (row.text(&["splitstatus"]) == Some("c")).then_some("retract"))
}

/// The vendor does not tell a fund from a stock here.
fn security<'a>(row: &'a VendorRow<'_>) -> Draft<'a> {
    Draft::new(Kind::Security)
        .with("symbol", row.text(&TICKER))
        .with("name", row.text(&["name"]))
        .with("type", Some("stock"))
        .with("exchange", row.text(&["exchangecode"]))
        .with("description", row.text(&["description"]))
}

#[cfg(test)]
mod tests {
    use crate::format::testing::{read_text, refused};

    const CSV: &str = "date,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor\n\
        2014-06-09,93.7,93.88,91.75,92.7,75415000,1,1,1,1,1,0.0,7.0\n\
        2014-08-07,94.48,95,93,94,46711000,1,1,1,1,1,0.47,1.0\n";

    #[test]
    fn csv_and_json_say_the_same() {
        let json = r#"[{"date":"2014-06-09T00:00:00.000Z","close":93.7,"high":93.88,"low":91.75,"open":92.7,"volume":75415000,"adjClose":1,"adjOpen":1,"divCash":0.0,"splitFactor":7.0},
            {"date":"2014-08-07T00:00:00+00:00","close":94.48,"high":95,"low":93,"open":94,"volume":46711000,"adjClose":1,"adjOpen":1,"divCash":0.47,"splitFactor":1.0}]"#;
        let rows = [
            "price AAPL 2014-06-09 o=92.70 h=93.88 l=91.75 c=93.70 v=75415000 raw",
            "price AAPL 2014-08-07 o=94.00 h=95.00 l=93.00 c=94.48 v=46711000 raw",
            "dividend AAPL 2014-08-07 0.47 USD regular raw",
            "split AAPL 2014-06-09 1:7",
        ];
        assert_eq!(read_text("AAPL.csv", CSV), rows);
        assert_eq!(read_text("AAPL.json", json), rows);
    }

    #[test]
    fn corporate_actions_are_read_and_cancellations_retract() {
        // Written by hand from the vendor's documents: no answer is recorded.
        let dividends = r#"[{"permaTicker":"US000000000038","ticker":"aapl","exDate":"2023-08-25T00:00:00.000Z","paymentDate":"2023-09-07T00:00:00.000Z","recordDate":null,"declarationDate":"2023-07-27T00:00:00.000Z","distribution":0.24,"distributionFreqency":"q"},
            {"permaTicker":"US000000000038","ticker":"aapl","exDate":"2023-11-10T00:00:00.000Z","distribution":0.24,"distributionFreqency":"c"}]"#;
        assert_eq!(
            read_text("d.json", dividends),
            [
                "dividend AAPL 2023-08-25 0.24 USD regular raw",
                "dividend AAPL 2023-11-10 0.24 USD regular raw retract"
            ]
        );
        let splits = r#"[{"permaTicker":"x","ticker":"NVDA","exDate":"2024-06-10","splitFrom":1.0,"splitTo":10.0,"splitFactor":10.0,"splitStatus":"a"}]"#;
        assert_eq!(read_text("s.json", splits), ["split NVDA 2024-06-10 1:10"]);
    }

    #[test]
    fn an_error_is_no_data_and_a_name_is_no_guess() {
        assert!(refused("AAPL.json", r#"{"detail":"Not found."}"#).contains("Not found."));
        assert!(refused("my_prices.csv", CSV).contains("--symbol"));
    }
}
