//! Distributions of a security: amounts and dates.

use chrono::{Datelike, Days};
use market::event::{DividendType, Frequency};

use super::csv_row::CsvRow;
use super::regular_ex_dates::{RegularExDate, declaration_position, ex_session, ymd};
use super::security_plan::SecurityPlan;
use super::security_shape::{ExtraDistribution, PaymentSchedule};
use super::share_changes::{STOCK_DIVIDEND, ShareChange, ShareChanges, scaled};
use super::synthetic_market::SyntheticMarket;

/// Synthetic dividend, stock dividend or other distribution. A cash `amount` is in millionths of a dollar per share,
/// not adjusted for later splits. The `amount` of a stock dividend is in millionths of a new share per old share.
#[derive(Debug, Clone, Copy)]
pub(super) struct SyntheticDistribution {
    pub(super) position: usize,
    pub(super) amount: i64,
    pub(super) kind: DividendType,
    pub(super) frequency: Option<Frequency>,
    pub(super) currency: &'static str,
    /// Number of sessions from the true ex-date to the written ex-date.
    pub(super) ex_date_shift: usize,
}

impl SyntheticDistribution {
    /// True if the share price falls by the amount on the ex-date.
    pub(super) fn is_cash(&self) -> bool {
        self.kind != DividendType::Stock
    }
}

/// All distributions, by ex-date.
pub(super) fn plan_distributions(
    plan: &SecurityPlan<'_>,
    ex_dates: &[RegularExDate],
    changes: &ShareChanges,
) -> Vec<SyntheticDistribution> {
    let mut random = plan.random.clone();
    let variable = matches!(plan.shape.schedule, PaymentSchedule::Variable(_));
    let mut payments: Vec<SyntheticDistribution> = Vec::with_capacity(ex_dates.len() + 8);
    for ex_date in ex_dates {
        let part = scaled(plan.year(ex_date.rate_year).rate, ex_date.part.0, ex_date.part.1);
        let swing = if variable { random.between(50, 150) } else { 100 };
        // Companies declare hundredths of a cent, which are 100 millionths of a dollar. The declared amount is
        // therefore a multiple of 100. After the conversion for splits, the amount may be any number.
        let declared = (part * swing / 100 + 50) / 100 * 100;
        let amount = changes.per_share_at(declared.max(100), ex_date.position).max(1);
        payments.push(SyntheticDistribution {
            position: ex_date.position,
            amount,
            kind: plan.shape.regular_type,
            frequency: plan.shape.frequency(),
            currency: plan.shape.pays_in,
            ex_date_shift: 0,
        });
    }
    payments.extend(extra_distributions(plan, changes));
    payments.sort_by_key(|payment| payment.position);
    payments
}

