//! Dividend records: what was paid, what is declared, what was withdrawn, what is expected.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;

use super::id::{dividend_id, mark_dividend_id};
use super::next::declared;
use crate::event::{DividendType, Frequency};
use crate::measure::adjust::Ratio;
use crate::measure::arithmetic::{amount, exact_percent, factor};
use crate::measure::class::Class;
use crate::measure::factors::ExDay;
use crate::measure::measured::Measured;
use crate::measure::measured::upcoming::Projection;
use crate::measure::merge::Payment;
use crate::row::{AmountStatus, DividendRow, DividendStatus, Mark};

/// Every record by ex-date: live ones, cancelled ones, then the expected ones of the next 366 days.
pub(super) fn dividends(measured: &Measured<'_>) -> Vec<DividendRow> {
    let symbol = measured.basis.history.symbol.as_str();
    let mut rows: Vec<DividendRow> = records(measured).map(|record| record.row(symbol)).collect();
    rows.sort_by(|a, b| (a.ex_date, a.r#type, &a.id).cmp(&(b.ex_date, b.r#type, &b.id)));
    rows
}

/// What tells a security's records from others without their rows, by the year of the ex-date.
pub(crate) fn marks(measured: &Measured<'_>, hashes: &impl BuildHasher) -> BTreeMap<i32, u64> {
    let mut years = BTreeMap::new();
    for record in records(measured) {
        record.mark(years.entry(record.ex_date.year()).or_insert_with(|| hashes.build_hasher()));
    }
    years.into_iter().map(|(year, state)| (year, state.finish())).collect()
}

/// A record before anything is rounded or written out: all that its row says, but for the symbol.
struct Record<'m> {
    /// The payment that has its id; none of an expected one.
    named: Option<&'m Payment<'m>>,
    ex_date: NaiveDate,
    payment_date: Option<NaiveDate>,
    record_date: Option<NaiveDate>,
    declaration_date: Option<NaiveDate>,
    amount: Decimal,
    amount_status: AmountStatus,
    adjusted: Decimal,
    currency: &'m str,
    r#type: DividendType,
    frequency: Frequency,
    payments_per_year: Option<i32>,
    status: DividendStatus,
    split: Ratio,
    price_factor: Option<Decimal>,
    /// Payments in a year at this rate, where that can be set against the price.
    per_year: Option<i32>,
    /// The close before the ex-date, where there is a rate to set against it.
    close_before: Option<Decimal>,
    /// The adjusted amount before.
    previous: Option<Decimal>,
    source: &'m str,
    revision: i64,
    updated_at: DateTime<Utc>,
}

impl Record<'_> {
    /// The row of the record.
    fn row(&self, symbol: &str) -> DividendRow {
        let yearly = || self.amount.checked_mul(Decimal::from(self.per_year?));
        let yield_at_ex = || exact_percent(yearly()?, self.close_before?);
        let change = |previous| exact_percent(self.adjusted.checked_sub(previous)?, previous);
        DividendRow {
            id: self.named.map(dividend_id),
            symbol: symbol.to_owned(),
            ex_date: self.ex_date,
            payment_date: self.payment_date,
            record_date: self.record_date,
            declaration_date: self.declaration_date,
            amount: amount(self.amount),
            amount_status: self.amount_status,
            adjusted_amount: amount(self.adjusted),
            currency: self.currency.to_owned(),
            r#type: self.r#type,
            frequency: self.frequency,
            payments_per_year: self.payments_per_year,
            status: self.status,
            split_factor: factor(self.split.factor()),
            price_factor: self.price_factor.map(factor),
            yield_at_ex: yield_at_ex(),
            change_percent: self.previous.and_then(change),
            source: self.source.to_owned(),
            revision: self.revision,
            updated_at: self.updated_at,
        }
    }
}

impl Mark for Record<'_> {
    fn mark(&self, state: &mut impl Hasher) {
        // By name, so that no field is forgotten.
        let Self {
            named,
            ex_date,
            payment_date,
            record_date,
            declaration_date,
            amount,
            amount_status,
            adjusted,
            currency,
            r#type,
            frequency,
            payments_per_year,
            status,
            split: Ratio { from, to },
            price_factor,
            per_year,
            close_before,
            previous,
            source,
            revision,
            updated_at,
        } = self;
        if let Some(payment) = named {
            mark_dividend_id(payment, state);
        }
        ex_date.mark(state);
        [payment_date, record_date, declaration_date].iter().for_each(|day| day.mark(state));
        [amount, adjusted, from, to].iter().for_each(|decimal| decimal.mark(state));
        [price_factor, close_before, previous].iter().for_each(|decimal| decimal.mark(state));
        (amount_status, r#type, frequency, status).hash(state);
        [payments_per_year, per_year].iter().for_each(|count| count.mark(state));
        currency.mark(state);
        source.mark(state);
        revision.mark(state);
        updated_at.mark(state);
    }
}

