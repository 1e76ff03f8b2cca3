//! Quandl / Nasdaq Data Link WIKI prices: one row is a raw price, and a dividend and a split where it says so.
//!
//! Three spellings of the header are known; files without a ticker column hold one symbol, named by `--symbol` or
//! by the file. The `adj_*` columns are conclusions of the vendor and are not read.

use market::symbol::Symbol;

use super::day::RawDay;
use super::head::{Head, plain};
use super::reading::{ReadError, Reading, Vendor, Whose};
use super::table::{PriceColumns, Table};
use crate::collect::Collector;
use crate::normalize::{Fault, session_date, trim};
use crate::source::Encoding;

const TICKER: [&str; 3] = ["ticker", "stock", "symbol"];

pub(super) static FORMAT: Vendor = Vendor {
    name: "wiki",
    about: "Quandl / Nasdaq Data Link WIKI prices CSV",
    needs: "columns date, close, ex-dividend and split_ratio are needed",
    recognise,
    read,
};

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
    let needed = ["date", "close", "exdividend", "splitratio"];
    let found = head.encoding == Encoding::Csv && needed.iter().all(|name| head.has(&[name]));
    found.then_some(Ok(if head.has(&TICKER) { Whose::Rows } else { Whose::File }))
}

/// Where the columns are.
struct Columns {
    ticker: usize,
    date: usize,
    prices: PriceColumns,
    dividend: usize,
    ratio: usize,
}

/// Reads all rows.
fn read(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    let Reading { source, symbol, options, .. } = reading;
    let table = Table::open(source, plain)?;
    let columns = Columns {
        ticker: table.column(&TICKER),
        date: table.column(&["date"]),
        prices: PriceColumns::of(&table),
        dividend: table.column(&["exdividend"]),
        ratio: table.column(&["splitratio"]),
    };
    table.read(rows, |record, rows| {
        let named;
        let symbol = match symbol {
            Some(symbol) => symbol,
            None => {
                named = ticker(record.field(columns.ticker))?;
                &named
            }
        };
        let day = RawDay {
            symbol,
            date: session_date("date", trim(record.field(columns.date)))?,
            prices: columns.prices.cells(record),
            dividend: ("ex-dividend", record.field(columns.dividend)),
            ratio: ("split_ratio", record.field(columns.ratio)),
            line: record.line,
            bytes: record.raw.len(),
        };
        day.accept(options, rows)
    })
}

/// WIKI writes share classes with an underscore: `BRK_B`.
fn ticker(cell: &[u8]) -> Result<Symbol, Fault> {
    let text = String::from_utf8_lossy(cell).replace('_', ".");
    Symbol::parse(&text).map_err(|_| Fault::symbol("ticker", cell))
}

#[cfg(test)]
mod tests {
    use crate::format::testing::read_text;

    #[test]
    fn a_row_is_a_price_and_what_happened_that_day() {
        let text = "ticker,date,open,high,low,close,volume,ex-dividend,split_ratio,adj_close\n\
            AAPL,2014-06-06,649.9,651.26,644.47,645.57,12497800.0,0.0,1.0,90\n\
            AAPL,2014-06-09,92.7,93.88,91.75,93.7,75415000.0,0.0,7.0,91\n\
            AAPL,2014-08-07,0.0,,0,94.48,46711000.0,0.47,1.0,92\n\
            BRK_B,2014-08-07,1,1,1,x,1,0,1,1\n";
        insta_like(
            &read_text("WIKI_PRICES.csv", text),
            &[
                "price AAPL 2014-06-06 o=649.90 h=651.26 l=644.47 c=645.57 v=12497800 raw",
                "price AAPL 2014-06-09 o=92.70 h=93.88 l=91.75 c=93.70 v=75415000 raw",
                "price AAPL 2014-08-07 o=- h=- l=- c=94.48 v=46711000 raw",
                "dividend AAPL 2014-08-07 0.47 USD regular raw",
                "split AAPL 2014-06-09 1:7",
                "reject 5 bad_number: close \"x\" is not a decimal number",
            ],
        );
    }

    #[test]
    fn the_symbol_may_come_from_the_file() {
        let text = "Date,Open,High,Low,Close,Volume,Ex-Dividend,Split Ratio,Adj. Open\n2012-01-03,1,2,1,2,10.0,0.0,0.1,5\n";
        insta_like(
            &read_text("WIKI-yhoo-2012-quandl.csv", text),
            &["price YHOO 2012-01-03 o=1 h=2 l=1 c=2 v=10 raw", "split YHOO 2012-01-03 10:1"],
        );
    }

    fn insta_like(found: &[String], expected: &[&str]) {
        assert_eq!(found, expected);
    }
}
