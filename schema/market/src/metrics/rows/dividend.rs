//! Dividend rows of a security (paid, declared, cancelled and projected), and a fingerprint (hash) of the rows of each
//! year.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;

use super::id::{dividend_id, hash_dividend_id};
use super::next::declared;
use crate::event::{DividendType, Frequency};
use crate::metrics::arithmetic::{amount, exact_percent, factor, quotient};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::computed::ex_dates::ExDateEvents;
use crate::metrics::computed::upcoming::ProjectedPayment;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::Payment;
use crate::metrics::prices::adjustment::Ratio;
use crate::row::{AmountReading, AmountStatus, DividendRow, DividendStatus};

/// All dividend rows by ex-date. Cancelled and projected dividends are included.
pub(crate) fn dividends(computed: &ComputedMetrics<'_>) -> Vec<DividendRow> {
    let symbol = computed.inputs.history.symbol.as_str();
    let mut rows: Vec<DividendRow> = records(computed).map(|record| record.row(symbol)).collect();
    rows.sort_by(|a, b| (a.ex_date, a.r#type, &a.id).cmp(&(b.ex_date, b.r#type, &b.id)));
    rows
}

/// Fingerprint (hash) of the dividend rows of each year, by year of the ex-date. It is computed without building the
/// rows.
pub(crate) fn fingerprints(computed: &ComputedMetrics<'_>, hashes: &impl BuildHasher) -> BTreeMap<i32, u64> {
    let mut years = BTreeMap::new();
    for record in records(computed) {
        record.hash_into(years.entry(record.ex_date.year()).or_insert_with(|| hashes.build_hasher()));
    }
    years.into_iter().map(|(year, state)| (year, state.finish())).collect()
}

/// Fields of a dividend row before rounding. The symbol is added later.
struct DividendRecord<'m> {
    /// Payment from which the id is built; `None` for projections.
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
    reading: Option<AmountReading>,
    /// Special part of the amount, per share; `None` without a special part.
    special: Option<Decimal>,
    frequency: Frequency,
    payments_per_year: Option<i32>,
    status: DividendStatus,
    split: Ratio,
    price_factor: Option<Decimal>,
    /// Number of payments a year, for the yield at the ex-date. `None` if the payment is not regular, or if its rate to the
    /// currency of the prices is unknown.
    per_year: Option<i32>,
    /// Rate to the currency of the prices, for the yield at the ex-date.
    rate: Decimal,
    /// Close before the ex-date, for the yield at the ex-date. `None` if `per_year` is `None` or no close is known.
    close_before: Option<Decimal>,
    /// Regular part of the amount, on the as-of date's share basis.
    regular_adjusted: Decimal,
    /// Regular part of the previous regular payment, on the as-of date's share basis. The field `change_percent` is the
    /// change from this amount. `None` without a previous payment, or if the two payments are in different currencies.
    previous: Option<Decimal>,
    source: &'m str,
    revision: i64,
    updated_at: DateTime<Utc>,
}

impl DividendRecord<'_> {
    /// Dividend row with rounded and formatted values.
    fn row(&self, symbol: &str) -> DividendRow {
        let regular = self.amount - self.special.unwrap_or_default();
        let yearly = || regular.checked_mul(self.rate)?.checked_mul(Decimal::from(self.per_year?));
        let yield_at_ex = || exact_percent(yearly()?, self.close_before?);
        let change = |previous| exact_percent(self.regular_adjusted.checked_sub(previous)?, previous);
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
            reading: self.reading,
            special_amount: self.special.map(amount),
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

    /// Adds all fields that determine the row to a hash.
    fn hash_into(&self, state: &mut impl Hasher) {
        // All fields are named. If a new field is missing here, the compiler reports an error.
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
            reading,
            special,
            frequency,
            payments_per_year,
            status,
            split: Ratio { from, to },
            price_factor,
            per_year,
            rate,
            close_before,
            regular_adjusted: _,
            previous,
            source,
            revision,
            updated_at,
        } = self;
        if let Some(payment) = named {
            hash_dividend_id(payment, state);
            // The change from the previous payment is that of the amounts in the dividend currency.
            payment.declared.iter().for_each(|declared| hash_digits(declared, state));
        }
        (ex_date, payment_date, record_date, declaration_date).hash(state);
        [amount, adjusted, from, to, rate].iter().for_each(|decimal| hash_digits(decimal, state));
        for decimal in [price_factor, close_before, previous, special] {
            decimal.is_some().hash(state);
            decimal.iter().for_each(|decimal| hash_digits(decimal, state));
        }
        (amount_status, r#type, reading, frequency, status, payments_per_year, per_year).hash(state);
        (currency, source, revision, updated_at).hash(state);
    }
}

/// Adds a decimal with all its digits to a hash. Decimals with different trailing zeros, for example 1.1 and 1.10, have
/// equal hashes by the trait [`Hash`].
fn hash_digits(decimal: &Decimal, state: &mut impl Hasher) {
    state.write_u128(u128::from_le_bytes(decimal.serialize()));
}

/// All dividend records: used payments by ex-date, then cancelled payments, then projections.
fn records<'m>(computed: &'m ComputedMetrics<'_>) -> impl Iterator<Item = DividendRecord<'m>> {
    let merged = &computed.inputs.merged.dividends;
    let mut previous: Option<RegularPart<'m>> = None;
    let live = merged.payments.iter().map(move |payment| {
        let regular = RegularPart {
            currency: match payment.declared {
                Some(_) => &computed.inputs.dividend_currency,
                None => &payment.observation.record.currency,
            },
            adjusted: computed.inputs.regular_part(payment),
        };
        let before = if payment.class.is_regular() { previous.replace(regular) } else { None };
        live(computed, payment, regular, before)
    });
    let cancelled =
        merged.cancelled.iter().map(|payment| record(computed, payment, DividendStatus::Cancelled));
    let expected = computed.upcoming.projections.iter().map(|expected| projection(computed, expected));
    live.chain(cancelled).chain(expected)
}

/// Regular part of a payment.
#[derive(Clone, Copy)]
struct RegularPart<'m> {
    currency: &'m str,
    /// Amount on the as-of date's share basis.
    adjusted: Decimal,
}

