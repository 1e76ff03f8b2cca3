//! Notices: what a change of the served rows means for the owner of a security.
//!
//! Invariant: notices depend only on the rows before and after the change, on the market date, and on the rules.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use rust_decimal::Decimal;

use crate::event::DividendType;
use crate::metrics::calendar::add_sessions;
use crate::metrics::dividends::rate_changes::{RateStep, newest_rate_step};
use crate::metrics::dividends::yields::RegularDividend;
use crate::metrics::rules::StreakRules;
use crate::row::{
    AmountReading, DividendRow, DividendState, DividendStatus, Notice, NoticeCause, NoticeEvent, NoticeKind,
    NoticeRow, SecurityEvent, SecurityEventType, SplitRow, SplitStatus, SplitType, StatusRow,
};

/// Days before the market date. An event before them gives no notice.
const MAX_AGE: Days = Days::new(90);
/// Sessions before the market date. An event before them is a backfill.
const BACKFILL_SESSIONS: i32 = 10;

/// Circumstances of a change.
#[derive(Debug, Clone, Copy)]
pub struct NoticeContext<'a> {
    /// Market date after the change.
    pub as_of: NaiveDate,
    /// Reason for the change.
    pub cause: NoticeCause,
    /// In a promotion: time of the last update of the data that were served before. Later records are new data, whatever
    /// the cause of the promotion.
    pub data_since: Option<DateTime<Utc>>,
    /// Time of the publication.
    pub known_at: DateTime<Utc>,
    /// Rules by which dividend rates are compared.
    pub rules: &'a StreakRules,
}

/// Rows of a table that a commit changed.
#[derive(Debug)]
pub struct RowChanges<T> {
    /// Rows that were removed or replaced.
    pub before: Vec<T>,
    /// Rows that were added, or that replaced others.
    pub after: Vec<T>,
}

/// First date of the events that give notices.
pub fn first_notice_date(as_of: NaiveDate) -> NaiveDate {
    as_of.checked_sub_days(MAX_AGE).unwrap_or(NaiveDate::MIN)
}

