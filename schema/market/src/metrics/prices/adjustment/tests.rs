use super::*;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn splits(rows: &[(&str, i64, i64)]) -> Splits {
    Splits::new(
        rows.iter()
            .map(|(day, from, to)| {
                SplitEvent::of_shares(date(day), Ratio { from: (*from).into(), to: (*to).into() })
            })
            .collect(),
    )
}

#[test]
fn values_move_between_share_bases() {
    let apple = splits(&[("2020-08-31", 1, 4), ("2014-06-09", 1, 7)]);
    let check = |day, basis, value, expected: Decimal| {
        assert_eq!(apple.ratio_to_basis(date(day), date(basis)).apply(value), expected, "{day} {basis}");
    };
    check("2014-05-08", "2020-09-01", dec!(3.29), dec!(0.1175));
    check("2014-06-09", "2020-09-01", dec!(0.47), dec!(0.1175));
    check("2014-05-08", "2014-06-06", dec!(3.29), dec!(3.29));
    check("2020-09-01", "2014-05-08", dec!(0.1175), dec!(3.29));
    let there_and_back = splits(&[("2020-01-02", 1, 3), ("2021-01-04", 3, 1)]);
    assert_eq!(
        there_and_back.ratio_to_basis(date("2019-12-31"), date("2022-01-03")).apply(dec!(100.01)),
        dec!(100.01)
    );
}

#[test]
fn a_price_only_action_moves_prices_and_no_amounts() {
    let mut events = splits(&[("2020-08-31", 1, 4), ("2023-01-04", 1000, 1281)]);
    events.0[1].is_price_only = true;
    let (before, after) = (date("2020-01-02"), date("2023-01-04"));
    assert_eq!(events.ratio_to_basis(before, after), Ratio { from: dec!(1), to: dec!(4) });
    assert_eq!(events.ratio_to_basis(after, before), Ratio { from: dec!(4), to: dec!(1) });
    assert_eq!(events.price_ratio_to_basis(before, after).apply(dec!(512.4)), dec!(100));
    assert_eq!(events.price_ratio_to_basis(after, before).apply(dec!(100)), dec!(512.4));
    assert!(events.ratio_to_basis(date("2020-08-31"), after).is_one());
}

#[test]
fn ratios_never_overflow() {
    let huge = Ratio { from: Decimal::from(9_999_999_999i64), to: Decimal::ONE };
    let product = (0..50).fold(Ratio::ONE, |ratio, _| ratio.then(huge));
    assert!(product.apply(dec!(9999999999)) >= dec!(1000000));
    assert_eq!(
        (0..50).fold(product, |ratio, _| ratio.then(huge)).apply(dec!(0.01)),
        product.apply(dec!(0.01))
    );
}

#[test]
fn long_chains_of_splits_stay_exact() {
    let ratio = |from: i64, to: i64| Ratio { from: from.into(), to: to.into() };
    let there = (0..5).fold(Ratio::ONE, |all, _| all.then(ratio(997, 991)));
    let back = (0..5).fold(there, |all, _| all.then(ratio(991, 997)));
    assert_eq!(back.apply(dec!(40.15)), dec!(40.15));
    let back_but_one = (0..4).fold(there, |all, _| all.then(ratio(991, 997)));
    assert_eq!(back_but_one.apply(dec!(991)), dec!(997));
    // Ratios with fractions, such as those of spin-offs, are not reduced.
    let fraction = Ratio { from: dec!(1500000.5), to: dec!(2) }.then(ratio(1, 1_500_000));
    assert_eq!(fraction.apply(dec!(3000000)), dec!(1500000.5));
    let fraction = Ratio { from: dec!(2), to: dec!(1500000.5) }.then(ratio(1_500_000, 1));
    assert_eq!(fraction.apply(dec!(1500000.5)), dec!(3000000));
}

#[test]
fn old_and_new_shares_are_in_lowest_terms_from_a_million_on() {
    let ratio = |from: i64, to: i64| Ratio { from: from.into(), to: to.into() };
    for (first, second, both) in [
        (ratio(4, 2), ratio(3, 6), ratio(12, 12)),
        (ratio(999, 500), ratio(1001, 400), ratio(999_999, 200_000)),
        (ratio(1000, 500), ratio(1000, 400), ratio(5, 1)),
        (ratio(500, 1000), ratio(400, 1000), ratio(1, 5)),
        (ratio(500, 3), ratio(3, 1_000_000), ratio(1, 2000)),
        (ratio(1001, 1), ratio(1009, 1), ratio(1_010_009, 1)),
    ] {
        assert_eq!(first.then(second), both, "{first:?} {second:?}");
    }
    let (half, whole) = (dec!(1500000.5), dec!(3000000));
    let fraction = Ratio { from: half, to: dec!(2) }.then(ratio(1, 1_500_000));
    assert_eq!(fraction, Ratio { from: half, to: whole });
    let fraction = Ratio { from: dec!(2), to: half }.then(ratio(1_500_000, 1));
    assert_eq!(fraction, Ratio { from: whole, to: half });
}

#[test]
fn a_product_too_large_to_hold_is_divided_first() {
    let halved = Ratio { from: dec!(1000000000000), to: dec!(2000000000000) };
    assert_eq!(halved.apply(dec!(100000000000000000)), dec!(50000000000000000));
    assert_eq!((halved.factor(), halved.inverse().factor()), (dec!(0.5), dec!(2)));
}

#[test]
fn splits_are_sorted_by_date() {
    let sorted = splits(&[("2024-02-01", 1, 2), ("2024-01-01", 1, 3)]);
    assert_eq!(sorted.events()[0].ex_date, date("2024-01-01"));
}

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
