use super::*;

fn of(from: i64, to: i64) -> Ratio {
    Ratio { from: from.into(), to: to.into() }
}

#[test]
fn a_rest_of_more_than_the_share_of_the_logarithm_denies_a_ratio() {
    let denied = |rest: Decimal, ratio, largest| is_denied(rest, ratio, 40, largest);
    let (one, none) = (E, Decimal::MAX);
    // 2^0.4 is 1.3195.
    for (rest, expected) in [
        (dec!(1), false),
        (dec!(1.319), false),
        (dec!(1.32), true),
        (dec!(0.758), false),
        (dec!(0.757), true),
    ] {
        assert_eq!(denied(rest, of(1, 2), one), expected, "{rest}");
        assert_eq!(denied(rest, of(2, 1), one), expected, "{rest}");
    }
    // For ratios of 2.718 and above, the limit is e^0.4: 1.4918.
    assert_eq!([dec!(1.491), dec!(1.492)].map(|rest| denied(rest, of(12, 1), one)), [false, true]);
    assert_eq!([dec!(2.7), dec!(2.71)].map(|rest| denied(rest, of(12, 1), none)), [false, true]);
    // Shares without a common divisor, and numbers beyond 28 digits.
    assert!(is_denied(dec!(22), of(1, 22), 83, none) && !is_denied(dec!(13), of(1, 22), 83, none));
    assert!(is_denied(dec!(999999), of(1, 2), 59, one) && !is_denied(dec!(1.01), of(1, 1_000_000), 59, none));
}
