//! Cell statistics of a column: date formats, number formats, tickers.

/// Date formats in order of likelihood. Some differ only in the order of year, month and day; the first one that
/// fits all cells is proposed.
const DATE_FORMATS: [&str; 16] = [
    "YYYY-MM-DD",
    "YYYYMMDD",
    "YYYY/MM/DD",
    "YYYY.MM.DD",
    "MM/DD/YYYY",
    "DD/MM/YYYY",
    "DD.MM.YYYY",
    "MM-DD-YYYY",
    "DD-MM-YYYY",
    "DD-MMM-YYYY",
    "DD-MMM-YY",
    "MMM DD, YYYY",
    "MMM DD YYYY",
    "DD MMM YYYY",
    "MM/DD/YY",
    "DD/MM/YY",
];

/// Date formats that fit all cells, in order of likelihood; empty for other cells. A time of day that is equal in
/// all cells becomes part of the format.
pub(super) fn date_formats(cells: &[&str]) -> Vec<String> {
    let time = cells.first().and_then(|cell| Some(cell.split_once(' ')?.1)).filter(|time| time.contains(':'));
    let days: Option<Vec<&str>> =
        cells.iter().map(|cell| cell.strip_suffix(time?)?.strip_suffix(' ')).collect();
    match (days, time) {
        (Some(days), Some(time)) if !time.starts_with("00:00") && !time.starts_with("0:00") => {
            day_formats(&days).iter().map(|format| format!("{format} {time}")).collect()
        }
        _ => day_formats(cells).into_iter().map(str::to_owned).collect(),
    }
}

fn day_formats(cells: &[&str]) -> Vec<&'static str> {
    let fits = |format: &&&str| {
        !cells.is_empty() && cells.iter().all(|cell| crate::format::matches_date_format(format, cell))
    };
    DATE_FORMATS.iter().filter(fits).copied().collect()
}

/// True if a cell is a number in any notation: `$1,234.50`, `1.234,5`, `12.3M`.
pub(super) fn is_number(cell: &str) -> bool {
    let bare = cell.trim().trim_start_matches(['$', '€', '£', '-', '+', ' ']);
    let bare = bare.trim_end_matches(['%', '€', '$', ' ']);
    let bare = bare.strip_suffix(['K', 'M', 'B', 'T', 'k', 'm', 'b']).unwrap_or(bare);
    bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && bare.bytes().any(|byte| byte.is_ascii_digit())
        && bare.chars().all(|c| c.is_ascii_digit() || ".,' \u{a0}\u{202f}eE-+".contains(c))
}

/// True if a cell may be a ticker: short, in capitals.
pub(super) fn is_ticker(cell: &str) -> bool {
    (1..=12).contains(&cell.len())
        && cell.starts_with(|c: char| c.is_ascii_uppercase())
        && cell.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b".-/".contains(&b))
}

/// Notation of numbers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct NumberNotation {
    pub(super) comma: bool,
    pub(super) thousands: Option<char>,
    pub(super) strip: String,
    pub(super) suffixes: bool,
}

impl NumberNotation {
    /// Notation derived from all numbers of a file.
    pub(super) fn of<'a>(numbers: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut signs = Self::default();
        let bare = numbers.clone().map(|cell| cell.trim_end_matches(|c: char| !c.is_ascii_digit()));
        // The last of two separators is the decimal one. A single one is too, unless three digits always follow it.
        let both = bare.clone().filter(|cell| cell.contains(',') && cell.contains('.'));
        let comma_last = both.clone().filter(|cell| cell.rfind(',') > cell.rfind('.')).count();
        let fraction = |cell: &str, sign| cell.rsplit_once(sign).is_some_and(|(_, tail)| tail.len() != 3);
        signs.comma = match both.clone().count() {
            0 => bare.clone().any(|cell| fraction(cell, ',')),
            count => comma_last * 2 > count,
        };
        let other = if signs.comma { '.' } else { ',' };
        if bare.clone().any(|cell| cell.contains(other)) {
            signs.thousands = Some(other);
        } else if bare.clone().any(|cell| cell.contains('\'')) {
            signs.thousands = Some('\'');
        } else if bare.clone().any(|cell| cell.trim().contains([' ', '\u{a0}', '\u{202f}'])) {
            signs.thousands = Some(' ');
        }
        signs.strip =
            ['$', '€', '£'].into_iter().filter(|c| numbers.clone().any(|n| n.contains(*c))).collect();
        signs.suffixes = numbers.clone().any(|cell| cell.ends_with(['K', 'M', 'B', 'T', 'k', 'm', 'b']));
        signs
    }
}
