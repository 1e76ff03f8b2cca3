//! Search of a text for days and years that a plan's history does not include.

use chrono::{Datelike, NaiveDate};

/// Days before `first` and years before the year of `first`, as the text writes them. Days have the form `YYYY-MM-DD`.
/// A year is a number of four digits from 1900 on that is no part of another number.
pub fn find_older_dates(text: &str, first: NaiveDate) -> Vec<String> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let (mut found, mut start) = (Vec::new(), 0);
    while start < bytes.len() {
        if !is_digit(start) {
            start += 1;
            continue;
        }
        let end = (start..).find(|index| !is_digit(*index)).unwrap_or(bytes.len());
        let day = text.get(start..start + 10).filter(|_| end == start + 4 && !is_digit(start + 10));
        if let Some(day) = day.and_then(|day| day.parse::<NaiveDate>().ok()) {
            if day < first {
                found.push(day.to_string());
            }
            start += 10;
            continue;
        }
        let is_fraction =
            start > 0 && matches!(bytes[start - 1], b'.' | b',') && start > 1 && is_digit(start - 2);
        let has_fraction = matches!(bytes.get(end), Some(b'.' | b',')) && is_digit(end + 1);
        let year: Option<i32> = text[start..end].parse().ok();
        if end == start + 4
            && !is_fraction
            && !has_fraction
            && year.is_some_and(|year| (1900..first.year()).contains(&year))
        {
            let around = text.get(start.saturating_sub(20)..(end + 20).min(text.len()));
            found.push(around.unwrap_or(&text[start..end]).to_owned());
        }
        start = end;
    }
    found
}
