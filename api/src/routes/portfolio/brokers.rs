//! Transaction exports of brokers: recognition by the header line, and conversion of the rows to the service's
//! columns.
//!
//! Text before the header and after the rows is allowed. A header in the middle of a file begins another section.

mod layout;
mod row;

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;

use super::body_lines::{Line, NumberedRecord, read_records};
use crate::parameters::ParameterError;
use layout::{BROKERS, Broker, Field, NUMBERS, TableColumns};
use row::{Row, decimal_mark};

/// Rows of a broker's file.
pub(super) struct BrokerFile {
    /// Name of the broker.
    pub(super) broker: &'static str,
    /// Transactions and received dividends.
    pub(super) lines: Vec<Line>,
    /// Number of rows that are not used, by kind.
    pub(super) unused: BTreeMap<String, usize>,
}

/// Names of the brokers whose files are recognized.
pub(super) fn broker_names() -> Vec<&'static str> {
    BROKERS.iter().map(|broker| broker.broker.as_str()).collect()
}

/// Reads a broker's file, whose lines end with `\n`. `None` if no broker has a header of the file.
pub(super) fn read_broker_file(text: &str) -> Result<Option<BrokerFile>, ParameterError> {
    for delimiter in [b',', b';', b'\t'] {
        let records = read_records(text, delimiter)?;
        let header = records
            .iter()
            .find_map(|(_, record)| BROKERS.iter().find(|broker| broker.find_table(record).is_some()));
        if let Some(broker) = header {
            return Ok(Some(read_rows(broker, &records)));
        }
    }
    Ok(None)
}

fn read_rows(broker: &'static Broker, records: &[NumberedRecord]) -> BrokerFile {
    let mut unused: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |kind: String| *unused.entry(kind).or_default() += 1;
    let (mut tables, mut rows, mut is_inside) = (Vec::new(), Vec::new(), false);
    for (number, record) in records.iter().filter(|(_, record)| !record.iter().all(str::is_empty)) {
        if let Some(columns) = broker.find_table(record) {
            tables.push(columns);
            is_inside = true;
            continue;
        }
        let Some(columns) = tables.last() else { continue };
        if columns.is_header(record) {
            is_inside = false;
        } else if !is_inside {
            count("other section".to_owned());
        } else if columns.is_text(record) {
            count("text".to_owned());
        } else {
            rows.push((tables.len() - 1, *number, record));
        }
    }
    let rows: Vec<(&TableColumns, u64, &StringRecord)> =
        rows.into_iter().filter_map(|(table, number, row)| Some((tables.get(table)?, number, row))).collect();
    let mut numbers = rows.iter().flat_map(|(columns, _, row)| NUMBERS.map(|field| columns.text(row, field)));
    let mark = numbers.find_map(decimal_mark);

    let (mut lines, mut without_order, mut from_text) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_trades = false;
    for (columns, number, record) in rows {
        has_trades |= columns.has(Field::Quantity);
        match columns.read_row(number, record, mark.unwrap_or(columns.table.decimal)) {
            Row::Used(line) => lines.push(line),
            Row::WithoutOrder(line, key, is_sale) => without_order.push((line, key, is_sale)),
            Row::FromText(line) => from_text.push(line),
            Row::Unused(kind) => count(kind),
        }
    }
    let of_side = |side: bool| -> BTreeSet<_> {
        let rows = without_order.iter().filter(|(_, _, is_sale)| *is_sale == side);
        rows.map(|(_, key, _)| key.clone()).collect()
    };
    let splits: BTreeSet<_> = of_side(true).intersection(&of_side(false)).cloned().collect();
    for (line, key, _) in without_order {
        if splits.contains(&key) { count("split".to_owned()) } else { lines.push(line) }
    }
    for line in from_text {
        if has_trades { count("trade of another section".to_owned()) } else { lines.push(line) }
    }
    BrokerFile { broker: &broker.broker, lines, unused }
}
