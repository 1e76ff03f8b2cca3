//! Common inputs of all metrics: merged events, latest price, regular dividends and payment frequency.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{DividendType, ListingStatus, Security, SecurityType};
use crate::history::{History, SourcePolicy};
use crate::metrics::arithmetic::quotient;
use crate::metrics::computed::ex_dates::{ExDateEvents, ex_days};
use crate::metrics::computed::price_jumps::flag_jumps;
use crate::metrics::context::DerivationContext;
use crate::metrics::currency::price_currency;
use crate::metrics::dividends::completeness::DividendCompleteness;
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::frequency::{FrequencyEstimate, TaggedDate, estimate_frequency};
use crate::metrics::dividends::schedule::{Reading, Schedule, ScheduleRow};
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::dividends::yields::RegularDividend;
use crate::metrics::merge::{AsOfView, Merged, Payment, merge};
use crate::metrics::prices::series::PriceSeries;
use crate::metrics::rules::{Rules, ScheduleRules};
use crate::row::{AmountReading, Flag, Flags};

/// Latest close of a security.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    /// Index of the bar in the merged bars.
    pub index: usize,
    pub date: NaiveDate,
    /// Close, adjusted for the splits after its session.
    pub close: Decimal,
}

#[derive(Debug)]
pub(crate) struct MetricInputs<'a> {
    pub history: &'a History,
    pub as_of: NaiveDate,
    pub policy: &'a SourcePolicy,
    pub rules: &'a Rules,
    pub known: AsOfView,
    /// Market of the security, for its business days.
    pub market: Settlement,
    pub merged: Merged<'a>,
    /// ISO 4217 currency of the prices.
    pub currency: String,
    /// ISO 4217 currency of most regular dividends of the last two years, or of the prices if no regular dividend is
    /// known (R39).
    pub dividend_currency: String,
    pub security_type: SecurityType,
    pub is_listed: bool,
    pub price: Option<Price>,
    pub ex_days: Vec<ExDateEvents>,
    /// Payment schedule of the regular dividends in the dividend currency. Declared future dividends are included.
    pub schedule: Schedule,
    /// Regular part of each dividend in `schedule`, sorted by ex-date. Dividends that the schedule classifies as
    /// special are left out.
    pub rates: Vec<RegularDividend>,
    /// Ex-dates of regular payments, in order. Payments with a quarantined amount are included.
    pub ex_dates: Vec<NaiveDate>,
    pub rhythm: FrequencyEstimate,
    pub completeness: DividendCompleteness<'a>,
}

impl<'a> MetricInputs<'a> {
    /// Merges the observations of all sources of a security, and sets flags for unusual facts.
    pub(crate) fn new(history: &'a History, context: &DerivationContext<'a>, flags: &mut Flags) -> Self {
        let as_of = context.as_of;
        let mut merged = merge(history, context);
        flags.add(std::mem::take(&mut merged.flags));
        let security = history.security.as_ref().map(|security| &security.record);
        let currency = price_currency(history).to_owned();
        let dividend_currency = merged.dividends.currency.to_owned();
        let schedule = schedule(&merged, &dividend_currency, &context.rules.schedule);
        apply_readings(&mut merged.dividends.payments, &schedule, &dividend_currency, flags);
        let payments = &merged.dividends.payments;
        let series = PriceSeries::new(&merged.prices.bars, &merged.split_table);
        let ex_days = ex_days(payments, &series, as_of, &currency, flags);
        flag_jumps(&series, &ex_days, &merged.prices.large_moves, flags);
        let tagged_dates = tagged_dates(payments, &merged.dividends.unproven);
        let rhythm = estimate_frequency(&tagged_dates);
        let mut ex_dates: Vec<NaiveDate> = tagged_dates.iter().map(|date| date.ex_date).collect();
        ex_dates.dedup();
        let is_unknown = |payment: &Payment<'_>| payment.observation.record.r#type == DividendType::Unknown;
        flags.set_if(Flag::UnknownType, payments.iter().any(is_unknown));
        flags.set_if(Flag::Provisional, history.security.is_none());
        flags.set_if(Flag::FrequencyConflict, rhythm.conflict);
        let price = series.at_or_before(as_of).map(|index| {
            let close = series.close_on_basis(index, as_of);
            Price { index, date: series.date(index), close }
        });
        let completeness = DividendCompleteness::assess(history, &merged, as_of);
        flags.set_if(Flag::DividendsMissing, !completeness.missing.is_empty());
        Self {
            history,
            as_of,
            policy: context.policy,
            rules: context.rules,
            known: AsOfView::new(context),
            market: Settlement::of_history(history),
            security_type: security.map_or(SecurityType::Stock, |security| security.r#type),
            is_listed: security.is_none_or(|security| is_listed(security, as_of)),
            price,
            ex_days,
            rates: schedule.regular_amounts().collect(),
            schedule,
            ex_dates,
            rhythm,
            completeness,
            currency,
            dividend_currency,
            merged,
        }
    }

    /// Merged bars with the splits known on the as-of date.
    pub(crate) fn series(&self) -> PriceSeries<'_> {
        PriceSeries::new(&self.merged.prices.bars, &self.merged.split_table)
    }

    /// Payments used in the figures, sorted by ex-date.
    pub(crate) fn payments(&self) -> &[Payment<'a>] {
        &self.merged.dividends.payments
    }

    /// Interpretation of a payment by the payment schedule, for example as partly special. `None` if the payment is not
    /// declared as regular, or is not in the dividend currency.
    pub(crate) fn reading(&self, payment: &Payment<'_>) -> Option<&Reading> {
        payment.reading.map(|index| &self.schedule.readings[index])
    }

