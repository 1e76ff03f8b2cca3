//! Quarantine of payments that contradict prices or neighbouring payments (R28, R30). There are two reasons:
//! - `amount_exceeds_price`: the amount is at least the close before the ex-date. Liquidations, spin-offs and stock
//!   dividends are exempt.
//! - `amount_outlier`: a regular amount is probably in a wrong unit. Neither the price nor a feed's adjusted closes
//!   prove the amount.
//!
//! The price proves an amount if all these conditions are met:
//! - The amount is at least 5 % of the last close before the ex-date.
//! - The price falls by 0.6 to 1.4 times the amount. The fall is measured from this close to the first close on or
//!   after the ex-date.
//! - The first close on or after the ex-date is at most five sessions later than the ex-date.
//!
//! All other outliers are used. They are large amounts that no later payment confirms, or amounts that the price or
//! adjusted closes prove. The payment schedule (R34) divides each of these amounts. The larger of the two neighbouring
//! amounts is the regular part, and the rest is special. An amount of at least a quarter of the close before the
//! ex-date is wholly special (R2). R34.2 has an exception to this. Amounts of payers without slots (R34) are not
//! divided.
//!
//! A decision may release a quarantined row. A quarantined regular row still counts as a payment on its ex-date, for
//! either reason. The security has the flag `amount_held` if its newest regular amount is quarantined.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::outlier::{ExDateRate, Outlier, find_outliers};
use super::payment::{Payment, ValidationContext};
use super::validation::RowFault;
use super::winner::{ObservationStatus, QuarantinedRow};
use crate::event::DividendType;
use crate::metrics::dividends::schedule::{AmountDoubt, ScheduleRow, local_frequencies};
use crate::metrics::dividends::status::DividendClass;
use crate::row::{Flag, Flags, QuarantineReason};

/// Divisor of the price: an amount of at least a quarter of the price is a distribution of capital (R2).
const CAPITAL_DIVISOR: Decimal = Decimal::from_parts(4, 0, 0, false, 0);

/// Regular payments with amounts that contradict the neighbouring amounts.
#[derive(Debug, Default)]
pub(crate) struct Outliers<'a> {
    /// Regular payments that are quarantined. Each still counts as a payment on its ex-date.
    pub unproven: Vec<Payment<'a>>,
    /// Large amounts that no later payment confirms, as pairs of the ex-date and the kind of doubt.
    pub doubted: Vec<(NaiveDate, AmountDoubt)>,
}

/// Kind of an outlier: an unconfirmed large amount, or an amount in a wrong unit.
enum OutlierKind {
    /// Large amount that no later payment confirms. This alone is no reason for a quarantine.
    Doubted(AmountDoubt),
    /// Amount in a wrong unit. `level` is the median of the annual rates before this payment. `per_year` is the number
    /// of payments a year around this payment.
    UnitError { level: Decimal, per_year: Option<i32> },
}

/// Quarantines the payments that contradict prices or other payments, and removes them from `payments`, which is sorted
/// by ex-date.
pub(crate) fn quarantine_outliers<'a>(
    payments: &mut Vec<Payment<'a>>,
    dividend_currency: &str,
    validation: &ValidationContext<'_>,
    statuses: &mut [ObservationStatus],
    quarantined: &mut Vec<QuarantinedRow>,
    flags: &mut Flags,
) -> Outliers<'a> {
    let outliers = outliers(payments, dividend_currency, validation, flags);
    let newest =
        payments.iter().rev().find(|payment| payment.class.is_regular()).map(|newest| newest.ex_date);
    let released = |payment: &Payment<'_>| validation.decided.releases(payment.observation);
    let mut found = Outliers::default();
    let mut position = 0;
    payments.retain(|payment| {
        let kind = outliers.get(&position);
        position += 1;
        if released(payment) {
            return true;
        }
        let unit_error = match kind {
            Some(OutlierKind::UnitError { level, per_year }) => {
                Some(outlier_fault(payment, *level, *per_year))
            }
            _ => None,
        };
        if let Some((reason, message)) = exceeds_price(payment, validation).or(unit_error) {
            if payment.class.is_regular() {
                found.unproven.push(*payment);
            }
            statuses[payment.index] = ObservationStatus::Quarantined(reason);
            quarantined.push(QuarantinedRow { index: payment.index, reason, message });
            return false;
        }
        if let Some(OutlierKind::Doubted(doubt)) = kind {
            found.doubted.push((payment.ex_date, *doubt));
        }
        true
    });
    flags.set_if(Flag::AmountHeld, found.unproven.last().is_some_and(|last| Some(last.ex_date) == newest));
    found
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

