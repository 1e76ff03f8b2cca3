use super::*;
use crate::decimal::ExactDecimal;
use crate::history::{DividendFeeds, History, SourcePolicy};
use crate::metrics::rules::Rules;
use crate::metrics::{DerivationContext, ExchangeRates, derive};
use crate::row::Stock;
use crate::symbol::Symbol;

const RULES: SafetyRules = Rules::DEFAULT.safety;

/// Rows of a stock without facts.
fn rows_without_facts() -> Stock {
    let history = History {
        symbol: Symbol::parse("TEST").unwrap(),
        former_symbols: Vec::new(),
        security: None,
        dividends: Vec::new(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: DividendFeeds::default(),
        prices: Vec::new(),
    };
    let as_of = "2024-06-28".parse().unwrap();
    let context = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &SourcePolicy::default(),
        rules: &Rules::DEFAULT,
    };
    derive(&history, &context).stock
}

#[test]
fn the_screen_needs_everything() {
    let Stock { listed, figures, .. } = rows_without_facts();
    let listed = StockRow {
        r#type: SecurityType::Stock,
        is_active: true,
        pays_dividend: Some(true),
        dividend_yield: Some(ExactDecimal(dec!(4))),
        dividend_currency: Some("USD".into()),
        currency: "USD".into(),
        ..listed
    };
    let figures = StockFigures { yield_suspect: false, price_age_sessions: Some(5), ..figures };
    let passes = |stock: &StockRow, figures: &StockFigures| {
        passes_high_yield(stock, figures, Some(HIGH_YIELD_MINIMUM.into()), None)
    };
    let with = |change: fn(&mut StockRow)| {
        let mut changed = listed.clone();
        change(&mut changed);
        changed
    };
    assert!(passes(&listed, &figures));
    assert!(passes(&with(|row| row.r#type = SecurityType::Reit), &figures));
    assert!(passes(&with(|row| row.dividend_currency = None), &figures));
    let fund = with(|row| row.r#type = SecurityType::Etf);
    for other in [
        fund.clone(),
        with(|row| row.is_active = false),
        with(|row| row.pays_dividend = Some(false)),
        with(|row| row.pays_dividend = None),
        with(|row| row.dividend_yield = Some(ExactDecimal(dec!(3.9999)))),
        with(|row| row.dividend_yield = None),
        with(|row| row.dividend_currency = Some("EUR".into())),
    ] {
        assert!(!passes(&other, &figures), "{other:?}");
    }
    for other in [
        StockFigures { yield_suspect: true, ..figures.clone() },
        StockFigures { price_age_sessions: Some(6), ..figures.clone() },
        StockFigures { price_age_sessions: None, ..figures.clone() },
    ] {
        assert!(!passes(&listed, &other), "{other:?}");
    }
    let is_fund = |row: &StockRow| passes_high_yield(row, &figures, None, Some(&[SecurityType::Etf]));
    assert!(is_fund(&StockRow { dividend_yield: Some(ExactDecimal(dec!(1))), ..fund }));
    assert!(!is_fund(&listed));
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
fn bounds_of_yields() {
    let suspect = |value| is_suspect(value, &RULES);
    assert_eq!([None, Some(dec!(25)), Some(dec!(25.0001))].map(suspect), [false, false, true]);
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

#[test]
fn ratios_and_reasons() {
    let input = PayoutInput {
        is_fund: false,
        is_real_estate: false,
        dps_ttm: Some(dec!(3)),
        eps_ttm: Some(dec!(7.5)),
        ffo_per_share: Some(dec!(4)),
        currency_mismatch: false,
    };
    assert_eq!(payout_ratio(&input), (Ok(dec!(40)), PayoutBasis::Eps));
    assert_eq!(
        payout_ratio(&PayoutInput { is_real_estate: true, ..input }),
        (Ok(dec!(75)), PayoutBasis::Ffo)
    );
    assert_eq!(payout_ratio(&PayoutInput { eps_ttm: Some(dec!(2.5)), ..input }).0, Ok(dec!(120)));
    for (input, gap) in [
        (PayoutInput { is_fund: true, ..input }, NoPayoutReason::NotApplicable),
        (PayoutInput { eps_ttm: Some(dec!(-2)), ..input }, NoPayoutReason::NegativeEarnings),
        (PayoutInput { eps_ttm: Some(dec!(0)), ..input }, NoPayoutReason::NegativeEarnings),
        (PayoutInput { eps_ttm: None, ..input }, NoPayoutReason::Missing),
        (PayoutInput { currency_mismatch: true, ..input }, NoPayoutReason::CurrencyMismatch),
    ] {
        assert_eq!(payout_ratio(&input).0, Err(gap));
    }
}

#[test]
fn cash_flow() {
    assert_eq!(
        fcf_payout(Some(dec!(800)), free_cash_flow(Some(dec!(1500)), Some(dec!(500)))),
        Some(dec!(80))
    );
    assert_eq!(
        fcf_payout(Some(dec!(-800)), free_cash_flow(Some(dec!(1500)), Some(dec!(-500)))),
        Some(dec!(80))
    );
    assert_eq!(fcf_payout(Some(dec!(800)), free_cash_flow(Some(dec!(400)), Some(dec!(500)))), None);
}

#[test]
fn the_words_of_an_explanation() {
    let gaps = [
        NoPayoutReason::NotApplicable,
        NoPayoutReason::NegativeEarnings,
        NoPayoutReason::CurrencyMismatch,
        NoPayoutReason::Missing,
    ];
    assert_eq!(
        gaps.map(NoPayoutReason::as_str),
        ["not_applicable", "negative_earnings", "currency_mismatch", "missing"]
    );
    assert_eq!([PayoutBasis::Eps, PayoutBasis::Ffo].map(PayoutBasis::as_str), ["eps", "ffo"]);
}

#[test]
fn nothing_is_paid_out_of_no_cash() {
    assert_eq!(fcf_payout(Some(dec!(800)), Some(dec!(0))), None);
    assert_eq!(fcf_payout(None, Some(dec!(800))), None);
    assert_eq!(free_cash_flow(Some(dec!(400)), None), None);
    assert_eq!(free_cash_flow(Some(dec!(400)), Some(dec!(-500))), Some(dec!(-100)));
}
