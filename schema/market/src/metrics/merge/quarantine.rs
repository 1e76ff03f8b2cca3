//! Quarantine of payments that contradict prices or neighbouring payments (R28, R30).
//!
//! - `amount_exceeds_price`: cash of at least the close before the ex-date, except liquidations and
//!   spin-offs.
//! - `amount_outlier`: a regular amount that is an isolated outlier, unless the price proves the payment. The
//!   price proves a special if the amount is at least 5 % of the close before. The first close within five
//!   sessions must also have fallen by 0.6 to 1.4 times the amount. The payment then counts as a special
//!   (`special_by_price`).
//!
//! A decision may release either. The ex-date of a quarantined outlier still proves a payment. While the
//! newest one has no successor, the security has the flag `amount_held`.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::outlier::{ExDateSum, IsolatedOutlier, find_isolated_outliers};
use super::payment::{Payment, ValidationContext};
use super::validation::RowFault;
use super::winner::{ObservationStatus, QuarantinedRow};
use crate::event::DividendType;
use crate::metrics::dividends::class::DividendClass;
use crate::metrics::rules::OutlierRules;
use crate::row::{Flag, Flags, QuarantineReason};

/// Interpretation of an isolated outlier.
enum OutlierKind {
    Special,
    /// Outlier, with the level of the amounts before it.
    Outlier(Decimal),
}

/// Removes contradicted payments from a list sorted by ex-date. Returns the regular ones, whose ex-dates
/// still count.
pub(crate) fn quarantine_outliers<'a>(
    payments: &mut Vec<Payment<'a>>,
    validation: &ValidationContext<'_>,
    statuses: &mut [ObservationStatus],
    quarantined: &mut Vec<QuarantinedRow>,
    flags: &mut Flags,
) -> Vec<Payment<'a>> {
    let outliers = outliers(payments, validation);
    let newest =
        payments.iter().rev().find(|payment| payment.class.is_regular()).map(|newest| newest.ex_date);
    let released = |payment: &Payment<'_>| validation.decided.releases(payment.observation);
    let too_dear =
        |payment: &Payment<'_>| if released(payment) { None } else { exceeds_price(payment, validation) };
    let mut unproven = Vec::new();
    let mut position = 0;
    payments.retain_mut(|payment| {
        let taken = outliers.get(&position);
        position += 1;
        let outlier = match taken {
            Some(OutlierKind::Outlier(level)) if !released(payment) => {
                Some(outlier(payment, *level, &validation.rules.outlier))
            }
            _ => None,
        };
        if outlier.is_some() {
            unproven.push(*payment);
        }
        if let Some((reason, message)) = too_dear(payment).or(outlier) {
            statuses[payment.index] = ObservationStatus::Quarantined(reason);
            quarantined.push(QuarantinedRow { index: payment.index, reason, message });
            return false;
        }
        if matches!(taken, Some(OutlierKind::Special)) {
            payment.class = DividendClass::Special;
            flags.set(Flag::SpecialByPrice);
        }
        true
    });
    if unproven.last().is_some_and(|last| Some(last.ex_date) == newest) {
        flags.set(Flag::AmountHeld);
    }
    unproven
}

fn exceeds_price(payment: &Payment<'_>, validation: &ValidationContext<'_>) -> Option<RowFault> {
    let record = &payment.observation.record;
    let exempt = record.r#type == DividendType::Liquidation
        || matches!(payment.class, DividendClass::SpinOff | DividendClass::Stock);
    if exempt {
        return None;
    }
    let close = validation.neighbours.close_for(record, payment.ex_date)?;
    (payment.amount >= close).then(|| {
        (
            QuarantineReason::AmountExceedsPrice,
            format!("{} a share was paid on a share worth {close}", payment.amount.normalize()),
        )
    })
}

fn outlier(payment: &Payment<'_>, level: Decimal, rules: &OutlierRules) -> RowFault {
    let compared = match rules.compared_sums {
        4 => "four".to_owned(),
        sums => sums.to_string(),
    };
    let message = format!(
        "{} a share is at least {} times the median {} of the {compared} regular amounts before it, and no other bears it out",
        payment.adjusted.normalize(),
        rules.factor,
        level.normalize(),
    );
    (QuarantineReason::AmountOutlier, message)
}

/// Isolated outliers by position among payments in order.
fn outliers(payments: &[Payment<'_>], validation: &ValidationContext<'_>) -> BTreeMap<usize, OutlierKind> {
    let mut by_currency: Vec<(&str, Vec<usize>)> = Vec::new();
    for (position, payment) in payments.iter().enumerate().filter(|(_, payment)| payment.class.is_regular()) {
        let currency = payment.observation.record.currency.as_str();
        match by_currency.iter_mut().find(|(known, _)| *known == currency) {
            Some((_, positions)) => positions.push(position),
            None => by_currency.push((currency, vec![position])),
        }
    }
    let mut outliers = BTreeMap::new();
    for (currency, positions) in by_currency {
        let days: Vec<&[usize]> =
            positions.chunk_by(|a, b| payments[*a].ex_date == payments[*b].ex_date).collect();
        let sums: Vec<ExDateSum> = days
            .iter()
            .map(|day| ExDateSum {
                ex_date: payments[day[0]].ex_date,
                amount: day.iter().map(|position| payments[*position].adjusted).sum(),
            })
            .collect();
        for IsolatedOutlier { position: day, level } in find_isolated_outliers(&sums, validation.rules) {
            let declared = days[day].iter().map(|position| payments[*position].amount).sum();
            let is_special = currency == validation.neighbours.currency
                && validation.neighbours.show(declared, sums[day].ex_date, &validation.rules.outlier);
            let taken = || if is_special { OutlierKind::Special } else { OutlierKind::Outlier(level) };
            outliers.extend(days[day].iter().map(|position| (*position, taken())));
        }
    }
    outliers
}
