//! Formats of cells: dates, numbers, currency units, tickers, and words for dividend types and split directions.

use std::collections::BTreeSet;

use chrono::{Datelike, NaiveDate, Weekday};
use market::event::DividendType;

use crate::format::{date_parser, meaning_of, words_of_topic};

/// Parser of cells as dates in `format`. It returns `None` if the cell does not fit the format, or if the year is not from
/// 1900 to 2099.
pub(super) fn cell_date_parser(format: &str) -> impl Fn(&str) -> Option<NaiveDate> {
    let parse = date_parser(format);
    move |cell| parse(cell).filter(|date| (1900..2100).contains(&date.year()))
}

/// Date formats that fit the largest number of cells, the most likely first. Empty if the cells are not dates. A time
/// of day that all cells share becomes part of each format.
pub(super) fn date_formats(cells: &[&str]) -> Vec<String> {
    let dated: Vec<&str> = cells.iter().copied().filter(|cell| has_digit(cell)).collect();
    if dated.len() * 2 < cells.len() {
        return Vec::new();
    }
    let time =
        dated.first().and_then(|cell| Some(cell.split_once(' ')?.1)).filter(|time| is_local_time(time));
    let days: Option<Vec<&str>> =
        dated.iter().map(|cell| cell.strip_suffix(time?)?.strip_suffix(' ')).collect();
    match (days, time) {
        (Some(days), Some(time)) => {
            day_formats(&days).iter().map(|format| format!("{format} {time}")).collect()
        }
        _ => day_formats(&dated).into_iter().map(str::to_owned).collect(),
    }
}

/// True for a time of day from 01:00 to 19:59 without a UTC offset. A time from 20:00 to 00:59 is excluded, because it
/// may be midnight in another time zone.
fn is_local_time(time: &str) -> bool {
    let hour = time.split(':').next().and_then(|hour| hour.parse::<u32>().ok());
    time.contains(':')
        && time.bytes().all(|b| b.is_ascii_digit() || b == b':')
        && hour.is_some_and(|h| (1..20).contains(&h))
}

/// Number of cells of which a format must fit at least one. Most columns have no dates, and most formats fit no cell.
const PROBED_CELLS: usize = 50;

/// Date formats that fit the largest number of cells. Empty if no format fits more than half of the cells.
fn day_formats(cells: &[&str]) -> Vec<&'static str> {
    let fits = |format: &str| {
        let parse = cell_date_parser(format);
        let is_date = |cell: &&&str| parse(cell).is_some();
        if cells.iter().take(PROBED_CELLS).any(|cell| is_date(&cell)) {
            cells.iter().filter(is_date).count()
        } else {
            0
        }
    };
    let formats = words_of_topic("date format");
    let counts: Vec<(&str, usize)> = formats.iter().map(|format| (*format, fits(format))).collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or_default();
    if most * 2 <= cells.len() {
        return Vec::new();
    }
    counts.into_iter().filter(|(_, count)| *count == most).map(|(format, _)| format).collect()
}

/// Selects the formats with plausible dates. All dates must be on weekdays. In a price table (`daily`), most dates must
/// also be within five days of the next row's date. A criterion that no format meets is ignored.
pub(super) fn plausible_formats(formats: &[String], cells: &[&str], daily: bool) -> Vec<String> {
    let dates = |format: &str| -> Vec<NaiveDate> {
        let parse = cell_date_parser(format);
        cells.iter().filter_map(|cell| parse(cell)).collect()
    };
    let on_weekdays = |format: &&String| {
        !dates(format).iter().any(|date| matches!(date.weekday(), Weekday::Sat | Weekday::Sun))
    };
    let is_daily = |format: &&String| {
        let dates = dates(format);
        let near = dates.windows(2).filter(|pair| (pair[1] - pair[0]).num_days().abs() <= 5).count();
        near * 2 > dates.len().saturating_sub(1)
    };
    let keep = |formats: Vec<String>, test: &dyn Fn(&&String) -> bool| -> Vec<String> {
        let kept: Vec<String> = formats.iter().filter(test).cloned().collect();
        if kept.is_empty() { formats } else { kept }
    };
    let kept = keep(formats.to_vec(), &on_weekdays);
    if daily && kept.len() > 1 && cells.len() > 2 { keep(kept, &is_daily) } else { kept }
}

fn has_digit(cell: &str) -> bool {
    cell.bytes().any(|byte| byte.is_ascii_digit())
}

/// Words for absent values, such as `n/a`: the short cells without a digit.
pub(super) fn absent_words(cells: &[&str]) -> BTreeSet<String> {
    /// Maximum number of different words. With more words, the column is a text column, and the result is empty.
    const MAX_WORDS: usize = 8;
    let words: BTreeSet<String> = cells
        .iter()
        .filter(|cell| !has_digit(cell) && cell.chars().count() <= 40)
        .map(|cell| (*cell).to_owned())
        .collect();
    if words.len() <= MAX_WORDS { words } else { BTreeSet::new() }
}

/// True if at least half of the cells contain a digit, and at least 90 % of these cells are numbers.
pub(super) fn are_numbers(cells: &[&str]) -> bool {
    let digits = || cells.iter().filter(|cell| has_digit(cell));
    let numbers = digits().filter(|cell| is_number(cell)).count();
    digits().count() * 2 >= cells.len() && numbers * 10 >= digits().count() * 9 && numbers > 0
}