impl NoticeContext<'_> {
    fn notice(&self, event: NoticeEvent, symbol: &str, kind: NoticeKind, date: NaiveDate) -> Notice {
        Notice {
            event,
            symbol: symbol.to_owned(),
            kind,
            id: None,
            date,
            cause: self.cause,
            known_at: self.known_at,
            is_backfill: date < add_sessions(self.as_of, -BACKFILL_SESSIONS),
            before: None,
            after: None,
        }
    }

    fn is_recent(&self, notice: &Notice) -> bool {
        notice.date >= first_notice_date(self.as_of)
    }

    /// Notices of changed dividends, and the dividends that were newly declared.
    pub fn of_dividends(&self, changes: RowChanges<DividendRow>) -> (Vec<Notice>, Vec<DividendRow>) {
        let (mut notices, mut declared) = (Vec::new(), Vec::new());
        for (before, after) in pair(changes) {
            for event in record_events(before.as_ref(), after.as_ref()) {
                notices.push(self.of_record(event, before.as_ref(), after.as_ref()));
            }
            if before.is_none_or(|row| !row.is_live()) {
                declared.extend(after.filter(Record::is_live));
            }
        }
        notices.retain(|notice| self.is_recent(notice));
        declared.retain(|row| row.ex_date >= first_notice_date(self.as_of));
        (notices, declared)
    }

    /// Notices of changed splits.
    pub fn of_splits(&self, changes: RowChanges<SplitRow>) -> Vec<Notice> {
        let pairs = pair(changes);
        let notices = pairs.iter().flat_map(|(before, after)| {
            let events = record_events(before.as_ref(), after.as_ref());
            events.into_iter().map(|event| self.of_record(event, before.as_ref(), after.as_ref()))
        });
        notices.filter(|notice| self.is_recent(notice)).collect()
    }

    fn of_record<T: Record>(&self, event: NoticeEvent, before: Option<&T>, after: Option<&T>) -> Notice {
        // `pair` returns at least one of the two rows.
        let (id, symbol, date) = after.or(before).map(Record::key).unwrap_or_default();
        let is_new = after.is_some_and(|row| self.data_since.is_some_and(|since| row.updated_at() > since));
        let context = if is_new { Self { cause: NoticeCause::Data, ..*self } } else { *self };
        let row = |row: Option<&T>| row.cloned().map(Record::into_row);
        Notice {
            id: Some(id.to_owned()),
            before: row(before),
            after: row(after),
            ..context.notice(event, symbol, T::KIND, date)
        }
    }

    /// Notice of a declared dividend whose regular part differs from the rate before. `rows` are the served dividends of
    /// its security.
    pub fn of_rate(&self, declared: &DividendRow, rows: &[&DividendRow]) -> Option<Notice> {
        regular_part(declared)?;
        let mut rates: BTreeMap<NaiveDate, RegularDividend> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.ex_date <= declared.ex_date) {
            if let Some(amount) = regular_part(row) {
                let none = RegularDividend { ex_date: row.ex_date, amount: Decimal::ZERO };
                rates.entry(row.ex_date).or_insert(none).amount += amount;
            }
        }
        let rates: Vec<RegularDividend> = rates.into_values().collect();
        let (step, base) = newest_rate_step(&rates, declared.payments_per_year, self.rules)?;
        let before = rows.iter().find(|row| row.ex_date == base.ex_date && regular_part(row).is_some())?;
        let event = match step {
            RateStep::Raised => NoticeEvent::Raised,
            RateStep::Cut => NoticeEvent::Cut,
        };
        let is_comparable = before.payments_per_year == declared.payments_per_year;
        is_comparable.then(|| self.of_record(event, Some(*before), Some(declared)))
    }

    /// Notice of a changed dividend status. `newest` is the ex-date of the newest regular dividend.
    pub fn of_status(
        &self,
        symbol: &str,
        [before, after]: [DividendState; 2],
        newest: Option<NaiveDate>,
    ) -> Option<Notice> {
        let pays_not = |state| matches!(state, DividendState::Suspended | DividendState::Lapsed);
        let (event, date) = match (before, after) {
            (DividendState::Active, after) if pays_not(after) => (NoticeEvent::Suspended, self.as_of),
            (before, DividendState::Active) if pays_not(before) => (NoticeEvent::Resumed, newest?),
            _ => return None,
        };
        let row = |dividend_status| {
            Some(NoticeRow::Status(StatusRow { symbol: symbol.to_owned(), dividend_status }))
        };
        let notice = self.notice(event, symbol, NoticeKind::Statuses, date);
        Some(Notice { before: row(before), after: row(after), ..notice })
            .filter(|notice| self.is_recent(notice))
    }

    /// Notices of the ticker events of a security.
    pub fn of_ticker_events(&self, events: Vec<SecurityEvent>) -> Vec<Notice> {
        let notices = events.into_iter().filter_map(|row| {
            let event = match row.r#type {
                SecurityEventType::Rename => NoticeEvent::Renamed,
                SecurityEventType::Merger | SecurityEventType::Delisting => NoticeEvent::Delisted,
                _ => return None,
            };
            let notice = self.notice(event, &row.symbol, NoticeKind::Events, row.date);
            Some(Notice { after: Some(NoticeRow::Event(Box::new(row))), ..notice })
        });
        notices.filter(|notice| self.is_recent(notice)).collect()
    }

    /// Notice of a dividend whose ex-date is the next session.
    pub fn of_next_session(&self, dividend: DividendRow) -> Notice {
        self.of_record(NoticeEvent::ExDateSoon, None, Some(&dividend))
    }
}

/// Part of a dividend that belongs to the regular rate, adjusted for splits. `None` if it has none.
fn regular_part(row: &DividendRow) -> Option<Decimal> {
    match row.reading.filter(|_| row.is_live())? {
        AmountReading::Regular => Some(row.adjusted_amount.0),
        AmountReading::Combined => {
            let special = row.special_amount.map_or_else(Default::default, |special| special.0);
            Some(row.adjusted_amount.0 - special * row.split_factor.0)
        }
        AmountReading::Special | AmountReading::Dip => None,
    }
}

/// Dividend or split.
trait Record: Clone {
    const KIND: NoticeKind;
    fn is_live(&self) -> bool;
    /// Id, symbol and ex-date.
    fn key(&self) -> (&str, &str, NaiveDate);
    fn into_row(self) -> NoticeRow;
    fn updated_at(&self) -> DateTime<Utc>;
    /// Type, as text.
    fn type_text(&self) -> &'static str;
    /// Events of the announcement.
    fn announcement(&self) -> Vec<NoticeEvent>;
    /// True if a declared value that is known in both rows differs.
    fn is_corrected(&self, after: &Self) -> bool;
}

impl Record for DividendRow {
    const KIND: NoticeKind = NoticeKind::Dividends;

