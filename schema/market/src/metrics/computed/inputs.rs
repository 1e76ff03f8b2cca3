//! Common inputs of all metrics: merged events, latest price, regular dividends and payment frequency.
//!
//! A payment is converted at the rate of the session before its ex-date (R42), whose close is in the price factor.
//! Without an earlier session, it is converted at the rate of the day before its ex-date.

use chrono::NaiveDate;
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

use crate::event::{DividendType, ListingStatus, Security, SecurityType};
use crate::history::{History, SourcePolicy};
use crate::metrics::arithmetic::{quotient, remove_division_error};
use crate::metrics::calendar::months_before;
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
use crate::metrics::exchange_rates::{ExchangeRates, Rate};
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
    pub exchange_rates: &'a ExchangeRates,
    /// Currency in which market capitalisations of securities are added and compared.
    pub reporting_currency: &'a str,
    /// First regular payment in the dividend currency after payments in another one; `None` if the currency never changed
    /// (R43). Growth and streak begin there.
    pub currency_since: Option<NaiveDate>,
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
        let currency_since = currency_since(&merged.dividends.payments, &dividend_currency);
        flags.set_if(Flag::CurrencyChanged, currency_since.is_some());
        let series = PriceSeries::new(&merged.prices.bars, &merged.split_table);
        set_rates(&mut merged.dividends.payments, &series, context, &currency);
        let schedule = schedule(&merged, &dividend_currency, &context.rules.schedule);
        apply_readings(&mut merged.dividends.payments, &schedule, &dividend_currency, flags);
        let payments = &merged.dividends.payments;
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
            exchange_rates: context.rates,
            reporting_currency: context.reporting_currency,
            currency_since,
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

    /// Regular part of a payment in the currency of the prices. `None` if no rate is known.
    pub(crate) fn priced_part(&self, payment: &Payment<'_>) -> Option<Decimal> {
        payment.in_price_currency(self.own_regular_part(payment), &self.currency)
    }

    /// Rate from one currency to another on the day of the latest close (R43); `None` without a close or rate.
    pub(crate) fn rate_of_price(&self, from: &str, to: &str) -> Option<Rate<'a>> {
        self.exchange_rates.rate(from, to, self.price?.date, self.as_of)
    }

    /// A sum of money in whole units of the reporting currency, at the rate of the day of the latest close (R43).
    pub(crate) fn in_reporting_currency(&self, sum: i64, currency: &str) -> Option<i64> {
        if currency == self.reporting_currency {
            return Some(sum);
        }
        let converted = self.rate_of_price(currency, self.reporting_currency)?.convert(sum.into())?;
        converted.round_dp_with_strategy(0, RoundingStrategy::MidpointAwayFromZero).to_i64()
    }

    /// Regular dividends of the last 12 months in `currency`, each payment at its own rate (R43). `None` if a payment has
    /// no rate.
    pub(crate) fn trailing_dividends_in(&self, currency: &str) -> Option<Decimal> {
        let paid = self.trailing_payments().map(|payment| {
            let (own, part) = (payment.observation.record.currency.as_str(), self.own_regular_part(payment));
            if own == currency {
                return Some(part);
            }
            let day = rate_day(payment, &self.series());
            self.exchange_rates.rate(own, currency, day, self.as_of)?.convert(part)
        });
        paid.sum::<Option<Decimal>>().map(remove_division_error)
    }

    /// Regular payments with an ex-date in the 12 months up to the as-of date.
    pub(crate) fn trailing_payments(&self) -> impl Iterator<Item = &Payment<'a>> {
        let window = months_before(self.as_of, 12);
        let recent = self.payments().iter().rev().take_while(move |payment| payment.ex_date > window);
        recent.filter(|payment| payment.ex_date <= self.as_of && payment.class.is_regular())
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

/// Day of the rate of a payment: the session before its ex-date, whose close is in the price factor (R42).
fn rate_day(payment: &Payment<'_>, series: &PriceSeries<'_>) -> NaiveDate {
    let session = series.before(payment.ex_date).map(|index| series.date(index));
    session.unwrap_or_else(|| payment.ex_date.pred_opt().unwrap_or(payment.ex_date))
}

/// Sets the rates of the payments in another currency than the prices.
pub(crate) fn set_rates<'a>(
    payments: &mut [Payment<'a>],
    series: &PriceSeries<'_>,
    context: &DerivationContext<'a>,
    price_currency: &str,
) {
    for payment in payments.iter_mut().filter(|payment| payment.observation.record.currency != price_currency)
    {
        let currency = payment.observation.record.currency.as_str();
        payment.rate = context.rates.rate(currency, price_currency, rate_day(payment, series), context.as_of);
    }
}

/// Ex-date of the first regular payment in the dividend currency after at least two consecutive regular payments in one
/// other currency. A single row in another currency changes nothing.
fn currency_since(payments: &[Payment<'_>], dividend_currency: &str) -> Option<NaiveDate> {
    let regular: Vec<&Payment<'_>> = payments.iter().filter(|payment| payment.class.is_regular()).collect();
    let is_other = |payment: &Payment<'_>| payment.amount_in(dividend_currency).is_none();
    let is_change = |pair: &[&Payment<'_>]| {
        let currency = |payment: &Payment<'_>| payment.observation.record.currency.clone();
        is_other(pair[0]) && is_other(pair[1]) && currency(pair[0]) == currency(pair[1])
    };
    let last = regular.windows(2).rposition(is_change)? + 1;
    regular[last..].iter().find(|payment| !is_other(payment)).map(|payment| payment.ex_date)
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
            None => rows.push(payment.schedule_row(amount, merged.dividends.doubt(payment.ex_date))),
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
