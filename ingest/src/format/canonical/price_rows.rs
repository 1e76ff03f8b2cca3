//! Reader of canonical price rows, optimized for speed. It converts bytes directly to scaled integers. Cells that
//! seldom change, such as `revision`, are parsed only after a change.

use std::io::Read;

use chrono::NaiveDate;
use market::bars::BarVersion;
use market::day::day_number;
use market::event::{Action, ShareBasis};

use super::kind_layout::KindLayout;
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_format::FeedReadError;
use crate::format::file_records::{HeaderedTable, NONE, PriceColumns};
use crate::normalize::{RecordCells, RowError, parse_session_date};
use crate::price::bar_parser::PriceCells;

/// Columns with the revision, action, observation time and share basis of a price row.
const VERSION: [&str; 5] = ["revision", "action", "observed_at", "basis", "basis_as_of"];

/// Reads all records of a price file.
pub(super) fn read_prices<R: Read>(
    layout: &KindLayout,
    columns: &[Option<usize>],
    table: HeaderedTable<R>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let position = |name| table.position_of(&[name]);
    let (symbol, date, kind) = (position("symbol"), position("date"), position("kind"));
    let (version_columns, prices) = (VERSION.map(position), PriceColumns::find_in(&table));
    let is_versioned = version_columns != [NONE; 5];
    // Version and date of the previous record, with the cells from which they were read.
    let mut version = BarVersion::new(0, Action::Put, rows.observed_at, None);
    let mut version_cells: [Vec<u8>; 5] = Default::default();
    let mut last_date = (Vec::new(), NaiveDate::MIN);
    table.for_each_record(rows, |record, rows| {
        let cells = || version_columns.iter().map(|column| record.field(*column));
        if is_versioned && !version_cells.iter().map(Vec::as_slice).eq(cells()) {
            version = parse_version(&layout.cells(columns, record)?, rows)?;
            version_cells.iter_mut().zip(cells()).for_each(|(known, cell)| *known = cell.to_vec());
        }
        let cell = record.field(date);
        if last_date.0 != cell {
            last_date = (cell.to_vec(), parse_session_date("date", cell.trim_ascii(), rows.zone)?);
        }
        if kind != NONE && !matches!(record.field(kind), b"" | b"price") {
            return Err(RowError::new("unknown_kind", "this is a file of kind price: use one file per kind"));
        }
        rows.add_price(record.field(symbol), last_date.1, &prices.cells(record), version.clone(), record.line)
    })
}

/// Adds one price row.
pub(super) fn accept_price(
    cells: &RecordCells<'_>,
    line: u64,
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let bytes = |name: &str| cells.text(name).unwrap_or_default().as_bytes();
    let version = parse_version(cells, rows)?;
    let date = parse_session_date("date", bytes("date"), rows.zone)?;
    let prices = PriceCells::from_columns(bytes);
    rows.add_price(bytes("symbol"), date, &prices, version, line)
}

/// Parses the revision, action, observation time and share basis of a price row.
fn parse_version(cells: &RecordCells<'_>, rows: &RowAccumulator) -> Result<BarVersion, RowError> {
    let basis = cells.word::<ShareBasis>("basis")?.unwrap_or(ShareBasis::Raw);
    let as_of = cells.date("basis_as_of")?;
    let basis_day = (basis == ShareBasis::SplitAdjusted).then(|| as_of.map_or(0, day_number));
    let revision = cells.integer("revision")?.unwrap_or(0);
    let action = cells.word("action")?.unwrap_or(Action::Put);
    let observed_at = cells.time("observed_at")?.unwrap_or(rows.observed_at);
    Ok(BarVersion::new(revision, action, observed_at, basis_day))
}
