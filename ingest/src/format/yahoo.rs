//! Yahoo-style CSV: one symbol a file, daily rows only.
//!
//! `…,Adj Close,Volume[,Dividends,Stock Splits]` has prices and dividends adjusted for the splits up to the file's
//! newest date; the older `…,Volume,Adj Close` has raw prices. `Adj Close` itself and `Repaired?` are not read.
//! `Dividends` of a fund are all it paid that day: `Capital Gains` are a part of it and are taken out, unless they are more.

use std::io::Read;

use market::bars::{BarVersion, date_of};
use market::event::{Action, Basis, Dividend, DividendType, Row};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::day::{Days, amount, cash, local_date, split, split_shares};
use super::head::{Head, plain};
use super::reading::{Options, ReadError, Reading, Vendor, Whose};
use super::table::{NONE, PriceColumns, Table};
use crate::collect::Collector;
use crate::normalize::Fault;
use crate::records::Record;
use crate::source::Encoding;

const DATE: [&str; 2] = ["date", "datetime"];

pub(super) static FORMAT: Vendor = Vendor {
    name: "yahoo",
    about: "Yahoo-style prices CSV, one symbol a file",
    needs: "columns Date, Open, High, Low, Close, Adj Close and Volume are needed",
    recognise,
    read,
};

fn recognise(head: &Head) -> Option<Result<Whose, String>> {
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
}

/// What is known only when all rows were read.
#[derive(Default)]
struct Pending {
    dividends: Vec<(Row<Dividend>, usize)>,
    days: Days,
}

/// Reads all rows.
fn read(reading: Reading<'_>, rows: &mut Collector) -> Result<(), ReadError> {
    let (symbol, options) = (reading.file_symbol()?.clone(), reading.options);
    let table = Table::open(reading.source, plain)?;
    let columns = Columns::of(&table);
    let mut pending = Pending::default();
    table.read(rows, |record, rows| read_record(&columns, &symbol, record, options, &mut pending, rows))?;
    finish(&columns, pending, rows)
}

fn read_record(
    columns: &Columns,
    symbol: &Symbol,
    record: &Record<'_>,
    options: &Options,
    pending: &mut Pending,
    rows: &mut Collector,
) -> Result<(), Fault> {
    let date = local_date("Date", record.field(columns.date))?;
    let dividend = amount("Dividends", record.field(columns.dividends))?;
    let capital_gain = amount("Capital Gains", record.field(columns.capital_gains))?;
    let dividend = without_gain(dividend, capital_gain);
    let shares = split_shares("Stock Splits", record.field(columns.splits))?;
    if columns.prices.close != NONE {
        let basis_day = (columns.basis == Basis::SplitAdjusted).then_some(0);
        let version = BarVersion::new(0, Action::Put, rows.observed_at(), basis_day);
        let cells = columns.prices.cells(record);
        rows.price(symbol.as_str().as_bytes(), date, &cells, version, record.line)?;
        pending.days.push(date);
    }
    for (amount, r#type) in [(dividend, DividendType::Regular), (capital_gain, DividendType::CapitalGain)] {
        let Some(amount) = amount else { continue };
        let dividend =
            Dividend { r#type, amount_basis: columns.basis, ..cash(symbol, date, amount, options) };
        pending.dividends.push((rows.origin(record.line).row(dividend), record.raw.len()));
    }
    if let Some(shares) = shares {
        rows.split(rows.origin(record.line).row(split(symbol, date, shares)), record.raw.len());
    }
    Ok(())
}

/// Checks that the rows are daily and names the share basis they are on: that of the newest.
fn finish(columns: &Columns, mut pending: Pending, rows: &mut Collector) -> Result<(), ReadError> {
    let newest = pending.days.check_daily()?;
    if let (Basis::SplitAdjusted, Some(newest)) = (columns.basis, newest) {
        let Some(batch) = rows.whole_prices() else {
            return Err(ReadError::Refused("has more rows than one symbol has days".to_owned()));
        };
        batch.set_basis_day(newest);
    }
    for (mut row, bytes) in pending.dividends {
        row.record.basis_as_of = newest.filter(|_| columns.basis == Basis::SplitAdjusted).map(date_of);
        rows.dividend(row, bytes);
    }
    Ok(())
}

/// The dividend less the capital gain that is a part of it; a gain larger than the dividend stands beside it.
fn without_gain(dividend: Option<Decimal>, capital_gain: Option<Decimal>) -> Option<Decimal> {
    match (dividend, capital_gain) {
        (Some(dividend), Some(gain)) if gain <= dividend => {
            Some((dividend - gain).normalize()).filter(|rest| !rest.is_zero())
        }
        _ => dividend,
    }
}
