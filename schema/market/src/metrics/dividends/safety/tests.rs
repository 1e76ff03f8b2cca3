use super::*;
use crate::metrics::rules::Rules;

const RULES: SafetyRules = Rules::DEFAULT.safety;

#[test]
fn the_screen_needs_everything() {
    let row = HighYieldScreenInput {
        security_type: SecurityType::Stock,
        is_listed: true,
        is_paying: true,
        dividend_yield: Some(dec!(4)),
        yield_suspect: false,
        price_age_sessions: Some(5),
        currency_mismatch: false,
    };
    let passes = |row: &HighYieldScreenInput| row.passes(Some(HIGH_YIELD_MINIMUM.into()), None);
    assert!(passes(&row));
    assert!(passes(&HighYieldScreenInput { security_type: SecurityType::Reit, ..row }));
    for other in [
        HighYieldScreenInput { security_type: SecurityType::Etf, ..row },
        HighYieldScreenInput { is_listed: false, ..row },
        HighYieldScreenInput { is_paying: false, ..row },
        HighYieldScreenInput { dividend_yield: Some(dec!(3.9999)), ..row },
        HighYieldScreenInput { dividend_yield: None, ..row },
        HighYieldScreenInput { yield_suspect: true, ..row },
        HighYieldScreenInput { price_age_sessions: Some(6), ..row },
        HighYieldScreenInput { price_age_sessions: None, ..row },
        HighYieldScreenInput { currency_mismatch: true, ..row },
    ] {
        assert!(!passes(&other), "{other:?}");
    }
    let is_fund = |row: &HighYieldScreenInput| row.passes(None, Some(&[SecurityType::Etf]));
    let fund =
        HighYieldScreenInput { security_type: SecurityType::Etf, dividend_yield: Some(dec!(1)), ..row };
    assert!(is_fund(&fund));
    assert!(!is_fund(&row));
}

#[test]
fn labels_and_traps() {
    let input = SafetyInput {
        is_fund: false,
        is_real_estate: false,
        status: DividendState::Active,
        at_risk: false,
        payout_ratio: Some(dec!(50)),
        fcf_payout_ratio: None,
        dps_forward: Some(dec!(1)),
        dps_ttm: Some(dec!(1)),
        price_change_1y: None,
    };
    let check = |input: SafetyInput, label, trap| {
        assert_eq!(
            (safety_label(&input, &RULES), yield_trap_risk(&input, &RULES)),
            (label, trap),
            "{input:?}"
        );
    };
    check(input, Some(Safety::Safe), Some(false));
    check(SafetyInput { payout_ratio: Some(dec!(75)), ..input }, Some(Safety::Borderline), Some(false));
    check(
        SafetyInput { payout_ratio: Some(dec!(80)), is_real_estate: true, ..input },
        Some(Safety::Safe),
        Some(false),
    );
    check(SafetyInput { payout_ratio: Some(dec!(100)), ..input }, Some(Safety::Borderline), Some(false));
    check(SafetyInput { fcf_payout_ratio: Some(dec!(100.1)), ..input }, Some(Safety::Unsafe), Some(true));
    check(
        SafetyInput { at_risk: true, dps_forward: Some(dec!(0.89)), ..input },
        Some(Safety::Unsafe),
        Some(true),
    );
    check(SafetyInput { dps_forward: Some(dec!(0.9)), ..input }, Some(Safety::Safe), Some(false));
    check(SafetyInput { price_change_1y: Some(dec!(-40.1)), ..input }, Some(Safety::Safe), Some(true));
    check(SafetyInput { payout_ratio: None, ..input }, None, Some(false));
    check(SafetyInput { status: DividendState::NonPayer, ..input }, None, None);
    check(SafetyInput { status: DividendState::Unknown, ..input }, None, None);
}

#[test]
fn bounds_of_yields_and_ages() {
    let suspect = |value| is_suspect(value, &RULES);
    assert_eq!([None, Some(dec!(25)), Some(dec!(25.0001))].map(suspect), [false, false, true]);
    assert_eq!([None, Some(5), Some(6)].map(is_fresh), [false, true, false]);
}

#[test]
fn bounds_of_labels() {
    let input = SafetyInput {
        is_fund: false,
        is_real_estate: false,
        status: DividendState::Active,
        at_risk: false,
        payout_ratio: Some(dec!(50)),
        fcf_payout_ratio: None,
        dps_forward: None,
        dps_ttm: None,
        price_change_1y: None,
    };
    let label = |is_real_estate, payout| {
        safety_label(&SafetyInput { is_real_estate, payout_ratio: Some(payout), ..input }, &RULES)
    };
    assert_eq!(
        [dec!(74.9999), dec!(75), dec!(100), dec!(100.0001)].map(|payout| label(false, payout)),
        [Some(Safety::Safe), Some(Safety::Borderline), Some(Safety::Borderline), Some(Safety::Unsafe)]
    );
    assert_eq!(
        [dec!(89.9999), dec!(90)].map(|payout| label(true, payout)),
        [Some(Safety::Safe), Some(Safety::Borderline)]
    );
    let with = |input: SafetyInput| (safety_label(&input, &RULES), yield_trap_risk(&input, &RULES));
    assert_eq!(with(SafetyInput { is_fund: true, ..input }), (None, Some(false)));
    assert_eq!(with(SafetyInput { status: DividendState::Lapsed, ..input }).0, Some(Safety::Unsafe));
    assert_eq!(with(SafetyInput { at_risk: true, ..input }).0, Some(Safety::Unsafe));
    // The higher of payout ratio and free-cash-flow payout decides. A free-cash-flow payout alone does not give the
    // label `safe` or `borderline`.
    assert_eq!(
        with(SafetyInput { fcf_payout_ratio: Some(dec!(80)), ..input }),
        (Some(Safety::Borderline), Some(false))
    );
    assert_eq!(
        with(SafetyInput { payout_ratio: None, fcf_payout_ratio: Some(dec!(80)), ..input }),
        (None, Some(false))
    );
    assert_eq!(with(SafetyInput { payout_ratio: None, ..input }), (None, None));
    for (change, trap) in [(dec!(-40), false), (dec!(-40.0001), true)] {
        assert_eq!(with(SafetyInput { price_change_1y: Some(change), ..input }).1, Some(trap));
    }
    for (payout, trap) in [(dec!(100), false), (dec!(100.0001), true)] {
        assert_eq!(with(SafetyInput { payout_ratio: Some(payout), ..input }).1, Some(trap));
    }
}
