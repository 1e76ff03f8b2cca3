//! Tests of exact decimals.

use super::*;

fn check(text: &str, expected: Result<&str, DecimalError>) {
    assert_eq!(parse_decimal(text).map(|p| p.value.to_string()), expected.map(str::to_owned), "{text}");
}

#[test]
fn reads_numbers_digit_for_digit() {
    check("1.10", Ok("1.1"));
    check("-0.000001", Ok("-0.000001"));
    check("+7", Ok("7"));
    check(".5", Ok("0.5"));
    check("1e-05", Ok("0.00001"));
    check("9999999999.9999999999", Ok("9999999999.9999999999"));
    check("0.12345678905", Ok("0.1234567891"));
}

#[test]
fn refuses_what_is_not_a_number() {
    for text in ["", "-", ".", "NaN", "inf", "1,000", "1 000", "0x1", "--1", "1.2.3"] {
        check(text, Err(DecimalError::Malformed));
    }
    check("10000000000", Err(DecimalError::TooLarge));
    check("99999999999999999999999999999999", Err(DecimalError::TooLarge));
    // Signs and separators between digits are errors, for any number of digits.
    for text in ["1_000", "12-5", "2024-06-28", "1234567890123456789012345-78"] {
        check(text, Err(DecimalError::Malformed));
    }
}

