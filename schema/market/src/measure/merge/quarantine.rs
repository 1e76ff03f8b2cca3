//! Payments that only their neighbours show to be wrong (R28, R30): held back, visible, and back when neighbours change.
//!
//! - `amount_exceeds_price`: cash of at least the close before the ex-date; a liquidation or a spin-off may.
//! - `amount_outlier`: a regular amount that is an isolated outlier, unless the price tells that it was paid. An amount of
//!   at least 5 % of the close before, by 0.6 to 1.4 times which the first close within five sessions fell, was a special
//!   without its type: it is kept as one (`special_by_price`).
//!
//! A person may release either. The ex-date of a held outlier still shows that the payer pays. While the newest one waits
//! for its successor, the security is flagged `amount_held`.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::outlier::{Isolated, Sum, isolated};
use super::payment::{Basics, Payment};
use super::row_rule::RowFault;
use super::version::{Fate, Held};
use crate::event::DividendType;
use crate::measure::class::Class;
use crate::measure::rules::Outlier;
use crate::row::{Flag, Flags, HoldReason};

/// What an isolated outlier is taken for.
enum Taken {
    Special,
    /// With the level it stands out of.
    Outlier(Decimal),
}

/// Takes contradicted payments out of a list sorted by ex-date; gives back the regular ones whose ex-date still counts.
pub(crate) fn hold_outliers<'a>(
    payments: &mut Vec<Payment<'a>>,
    basics: &Basics<'_>,
    fates: &mut [Fate],
    held: &mut Vec<Held>,
    flags: &mut Flags,
) -> Vec<Payment<'a>> {
    let outliers = outliers(payments, basics);
    let newest =
        payments.iter().rev().find(|payment| payment.class.is_regular()).map(|newest| newest.ex_date);
    let released = |payment: &Payment<'_>| basics.decided.releases(payment.observation);
    let too_dear =
        |payment: &Payment<'_>| if released(payment) { None } else { exceeds_price(payment, basics) };
    let mut unproven = Vec::new();
    let mut position = 0;
    payments.retain_mut(|payment| {
        let taken = outliers.get(&position);
        position += 1;
        let outlier = match taken {
            Some(Taken::Outlier(level)) if !released(payment) => {
                Some(outlier(payment, *level, &basics.rules.outlier))
            }
            _ => None,
        };
        if outlier.is_some() {
            unproven.push(*payment);
        }
        if let Some((reason, message)) = too_dear(payment).or(outlier) {
            fates[payment.index] = Fate::Quarantined(reason);
            held.push(Held { index: payment.index, reason, message });
            return false;
        }
        if matches!(taken, Some(Taken::Special)) {
            payment.class = Class::Special;
            flags.set(Flag::SpecialByPrice);
        }
        true
    });
    if unproven.last().is_some_and(|last| Some(last.ex_date) == newest) {
        flags.set(Flag::AmountHeld);
    }
    unproven
}

fn exceeds_price(payment: &Payment<'_>, basics: &Basics<'_>) -> Option<RowFault> {
    let record = &payment.observation.record;
    let exempt =
        record.r#type == DividendType::Liquidation || matches!(payment.class, Class::SpinOff | Class::Stock);
    if exempt {
        return None;
    }
    let close = basics.neighbours.close_for(record, payment.ex_date)?;
    (payment.amount >= close).then(|| {
        (
            HoldReason::AmountExceedsPrice,
            format!("{} a share was paid on a share worth {close}", payment.amount.normalize()),
        )
    })
}

fn outlier(payment: &Payment<'_>, level: Decimal, rules: &Outlier) -> RowFault {
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
    (HoldReason::AmountOutlier, message)
}

/// The isolated outliers by position among payments in order.
fn outliers(payments: &[Payment<'_>], basics: &Basics<'_>) -> BTreeMap<usize, Taken> {
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
        let sums: Vec<Sum> = days
            .iter()
            .map(|day| Sum {
                ex_date: payments[day[0]].ex_date,
                amount: day.iter().map(|position| payments[*position].adjusted).sum(),
            })
            .collect();
        for Isolated { position: day, level } in isolated(&sums, basics.rules) {
            let declared = days[day].iter().map(|position| payments[*position].amount).sum();
            let is_special = currency == basics.neighbours.currency
                && basics.neighbours.show(declared, sums[day].ex_date, &basics.rules.outlier);
            let taken = || if is_special { Taken::Special } else { Taken::Outlier(level) };
            outliers.extend(days[day].iter().map(|position| (*position, taken())));
        }
    }
    outliers
}
