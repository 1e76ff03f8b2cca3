use super::*;
use crate::metrics::rules::Rules;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn rates(rows: &[(&str, Decimal)]) -> Vec<RegularDividend> {
    rows.iter().map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount }).collect()
}

#[test]
fn the_window_is_open_left_and_closed_right() {
    let rates = rates(&[
        ("2024-02-28", dec!(1)),
        ("2024-02-29", dec!(2)),
        ("2025-02-28", dec!(4)),
        ("2025-03-01", dec!(8)),
    ]);
    assert_eq!(sum(trailing_rates(&rates, date("2025-02-28"))), dec!(6));
    assert_eq!(sum(trailing_rates(&rates, date("2025-02-27"))), dec!(3));
    assert_eq!(sum(trailing_rates(&rates, date("2024-02-29"))), dec!(3));
    assert!(trailing_rates(&[], date("2024-02-29")).is_empty());
}

#[test]
fn indicated_dividends() {
    let history =
        rates(&[("2023-09-07", dec!(0.10)), ("2024-05-07", dec!(0.32)), ("2024-09-05", dec!(0.11))]);
    let even = rates(&[("2024-03-28", dec!(45)), ("2024-09-27", dec!(49.5))]);
    let check = |rates: &[RegularDividend], payments, expected: Option<Decimal>| {
        let found = forward_dividend(
            rates,
            payments,
            DividendState::Active,
            date("2024-12-31"),
            &Rules::DEFAULT.forward,
        )
        .amount;
        assert_eq!(found, expected, "{payments:?}");
    };
    check(&history, Some(2), Some(dec!(0.43)));
    check(&even, Some(2), Some(dec!(99)));
    check(&history, Some(1), Some(dec!(0.11)));
    check(&history, Some(4), Some(dec!(0.44)));
    check(&history, Some(6), Some(dec!(0.66)));
    check(&history, Some(52), Some(dec!(5.72)));
    check(&history, None, None);
    let lapsed = forward_dividend(
        &history,
        Some(4),
        DividendState::Lapsed,
        date("2024-12-31"),
        &Rules::DEFAULT.forward,
    );
    assert_eq!(lapsed, ForwardDividend { amount: Some(dec!(0)), ..ForwardDividend::NONE });
}

/// Payments every `days` days, the last on 2024-12-02.
fn paid(days: i64, amounts: &[Decimal]) -> Vec<RegularDividend> {
    let back = (0..amounts.len()).rev().map(|back| days * i64::try_from(back).unwrap());
    back.zip(amounts)
        .map(|(back, amount)| RegularDividend {
            ex_date: date("2024-12-02") - chrono::TimeDelta::days(back),
            amount: *amount,
        })
        .collect()
}

#[test]
fn halves_that_alternate_are_counted_together() {
    let check = |amounts: &[Decimal], expected: Decimal| {
        let found = forward_dividend(
            &paid(182, amounts),
            Some(2),
            DividendState::Active,
            date("2024-12-31"),
            &Rules::DEFAULT.forward,
        );
        assert_eq!(found.amount, Some(expected), "{amounts:?}");
    };
    let (interim, last) = (dec!(0.10), dec!(0.30));
    check(&[interim, last], dec!(0.40));
    check(&[interim, last, interim, last], dec!(0.40));
    check(&[last, interim, last, interim, last], dec!(0.40));
    // A series of increases is not an alternation. With only four amounts, the difference between the last two
    // decides, so the series counts as an alternation.
    check(&[dec!(0.45), dec!(0.50), dec!(0.56), dec!(0.63), dec!(0.70)], dec!(1.40));
    check(&[dec!(0.50), dec!(0.56), dec!(0.63), dec!(0.70)], dec!(1.33));
    check(&[dec!(0.50), dec!(0.55)], dec!(1.10));
    check(&[dec!(0.50), dec!(0.5501)], dec!(1.0501));
    // In the first two series, the oldest step is at most 10 %, so the amounts do not alternate. In the third
    // series, it is larger than 10 %.
    check(&[dec!(0.10), dec!(0.11), dec!(0.20), dec!(0.10), dec!(0.20)], dec!(0.40));
    check(&[dec!(0.22), dec!(0.20), dec!(0.30), dec!(0.20), dec!(0.30)], dec!(0.60));
    check(&[dec!(0.2201), dec!(0.1980), dec!(0.30), dec!(0.20), dec!(0.30)], dec!(0.50));
}