/// Record of a used payment. `before` belongs to the previous regular payment.
fn live<'m>(
    computed: &'m ComputedMetrics<'_>,
    payment: &'m Payment<'_>,
    regular: RegularPart<'m>,
    before: Option<RegularPart<'m>>,
) -> DividendRecord<'m> {
    let record = record(computed, payment, status(payment, computed.inputs.as_of));
    let ex_day = ex_day(computed, payment);
    let rate = payment.in_price_currency(Decimal::ONE, &computed.inputs.currency);
    let rate = rate.filter(|_| payment.class.is_regular());
    let per_year = record.payments_per_year.filter(|_| rate.is_some());
    let close_before = || match ex_day {
        Some(day) => day.close_before,
        None => computed.inputs.series().close_before(payment.ex_date),
    };
    let before = before.filter(|before| before.currency == regular.currency);
    DividendRecord {
        reading: computed.inputs.reading(payment).map(|reading| match reading.kind {
            AmountReading::Regular if !payment.special_part.is_zero() => AmountReading::Combined,
            kind => kind,
        }),
        special: special_part(computed, payment),
        regular_adjusted: regular.adjusted,
        // All distributions of one ex-date share one price factor.
        price_factor: ex_day
            .filter(|_| payment.class != DividendClass::Stock)
            .and_then(|day| day.dividend_factor),
        close_before: per_year.and_then(|_| close_before()),
        per_year,
        rate: rate.unwrap_or(Decimal::ONE),
        previous: before.map(|before| before.adjusted),
        ..record
    }
}

