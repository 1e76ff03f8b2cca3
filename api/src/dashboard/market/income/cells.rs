//! Parser for the cells of a pasted table: delimiters, quoted cells, and numbers with thousands separators or currency
//! signs.

use rust_decimal::Decimal;

/// Number of lines that are inspected to recognize the delimiter.
const SAMPLE: usize = 50;

/// Row of a table: line number, from 1, and cells without surrounding spaces.
pub(crate) type Row = (u64, Vec<String>);

/// Splits a text into rows of cells. If the text contains no tab, semicolon or comma, each line is split at spaces and
/// colons.
pub(crate) fn read_rows(text: &str) -> Vec<Row> {
    let Some(delimiter) = delimiter_of(text) else {
        let split =
            |line: &str| line.split([' ', ':']).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
        return (1..).zip(text.lines()).map(|(number, line)| (number, split(line.trim()))).collect();
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while let Ok(true) = reader.read_record(&mut record) {
        let number = record.position().map_or(0, csv::Position::line);
        rows.push((number, record.iter().map(|cell| cell.trim().to_owned()).collect()));
    }
    rows
}

/// Delimiter (tab, semicolon or comma) that occurs in the most lines; `None` if no line contains one.
fn delimiter_of(text: &str) -> Option<u8> {
    let count =
        |delimiter: u8| text.lines().take(SAMPLE).filter(|line| line.as_bytes().contains(&delimiter)).count();
    let counts = [b'\t', b';', b','].map(|delimiter| (count(delimiter), delimiter));
    // If several delimiters occur in equally many lines, the first of `counts` is chosen. The comma is last in
    // `counts`, because it can also be a decimal point.
    let best = counts.into_iter().reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.filter(|(count, _)| *count > 0).map(|(_, delimiter)| delimiter)
}

/// Parses the number in a cell. Thousands separators and currency signs are ignored, for example in `1,234.50`,
/// `1.234,50` and `$1234.5`.
pub(crate) fn number_of(cell: &str) -> Option<Decimal> {
    let digits: String =
        cell.chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-')).collect();
    let others = cell.chars().filter(|c| c.is_alphabetic()).count();
    if others > 3 || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (comma, point) = (digits.rfind(','), digits.rfind('.'));
    // With a point and a comma, the last one is the decimal point. Without a point, a single comma is the decimal
    // point, unless it separates thousands.
    let is_decimal_comma = match (comma, point) {
        (Some(comma), Some(point)) => comma > point,
        (Some(_), None) => {
            digits.matches(',').count() == 1 && !separates_thousands(digits.trim_start_matches('-'))
        }
        _ => false,
    };
    let plain =
        if is_decimal_comma { digits.replace('.', "").replace(',', ".") } else { digits.replace(',', "") };
    plain.parse().ok()
}

/// True if the only comma of a number has one to three digits before it, not beginning with 0, and three after it.
fn separates_thousands(digits: &str) -> bool {
    digits.split_once(',').is_some_and(|(before, after)| {
        (1..=3).contains(&before.len()) && !before.starts_with('0') && after.len() == 3
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: &str, expected: Option<&str>) {
        let expected = expected.map(|text| text.parse::<Decimal>().expect("a number"));
        assert_eq!(number_of(cell), expected, "{cell}");
    }

    #[test]
    fn numbers_are_read_as_brokers_write_them() {
        check("120", Some("120"));
        check("1,234.50", Some("1234.50"));
        check("1.234,50", Some("1234.50"));
        check("12,5", Some("12.5"));
        check("1,234", Some("1234"));
        check("-1,234", Some("-1234"));
        check("0,125", Some("0.125"));
        check("-0,125", Some("-0.125"));
        check("1234,567", Some("1234.567"));
        check("1,234,567", Some("1234567"));
        check("$5,400.00", Some("5400.00"));
        check("EUR 3.5", Some("3.5"));
        check("-7", Some("-7"));
        for cell in ["", "--", "n/a", "KO", "Account 12 total"] {
            check(cell, None);
        }
    }

    #[test]
    fn the_delimiter_is_the_one_of_most_lines() {
        let cells = |text: &str| read_rows(text).into_iter().map(|(_, cells)| cells).collect::<Vec<_>>();
        assert_eq!(cells("KO 120\nPEP:40"), [["KO", "120"], ["PEP", "40"]]);
        assert_eq!(cells("KO;1,5\nPEP;2,5"), [["KO", "1,5"], ["PEP", "2,5"]]);
        assert_eq!(cells("KO,\"1,200\""), [["KO", "1,200"]]);
        assert_eq!(cells("KO\t120"), [["KO", "120"]]);
    }
}