fn extra_distributions(plan: &SecurityPlan<'_>, changes: &ShareChanges) -> Vec<SyntheticDistribution> {
    let sessions = &plan.market.sessions;
    let at = |percent: usize| plan.start + (plan.end - plan.start) * percent / 100;
    let currency = plan.shape.pays_in;
    // `share` is the amount as a part of the security's value, in hundredths of a percent.
    let distribution = |position: usize, kind: DividendType, share: i64| {
        let value = plan.year(sessions.day(position).year()).value;
        let amount = changes.per_share_at(value / 10_000 * share, position) / 10_000 * 10_000;
        let amount = amount.max(10_000);
        SyntheticDistribution { position, amount, kind, frequency: None, currency, ex_date_shift: 0 }
    };
    let yearly = |months: &[u32]| -> Vec<usize> {
        let years = sessions.day(plan.start).year()..=sessions.last_day().year();
        let days = years.flat_map(|year| months.iter().map(move |month| ymd(year, *month, 12)));
        days.map(|day| ex_session(plan.market, day))
            .filter(|position| (plan.start + 3..=plan.end).contains(position))
            .collect()
    };
    let (positions, shares): (Vec<usize>, &[(DividendType, i64)]) = match plan.shape.extra {
        ExtraDistribution::Nothing => return Vec::new(),
        // A special dividend is paid each year, on the first possible ex-date from 12 December on.
        ExtraDistribution::Special => (yearly(&[12]), &[(DividendType::Special, 150)]),
        ExtraDistribution::Supplemental => (yearly(&[3, 6, 9, 12]), &[(DividendType::Supplemental, 30)]),
        ExtraDistribution::CapitalGains => {
            (yearly(&[12]), &[(DividendType::CapitalGainLong, 150), (DividendType::CapitalGainShort, 40)])
        }
        ExtraDistribution::SpinOff => (vec![at(55)], &[(DividendType::SpinOff, SPIN_OFF)]),
        ExtraDistribution::ReturnOfCapital => (vec![at(60)], &[(DividendType::ReturnOfCapital, 300)]),
        ExtraDistribution::Liquidation => (vec![plan.end], &[(DividendType::Liquidation, 4_000)]),
        ExtraDistribution::StockDividend => {
            let (kind, amount) = STOCK_DIVIDEND;
            let stock = changes.0.iter().filter(|change| change.stock_dividend);
            let distribution = |change: &ShareChange| SyntheticDistribution {
                position: change.position,
                amount,
                kind,
                frequency: None,
                currency,
                ex_date_shift: 0,
            };
            return stock.map(distribution).collect();
        }
    };
    let of_day = |at| shares.iter().map(move |(kind, share)| distribution(at, *kind, *share));
    positions.into_iter().flat_map(of_day).collect()
}

/// Part of the parent's value that a spin-off removes, in hundredths of a percent.
pub(super) const SPIN_OFF: i64 = 1_500;

/// Index of the record date in the market's sessions. `ex` is the index of the ex-date. The settlement cycle of that
/// time determines the number of sessions between the two dates (R1).
fn record_position(market: &SyntheticMarket, ex: usize) -> usize {
    let sessions = &market.sessions;
    if sessions.day(ex + 2) <= ymd(2017, 9, 6) {
        ex + 2
    } else if sessions.day(ex + 1) <= ymd(2024, 5, 28) {
        ex + 1
    } else {
        ex
    }
}

/// Appends the dividend rows.
pub(super) fn write_dividends(
    plan: &SecurityPlan<'_>,
    payments: &[SyntheticDistribution],
    out: &mut Vec<u8>,
) {
    let sessions = &plan.market.sessions;
    for payment in payments {
        let record = record_position(plan.market, payment.position);
        let pay = match payment.kind {
            // The ex-date of a large distribution follows its payment date (R2).
            DividendType::Liquidation => payment.position - 1,
            _ => {
                let pay = sessions.on_or_after(sessions.day(record) + Days::new(12 + plan.index % 14));
                // A payment is in the year of its ex-date, so that all payments of a payer count in the same year.
                let year_end = sessions.on_or_before(ymd(sessions.day(payment.position).year(), 12, 31));
                pay.min(year_end).max(record)
            }
        };
        let ahead = payment.position > sessions.last;
        let announced = plan.shape.frequency() != Some(Frequency::Irregular);
        CsvRow::new(out)
            .text(plan.symbol_at(payment.position))
            .date(sessions.day(payment.position + payment.ex_date_shift))
            .micros(in_currency(payment))
            .text(payment.currency)
            .text(payment.kind.as_str())
            .text(payment.frequency.map_or("", Frequency::as_str))
            .date((announced || ahead).then(|| sessions.day(declaration_position(plan, payment.position))))
            // The settlement times of other markets are not generated, so their record dates are unknown.
            .date(plan.shape.listing.is_none().then(|| sessions.day(record)))
            .date(announced.then(|| sessions.day(pay)))
            .end();
    }
}

/// Amount in the payment currency. The rate is fixed, near the level of the exchange rates, because issuers do not change
/// their dividends with the exchange rate. GBX amounts are in pence.
fn in_currency(payment: &SyntheticDistribution) -> i64 {
    match payment.currency {
        "EUR" => payment.amount / 100 * 92,
        "GBX" => payment.amount * 80,
        _ => payment.amount,
    }
}
