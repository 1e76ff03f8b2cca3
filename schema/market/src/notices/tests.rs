use super::*;
use crate::decimal::ExactDecimal;
use crate::event::Frequency;
use crate::metrics::rules::Rules;
use crate::row::AmountStatus;

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn dividend(id: &str, ex_date: &str, amount: Decimal) -> DividendRow {
    DividendRow {
        id: Some(id.to_owned()),
        symbol: "X".to_owned(),
        ex_date: day(ex_date),
        payment_date: None,
        record_date: None,
        declaration_date: None,
        amount: amount.into(),
        amount_status: AmountStatus::Declared,
        adjusted_amount: amount.into(),
        currency: "USD".to_owned(),
        r#type: DividendType::Regular,
        reading: Some(AmountReading::Regular),
        special_amount: None,
        frequency: Frequency::Quarterly,
        payments_per_year: Some(4),
        status: DividendStatus::Declared,
        split_factor: ExactDecimal::from(Decimal::ONE),
        price_factor: None,
        yield_at_ex: None,
        change_percent: None,
        source: "feed".to_owned(),
        revision: 0,
        updated_at: DateTime::UNIX_EPOCH,
    }
}

fn context() -> NoticeContext<'static> {
    static RULES: Rules = Rules::DEFAULT;
    NoticeContext {
        as_of: day("2024-06-14"),
        cause: NoticeCause::Data,
        data_since: None,
        known_at: DateTime::UNIX_EPOCH,
        rules: &RULES.streak,
    }
}

#[track_caller]
fn check(before: Vec<DividendRow>, after: Vec<DividendRow>, expected: &[NoticeEvent]) {
    let (notices, _) = context().of_dividends(RowChanges { before, after });
    assert_eq!(notices.iter().map(|notice| notice.event).collect::<Vec<_>>(), expected);
}

