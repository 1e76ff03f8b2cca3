use super::*;

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
