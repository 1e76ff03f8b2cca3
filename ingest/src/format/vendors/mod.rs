//! Vendor formats, one file each.

use market::event::Kind;
use market::symbol::Symbol;

use super::canonical::{RecordBuilder, fields};
use super::file_format::{FeedReadError, ReaderOptions, SymbolScope, VendorFile, VendorFormat};
use super::file_head::{FileHead, meaning_of, normalize_column_name};
use super::file_records::{
    HeaderedTable, NONE, VendorRow, count_row, read_documents, read_objects, read_rows, scale_number,
};
use super::raw_json::RawJson;
use super::trading_day::{DayColumns, SeriesDates, TradingDay, parse_cash_amount, parse_split_shares};
use crate::batch::row_accumulator::RowAccumulator;
use crate::normalize::{RowError, abbreviate, is_absent_value, parse_date, parse_session_date, parse_symbol};
use crate::source::csv_reader::{CsvReader, CsvRecord};
use crate::source::feed_files::Encoding;

pub(crate) mod alphavantage;
pub(crate) mod eodhd;
pub(crate) mod ishares;
pub(crate) mod massive;
pub(crate) mod raw_prices;
pub(crate) mod reference_tables;
pub(crate) mod sec;
pub(crate) mod yahoo;

/// Dates of a dividend, with the names that most vendors give them.
fn dividend_dates<'r>(row: &'r VendorRow<'_>) -> [(&'static str, Option<&'r str>); 4] {
    fields! {
        row.date =>
            ex_date: exdividenddate | exdate, record_date: recorddate, payment_date: paymentdate | paydate,
            declaration_date: declarationdate,
    }
}