#[test]
fn an_unconfirmed_jump_is_no_rate() {
    let check = |days, amounts: &[Decimal], expected: Decimal, unusual| {
        let found = forward_dividend(
            &paid(days, amounts),
            Some(4),
            DividendState::Active,
            date("2024-12-31"),
            &Rules::DEFAULT.forward,
        );
        assert_eq!((found.amount, found.latest_unusual), (Some(expected), unusual), "{amounts:?}");
    };
    let quarter = dec!(0.25);
    check(91, &[quarter, quarter, quarter, quarter, dec!(2)], dec!(1), true);
    check(91, &[quarter, quarter, quarter, quarter, dec!(0.75)], dec!(1), true);
    check(91, &[quarter, quarter, quarter, quarter, dec!(0.7499)], dec!(2.9996), false);
    check(91, &[quarter, quarter, quarter, dec!(2)], dec!(8), false);
    // The next payment confirms the amount if it is within a factor of 1.5, up or down.
    check(91, &[quarter, quarter, quarter, quarter, dec!(2), dec!(3)], dec!(12), false);
    check(91, &[quarter, quarter, quarter, quarter, dec!(3), dec!(2)], dec!(8), false);
    check(91, &[quarter, quarter, quarter, quarter, dec!(2), dec!(3.01)], dec!(8), true);
    check(91, &[quarter, quarter, quarter, quarter, dec!(2), quarter], dec!(1), false);
    // A payment after a pause of more than 550 days is not compared.
    check(550, &[quarter, quarter, quarter, quarter, dec!(2)], dec!(1), true);
    check(551, &[quarter, quarter, quarter, quarter, dec!(2)], dec!(8), false);
    let jumped = paid(91, &[quarter, quarter, quarter, quarter, dec!(2)]);
    let lapsed = forward_dividend(
        &jumped,
        Some(4),
        DividendState::Lapsed,
        date("2026-01-02"),
        &Rules::DEFAULT.forward,
    );
    assert!(!lapsed.latest_unusual);
}

#[test]
fn headlines() {
    let input = HeadlineInput {
        status: DividendState::Active,
        yield_forward: Some(dec!(4)),
        yield_ttm: Some(dec!(3)),
        has_forward: true,
        mismatch: false,
    };
    assert_eq!(headline_yield(&input), (Some(dec!(4)), Some(YieldBasis::Forward)));
    assert_eq!(
        headline_yield(&HeadlineInput { has_forward: false, ..input }),
        (Some(dec!(3)), Some(YieldBasis::Ttm))
    );
    assert_eq!(headline_yield(&HeadlineInput { mismatch: true, ..input }), (None, None));
    assert_eq!(headline_yield(&HeadlineInput { status: DividendState::Lapsed, ..input }).0, Some(dec!(0)));
    assert_eq!(
        headline_yield(&HeadlineInput { status: DividendState::NonPayer, mismatch: true, ..input }).0,
        Some(dec!(0))
    );
}

#[test]
fn counts() {
    assert!(is_unusual_count(5, 4) && is_unusual_count(3, 4) && !is_unusual_count(4, 4));
    assert!(!is_unusual_count(53, 52) && is_unusual_count(50, 52));
}

#[test]
fn how_many_payments_a_year_may_have() {
    for (payments, unusual) in
        [(1, [0, 2].as_slice()), (4, &[3, 5]), (12, &[11, 13]), (13, &[11, 15]), (52, &[50, 54])]
    {
        for count in payments - 2..=payments + 2 {
            let outside = count <= unusual[0] || count >= unusual[1];
            assert_eq!(is_unusual_count(count, payments), outside, "{count} of {payments}");
        }
    }
}

#[test]
fn a_rate_is_declared_while_its_ex_date_lies_ahead() {
    let rates = rates(&[("2024-03-07", dec!(0.5)), ("2024-06-06", dec!(0.5))]);
    let basis = |as_of| {
        forward_dividend(&rates, Some(4), DividendState::Active, date(as_of), &Rules::DEFAULT.forward).basis
    };
    assert_eq!(basis("2024-06-05"), ForwardBasis::Declared);
    assert_eq!(basis("2024-06-06"), ForwardBasis::Declared);
    assert_eq!(basis("2024-06-07"), ForwardBasis::LastTimesFrequency);
    assert_eq!(
        forward_dividend(&[], Some(4), DividendState::Active, date("2024-06-07"), &Rules::DEFAULT.forward),
        ForwardDividend::NONE
    );
}
