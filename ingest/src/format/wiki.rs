//! Quandl / Nasdaq Data Link WIKI prices: one row is a raw price, and a dividend and a split where it says so.
//!
//! Three spellings of the header are known; files without a ticker column hold one symbol, named by `--symbol` or
//! by the file. The `adj_*` columns are conclusions of the vendor and are not read.

use std::io::Read;

use market::bars::BarVersion;
use market::event::{Action, Basis, Dividend, DividendType, Split};
use market::symbol::Symbol;
use market::value::parse_decimal;
use rust_decimal::Decimal;

use super::file_symbol::symbol_of;
use super::head::plain;
use super::{Format, Head, Options, ReadError, ratio};
use crate::bar::PriceCells;
use crate::collect::Collector;
use crate::normalize::{Fault, is_absent, session_date, trim};
use crate::records::{Record, Records};
use crate::source::{Encoding, FeedFile};

const TICKER: [&str; 3] = ["ticker", "stock", "symbol"];

/// Whether a file is WIKI prices, and whose.
pub(super) fn recognise(
    file: &FeedFile,
    head: &Head,
    symbol: Option<&Symbol>,
) -> Option<Result<Format, String>> {
    let needed = ["date", "close", "exdividend", "splitratio"];
    if file.encoding != Encoding::Csv || !needed.iter().all(|name| head.has(&[name])) {
        return None;
    }
    if head.has(&TICKER) {
        return Some(Ok(Format::Wiki(None)));
    }
    let symbol = symbol.cloned().map_or_else(|| symbol_of(file.stem()), Ok);
    Some(symbol.map(|symbol| Format::Wiki(Some(symbol))))
}

/// Where the columns are; `usize::MAX` is a column the file has not, whose field is always empty.
struct Columns {
    count: usize,
    ticker: usize,
    date: usize,
    open: usize,
    high: usize,
    low: usize,
    close: usize,
    volume: usize,
    dividend: usize,
    ratio: usize,
}

impl Columns {
    fn new(header: &[String]) -> Self {
        let at = |names: &[&str]| {
            header.iter().position(|column| names.contains(&column.as_str())).unwrap_or(usize::MAX)
        };
        Self {
            count: header.len(),
            ticker: at(&TICKER),
            date: at(&["date"]),
            open: at(&["open"]),
            high: at(&["high"]),
            low: at(&["low"]),
            close: at(&["close"]),
            volume: at(&["volume"]),
            dividend: at(&["exdividend"]),
            ratio: at(&["splitratio"]),
        }
    }
}

/// Reads all rows.
pub(super) fn read(
    symbol: Option<&Symbol>,
    reader: &mut dyn Read,
    options: &Options,
    rows: &mut Collector,
) -> Result<(), ReadError> {
    let mut records = Records::new(reader)?;
    let header = records.next_record()?.map(|record| {
        record.fields().map(|field| plain(&String::from_utf8_lossy(field))).collect::<Vec<_>>()
    });
    let columns = Columns::new(&header.unwrap_or_default());
    while let Some(record) = records.next_record()? {
        rows.stats.records += 1;
        if let Err(fault) = read_record(&columns, symbol, &record, options, rows) {
            rows.reject(record.line, record.raw, fault);
        }
    }
    Ok(())
}

fn read_record(
    columns: &Columns,
    symbol: Option<&Symbol>,
    record: &Record<'_>,
    options: &Options,
    rows: &mut Collector,
) -> Result<(), Fault> {
    if record.len() != columns.count {
        let message = format_args!("{} fields where the header has {}", record.len(), columns.count);
        return Err(Fault::new("malformed_row", message));
    }
    let symbol = match symbol {
        Some(symbol) => symbol.clone(),
        None => ticker(record.field(columns.ticker))?,
    };
    let date = session_date("date", trim(record.field(columns.date)))?;
    let amount = number("ex-dividend", record.field(columns.dividend), Decimal::ZERO)?;
    if amount < Decimal::ZERO {
        return Err(Fault::new("non_positive_amount", format_args!("ex-dividend {amount} is below zero")));
    }
    let split_ratio = number("split_ratio", record.field(columns.ratio), Decimal::ONE)?;
    let shares = ratio::shares(split_ratio).ok_or_else(|| {
        Fault::new("non_positive_ratio", format_args!("split_ratio {split_ratio} is not above zero"))
    })?;
    let cells = PriceCells {
        open: record.field(columns.open),
        high: record.field(columns.high),
        low: record.field(columns.low),
        close: record.field(columns.close),
        volume: record.field(columns.volume),
        ..PriceCells::default()
    };
    let version = BarVersion::new(0, Action::Put, rows.observed_at(), None);
    rows.price(symbol.as_str().as_bytes(), date, &cells, version, record.line)?;
    let origin = rows.origin(record.line);
    if amount > Decimal::ZERO {
        let dividend = Dividend {
            symbol: symbol.clone(),
            amount: options.currency.major(amount),
            currency: options.currency.code.clone(),
            r#type: DividendType::Regular,
            amount_basis: Basis::Raw,
            ex_date: Some(date),
            record_date: None,
            payment_date: None,
            declaration_date: None,
            frequency: None,
            basis_as_of: None,
            beside: Vec::new(),
        };
        rows.dividend(origin.clone().row(dividend), record.raw.len());
    }
    if split_ratio != Decimal::ONE {
        let (from, to) = shares;
        let split = Split {
            symbol,
            ex_date: date,
            from,
            to,
            declaration_date: None,
            payable_date: None,
            r#type: None,
        };
        rows.split(origin.row(split), record.raw.len());
    }
    Ok(())
}

/// WIKI writes share classes with an underscore: `BRK_B`.
fn ticker(cell: &[u8]) -> Result<Symbol, Fault> {
    let text = String::from_utf8_lossy(cell).replace('_', ".");
    Symbol::parse(&text).map_err(|_| Fault::symbol("ticker", cell))
}

fn number(column: &str, cell: &[u8], absent: Decimal) -> Result<Decimal, Fault> {
    let cell = trim(cell);
    if is_absent(cell) {
        return Ok(absent);
    }
    let parsed = parse_decimal(&String::from_utf8_lossy(cell));
    parsed.map(|parsed| parsed.value).map_err(|error| Fault::number(column, cell, error))
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
