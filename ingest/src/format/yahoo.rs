//! Yahoo-style CSV: one symbol a file, daily rows only; chart answers in JSON are read by `yahoo_chart.rs`.
//!
//! `…,Adj Close,Volume[,Dividends,Stock Splits]` has prices and dividends adjusted for the splits up to the file's
//! newest date; the older `…,Volume,Adj Close` has raw prices. `Adj Close` itself and `Repaired?` are not read.
//! `Dividends` of a fund are all it paid that day: `Capital Gains` are a part of it and are taken out, unless they are more.

use std::io::Read;

use market::event::Basis;

use super::day::{amount, local_date, split_shares};
use super::head::{Head, plain};
use super::newest_basis::{Day, NewestBasis};
use super::reading::{ReadError, Reading, Vendor, Whose};
use super::table::{NONE, PriceColumns, Table};
use super::yahoo_chart;
use crate::collect::Collector;
use crate::normalize::Fault;
use crate::records::Record;
use crate::source::Encoding;

const DATE: [&str; 2] = ["date", "datetime"];

pub(super) static FORMAT: Vendor = Vendor {
    name: "yahoo",
    about: "Yahoo-style prices CSV, one symbol a file, and chart answers (v8) in JSON",
    needs: "columns Date, Open, High, Low, Close, Adj Close and Volume are needed",
    recognise,
    read,
};

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
    if yahoo_chart::is_chart(head) {
        return Some(Ok(Whose::Rows));
    }
    if head.encoding != Encoding::Csv || !head.has(&DATE) || head.has(&["symbol", "ticker"]) {
        return None;
    }
    let prices = ["open", "high", "low", "close", "volume"].iter().all(|name| head.has(&[name]));
    let events = head.columns.len() == 2 && head.has(&["dividends", "stocksplits"]);
    if prices && !head.has(&["adjclose"]) && head.has(&["stocksplits"]) {
        let message = "has no Adj Close: its prices are adjusted for dividends too; download it again unadjusted (auto_adjust=False)";
        return Some(Err(message.to_owned()));
    }
    (events || prices && head.has(&["adjclose"])).then_some(Ok(Whose::File))
}

/// Where the columns are.
struct Columns {
    date: usize,
    prices: PriceColumns,
    dividends: usize,
    splits: usize,
    capital_gains: usize,
    basis: Basis,
}

impl Columns {
    fn of<R: Read>(table: &Table<R>) -> Self {
        let prices = PriceColumns::of(table);
        let adjusted_close = table.column(&["adjclose"]);
        let raw = prices.volume < adjusted_close && adjusted_close != NONE;
        Self {
            date: table.column(&DATE),
            prices,
            dividends: table.column(&["dividends"]),
            splits: table.column(&["stocksplits"]),
            capital_gains: table.column(&["capitalgains"]),
            basis: if raw { Basis::Raw } else { Basis::SplitAdjusted },
        }
    }

    fn day<'a>(&self, record: &Record<'a>) -> Result<Day<'a>, Fault> {
        Ok(Day {
            date: local_date("Date", record.field(self.date))?,
            prices: (self.prices.close != NONE).then(|| self.prices.cells(record)),
            dividend: amount("Dividends", record.field(self.dividends))?,
            capital_gain: amount("Capital Gains", record.field(self.capital_gains))?,
            split: split_shares("Stock Splits", record.field(self.splits))?,
            line: record.line,
            bytes: record.raw.len(),
        })
    }
}

/// Reads all rows.
fn read(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    if reading.encoding != Encoding::Csv {
        return yahoo_chart::read(reading, rows);
    }
    let (symbol, options) = (reading.file_symbol()?.clone(), reading.options);
    let table = Table::open(reading.source, plain)?;
    let columns = Columns::of(&table);
    let mut days = NewestBasis::new(&symbol, columns.basis, options);
    table.read(rows, |record, rows| days.add(&columns.day(record)?, rows))?;
    days.finish(rows)
}
