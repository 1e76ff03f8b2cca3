//! Texts of cells in brokers' files: dates and numbers in the notations of several countries. Numbers stay exact.

use chrono::{Datelike, NaiveDate};
use market::decimal::parse_decimal;

/// Parses a date in one of some formats, such as `DD-MM-YYYY`. A time may follow.
pub(super) fn parse_broker_date(text: &str, formats: &[String]) -> Option<NaiveDate> {
    let parse = |format: &String| {
        let format = format.replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d");
        let (date, rest) = NaiveDate::parse_and_remainder(text, &format).ok()?;
        let is_whole = rest.is_empty() || rest.starts_with([' ', 'T', ',', ';']);
        Some(date).filter(|date| is_whole && (1..=9_999).contains(&date.year()))
    };
    formats.iter().find_map(parse)
}

/// Decimal mark of a number; `None` if the number fits two notations, such as `1.234`, or has no mark.
pub(super) fn decimal_mark(text: &str) -> Option<char> {
    let (whole, fraction) = text.rsplit_once(['.', ','])?;
    let mark = text[whole.len()..].chars().next()?;
    let other = if mark == '.' { ',' } else { '.' };
    let whole = whole.trim_start_matches(|char: char| !char.is_ascii_digit());
    let digits = fraction.chars().take_while(char::is_ascii_digit).count();
    if whole.contains(other) {
        Some(mark)
    } else if whole.contains(mark) {
        Some(other)
    } else if digits != 3 || whole.len() > 3 || whole.is_empty() || whole.starts_with('0') {
        Some(mark)
    } else {
        None
    }
}

/// Number without currency signs and marks between thousands, with a decimal point and at most ten decimal places.
/// `default` is the decimal mark of a number that fits two notations. A text that is not a number is returned as it is.
pub(super) fn plain_number(text: &str, default: char) -> String {
    let is_sign = |char: char| matches!(char, '$' | '€' | '£' | '\'' | '’') || char.is_whitespace();
    let number: String = text.chars().filter(|char| !is_sign(*char)).collect();
    let mark = decimal_mark(&number).unwrap_or(default);
    let (whole, fraction) =
        number.split_once(mark).map_or((number.as_str(), None), |(whole, fraction)| (whole, Some(fraction)));
    let mut groups = whole.trim_start_matches(['-', '+']).split(if mark == '.' { ',' } else { '.' });
    let (first, rest): (_, Vec<&str>) = (groups.next().unwrap_or_default(), groups.collect());
    if !rest.is_empty() && (first.len() > 3 || rest.iter().any(|group| group.len() != 3)) {
        return text.to_owned();
    }
    let sign = if whole.starts_with('-') { "-" } else { "" };
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    let number = parse_decimal(&format!("{sign}{first}{}{fraction}", rest.concat()));
    number.map_or(text.to_owned(), |number| number.value.to_string())
}

/// Quantity, price and currency in the text of a trade: `Buy 10 COLA@60.5 USD`, `Kauf 5 zu je 33,9 USD`.
pub(super) fn split_trade_text(text: &str) -> Option<[&str; 3]> {
    let (trade, price) = text.split_once('@').or_else(|| text.split_once(" zu je "))?;
    let mut price = price.split_whitespace();
    Some([trade.split_whitespace().nth(1)?, price.next()?, price.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_notation() {
        for (text, default, number) in [
            ("-1.234,50", '.', "-1234.5"),
            ("$1,259.59", '.', "1259.59"),
            ("-$694.48", '.', "-694.48"),
            ("500,135", '.', "500135"),
            ("500,135", ',', "500.135"),
            ("0,039", '.', "0.039"),
            ("1 950,6", '.', "1950.6"),
            ("1'950.60", '.', "1950.6"),
            ("1.234.567", '.', "1234567"),
            ("10", ',', "10"),
            ("+7", '.', "7"),
            ("0.10434099999999999", ',', "0.104341"),
            ("", '.', ""),
            ("12,34.567", '.', "12,34.567"),
            ("Processing", '.', "Processing"),
        ] {
            assert_eq!(plain_number(text, default), number, "{text} {default}");
        }
    }

    #[test]
    fn dates_may_have_a_time() {
        let formats = ["YYYYMMDD".to_owned(), "DD-MM-YYYY".to_owned()];
        let day = NaiveDate::from_ymd_opt(2024, 2, 5);
        for text in ["20240205", "20240205;103000", "05-02-2024", "5-2-2024 10:30"] {
            assert_eq!(parse_broker_date(text, &formats), day, "{text}");
        }
        for text in ["2024-02-05", "20240231", "20240205x", "", "05-02-0000"] {
            assert_eq!(parse_broker_date(text, &formats), None, "{text}");
        }
    }
}