fn record<'m>(
    computed: &'m ComputedMetrics<'_>,
    payment: &'m Payment<'_>,
    status: DividendStatus,
) -> DividendRecord<'m> {
    let observation = payment.observation;
    let dividend = &observation.record;
    let frequency = dividend.frequency.unwrap_or(match payment.class {
        DividendClass::Regular => computed.inputs.rhythm.frequency,
        _ => Frequency::Irregular,
    });
    DividendRecord {
        named: Some(payment),
        ex_date: payment.ex_date,
        payment_date: dividend.payment_date,
        record_date: dividend.record_date,
        declaration_date: dividend.declaration_date,
        amount: payment.amount,
        amount_status: AmountStatus::Declared,
        adjusted: payment.adjusted,
        currency: &dividend.currency,
        r#type: dividend.r#type,
        reading: None,
        special: None,
        frequency,
        payments_per_year: frequency.payments_per_year(),
        status,
        split: computed.inputs.merged.split_table.ratio_to_basis(payment.ex_date, computed.inputs.as_of),
        price_factor: None,
        per_year: None,
        rate: Decimal::ONE,
        close_before: None,
        regular_adjusted: Decimal::ZERO,
        previous: None,
        source: &observation.source,
        revision: observation.revision,
        updated_at: observation.observed_at,
    }
}

/// Special part per share of a payment in the schedule, on the share basis of the ex-date; `None` without a special part.
fn special_part(computed: &ComputedMetrics<'_>, payment: &Payment<'_>) -> Option<Decimal> {
    computed.inputs.reading(payment)?;
    let special = payment.adjusted - computed.inputs.own_regular_part(payment);
    if special.is_zero() {
        return None;
    }
    // `special` is on the as-of date's share basis. The factor `amount / adjusted` converts it to the share basis of
    // the ex-date.
    quotient(special.checked_mul(payment.amount)?, payment.adjusted)
}

/// Status of a payment: paid from its payment date on, otherwise declared. If the payment date is unknown, the ex-date
/// is used.
fn status(payment: &Payment<'_>, as_of: NaiveDate) -> DividendStatus {
    let due = payment.observation.record.payment_date.unwrap_or(payment.ex_date);
    if due <= as_of { DividendStatus::Paid } else { DividendStatus::Declared }
}

/// Distributions and splits of the payment's ex-date; `None` for an ex-date after the as-of date.
fn ex_day<'m>(computed: &'m ComputedMetrics<'_>, payment: &Payment<'_>) -> Option<&'m ExDateEvents> {
    let days = &computed.inputs.ex_days;
    days.binary_search_by_key(&payment.ex_date, |day| day.ex_date).ok().map(|position| &days[position])
}

fn projection<'m>(computed: &'m ComputedMetrics<'_>, expected: &ProjectedPayment) -> DividendRecord<'m> {
    let split_table = &computed.inputs.merged.split_table;
    let last = computed.inputs.payments().iter().rev().find(|payment| payment.class.is_regular());
    DividendRecord {
        named: None,
        ex_date: expected.ex_date,
        payment_date: expected.payment_date,
        record_date: None,
        declaration_date: None,
        amount: declared(computed, expected),
        amount_status: AmountStatus::Estimated,
        adjusted: expected.amount,
        currency: &computed.inputs.dividend_currency,
        r#type: DividendType::Regular,
        reading: None,
        special: None,
        frequency: computed.inputs.rhythm.frequency,
        payments_per_year: computed.inputs.payments_per_year(),
        status: DividendStatus::Projected,
        split: split_table.ratio_to_basis(expected.ex_date, computed.inputs.as_of),
        price_factor: None,
        per_year: None,
        rate: Decimal::ONE,
        close_before: None,
        regular_adjusted: Decimal::ZERO,
        previous: None,
        source: last.map_or("", |payment| &payment.observation.source),
        revision: 0,
        updated_at: last.map_or(computed.updated_at, |payment| payment.observation.observed_at),
    }
}
