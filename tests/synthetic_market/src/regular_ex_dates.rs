//! Regular ex-dates of a security.

use chrono::{Datelike, Days, NaiveDate};
use market::event::Frequency;

use super::security_plan::SecurityPlan;
use super::synthetic_market::SyntheticMarket;

/// Regular ex-date, and the payment's fraction of the yearly dividend.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegularExDate {
    pub(super) position: usize,
    /// Calendar year whose dividend rate applies to the payment.
    pub(super) rate_year: i32,
    /// Payment's fraction of the yearly dividend, as numerator and denominator.
    pub(super) part: (i64, i64),
}

/// Gaps between irregular payments, in days.
const IRREGULAR_GAPS: [u64; 6] = [70, 210, 130, 320, 95, 260];
/// Maximum number of days from the end of the history to the ex-date of a declared dividend. Dividends with a later
/// ex-date are not generated.
const DECLARED_AHEAD: u64 = 45;

/// All regular ex-dates of a plan, including declared ex-dates after the end of the history.
pub(super) fn regular_ex_dates(plan: &SecurityPlan<'_>) -> Vec<RegularExDate> {
    let sessions = &plan.market.sessions;
    let (start, end) = (sessions.day(plan.start), sessions.last_day());
    let limit = end + Days::new(DECLARED_AHEAD);
    let mut dates: Vec<(NaiveDate, i32, (i64, i64))> = Vec::new();
    match plan.shape.frequency() {
        None => {}
        Some(Frequency::Weekly) => dates.extend(every_week(start, limit)),
        Some(Frequency::Irregular) => dates.extend(without_rhythm(plan, start, limit)),
        Some(frequency) => {
            (start.year()..=limit.year()).for_each(|year| dates.extend(in_year(plan, frequency, year)))
        }
    }
    let last = plan.last_ex_date_position();
    let ex_dates = dates.into_iter().filter(|(date, ..)| *date <= limit).map(|(date, rate_year, part)| {
        RegularExDate { position: ex_session(plan.market, date), rate_year, part }
    });
    let declared = |position: usize| {
        position <= sessions.last || sessions.day(declaration_position(plan, position)) <= end
    };
    let within = |ex_date: &RegularExDate| {
        ex_date.position > plan.start + 3
            && ex_date.position <= last
            && sessions.day(ex_date.position) <= limit
    };
    ex_dates.filter(within).filter(|ex_date| declared(ex_date.position)).collect()
}

/// First session on or after `date` that can be an ex-date. 5 September 2017 and 28 May 2024 are skipped. On these days
/// a shorter settlement cycle began, so no dividend had its ex-date on them (R1).
pub(super) fn ex_session(market: &SyntheticMarket, date: NaiveDate) -> usize {
    let position = market.sessions.on_or_after(date);
    let day = market.sessions.day(position);
    let skipped = day == ymd(2017, 9, 5) || day == ymd(2024, 5, 28);
    position + usize::from(skipped)
}

fn every_week(start: NaiveDate, limit: NaiveDate) -> impl Iterator<Item = (NaiveDate, i32, (i64, i64))> {
    let to_wednesday = (9 - u64::from(start.weekday().num_days_from_monday())) % 7;
    let days = (start + Days::new(to_wednesday)).iter_weeks().take_while(move |day| *day <= limit);
    days.map(|day| (day, day.year(), (1, 52)))
}

fn without_rhythm(
    plan: &SecurityPlan<'_>,
    start: NaiveDate,
    limit: NaiveDate,
) -> Vec<(NaiveDate, i32, (i64, i64))> {
    let first = start + Days::new(20 + plan.index % 40);
    let gaps = IRREGULAR_GAPS.iter().cycle().skip((plan.index / 60 % 6) as usize);
    let days = gaps.scan(first, |day, gap| Some(std::mem::replace(day, *day + Days::new(*gap))));
    days.take_while(|day| *day <= limit).map(|day| (day, day.year(), (1, 2))).collect()
}

/// Planned payments of a calendar year: date, year of the dividend rate, and fraction of the yearly dividend.
fn in_year(plan: &SecurityPlan<'_>, frequency: Frequency, year: i32) -> Vec<(NaiveDate, i32, (i64, i64))> {
    // At most 24, so that the session on or after the planned date is in the same year.
    let day = 3 + (plan.index * 7 % 22) as u32;
    let phase = 1 + (plan.index % 3) as u32;
    let months: Vec<(u32, (i64, i64))> = match frequency {
        Frequency::Monthly => (1..=12).map(|month| (month, (1, 12))).collect(),
        Frequency::Quarterly => (0..4).map(|quarter| (phase + 3 * quarter, (1, 4))).collect(),
        Frequency::SemiAnnual => vec![(4 + phase % 2, (65, 100)), (8 + phase % 2, (35, 100))],
        _ => vec![(4 + phase, (1, 1))],
    };
    let raised_at = if frequency == Frequency::Quarterly && plan.shape.cut.is_none() {
        plan.index as usize % 4
    } else {
        0
    };
    let dated = months.into_iter().enumerate();
    dated
        .map(|(number, (month, part))| (ymd(year, month, day), year - i32::from(number < raised_at), part))
        .collect()
}

/// Session index of a dividend's declaration. The argument `position` is the session index of the ex-date.
pub(super) fn declaration_position(plan: &SecurityPlan<'_>, position: usize) -> usize {
    let sessions = &plan.market.sessions;
    sessions.on_or_before(sessions.day(position) - Days::new(plan.shape.notice))
}

pub(super) fn ymd(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default()
}
