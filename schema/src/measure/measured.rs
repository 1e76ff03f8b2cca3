//! Every figure of one security, unrounded: what rows are made of and explanations are told from.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;

use super::arithmetic::change_percent;
use super::changes::{RateChanges, rate_changes};
use super::chowder::{Chowder, chowder};
use super::factors::{ExDay, ex_days};
use super::frequency::{Rhythm, TaggedDate, rhythm};
use super::growth::AnnualTotals;
use super::lists::{ListFacts, is_aristocrat};
use super::merge::{Merged, Payment, currency, merge};
use super::next::projected;
use super::payout::{PayoutBasis, PayoutFacts, PayoutGap, fcf_payout, free_cash_flow, payout};
use super::quality::flag_contradictions;
use super::risk::{MonthEnds, beta, last_month, month_ends, volatility};
use super::safety::{SafetyFacts, is_suspect, safety, yield_trap_risk};
use super::series::Series;
use super::status::{StatusFacts, status};
use super::streak::{Streak, StreakSeed, is_at_risk, payment_years, streak};
use super::total_return::{start_bar, total_return};
use super::valuation::{market_cap, per_share, price_to, shares};
use super::yields::{
    Forward, HeadlineFacts, Rate, YieldRange, forward, headline, is_unusual_count, months_before, sum, trailing, yield_range,
};
use super::{Market, arithmetic::percent_of};
use crate::event::{DividendType, ListingStatus, Security, SecurityType};
use crate::history::History;
use crate::row::{DividendState, ForwardBasis, Safety, YieldBasis};

/// The latest close.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    /// Position of its bar.
    pub index: usize,
    pub date: NaiveDate,
    /// Carried through the splits since.
    pub close: Decimal,
}

/// Company figures on the as-of date's share basis.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Company {
    pub shares_outstanding: Option<Decimal>,
    pub float_shares: Option<Decimal>,
    pub market_cap: Option<Decimal>,
    pub eps_ttm: Option<Decimal>,
    pub ffo_per_share: Option<Decimal>,
    pub book_value_per_share: Option<Decimal>,
    pub free_cash_flow: Option<Decimal>,
    pub pe_ratio: Option<Decimal>,
    /// Whether per-share money is in another currency than the price.
    pub foreign: bool,
}

/// Every figure of one security.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    pub history: &'a History,
    pub as_of: NaiveDate,
    pub merged: Merged<'a>,
    /// Currency of prices.
    pub currency: String,
    /// Currency of dividends: the newest regular one's, without any the prices'.
    pub dividend_currency: String,
    pub security_type: SecurityType,
    pub is_listed: bool,
    pub price: Option<Price>,
    pub ex_days: Vec<ExDay>,
    /// Regular dividends of the dividend currency by ex-date, declared future ones included.
    pub rates: Vec<Rate>,
    pub rhythm: Rhythm,
    pub status: DividendState,
    pub mismatch: bool,
    pub dps_ttm: Option<Decimal>,
    pub dps_ttm_total: Option<Decimal>,
    pub ttm_payment_count: i32,
    pub forward: Forward,
    pub yield_ttm: Option<Decimal>,
    pub yield_ttm_total: Option<Decimal>,
    pub yield_forward: Option<Decimal>,
    pub dividend_yield: Option<Decimal>,
    pub yield_basis: Option<YieldBasis>,
    pub yield_range: Option<YieldRange>,
    pub totals: AnnualTotals,
    /// Growth over 1, 3, 5 and 10 years.
    pub growth: [Option<Decimal>; 4],
    pub streak: Streak,
    pub at_risk: bool,
    pub payment_years: i32,
    pub changes: RateChanges,
    pub is_aristocrat: bool,
    pub company: Company,
    pub payout: Result<Decimal, PayoutGap>,
    pub payout_basis: PayoutBasis,
    pub fcf_payout: Option<Decimal>,
    pub chowder: Option<Chowder>,
    pub safety: Option<Safety>,
    pub trap: Option<bool>,
    pub price_change_1y: Option<Decimal>,
    pub total_return_1y: Option<Decimal>,
    pub total_return_5y: Option<Decimal>,
    pub volatility: Option<Decimal>,
    pub beta: Option<Decimal>,
    /// Position of the next declared payment among the merged ones.
    pub next_declared: Option<usize>,
    /// Expected ex-dates after the last known one, from the as-of date on.
    pub projections: Vec<NaiveDate>,
    pub flags: BTreeSet<String>,
    pub updated_at: DateTime<Utc>,
}

