//! What is concluded from the figures: lists, Chowder number, safety, traps.

use rust_decimal::Decimal;

use super::basis::Basis;
use super::company::Payouts;
use super::income::Income;
use super::progress::Progress;
use super::returns::Returns;
use crate::measure::chowder::{Chowder, chowder};
use crate::measure::lists::{ListFacts, is_aristocrat};
use crate::measure::safety::{SafetyFacts, safety, yield_trap_risk};
use crate::row::{DividendState, Safety};

/// Conclusions.
#[derive(Debug)]
pub(crate) struct Verdicts {
    pub is_aristocrat: bool,
    pub chowder: Option<Chowder>,
    pub safety: Option<Safety>,
    pub trap: Option<bool>,
}

/// Draws the conclusions.
pub(crate) fn verdicts(
    basis: &Basis<'_>,
    income: &Income,
    progress: &Progress,
    payouts: &Payouts,
    returns: &Returns,
) -> Verdicts {
    let facts = SafetyFacts {
        is_fund: basis.is_fund(),
        is_real_estate: basis.is_real_estate(),
        status: income.status,
        at_risk: progress.at_risk,
        payout_ratio: payouts.ratio.ok(),
        fcf_payout_ratio: payouts.fcf,
        dps_forward: income.forward.amount,
        dps_ttm: income.dps_ttm,
        price_change_1y: returns.price_change_1y,
    };
    let sector = basis.security().and_then(|security| security.sector.as_deref());
    let yield_forward = income.yield_forward.filter(|_| income.status == DividendState::Active);
    Verdicts {
        is_aristocrat: is_aristocrat(&list_facts(basis, income, progress), &basis.rules.lists),
        chowder: chowder(yield_forward, progress.growth[2], sector),
        safety: safety(&facts, &basis.rules.safety),
        trap: yield_trap_risk(&facts, &basis.rules.safety),
    }
}

fn list_facts(basis: &Basis<'_>, income: &Income, progress: &Progress) -> ListFacts {
    let reported = basis.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let in_index = |index: &String| index.eq_ignore_ascii_case("sp500");
    let figure = |field: fn(&crate::event::Fundamentals) -> Option<Decimal>| reported.and_then(field);
    ListFacts {
        streak_years: progress.streak.years,
        streak_at_risk: progress.at_risk,
        status: income.status,
        is_listed: basis.is_listed,
        in_sp500: basis.security().is_some_and(|security| security.indexes.iter().any(in_index)),
        float_market_cap: figure(|reported| reported.float_market_cap),
        average_daily_value: figure(|reported| reported.avg_daily_value),
    }
}