#[test]
fn numbers_as_feeds_write_them_are_read_the_fast_way_and_as_the_other_way_reads_them() {
    for (text, mantissa, scale) in [
        ("0.22", 22, 2),
        ("145.00", 14_500, 2),
        ("7", 7, 0),
        (".5", 5, 1),
        ("-0.25", -25, 2),
        ("+3.10", 310, 2),
        ("0", 0, 0),
        ("123456789012.345678", 123_456_789_012_345_678, 6),
        ("999999999999999999", 999_999_999_999_999_999, 0),
    ] {
        let value = Decimal::new(mantissa, scale);
        assert_eq!((parse_plain(text.as_bytes()), parse_general(text)), (Some(value), Ok(value)), "{text}");
    }
    for other in ["1234567890123456789", "1e5", "1.2.3", "-", "", "ten"] {
        assert_eq!(parse_plain(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn a_column_gives_back_the_number() {
    for text in ["0", "1.1", "-0.000001", "100", "9999999999.9999999999"] {
        let (value, mut column) = (ExactDecimal(text.parse().unwrap()), bytes::BytesMut::new());
        let _ = value.to_sql(&Type::NUMERIC, &mut column).unwrap();
        // The texts are compared because equal numbers can differ in trailing zeros, which API responses would show.
        assert_eq!(ExactDecimal::from_sql(&Type::NUMERIC, &column).unwrap().0.to_string(), text);
    }
    // Only the Postgres type `numeric` is accepted. For example, a float column would change digits.
    for ty in [Type::NUMERIC, Type::FLOAT8, Type::INT8, Type::TEXT] {
        let taken = (<ExactDecimal as ToSql>::accepts(&ty), <ExactDecimal as FromSql>::accepts(&ty));
        let numeric = ty == Type::NUMERIC;
        assert_eq!(taken, (numeric, numeric), "{ty}");
    }
}

#[test]
fn leaves_as_number_or_text() {
    let value = ExactDecimal("1.10".parse().unwrap_or_default());
    assert_eq!(serde_json::to_string(&value).ok().as_deref(), Some("1.10"));
    assert_eq!(with_decimals_as_text(|| serde_json::to_string(&value)).ok().as_deref(), Some("\"1.10\""));
}

#[test]
fn excess_digits_are_rounded_and_said_so() {
    for (text, value, rounded) in [
        ("0.1234567890", "0.123456789", false),
        ("0.12345678905", "0.1234567891", true),
        ("-0.12345678905", "-0.1234567891", true),
        ("0.12345678904", "0.123456789", true),
        ("1234567890123456789012345678e-20", "12345678.9012345679", true),
        ("+0000000001.50", "1.5", false),
        ("1E2", "100", false),
        ("-1e-3", "-0.001", false),
        ("0.0000000000000000001", "0", true),
    ] {
        let found = parse_decimal(text).unwrap();
        assert_eq!((found.value.to_string().as_str(), found.rounded), (value, rounded), "{text}");
    }
}

#[test]
fn amounts_have_ten_integer_digits_and_figures_eighteen() {
    check("-9999999999.5", Ok("-9999999999.5"));
    check("-10000000000", Err(DecimalError::TooLarge));
    check("9999999999.99999999996", Err(DecimalError::TooLarge));
    check("1e10", Err(DecimalError::TooLarge));
    check("0000000000000000000000000000012", Ok("12"));
    check("1e5e5", Err(DecimalError::Malformed));
    let figure = |text: &str| parse_figure(text).map(|found| (found.value.to_string(), found.rounded));
    assert_eq!(figure("999999999999999999"), Ok(("999999999999999999".to_owned(), false)));
    assert_eq!(figure("-1000000000000000000"), Err(DecimalError::TooLarge));
    assert_eq!(figure("1000000000000000000"), Err(DecimalError::TooLarge));
    assert_eq!(figure("123456789012.50"), Ok(("123456789012.5".to_owned(), false)));
    assert_eq!(figure("0.12345678905"), Ok(("0.1234567891".to_owned(), true)));
    assert_eq!(figure("1e17"), Ok(("100000000000000000".to_owned(), false)));
    assert_eq!(figure("none"), Err(DecimalError::Malformed));
    // Fractions are rounded to ten decimal places. Integers of 28 digits, the maximum, and of 29 digits are too large.
    check(&format!("0.{}", "3".repeat(60)), Ok("0.3333333333"));
    assert_eq!(figure(&"9".repeat(28)), Err(DecimalError::TooLarge));
    assert_eq!(figure(&"9".repeat(29)), Err(DecimalError::TooLarge));
}

#[test]
fn answers_have_the_places_of_their_kind() {
    let value = "0.12345678912345".parse().unwrap();
    let rounded = [ExactDecimal::amount(value), ExactDecimal::percent(value), ExactDecimal::factor(value)];
    assert_eq!(rounded.map(|value| value.to_string()), ["0.123457", "0.1235", "0.123456789123"]);
    assert_eq!(ExactDecimal::amount("-0.0000005".parse().unwrap()).to_string(), "-0.000001");
    assert_eq!(ExactDecimal::from("1.500".parse::<Decimal>().unwrap()).to_string(), "1.5");
    assert_eq!(format!("{:?}", ExactDecimal::percent(value)), "0.1235");
}

#[test]
fn numbers_and_texts_are_read_digit_for_digit() {
    for (json, value) in [("1.10", "1.10"), ("\"1.10\"", "1.10"), ("1e2", "100"), ("-0.000001", "-0.000001")]
    {
        let read: ExactDecimal = serde_json::from_str(json).unwrap();
        assert_eq!(read.0, value.parse().unwrap(), "{json}");
    }
    assert!(serde_json::from_str::<ExactDecimal>("\"much\"").is_err());
    // Decimals are serialized as text inside `with_decimals_as_text`, and as numbers after the outer call.
    with_decimals_as_text(|| {
        assert_eq!(
            with_decimals_as_text(|| serde_json::to_string(&ExactDecimal::default()).unwrap()),
            "\"0\""
        )
    });
    assert_eq!(serde_json::to_string(&ExactDecimal::default()).unwrap(), "0");
}

proptest::proptest! {
    #[test]
    fn feed_text_to_answer_text_is_the_same_number(mantissa in -99_999_999_999_999_999i64..99_999_999_999_999_999, scale in 7u32..=10) {
        let text = Decimal::new(mantissa, scale).to_string();
        let parsed = parse_decimal(&text).map(|p| p.value);
        let json = serde_json::to_string(&ExactDecimal(parsed.unwrap_or_default())).unwrap_or_default();
        proptest::prop_assert_eq!(json.parse::<Decimal>().ok(), text.parse::<Decimal>().ok());
    }
}
