//! Detection of the exchange's time zone from the UTC times in a file's date columns.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;

use super::file_format::FileFormat;
use super::file_head::{FileHead, normalize_column_name};
use crate::normalize::{
    ExchangeZone, UtcTimeInterpretation, interpret_utc_times, is_absent_value, parse_utc_time,
};
use crate::source::csv_reader::CsvReader;
use crate::source::feed_files::Encoding;

/// Names of columns with the day of a row. Names that end with `date` are recognized too.
const DAYS: [&str; 6] = ["", "datetime", "timestamp", "time", "day", "asof"];

impl FileFormat {
    /// Time zone of the exchange, if the file gives days as UTC times of local midnights: `2021-06-30 22:00:00Z` is 1
    /// July in Berlin. `None` for files with a map.
    ///
    /// # Errors
    /// The first rows are too few to decide between local dates and UTC dates.
    pub(crate) fn exchange_zone(&self, head: &FileHead) -> Result<Option<ExchangeZone>, String> {
        if self.is_mapped() {
            return Ok(None);
        }
        let mut found = None;
        for (first, times) in utc_time_columns(head) {
            match interpret_utc_times(&times) {
                UtcTimeInterpretation::LocalDays(zone) => found = found.or(Some(zone)),
                UtcTimeInterpretation::Uncertain(zone) => {
                    return Err(format!(
                        "has UTC times instead of dates, such as {first}, and too few rows to infer their time zone: if they are midnights in the zone of the exchange, read it under a map with dates.zone = \"{zone}\" (ingest map FILE)"
                    ));
                }
                UtcTimeInterpretation::AsWritten | UtcTimeInterpretation::Times => {}
            }
        }
        Ok(found)
    }
}

/// Date columns in which all values are UTC times. Each result has the first value as text, for messages, and all times
/// of the column.
fn utc_time_columns(head: &FileHead) -> Vec<(String, Vec<NaiveDateTime>)> {
    let columns = if head.encoding == Encoding::Csv { table_columns(head) } else { json_members(&head.text) };
    let mut found = Vec::new();
    for (name, cells) in columns {
        let name = normalize_column_name(&name);
        let dated = DAYS.contains(&name.as_str()) || name.ends_with("date") && !name.ends_with("update");
        let times: Option<Vec<NaiveDateTime>> = cells.iter().map(|cell| parse_utc_time(cell)).collect();
        if let (Some(times), Some(first), true) = (times, cells.first(), dated) {
            found.push((first.clone(), times));
        }
    }
    found
}

/// Cells of the columns that have a UTC time in the first row, by column name.
fn table_columns(head: &FileHead) -> BTreeMap<String, Vec<String>> {
    let mut columns = BTreeMap::new();
    let is_utc_time =
        |index: &usize| head.first_row.get(*index).is_some_and(|cell| parse_utc_time(cell).is_some());
    let time_columns: Vec<usize> = (0..head.columns.len()).filter(is_utc_time).collect();
    // The last line of the sample may be incomplete.
    let text = head.text.rsplit_once('\n').map_or(head.text.as_str(), |(whole, _)| whole);
    let Ok(mut records) = CsvReader::new(text.as_bytes()) else { return columns };
    let mut header = true;
    while let (false, Ok(Some(record))) = (time_columns.is_empty(), records.next_record()) {
        for index in &time_columns {
            let cell = String::from_utf8_lossy(record.field(*index)).trim().to_owned();
            if !header && !is_absent_value(cell.as_bytes()) {
                columns.entry(head.columns[*index].clone()).or_insert_with(Vec::new).push(cell);
            }
        }
        header = false;
    }
    columns
}

/// String values in a JSON text, by member name. The values of one name may come from many objects.
fn json_members(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // The text is split at quotes, so pieces are alternately outside and inside a string. After an escaped quote, this
    // order is reversed, and text between strings is taken for names. This does no harm, because such a text is never
    // the name of a date column.
    let pieces: Vec<&str> = text.split('"').collect();
    for window in pieces.windows(4).step_by(2) {
        let [_, name, colon, value] = window else { continue };
        if colon.trim() == ":" && !is_absent_value(value.as_bytes()) {
            members.entry((*name).to_owned()).or_default().push((*value).to_owned());
        }
    }
    members
}