/// True if a cell is a number in any notation: `$1,234.50`, `1.234,5`, `12.3M`, `2.3p`.
pub(super) fn is_number(cell: &str) -> bool {
    let (bare, _) = split_currency_unit(cell.trim().trim_start_matches(['-', '+']));
    let bare = bare.trim_start_matches(['-', '+', ' ']).trim_end_matches(['%', ' ']);
    let bare = bare.strip_suffix(['K', 'M', 'B', 'T', 'k', 'm', 'b']).unwrap_or(bare);
    bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && has_digit(bare)
        && bare.chars().all(|c| c.is_ascii_digit() || ".,' \u{a0}\u{202f}eE-+".contains(c))
}

/// Splits a price or amount into the number and the currency unit before or after it.
pub(super) fn split_currency_unit(cell: &str) -> (&str, Option<&'static str>) {
    let cell = cell.trim();
    // Longer units come first, so that `US$` is found before `$`.
    let found = words_of_topic("currency unit").iter().find_map(|entry| {
        let (unit, _) = entry.split_once(' ')?;
        let number = cell.strip_prefix(unit).or_else(|| cell.strip_suffix(unit))?;
        Some((number.trim(), unit))
    });
    found.map_or((cell, None), |(number, unit)| (number, Some(unit)))
}

/// Currency code of a unit such as `€` or `p`.
pub(super) fn currency_of(unit: &str) -> Option<&'static str> {
    meaning_of("currency unit", unit)
}

/// True if a cell may be a ticker. A ticker has at most 12 characters: capital letters, digits and the signs `.`, `-`
/// and `/`. The first character is a letter.
pub(super) fn is_ticker(cell: &str) -> bool {
    (1..=12).contains(&cell.len())
        && cell.starts_with(|c: char| c.is_ascii_uppercase())
        && cell.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b".-/".contains(&b))
}

/// Notation of the numbers in a file: decimal comma, thousands separator, and suffixes such as `M` for million.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct NumberNotation {
    pub(super) comma: bool,
    pub(super) thousands: Option<char>,
    pub(super) suffixes: bool,
}

impl NumberNotation {
    /// Infers the notation from the numbers of a file. `delimiter` is the delimiter of the columns.
    pub(super) fn infer<'a>(numbers: impl Iterator<Item = &'a str> + Clone, delimiter: u8) -> Self {
        let mut notation = Self::default();
        let bare = numbers.clone().map(|cell| cell.trim_end_matches(|c: char| !c.is_ascii_digit()));
        // If some numbers have both a comma and a point, the sign that comes last in most of them is the decimal
        // separator. If no number has both, the conditions below decide.
        let both = bare.clone().filter(|cell| cell.contains(',') && cell.contains('.'));
        let comma_last = both.clone().filter(|cell| cell.rfind(',') > cell.rfind('.')).count();
        let fraction = |cell: &str, sign| cell.rsplit_once(sign).is_some_and(|(_, tail)| tail.len() != 3);
        notation.comma = match both.clone().count() {
            // The comma is decimal if a number begins with `0,`, or has fewer or more than three digits after its last
            // comma. In a table with semicolons, one number with a comma and without a point is enough.
            0 => bare.clone().any(|cell| {
                let zero = split_currency_unit(cell).0.trim_start_matches('-').starts_with("0,");
                zero || fraction(cell, ',') || delimiter == b';' && cell.contains(',') && !cell.contains('.')
            }),
            count => comma_last * 2 > count,
        };
        let other = if notation.comma { '.' } else { ',' };
        let inner_blank = |cell: &str| {
            split_currency_unit(cell).0.trim_matches(['-', '+', ' ']).contains([' ', '\u{a0}', '\u{202f}'])
        };
        if bare.clone().any(|cell| cell.contains(other)) {
            notation.thousands = Some(other);
        } else if bare.clone().any(|cell| cell.contains('\'')) {
            notation.thousands = Some('\'');
        } else if bare.clone().any(inner_blank) {
            notation.thousands = Some(' ');
        }
        notation.suffixes = numbers.clone().any(|cell| cell.ends_with(['K', 'M', 'B', 'T', 'k', 'm', 'b']));
        notation
    }
}

/// Dividend type that a vendor's word means: `interim` means `regular`. `None` if the word is unknown.
pub(super) fn dividend_type(word: &str) -> Option<&'static str> {
    let lower = word.trim().to_lowercase();
    meaning_of("word of a dividend type", &lower)
        .or_else(|| Some(lower.parse::<DividendType>().ok()?.as_str()))
}

/// Split direction that a vendor's word means: `consolidation` means `reverse`. `None` if the word is unknown.
pub(super) fn split_direction(word: &str) -> Option<&'static str> {
    let lower = word.trim().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["reverse", "consolidation"]) {
        Some("reverse")
    } else if has(&["forward", "split", "subdivision", "bonus"]) {
        Some("forward")
    } else {
        None
    }
}

/// True if every cell of a column is a word for a split direction. False for a column without cells.
pub(super) fn are_directions(cells: &[String]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| split_direction(cell).is_some())
}
