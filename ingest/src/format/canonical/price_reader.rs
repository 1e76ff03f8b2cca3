//! Reader of canonical price rows, optimized for speed. It converts bytes directly to scaled integers, and reuses the
//! [`BarVersion`] of the previous row if its cells are equal.

use std::io::Read;

use chrono::NaiveDate;
use market::bars::BarVersion;
use market::day::day_number;
use market::event::{Action, ShareBasis};

use super::cells::cells_of;
use super::kind_layout::KindLayout;
use crate::batch::row_accumulator::RowAccumulator;
use crate::format::file_format::FeedReadError;
use crate::format::headered_table::{HeaderedTable, NONE, PriceColumns};
use crate::normalize::{RecordCells, RowError, parse_session_date, trim_blanks};
use crate::source::csv_reader::CsvRecord;

/// Columns from which a [`BarVersion`] is built.
const VERSION: [&str; 5] = ["revision", "action", "observed_at", "basis", "basis_as_of"];

struct VersionColumns {
    symbol: usize,
    date: usize,
    prices: PriceColumns,
    kind: usize,
    version: [usize; 5],
    /// True if the table has no column of [`VERSION`].
    unversioned: bool,
}

impl VersionColumns {
    fn of<R: Read>(table: &HeaderedTable<R>) -> Self {
        let version = VERSION.map(|name| table.position_of(&[name]));
        Self {
            symbol: table.position_of(&["symbol"]),
            date: table.position_of(&["date"]),
            prices: PriceColumns::find_in(table),
            kind: table.position_of(&["kind"]),
            version,
            unversioned: version == [NONE; 5],
        }
    }
}

/// [`BarVersion`] of the previous row, and the cells from which it was built.
struct LastVersion {
    cells: [Vec<u8>; 5],
    version: BarVersion,
}

/// Reads all records of a price file.
pub(super) fn read_prices<R: Read>(
    layout: &KindLayout,
    columns: &[Option<usize>],
    table: HeaderedTable<R>,
    rows: &mut RowAccumulator,
) -> Result<(), FeedReadError> {
    let version_columns = VersionColumns::of(&table);
    let version = BarVersion::new(0, Action::Put, rows.observed_at(), None);
    let mut last = LastVersion { cells: Default::default(), version };
    let mut last_date = (Vec::new(), NaiveDate::MIN);
    table.for_each_record(rows, |record, rows| {
        update_version(&mut last, &version_columns, layout, columns, record, rows)?;
        read_record(&version_columns, record, &last.version, &mut last_date, rows)
    })
}

fn read_record(
    version_columns: &VersionColumns,
    record: &CsvRecord<'_>,
    version: &BarVersion,
    last_date: &mut (Vec<u8>, NaiveDate),
    rows: &mut RowAccumulator,
) -> Result<(), RowError> {
    let cell = record.field(version_columns.date);
    if last_date.0 != cell {
        *last_date = (cell.to_vec(), parse_session_date("date", trim_blanks(cell), rows.zone())?);
    }
    if version_columns.kind != NONE && !matches!(record.field(version_columns.kind), b"" | b"price") {
        return Err(RowError::new("unknown_kind", "this is a file of kind price: use one file per kind"));
    }
    let cells = version_columns.prices.cells(record);
    rows.add_price(record.field(version_columns.symbol), last_date.1, &cells, version.clone(), record.line)
}

/// Builds a new version if the version cells of the record differ from those of the previous record.
fn update_version(
    last: &mut LastVersion,
    version_columns: &VersionColumns,
    layout: &KindLayout,
    columns: &[Option<usize>],
    record: &CsvRecord<'_>,
    rows: &RowAccumulator,
) -> Result<(), RowError> {
    if version_columns.unversioned {
        return Ok(());
    }
    let cells = || version_columns.version.iter().map(|column| record.field(*column));
    if last.cells.iter().map(Vec::as_slice).eq(cells()) {
        return Ok(());
    }
    last.version = parse_version(&cells_of(layout, columns, record)?, rows)?;
    last.cells.iter_mut().zip(cells()).for_each(|(known, cell)| *known = cell.to_vec());
    Ok(())
}

/// Version of a price row, from its cells.
pub(super) fn parse_version(cells: &RecordCells<'_>, rows: &RowAccumulator) -> Result<BarVersion, RowError> {
    let basis = cells.word::<ShareBasis>("basis")?.unwrap_or(ShareBasis::Raw);
    let as_of = cells.date("basis_as_of")?;
    let basis_day = (basis == ShareBasis::SplitAdjusted).then(|| as_of.map_or(0, day_number));
    let revision = cells.integer("revision")?.unwrap_or(0);
    let action = cells.word("action")?.unwrap_or(Action::Put);
    let observed_at = cells.time("observed_at")?.unwrap_or_else(|| rows.observed_at());
    Ok(BarVersion::new(revision, action, observed_at, basis_day))
}
