use std::time::Duration;

use chrono::NaiveDate;
use telemetry::command_line::parse_duration;

use super::*;

#[test]
fn durations_have_units() {
    assert_eq!(parse_duration("26h"), Ok(Duration::from_secs(26 * 3600)));
    assert_eq!(parse_duration("90m"), Ok(Duration::from_secs(90 * 60)));
    assert!(
        ["26", "h", "-1h", "1w", "99999999999999999999d"].iter().all(|text| parse_duration(text).is_err())
    );
}

#[test]
fn dates_are_days() {
    assert_eq!(parse_date(b"2024-02-29"), NaiveDate::from_ymd_opt(2024, 2, 29));
    for text in ["2023-02-29", "2024-1-02", "20240102", "2024-13-01", "2024-01-0x", ""] {
        assert_eq!(parse_date(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_price_row_is_one_session() {
    let reason = |text: &str| parse_session_date("date", text.as_bytes(), None).map_err(|fault| fault.reason);
    for day in ["2024-01-02", "2024-01-02 00:00:00", "2024-01-02T00:00:00.000Z", "2024-01-02 00:00:00-05:00"]
    {
        assert_eq!(reason(day), Ok(NaiveDate::from_ymd_opt(2024, 1, 2).unwrap()), "{day}");
    }
    assert_eq!(reason("2024-01-02T09:30:00"), Err("intraday_row"));
    assert!(reason("2024-01-02 00:00:00 or so").is_err());
    assert_eq!(reason("2024-01-02 00:00"), Err("intraday_row"));
    assert_eq!(reason("2024-01-02/2024-01-08"), Err("weekly_row"));
    assert_eq!(reason("2024-W05"), Err("weekly_row"));
    assert_eq!(reason("0000-00-00"), Err("missing_field"));
    assert_eq!(reason("02/01/2024"), Err("bad_date"));
}

#[test]
fn absent_words_are_absent_and_texts_are_not() {
    let mut cells = RecordCells::new(&["ex_date", "amount", "name"]);
    for word in ["", "  ", "N/A", "null", "0000-00-00"] {
        (0..3).for_each(|index| cells.set(index, word.into()));
        assert_eq!((cells.date("ex_date"), cells.amount("amount")), (Ok(None), Ok(None)), "{word}");
    }
    cells.set(2, " N/A Corp ".into());
    assert_eq!(cells.text("name"), Some("N/A Corp"));
}

#[test]
fn excess_digits_are_rounded_and_counted() {
    let mut cells = RecordCells::new(&["amount"]);
    cells.set(0, "0.123456789012".into());
    assert_eq!(cells.amount("amount").unwrap().unwrap().to_string(), "0.123456789");
    assert_eq!(cells.rounded_count(), 1);
    cells.set(0, "12345678901".into());
    assert_eq!(cells.amount("amount").unwrap_err().reason, "number_too_large");
}