/// Every record: live ones by ex-date, then cancelled ones, then the expected ones.
fn records<'m>(measured: &'m Measured<'_>) -> impl Iterator<Item = Record<'m>> {
    let merged = &measured.basis.merged.dividends;
    let mut previous: Option<&Payment<'_>> = None;
    let live = merged.payments.iter().map(move |payment| {
        let before = if payment.class.is_regular() { previous.replace(payment) } else { None };
        live(measured, payment, before)
    });
    let cancelled =
        merged.cancelled.iter().map(|payment| record(measured, payment, DividendStatus::Cancelled));
    let expected = measured.upcoming.projections.iter().map(|expected| projection(measured, expected));
    live.chain(cancelled).chain(expected)
}

/// A payment that counts, with the price before it and the regular one before it.
fn live<'m>(
    measured: &'m Measured<'_>,
    payment: &'m Payment<'_>,
    before: Option<&Payment<'_>>,
) -> Record<'m> {
    let record = record(measured, payment, status(payment, measured.basis.as_of));
    let currency = &payment.observation.record.currency;
    let ex_day = ex_day(measured, payment);
    let comparable = payment.class.is_regular() && *currency == measured.basis.currency;
    let per_year = record.payments_per_year.filter(|_| comparable);
    let close_before = || match ex_day {
        Some(day) => day.close_before,
        None => measured.basis.series().close_before(payment.ex_date),
    };
    let before = before.filter(|before| before.observation.record.currency == *currency);
    Record {
        // The ex-date's one factor, which all its distributions share.
        price_factor: ex_day.filter(|_| payment.class != Class::Stock).and_then(|day| day.dividend_factor),
        close_before: per_year.and_then(|_| close_before()),
        per_year,
        previous: before.map(|before| before.adjusted),
        ..record
    }
}

fn record<'m>(measured: &'m Measured<'_>, payment: &'m Payment<'_>, status: DividendStatus) -> Record<'m> {
    let observation = payment.observation;
    let dividend = &observation.record;
    let frequency = dividend.frequency.unwrap_or(match payment.class {
        Class::Regular => measured.basis.rhythm.frequency,
        _ => Frequency::Irregular,
    });
    Record {
        named: Some(payment),
        ex_date: payment.ex_date,
        payment_date: dividend.payment_date,
        record_date: dividend.record_date,
        declaration_date: dividend.declaration_date,
        amount: payment.amount,
        amount_status: AmountStatus::Declared,
        adjusted: payment.adjusted,
        currency: &dividend.currency,
        r#type: payment.served_type(),
        frequency,
        payments_per_year: frequency.payments_per_year(),
        status,
        split: measured.basis.merged.split_table.carry(payment.ex_date, measured.basis.as_of),
        price_factor: None,
        per_year: None,
        close_before: None,
        previous: None,
        source: &observation.source,
        revision: observation.revision,
        updated_at: observation.observed_at,
    }
}

/// Paid once the payment date, or failing it the ex-date, has come.
fn status(payment: &Payment<'_>, as_of: NaiveDate) -> DividendStatus {
    let due = payment.observation.record.payment_date.unwrap_or(payment.ex_date);
    if due <= as_of { DividendStatus::Paid } else { DividendStatus::Declared }
}

/// What happened on the payment's ex-date, once it has passed.
fn ex_day<'m>(measured: &'m Measured<'_>, payment: &Payment<'_>) -> Option<&'m ExDay> {
    let days = &measured.basis.ex_days;
    days.binary_search_by_key(&payment.ex_date, |day| day.ex_date).ok().map(|position| &days[position])
}

fn projection<'m>(measured: &'m Measured<'_>, expected: &Projection) -> Record<'m> {
    let split_table = &measured.basis.merged.split_table;
    let last = measured.basis.payments().iter().rev().find(|payment| payment.class.is_regular());
    Record {
        named: None,
        ex_date: expected.ex_date,
        payment_date: expected.payment_date,
        record_date: None,
        declaration_date: None,
        amount: declared(measured, expected),
        amount_status: AmountStatus::Estimated,
        adjusted: expected.amount,
        currency: &measured.basis.dividend_currency,
        r#type: DividendType::Regular,
        frequency: measured.basis.rhythm.frequency,
        payments_per_year: measured.basis.payments_per_year(),
        status: DividendStatus::Projected,
        split: split_table.carry(expected.ex_date, measured.basis.as_of),
        price_factor: None,
        per_year: None,
        close_before: None,
        previous: None,
        source: last.map_or("", |payment| &payment.observation.source),
        revision: 0,
        updated_at: last.map_or(measured.updated_at, |payment| payment.observation.observed_at),
    }
}