fn outlier_fault(payment: &Payment<'_>, level: Decimal, per_year: Option<i32>) -> RowFault {
    let usual = level.checked_div(Decimal::from(per_year.unwrap_or(1))).unwrap_or(level);
    let message = format!(
        "{} a share differs from the usual {} by a power of ten, and no other payment or price confirms it",
        payment.adjusted.normalize(),
        usual.round_sf(6).unwrap_or(usual).normalize(),
    );
    (QuarantineReason::AmountOutlier, message)
}

/// Outliers among the regular payments, by index in `payments`.
fn outliers(
    payments: &[Payment<'_>],
    dividend_currency: &str,
    validation: &ValidationContext<'_>,
    flags: &mut Flags,
) -> BTreeMap<usize, OutlierKind> {
    let mut by_currency: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, payment) in payments.iter().enumerate().filter(|(_, payment)| payment.class.is_regular()) {
        let is_known = payment.amount_in(dividend_currency).is_some();
        let own = payment.observation.record.currency.as_str();
        by_currency.entry(if is_known { dividend_currency } else { own }).or_default().push(position);
    }
    let mut outliers = BTreeMap::new();
    for (currency, positions) in by_currency {
        let days: Vec<&[usize]> =
            positions.chunk_by(|a, b| payments[*a].ex_date == payments[*b].ex_date).collect();
        let rows: Vec<ScheduleRow> = days.iter().map(|day| row_of_day(payments, day, currency)).collect();
        let frequencies = local_frequencies(&rows, &validation.rules.schedule);
        let rates = annual_rates(&rows, &frequencies);
        for Outlier { position: day, level, is_unit_error } in
            find_outliers(&rates, &validation.rules.outlier)
        {
            let declared = days[day].iter().map(|position| payments[*position].amount).sum();
            let is_priced =
                payments[days[day][0]].observation.record.currency == validation.neighbours.currency;
            let is_in_price = is_priced
                && (validation.neighbours.has_visible_fall(declared, rows[day].ex_date)
                    || validation.adjusted_closes_contain(declared, rows[day].ex_date));
            flags.set_if(Flag::SpecialByPrice, is_in_price);
            let close =
                if is_priced { validation.neighbours.series.close_before(rows[day].ex_date) } else { None };
            let kind = || match is_unit_error && !is_in_price {
                true => OutlierKind::UnitError { level, per_year: frequencies[day] },
                false => OutlierKind::Doubted(doubt(declared, close)),
            };
            outliers.extend(days[day].iter().map(|position| (*position, kind())));
        }
    }
    outliers
}

/// Kind of doubt about a large amount. `close` is the close before the ex-date, if known and in the same currency.
fn doubt(amount: Decimal, close: Option<Decimal>) -> AmountDoubt {
    let is_capital = close.is_some_and(|close| amount.saturating_mul(CAPITAL_DIVISOR) >= close);
    if is_capital { AmountDoubt::Capital } else { AmountDoubt::Unconfirmed }
}

fn row_of_day(payments: &[Payment<'_>], day: &[usize], currency: &str) -> ScheduleRow {
    let scheduled = day.iter().filter_map(|position| payments[*position].scheduled(currency));
    payments[day[0]].schedule_row(scheduled.sum(), None)
}

/// Annual rates: each amount times its number of payments a year. An unknown number is taken from the previous row.
fn annual_rates(rows: &[ScheduleRow], frequencies: &[Option<i32>]) -> Vec<ExDateRate> {
    // The first known number also applies to the rows before it. If none is known, payments are annual.
    let mut last = frequencies.iter().find_map(|per_year| *per_year).unwrap_or(1);
    let rate = |(row, per_year): (&ScheduleRow, &Option<i32>)| {
        last = per_year.unwrap_or(last);
        ExDateRate { ex_date: row.ex_date, rate: row.amount.saturating_mul(Decimal::from(last)) }
    };
    rows.iter().zip(frequencies).map(rate).collect()
}