#[test]
fn a_record_is_declared_corrected_and_cancelled() {
    let row = dividend("a", "2024-06-20", dec!(0.5));
    let cancelled = DividendRow { status: DividendStatus::Cancelled, ..row.clone() };
    check(vec![], vec![row.clone()], &[NoticeEvent::Declared]);
    check(vec![cancelled.clone()], vec![row.clone()], &[NoticeEvent::Declared]);
    check(vec![row.clone()], vec![cancelled.clone()], &[NoticeEvent::Cancelled]);
    check(vec![row.clone()], vec![], &[NoticeEvent::Cancelled]);
    check(vec![cancelled], vec![], &[]);
    let paid = DividendRow { status: DividendStatus::Paid, ..row.clone() };
    check(vec![row.clone()], vec![paid], &[]);
    let dated = DividendRow { payment_date: Some(day("2024-07-01")), ..row.clone() };
    check(vec![row.clone()], vec![dated.clone()], &[]);
    let moved = DividendRow { payment_date: Some(day("2024-07-02")), ..row.clone() };
    check(vec![dated], vec![moved], &[NoticeEvent::Corrected]);
    let special = DividendRow { r#type: DividendType::Special, reading: None, ..row.clone() };
    check(vec![], vec![special.clone()], &[NoticeEvent::Special]);
    check(vec![row], vec![special], &[NoticeEvent::Corrected]);
}

#[test]
fn a_record_keeps_its_identity_after_a_rename_or_with_another_source() {
    let row = dividend("a", "2024-06-20", dec!(0.5));
    let renamed = DividendRow { symbol: "Y".to_owned(), ..row.clone() };
    check(vec![row.clone()], vec![renamed], &[]);
    let of_other_source = dividend("b", "2024-06-20", dec!(0.5));
    check(vec![row.clone()], vec![of_other_source], &[]);
    let with_other_amount = dividend("b", "2024-06-20", dec!(0.51));
    check(vec![row.clone()], vec![with_other_amount], &[NoticeEvent::Corrected]);
    let of_other_day = dividend("b", "2024-06-21", dec!(0.5));
    check(vec![row], vec![of_other_day], &[NoticeEvent::Declared, NoticeEvent::Cancelled]);
}

#[test]
fn events_before_ten_sessions_are_backfills_and_before_ninety_days_none() {
    let is_backfill = |ex_date: &str| {
        let changes = RowChanges { before: vec![], after: vec![dividend("a", ex_date, dec!(1))] };
        context().of_dividends(changes).0.first().map(|notice| notice.is_backfill)
    };
    // Ten sessions before Friday, 14 June.
    assert_eq!(is_backfill("2024-05-31"), Some(false));
    assert_eq!(is_backfill("2024-05-30"), Some(true));
    assert_eq!(is_backfill("2024-03-16"), Some(true));
    assert_eq!(is_backfill("2024-03-15"), None);
}

#[test]
fn a_record_after_the_data_that_were_served_before_a_promotion_is_new_data() {
    let at = |hours| DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(hours);
    let cause = |since| {
        let context = NoticeContext { cause: NoticeCause::Rule, data_since: Some(at(since)), ..context() };
        let row = DividendRow { updated_at: at(2), ..dividend("a", "2024-06-20", dec!(1)) };
        context.of_dividends(RowChanges { before: vec![], after: vec![row] }).0[0].cause
    };
    assert_eq!([1, 2].map(cause), [NoticeCause::Data, NoticeCause::Rule]);
}

fn step(rows: &[DividendRow]) -> Option<(NoticeEvent, NaiveDate)> {
    let rows: Vec<&DividendRow> = rows.iter().collect();
    let notice = context().of_rate(rows.last()?, &rows)?;
    match notice.before {
        Some(NoticeRow::Dividend(base)) => Some((notice.event, base.ex_date)),
        _ => None,
    }
}

#[test]
fn a_rate_is_compared_with_the_payment_that_corresponds() {
    let first = dividend("a", "2024-03-15", dec!(0.5));
    let raised = Some((NoticeEvent::Raised, first.ex_date));
    let cut = Some((NoticeEvent::Cut, first.ex_date));
    let next = |amount| dividend("b", "2024-06-14", amount);
    assert_eq!(step(&[first.clone(), next(dec!(0.51))]), raised);
    assert_eq!(step(&[first.clone(), next(dec!(0.5))]), None);
    assert_eq!(step(&[first.clone(), next(dec!(0.4))]), cut);
    assert_eq!(step(&[next(dec!(0.4))]), None);
    let special = DividendRow {
        reading: Some(AmountReading::Combined),
        special_amount: Some(dec!(2).into()),
        ..next(dec!(2.5))
    };
    assert_eq!(step(&[first.clone(), special]), None);
    let monthly = DividendRow { payments_per_year: Some(12), ..next(dec!(0.17)) };
    assert_eq!(step(&[first.clone(), monthly]), None);
    let years_later = dividend("b", "2026-03-13", dec!(0.7));
    assert_eq!(step(&[first, years_later]), None);

    let halves = [
        ("2022-03-04", dec!(0.3)),
        ("2022-09-05", dec!(0.1)),
        ("2023-03-03", dec!(0.31)),
        ("2023-09-05", dec!(0.1)),
        ("2024-03-15", dec!(0.33)),
    ];
    let half =
        |(ex_date, amount)| DividendRow { payments_per_year: Some(2), ..dividend(ex_date, ex_date, amount) };
    assert_eq!(step(&halves.map(half)), Some((NoticeEvent::Raised, day("2023-03-03"))));
}

#[test]
fn a_status_changes_between_paying_and_not_paying() {
    use DividendState::{Active, Lapsed, NonPayer, Suspended, Unknown};
    let event = |before, after, newest: &str| {
        let notice = context().of_status("X", [before, after], Some(day(newest)))?;
        Some((notice.event, notice.is_backfill))
    };
    let suspended = Some((NoticeEvent::Suspended, false));
    assert_eq!([Suspended, Lapsed].map(|after| event(Active, after, "2023-01-02")), [suspended; 2]);
    let resumed = |is_backfill| Some((NoticeEvent::Resumed, is_backfill));
    assert_eq!(event(Lapsed, Active, "2024-06-20"), resumed(false));
    assert_eq!(event(Suspended, Active, "2024-05-02"), resumed(true));
    for (before, after) in [(NonPayer, Active), (Active, Unknown), (Suspended, Lapsed), (Active, NonPayer)] {
        assert_eq!(event(before, after, "2024-06-20"), None);
    }
}