/// Measures a security.
pub(crate) fn measure<'a>(history: &'a History, market: &Market<'_>) -> Measured<'a> {
    let as_of = market.as_of;
    let mut merged = merge(history, market.policy, as_of);
    let mut flags = std::mem::take(&mut merged.flags);
    let security = history.security.as_ref().map(|security| &security.record);
    let currency = currency(history).to_owned();
    let dividend_currency = dividend_currency(&merged.dividends.payments, &currency);
    let series = Series::new(&merged.prices.bars, &merged.split_table);
    let ex_days = ex_days(&merged.dividends.payments, &series, as_of, &currency, &mut flags);
    flag_contradictions(&series, &mut flags);
    flag_records(&merged.dividends.payments, history, &mut flags);

    let price = latest_price(&series, as_of);
    let payments = &merged.dividends.payments;
    let rates = rates(payments, &dividend_currency);
    let rhythm = rhythm(&tagged_dates(payments, &dividend_currency));
    if rhythm.conflict {
        flags.insert("frequency_conflict".to_owned());
    }
    let per_year = rhythm.payments_per_year();
    let is_listed = security.is_none_or(|security| is_listed(security, as_of));
    let security_type = security.map_or(SecurityType::Stock, |security| security.r#type);
    let is_fund = security_type == SecurityType::Etf;
    let status = status(&StatusFacts {
        as_of,
        last_ex_date: rates.last().map(|rate| rate.ex_date),
        last_declared: last_declared(payments),
        payments_per_year: per_year,
        suspended_on: security.and_then(|security| security.dividend_suspended_on),
    });

    let trailing_rates = trailing(&rates, as_of);
    let mixed = mixes_currencies(payments, &rates, as_of, &dividend_currency);
    let mismatch = !rates.is_empty() && (mixed || dividend_currency != currency);
    if mismatch {
        flags.insert("currency_mismatch".to_owned());
    }
    let dps_ttm = (!mixed).then(|| sum(trailing_rates));
    let dps_ttm_total = total_paid(payments, as_of, &dividend_currency);
    let ttm_payment_count = i32::try_from(trailing_rates.len()).unwrap_or(i32::MAX);
    let partial = is_partial_year(security, &series, payments, per_year, months_before(as_of, 12));
    flag_trailing(&mut flags, &rates, per_year, status, ttm_payment_count, partial);

    let indicated = if is_fund || !is_listed {
        Forward { amount: None, basis: ForwardBasis::None }
    } else {
        forward(&rates, per_year, status, as_of)
    };
    let yield_of = |dividend: Option<Decimal>| if mismatch { None } else { percent_of(dividend?, price?.close) };
    let (yield_ttm, yield_ttm_total, yield_forward) = (yield_of(dps_ttm), yield_of(dps_ttm_total), yield_of(indicated.amount));
    let (dividend_yield, yield_basis) =
        headline(&HeadlineFacts { status, yield_forward, yield_ttm, has_forward: indicated.amount.is_some(), mismatch });
    if is_suspect(dividend_yield) {
        flags.insert("yield_suspect".to_owned());
    }
    let yield_range = if mismatch { None } else { yield_range(&rates, &series, last_month(as_of), as_of) };

    let running = as_of.year();
    let totals = AnnualTotals::new(&rates, per_year, as_of);
    if !totals.shifted.is_empty() {
        flags.insert("boundary_shift".to_owned());
    }
    let growth = [1, 3, 5, 10].map(|span| totals.growth(running - 1, span));
    let seed = security.and_then(|s| s.streak_seed_years.zip(s.streak_seed_through));
    let seed = seed.map(|(years, through_year)| StreakSeed { years, through_year });
    let listed = security.and_then(|security| security.ipo_date).map(|date| date.year());
    let streak = streak(&totals, running, seed, listed);
    if has_spin_off(payments, &streak) {
        flags.insert("spin_off_review".to_owned());
    }
    let at_risk = is_at_risk(indicated.amount, &totals, running - 1);

    let company = company(&merged, price, &currency, as_of);
    let figures = merged.fundamentals.as_ref().map(|fundamentals| &fundamentals.figures);
    let is_aristocrat = is_aristocrat(&ListFacts {
        streak_years: streak.years,
        streak_at_risk: at_risk,
        status,
        is_listed,
        in_sp500: security.is_some_and(|security| security.indexes.iter().any(|index| index.eq_ignore_ascii_case("sp500"))),
        float_market_cap: figures.and_then(|figures| figures.float_market_cap),
        average_daily_value: figures.and_then(|figures| figures.avg_daily_value),
    });
    let is_real_estate = security_type == SecurityType::Reit
        || security.and_then(|security| security.sector.as_deref()).is_some_and(|s| s.eq_ignore_ascii_case("Real Estate"));
    let earnings_currency = figures.and_then(|figures| figures.reported_currency.as_deref()).unwrap_or(&currency);
    let (payout, payout_basis) = payout(&PayoutFacts {
        is_fund,
        is_real_estate,
        dps_ttm,
        eps_ttm: company.eps_ttm,
        ffo_per_share: company.ffo_per_share,
        currency_mismatch: mixed || (!rates.is_empty() && dividend_currency != earnings_currency),
    });
    let paid = figures.and_then(|figures| figures.dividends_paid_ttm).filter(|_| !is_fund);
    let fcf_payout = fcf_payout(paid, company.free_cash_flow);
    let sector = security.and_then(|security| security.sector.as_deref());
    let chowder = chowder(yield_forward.filter(|_| status == DividendState::Active), growth[2], sector);

    let year_ago = start_bar(&series, as_of, 12);
    let price_change_1y =
        price.zip(year_ago).and_then(|(price, start)| change_percent(price.close, series.close_on_basis(start, as_of)));
    let safety_facts = SafetyFacts {
        is_fund,
        is_real_estate,
        status,
        at_risk,
        payout_ratio: payout.ok(),
        fcf_payout_ratio: fcf_payout,
        dps_forward: indicated.amount,
        dps_ttm,
        price_change_1y,
    };
    let last_bar = price.map(|price| price.index);
    let return_since = |start: Option<usize>| total_return(&series, &ex_days, start?, last_bar?);
    let own_months = market.benchmark.map(|_| month_ends(&series, &ex_days, as_of)).unwrap_or_default();
    let (next_declared, projections) = upcoming(payments, &rates, per_year, status, is_listed, as_of, &mut flags);
    if history.security.is_none() {
        flags.insert("provisional".to_owned());
    }

    Measured {
        history,
        as_of,
        security_type,
        is_listed,
        price,
        rhythm,
        status,
        mismatch,
        dps_ttm,
        dps_ttm_total,
        ttm_payment_count,
        forward: indicated,
        yield_ttm,
        yield_ttm_total,
        yield_forward,
        dividend_yield,
        yield_basis,
        yield_range,
        growth,
        streak,
        at_risk,
        payment_years: payment_years(&totals, running),
        changes: rate_changes(&rates, per_year, as_of),
        is_aristocrat,
        company,
        payout,
        payout_basis,
        fcf_payout,
        chowder,
        safety: safety(&safety_facts),
        trap: yield_trap_risk(&safety_facts),
        price_change_1y,
        total_return_1y: return_since(year_ago),
        total_return_5y: return_since(start_bar(&series, as_of, 60)),
        volatility: volatility(&series, &ex_days),
        beta: market.benchmark.and_then(|benchmark| beta(&own_months, benchmark)),
        next_declared,
        projections,
        updated_at: updated_at(history, &merged),
        flags,
        totals,
        rates,
        ex_days,
        merged,
        currency,
        dividend_currency,
    }
}

impl Measured<'_> {
    /// The merged bars with the known splits.
    pub(crate) fn series(&self) -> Series<'_> {
        Series::new(&self.merged.prices.bars, &self.merged.split_table)
    }

    /// Reference data; `None` for a provisional security.
    pub(crate) fn security(&self) -> Option<&Security> {
        self.history.security.as_ref().map(|security| &security.record)
    }

    /// Company or fund name; the symbol of a provisional security.
    pub(crate) fn name(&self) -> String {
        self.security().map_or_else(|| self.history.symbol.to_string(), |security| security.name.clone())
    }
}