    fn is_live(&self) -> bool {
        matches!(self.status, DividendStatus::Declared | DividendStatus::Paid)
    }

    fn key(&self) -> (&str, &str, NaiveDate) {
        (self.id.as_deref().unwrap_or_default(), &self.symbol, self.ex_date)
    }

    fn into_row(self) -> NoticeRow {
        NoticeRow::Dividend(Box::new(self))
    }

    fn updated_at(&self) -> DateTime<Utc> {
        self.updated_at
    }

    fn type_text(&self) -> &'static str {
        self.r#type.as_str()
    }

    fn announcement(&self) -> Vec<NoticeEvent> {
        match (self.r#type, self.reading) {
            (DividendType::SpinOff, _) => vec![NoticeEvent::SpinOff],
            (DividendType::Stock, _) => vec![NoticeEvent::Split],
            (DividendType::Special | DividendType::Supplemental | DividendType::Liquidation, _)
            | (_, Some(AmountReading::Special)) => vec![NoticeEvent::Special],
            (_, Some(AmountReading::Combined)) => vec![NoticeEvent::Declared, NoticeEvent::Special],
            _ => vec![NoticeEvent::Declared],
        }
    }

    fn is_corrected(&self, after: &Self) -> bool {
        let dates = |row: &Self| [row.payment_date, row.record_date, row.declaration_date];
        let mut dates = dates(self).into_iter().zip(dates(after));
        let has_other_date = dates.any(|(before, after)| before.zip(after).is_some_and(|(a, b)| a != b));
        let values = |row: &Self| (row.ex_date, row.amount, row.currency.clone(), row.r#type);
        has_other_date || values(self) != values(after)
    }
}

impl Record for SplitRow {
    const KIND: NoticeKind = NoticeKind::Splits;

    fn is_live(&self) -> bool {
        self.status != SplitStatus::Cancelled
    }

    fn key(&self) -> (&str, &str, NaiveDate) {
        (&self.id, &self.symbol, self.ex_date)
    }

    fn into_row(self) -> NoticeRow {
        NoticeRow::Split(Box::new(self))
    }

    fn updated_at(&self) -> DateTime<Utc> {
        self.updated_at
    }

    fn type_text(&self) -> &'static str {
        self.r#type.as_str()
    }

    fn announcement(&self) -> Vec<NoticeEvent> {
        vec![if self.r#type == SplitType::SpinOff { NoticeEvent::SpinOff } else { NoticeEvent::Split }]
    }

    fn is_corrected(&self, after: &Self) -> bool {
        let values = |row: &Self| (row.ex_date, row.ratio, row.r#type);
        values(self) != values(after)
    }
}

/// Events of one record, from its rows before and after a change.
fn record_events<T: Record>(before: Option<&T>, after: Option<&T>) -> Vec<NoticeEvent> {
    match (before.filter(|row| row.is_live()), after.filter(|row| row.is_live())) {
        (None, Some(after)) => after.announcement(),
        (Some(_), None) => vec![NoticeEvent::Cancelled],
        (Some(before), Some(after)) if before.is_corrected(after) => vec![NoticeEvent::Corrected],
        _ => Vec::new(),
    }
}

/// Pairs the rows of the same record before and after a change. The record may have another symbol after a rename, and
/// another id with another source.
fn pair<T: Record>(changes: RowChanges<T>) -> Vec<(Option<T>, Option<T>)> {
    let by_id = |row: &T| row.key().0.to_owned();
    let by_day = |row: &T| {
        let (_, symbol, date) = row.key();
        (symbol.to_owned(), date, row.type_text())
    };
    let mut replaced: BTreeMap<String, T> =
        changes.before.into_iter().map(|row| (by_id(&row), row)).collect();
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    for after in changes.after {
        match replaced.remove(after.key().0) {
            Some(before) => pairs.push((Some(before), Some(after))),
            None => unpaired.push(after),
        }
    }
    let mut of_day: BTreeMap<(String, NaiveDate, &str), Vec<T>> = BTreeMap::new();
    for row in replaced.into_values() {
        of_day.entry(by_day(&row)).or_default().push(row);
    }
    for after in unpaired {
        let before = of_day.get_mut(&by_day(&after)).and_then(Vec::pop);
        pairs.push((before, Some(after)));
    }
    pairs.extend(of_day.into_values().flatten().map(|row| (Some(row), None)));
    pairs
}

#[cfg(test)]
mod tests;