    /// Regular part of a payment, adjusted for splits up to the as-of date. It is in the dividend currency, or in
    /// the currency of the payment if the payment is not known in the dividend currency.
    pub(crate) fn regular_part(&self, payment: &Payment<'_>) -> Decimal {
        match payment.scheduled(&self.dividend_currency) {
            Some(amount) => self.reading(payment).map_or(amount, |reading| reading.regular_part(amount)),
            None => payment.adjusted - payment.special_part,
        }
    }

    /// Regular part of a payment as in [`Self::regular_part`], but always in the currency of the payment.
    pub(crate) fn own_regular_part(&self, payment: &Payment<'_>) -> Decimal {
        let part = self.regular_part(payment);
        match payment.declared {
            Some(declared) => quotient(part.saturating_mul(payment.adjusted), declared).unwrap_or(part),
            None => part,
        }
    }

    /// Reference data; `None` for a provisional security.
    pub(crate) fn security(&self) -> Option<&'a Security> {
        self.history.security.as_ref().map(|security| &security.record)
    }

    /// Name of the company or fund. A provisional security has no known name, so its symbol is returned.
    pub(crate) fn name(&self) -> String {
        self.security().map_or_else(|| self.history.symbol.to_string(), |security| security.name.clone())
    }

    /// Latest close, adjusted for the splits after its session; `None` without a price.
    pub(crate) fn close(&self) -> Option<Decimal> {
        self.price.map(|price| price.close)
    }

    /// Payments a year; `None` if unknown.
    pub(crate) fn payments_per_year(&self) -> Option<i32> {
        self.rhythm.payments_per_year()
    }

    /// True for funds. A fund has no forward dividend and no payout ratio.
    pub(crate) fn is_fund(&self) -> bool {
        self.security_type == SecurityType::Etf
    }

    /// True if the payout rules for real estate apply to the security (R17).
    pub(crate) fn is_real_estate(&self) -> bool {
        let sector = self.security().and_then(|security| security.sector.as_deref());
        self.security_type == SecurityType::Reit
            || sector.is_some_and(|sector| sector.eq_ignore_ascii_case("Real Estate"))
    }
}

/// True if the security trades on `as_of`. `delisted_on` is its last trading day.
fn is_listed(security: &Security, as_of: NaiveDate) -> bool {
    security.status == ListingStatus::Active || security.delisted_on.is_some_and(|last| as_of <= last)
}

/// Regular payments whose amount in the currency `currency` is known.
fn regular<'p, 'a>(payments: &'p [Payment<'a>], currency: &'p str) -> impl Iterator<Item = &'p Payment<'a>> {
    payments.iter().filter(move |payment| is_regular_in(payment, currency))
}

fn is_regular_in(payment: &Payment<'_>, currency: &str) -> bool {
    payment.class.is_regular() && payment.amount_in(currency).is_some()
}

/// Payment schedule of the regular payments in the currency `currency`.
fn schedule(merged: &Merged<'_>, currency: &str, rules: &ScheduleRules) -> Schedule {
    let mut rows: Vec<ScheduleRow> = Vec::with_capacity(merged.dividends.payments.len());
    for payment in regular(&merged.dividends.payments, currency) {
        let amount = payment.scheduled(currency).unwrap_or_default();
        match rows.last_mut().filter(|row| row.ex_date == payment.ex_date) {
            Some(row) => row.amount += amount,
            None => rows.push(ScheduleRow {
                ex_date: payment.ex_date,
                amount,
                tag: payment.observation.record.frequency,
                doubt: merged.dividends.doubt(payment.ex_date),
                payment_date: payment.observation.record.payment_date,
            }),
        }
    }
    Schedule::read(&rows, rules)
}

/// Links each payment in the schedule to its reading. Changes the class of a payment to special if the schedule
/// classifies it as special. Sets flags for special parts, and for dips (amounts below both neighbouring amounts).
fn apply_readings(payments: &mut [Payment<'_>], schedule: &Schedule, currency: &str, flags: &mut Flags) {
    let has = |kind: AmountReading| schedule.readings.iter().any(|reading| reading.kind == kind);
    flags.set_if(Flag::AmountDip, has(AmountReading::Dip));
    flags.set_if(Flag::InferredSpecial, has(AmountReading::Special) || has(AmountReading::Combined));
    // Payments and readings are sorted by ex-date, and every ex-date of these payments has a reading.
    let mut index = 0;
    for payment in payments.iter_mut().filter(|payment| is_regular_in(payment, currency)) {
        index += usize::from(schedule.readings[index].ex_date < payment.ex_date);
        debug_assert_eq!(schedule.readings[index].ex_date, payment.ex_date, "the reading of the payment");
        payment.reading = Some(index);
        if schedule.readings[index].kind == AmountReading::Special {
            payment.class = DividendClass::Special;
        }
    }
}

/// Ex-dates of the regular payments, in any currency.
fn tagged_dates(payments: &[Payment<'_>], unproven: &[Payment<'_>]) -> Vec<TaggedDate> {
    let regular = payments.iter().chain(unproven).filter(|payment| payment.class.is_regular());
    let tagged = regular
        .map(|payment| TaggedDate { ex_date: payment.ex_date, tag: payment.observation.record.frequency });
    let mut dates: Vec<TaggedDate> = tagged.collect();
    dates.sort_by_key(|date| date.ex_date);
    dates
}