/// Month-end returns of a benchmark up to a date.
pub(crate) fn benchmark_months(history: &History, market: &Market<'_>) -> MonthEnds {
    let merged = merge(history, market.policy, market.as_of);
    let series = Series::new(&merged.prices.bars, &merged.split_table);
    let days = ex_days(&merged.dividends.payments, &series, market.as_of, currency(history), &mut BTreeSet::new());
    month_ends(&series, &days, market.as_of)
}

fn is_listed(security: &Security, as_of: NaiveDate) -> bool {
    security.status == ListingStatus::Active || security.delisted_on.is_some_and(|day| day > as_of)
}

fn latest_price(series: &Series<'_>, as_of: NaiveDate) -> Option<Price> {
    let index = series.at_or_before(as_of)?;
    Some(Price { index, date: series.date(index), close: series.close_on_basis(index, as_of) })
}

/// The currency of the newest regular ex-date, the prices' own where it is among several.
fn dividend_currency(payments: &[Payment<'_>], price_currency: &str) -> String {
    let regular = |payment: &&Payment<'_>| payment.class.is_regular();
    let Some(newest) = payments.iter().rev().find(regular) else { return price_currency.to_owned() };
    let same_day = payments.iter().rev().filter(regular).take_while(|payment| payment.ex_date == newest.ex_date);
    let currencies: BTreeSet<&str> = same_day.map(|payment| payment.observation.record.currency.as_str()).collect();
    if currencies.contains(price_currency) {
        return price_currency.to_owned();
    }
    currencies.first().map_or_else(|| price_currency.to_owned(), |currency| (*currency).to_owned())
}

fn regular<'p, 'a>(payments: &'p [Payment<'a>], currency: &'p str) -> impl Iterator<Item = &'p Payment<'a>> {
    payments.iter().filter(move |payment| payment.class.is_regular() && payment.observation.record.currency == currency)
}

