//! Dividend records: what was paid, what is declared, what was withdrawn, what is expected.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::id::dividend_id;
use super::next::declared;
use crate::event::{DividendType, Frequency};
use crate::measure::arithmetic::{amount, exact_percent, factor};
use crate::measure::class::Class;
use crate::measure::factors::ExDay;
use crate::measure::measured::Measured;
use crate::measure::measured::upcoming::Projection;
use crate::measure::merge::Payment;
use crate::row::{AmountStatus, DividendRow, DividendStatus};
use crate::value::Exact;

/// Every record by ex-date: live ones, cancelled ones, then the expected ones of the next 366 days.
pub(super) fn dividends(measured: &Measured<'_>) -> Vec<DividendRow> {
    let merged = &measured.basis.merged.dividends;
    let mut rows = Vec::with_capacity(
        merged.payments.len() + merged.cancelled.len() + measured.upcoming.projections.len(),
    );
    let mut previous: Option<&Payment<'_>> = None;
    for payment in &merged.payments {
        let mut row = record(measured, payment, status(payment, measured.basis.as_of));
        row.price_factor = price_factor(measured, payment);
        row.yield_at_ex = yield_at_ex(measured, payment, row.payments_per_year);
        if payment.class.is_regular() {
            row.change_percent = previous.and_then(|previous| change(payment, previous));
            previous = Some(payment);
        }
        rows.push(row);
    }
    rows.extend(merged.cancelled.iter().map(|payment| record(measured, payment, DividendStatus::Cancelled)));
    rows.extend(measured.upcoming.projections.iter().map(|expected| projection(measured, expected)));
    rows.sort_by(|a, b| (a.ex_date, a.r#type, &a.id).cmp(&(b.ex_date, b.r#type, &b.id)));
    rows
}

fn record(measured: &Measured<'_>, payment: &Payment<'_>, status: DividendStatus) -> DividendRow {
    let observation = payment.observation;
    let dividend = &observation.record;
    let frequency = dividend.frequency.unwrap_or(match payment.class {
        Class::Regular => measured.basis.rhythm.frequency,
        _ => Frequency::Irregular,
    });
    DividendRow {
        id: Some(dividend_id(payment)),
        symbol: measured.basis.history.symbol.to_string(),
        ex_date: payment.ex_date,
        payment_date: dividend.payment_date,
        record_date: dividend.record_date,
        declaration_date: dividend.declaration_date,
        amount: amount(payment.amount),
        amount_status: AmountStatus::Declared,
        adjusted_amount: amount(payment.adjusted),
        currency: dividend.currency.to_string(),
        r#type: payment.served_type(),
        frequency,
        payments_per_year: frequency.payments_per_year(),
        status,
        split_factor: factor(
            measured.basis.merged.split_table.carry(payment.ex_date, measured.basis.as_of).factor(),
        ),
        price_factor: None,
        yield_at_ex: None,
        change_percent: None,
        source: observation.source.to_string(),
        revision: observation.revision,
        updated_at: observation.observed_at,
    }
}

/// Paid once the payment date, or failing it the ex-date, has come.
fn status(payment: &Payment<'_>, as_of: NaiveDate) -> DividendStatus {
    let due = payment.observation.record.payment_date.unwrap_or(payment.ex_date);
    if due <= as_of { DividendStatus::Paid } else { DividendStatus::Declared }
}

/// The ex-date's one factor, which all its distributions share.
fn price_factor(measured: &Measured<'_>, payment: &Payment<'_>) -> Option<Exact> {
    if payment.class == Class::Stock {
        return None;
    }
    ex_day(measured, payment)?.dividend_factor.map(factor)
}

fn yield_at_ex(
    measured: &Measured<'_>,
    payment: &Payment<'_>,
    payments_per_year: Option<i32>,
) -> Option<Exact> {
    let comparable =
        payment.class.is_regular() && payment.observation.record.currency == measured.basis.currency;
    let yearly = payment.amount.checked_mul(Decimal::from(payments_per_year.filter(|_| comparable)?))?;
    let close = match ex_day(measured, payment) {
        Some(day) => day.close_before,
        None => measured.basis.series().close_before(payment.ex_date),
    };
    exact_percent(yearly, close?)
}

/// What happened on the payment's ex-date, once it has passed.
fn ex_day<'m>(measured: &'m Measured<'_>, payment: &Payment<'_>) -> Option<&'m ExDay> {
    let days = &measured.basis.ex_days;
    days.binary_search_by_key(&payment.ex_date, |day| day.ex_date).ok().map(|position| &days[position])
}

fn change(payment: &Payment<'_>, previous: &Payment<'_>) -> Option<Exact> {
    let same = payment.observation.record.currency == previous.observation.record.currency;
    same.then(|| exact_percent(payment.adjusted.checked_sub(previous.adjusted)?, previous.adjusted)).flatten()
}

fn projection(measured: &Measured<'_>, expected: &Projection) -> DividendRow {
    let split_table = &measured.basis.merged.split_table;
    let last = measured.basis.payments().iter().rev().find(|payment| payment.class.is_regular());
    DividendRow {
        id: None,
        symbol: measured.basis.history.symbol.to_string(),
        ex_date: expected.ex_date,
        payment_date: expected.payment_date,
        record_date: None,
        declaration_date: None,
        amount: amount(declared(measured, expected)),
        amount_status: AmountStatus::Estimated,
        adjusted_amount: amount(expected.amount),
        currency: measured.basis.dividend_currency.clone(),
        r#type: DividendType::Regular,
        frequency: measured.basis.rhythm.frequency,
        payments_per_year: measured.basis.payments_per_year(),
        status: DividendStatus::Projected,
        split_factor: factor(split_table.carry(expected.ex_date, measured.basis.as_of).factor()),
        price_factor: None,
        yield_at_ex: None,
        change_percent: None,
        source: last.map(|payment| payment.observation.source.to_string()).unwrap_or_default(),
        revision: 0,
        updated_at: last.map_or(measured.updated_at, |payment| payment.observation.observed_at),
    }
}
