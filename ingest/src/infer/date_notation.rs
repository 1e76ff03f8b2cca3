//! Notation of the dates in a file: date formats, and the time zone of UTC times.

use std::collections::BTreeSet;

use chrono::NaiveDateTime;
use market::event::Kind;

use super::cell_formats::plausible_formats;
use super::column_choice::is_unix;
use super::proposal::Proposal;
use super::table_profile::{ColumnContent, ColumnProfile, TableProfile};
use crate::normalize::{UtcTimeInterpretation, from_unix_seconds, interpret_utc_times};

/// Notation of the dates in a file.
pub(super) struct DateNotation {
    pub(super) formats: Vec<String>,
    /// Date formats that fit the cells equally well, but give different dates; empty if only one format fits.
    pub(super) ambiguous_formats: Vec<String>,
    /// Meaning of UTC times: midnights in a time zone, or dates as written. `None` if there are no UTC times.
    pub(super) zone: Option<UtcTimeInterpretation>,
}

/// Infers the notation of dates in the mapped columns and in the column names.
pub(super) fn infer_date_notation(profile: &TableProfile, proposal: &Proposal) -> DateNotation {
    let dated = proposal.columns.iter().filter(|column| column.name.ends_with("date"));
    let dated: Vec<&ColumnProfile> = dated.map(|column| &profile.columns[column.index]).collect();
    let mut choices: Vec<(&[String], Vec<&str>)> = Vec::new();
    for column in &dated {
        if let ColumnContent::Dates(formats) = &column.content {
            choices.push((formats, column.texts()));
        }
    }
    if let Some(formats) = &profile.dates_across {
        choices.push((formats, profile.columns.iter().map(|column| column.name.as_str()).collect()));
    }
    let certain: BTreeSet<&String> =
        choices.iter().filter(|(formats, _)| formats.len() == 1).map(|(formats, _)| &formats[0]).collect();
    let mut notation = DateNotation { formats: Vec::new(), ambiguous_formats: Vec::new(), zone: None };
    for (found, cells) in choices {
        // Several formats may fit a column. If exactly one of them is the only fitting format of another column, this
        // format is used. Otherwise, the plausibility of the dates decides.
        let known: Vec<String> = found.iter().filter(|format| certain.contains(format)).cloned().collect();
        let daily = proposal.kind == Some(Kind::Price);
        let left = if known.len() == 1 { known } else { plausible_formats(found, &cells, daily) };
        match left.as_slice() {
            [format] if !notation.formats.contains(format) => notation.formats.push(format.clone()),
            [_] => {}
            _ => notation.ambiguous_formats = left,
        }
    }
    for column in dated {
        if let ColumnContent::UtcTimes(interpretation) = column.content {
            notation.add_zone(interpretation);
        } else if is_unix(column.sample()) && !column.content.is_dated() {
            let (format, a_second) = if column.sample().len() > 11 { ("unix_ms", 1000) } else { ("unix", 1) };
            let ticks = column.cells.iter().filter_map(|cell| cell.parse::<i64>().ok());
            let times: Vec<NaiveDateTime> =
                ticks.filter_map(|ticks| from_unix_seconds(ticks / a_second)).collect();
            notation.formats.push(format.to_owned());
            notation.add_zone(interpret_utc_times(&times));
        }
    }
    notation
}

impl DateNotation {
    /// Updates `zone` with the interpretation of one more column. `Uncertain` and `Times` take priority, because the
    /// user must check them. `AsWritten` has the lowest priority.
    fn add_zone(&mut self, interpretation: UtcTimeInterpretation) {
        let certain = |interpretation: &UtcTimeInterpretation| {
            matches!(interpretation, UtcTimeInterpretation::AsWritten | UtcTimeInterpretation::LocalDays(_))
        };
        match self.zone {
            Some(UtcTimeInterpretation::AsWritten) | None => self.zone = Some(interpretation),
            Some(known) if certain(&known) && !certain(&interpretation) => self.zone = Some(interpretation),
            Some(_) => {}
        }
    }
}