fn rates(payments: &[Payment<'_>], currency: &str) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::with_capacity(payments.len());
    for payment in regular(payments, currency) {
        match rates.last_mut().filter(|rate| rate.ex_date == payment.ex_date) {
            Some(rate) => rate.amount += payment.adjusted,
            None => rates.push(Rate { ex_date: payment.ex_date, amount: payment.adjusted }),
        }
    }
    rates
}

fn tagged_dates(payments: &[Payment<'_>], currency: &str) -> Vec<TaggedDate> {
    regular(payments, currency)
        .map(|payment| TaggedDate { ex_date: payment.ex_date, tag: payment.observation.record.frequency })
        .collect()
}

fn last_declared(payments: &[Payment<'_>]) -> Option<NaiveDate> {
    let regular = payments.iter().filter(|payment| payment.class.is_regular());
    regular.map(|payment| payment.observation.record.declaration_date.unwrap_or(payment.ex_date)).max()
}

fn in_trailing_year(payment: &Payment<'_>, as_of: NaiveDate) -> bool {
    months_before(as_of, 12) < payment.ex_date && payment.ex_date <= as_of
}

/// Whether a regular dividend of the last 12 months was paid in another currency only.
fn mixes_currencies(payments: &[Payment<'_>], rates: &[Rate], as_of: NaiveDate, currency: &str) -> bool {
    payments.iter().rev().take_while(|payment| payment.ex_date > months_before(as_of, 12)).any(|payment| {
        payment.class.is_regular()
            && payment.observation.record.currency != currency
            && in_trailing_year(payment, as_of)
            && rates.binary_search_by_key(&payment.ex_date, |rate| rate.ex_date).is_err()
    })
}

/// Regular and special cash of the last 12 months; `None` when some was in another currency.
fn total_paid(payments: &[Payment<'_>], as_of: NaiveDate, currency: &str) -> Option<Decimal> {
    let start = months_before(as_of, 12);
    let recent = payments.iter().rev().take_while(|payment| payment.ex_date > start);
    let mut total = Decimal::ZERO;
    for payment in recent.filter(|payment| payment.class.in_ttm_total() && payment.ex_date <= as_of) {
        if payment.observation.record.currency != currency {
            return None;
        }
        total = total.checked_add(payment.adjusted)?;
    }
    Some(super::arithmetic::settle(total))
}

fn flag_records(payments: &[Payment<'_>], history: &History, flags: &mut BTreeSet<String>) {
    let unknown = |payment: &Payment<'_>| payment.observation.record.r#type == DividendType::Unknown;
    if payments.iter().any(unknown) && !history.dividends.is_empty() {
        flags.insert("unknown_type".to_owned());
    }
}

/// Whether the trailing year is only partly covered: listed since, or data that begin since.
///
/// A first bar tells the listing only where no ex-date lies before it; data that begin with a dividend may begin up to one
/// period into the window.
fn is_partial_year(
    security: Option<&Security>,
    series: &Series<'_>,
    payments: &[Payment<'_>],
    payments_per_year: Option<i32>,
    window: NaiveDate,
) -> bool {
    if let Some(listed) = security.and_then(|security| security.ipo_date) {
        return listed > window;
    }
    let first_bar = (!series.bars.is_empty()).then(|| series.date(0));
    match (first_bar, payments.first().map(|payment| payment.ex_date)) {
        (Some(bar), Some(ex_date)) if bar < ex_date => bar > window,
        (_, Some(ex_date)) => {
            let period = payments_per_year.map_or(0, |payments| 365 / i64::from(payments.max(1)));
            (ex_date - window).num_days() > period
        }
        (Some(bar), None) => bar > window,
        (None, None) => false,
    }
}

fn flag_trailing(
    flags: &mut BTreeSet<String>,
    rates: &[Rate],
    payments_per_year: Option<i32>,
    status: DividendState,
    count: i32,
    partial: bool,
) {
    if rates.is_empty() {
        return;
    }
    if partial {
        flags.insert("ttm_incomplete".to_owned());
    }
    // A young history cannot hold as many payments as a year, but it can hold more.
    let unusual =
        payments_per_year.is_some_and(|payments| is_unusual_count(count, payments) && (count > payments || !partial));
    if unusual && status == DividendState::Active {
        flags.insert("ttm_payment_count_unusual".to_owned());
    }
}

fn has_spin_off(payments: &[Payment<'_>], streak: &Streak) -> bool {
    streak.started.is_some_and(|started| {
        payments.iter().any(|payment| payment.class == super::class::Class::SpinOff && payment.ex_date.year() >= started)
    })
}

fn company(merged: &Merged<'_>, price: Option<Price>, currency: &str, as_of: NaiveDate) -> Company {
    let Some(fundamentals) = &merged.fundamentals else { return Company::default() };
    let (figures, splits) = (&fundamentals.figures, &merged.split_table);
    let eps_as_of = figures.eps_as_of.unwrap_or(figures.as_of);
    let shares_as_of = figures.shares_as_of.unwrap_or(figures.as_of);
    let eps_ttm = per_share(figures.eps_ttm, eps_as_of, splits, as_of);
    let shares_outstanding = shares(figures.shares_outstanding, shares_as_of, splits, as_of);
    let foreign = figures.reported_currency.as_deref().is_some_and(|reported| reported != currency);
    let close = price.map(|price| price.close);
    let reported_flow = free_cash_flow(figures.operating_cash_flow_ttm, figures.capital_expenditure_ttm);
    Company {
        shares_outstanding,
        float_shares: shares(figures.float_shares, fundamentals.float_as_of, splits, as_of),
        market_cap: market_cap(close, shares_outstanding).or(figures.market_cap),
        eps_ttm,
        ffo_per_share: per_share(figures.ffo_per_share_ttm, fundamentals.ffo_as_of, splits, as_of),
        book_value_per_share: per_share(figures.book_value_per_share, fundamentals.book_value_as_of, splits, as_of),
        free_cash_flow: reported_flow.or(figures.free_cash_flow_ttm),
        pe_ratio: price_to(close, eps_ttm).filter(|_| !foreign),
        foreign,
    }
}

/// The next declared cash payment, and the expected ex-dates after the last known one.
fn upcoming(
    payments: &[Payment<'_>],
    rates: &[Rate],
    payments_per_year: Option<i32>,
    status: DividendState,
    is_listed: bool,
    as_of: NaiveDate,
    flags: &mut BTreeSet<String>,
) -> (Option<usize>, Vec<NaiveDate>) {
    if !is_listed {
        return (None, Vec::new());
    }
    let declared = payments.iter().position(|payment| payment.ex_date >= as_of && payment.class.in_ttm_total());
    let Some(per_year) = payments_per_year.filter(|_| status == DividendState::Active) else { return (declared, Vec::new()) };
    let ex_dates: Vec<NaiveDate> = rates.iter().map(|rate| rate.ex_date).collect();
    let mut expected = projected(&ex_dates, per_year, as_of);
    let is_overdue = expected.first().is_some_and(|date| *date < as_of);
    if declared.is_none() && is_overdue {
        flags.insert("overdue".to_owned());
    }
    expected.retain(|date| *date >= as_of);
    (declared, expected)
}

/// When the newest fact behind the rows was observed.
fn updated_at(history: &History, merged: &Merged<'_>) -> DateTime<Utc> {
    let dividends = merged.dividends.payments.iter().chain(&merged.dividends.cancelled).map(|p| p.observation.observed_at);
    let splits = merged.splits.splits.iter().map(|split| history.splits[split.index].observed_at);
    let used = merged.fundamentals.iter().flat_map(|f| &f.used).map(|index| history.fundamentals[*index].observed_at);
    let security = history.security.iter().map(|security| security.observed_at);
    let newest = dividends.chain(splits).chain(used).chain(security).chain(merged.prices.observed_at).max();
    newest.unwrap_or_default()
}
