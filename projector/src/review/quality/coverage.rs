//! Coverage (how many securities and rows) and freshness (how recent) of the sources, by kind of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use chrono::{DateTime, Months, NaiveDate, Utc};
use market::day::{date_of, day_number};
use market::event::{Action, EventRecord, Kind, Security};
use market::history::{History, Observation};
use market::metrics::calendar::sessions_between;

use super::result::{BySource, KindCoverage};
use crate::review::audit::{sessions, span};

pub(super) fn add_security(
    sources: &mut BySource,
    record: &Observation<Security>,
    active: &BTreeMap<String, String>,
) {
    let coverage = coverage_of(sources, &record.source, Kind::Security);
    coverage.rows += 1;
    coverage.securities += 1;
    coverage.active += u64::from(active.contains_key(record.record.symbol.as_str()));
    coverage.observed_at = coverage.observed_at.max(Some(record.observed_at));
}

pub(super) fn add_coverage(sources: &mut BySource, history: &History, is_active: bool, as_of: NaiveDate) {
    let mut rows: BTreeMap<(Kind, String), KindCoverage> = BTreeMap::new();
    for prices in &history.prices {
        let live = (0..prices.bars.len()).filter(|index| !prices.bars.version_of(*index).retracted);
        let days: Vec<i32> = live.map(|index| prices.bars.day[index]).collect();
        let (Some(first), Some(last)) = (days.first(), days.last()) else { continue };
        let observed = prices.bars.versions.iter().map(|version| version.observation_time()).max();
        let coverage = KindCoverage {
            rows: days.len() as u64,
            first: Some(date_of(*first)),
            last: Some(date_of(*last)),
            observed_at: observed,
            ..KindCoverage::default()
        };
        rows.insert((Kind::Price, prices.source.clone()), coverage);
    }
    add_rows(&mut rows, &history.dividends);
    add_rows(&mut rows, &history.splits);
    add_rows(&mut rows, &history.fundamentals);
    add_rows(&mut rows, &history.etf);
    add_rows(&mut rows, &history.holdings);
    for ((kind, source), own) in rows {
        let coverage = coverage_of(sources, &source, kind);
        coverage.securities += 1;
        coverage.active += u64::from(is_active);
        coverage.rows += own.rows;
        coverage.observed_at = coverage.observed_at.max(own.observed_at);
        widen(coverage, own.first, own.last);
        let behind = |last: NaiveDate| (last <= as_of).then(|| sessions_between(last, as_of));
        coverage.sessions_behind = coverage.last.and_then(behind);
    }
}

fn add_rows<T: EventRecord>(rows: &mut BTreeMap<(Kind, String), KindCoverage>, of_kind: &[Observation<T>]) {
    for row in of_kind.iter().filter(|row| row.action == Action::Put) {
        let coverage = rows.entry((T::KIND, row.source.to_string())).or_default();
        let seen: Option<DateTime<Utc>> = Some(row.observed_at);
        coverage.rows += 1;
        coverage.observed_at = coverage.observed_at.max(seen);
        widen(coverage, row.record.date(), row.record.date());
    }
}

fn widen(coverage: &mut KindCoverage, first: Option<NaiveDate>, last: Option<NaiveDate>) {
    coverage.first = [coverage.first, first].into_iter().flatten().min();
    coverage.last = coverage.last.max(last);
}

fn coverage_of<'a>(sources: &'a mut BySource, source: &str, kind: Kind) -> &'a mut KindCoverage {
    sources.entry(source.to_owned()).or_default().kinds.entry(kind).or_default()
}

/// Days with a price, as day numbers, by symbol.
type DaysBySymbol = BTreeMap<String, BTreeSet<i32>>;

/// Days with a price in the last 12 months. They show how many sessions each source covers.
pub(super) struct SessionDays {
    year: RangeInclusive<i32>,
    /// Days on which at least one source has a price, by exchange and symbol.
    traded: BTreeMap<String, DaysBySymbol>,
    /// Days on which one source has a price. The key is source and exchange; the inner key is the symbol.
    own: BTreeMap<(String, String), DaysBySymbol>,
}

impl SessionDays {
    pub(super) fn new(as_of: NaiveDate) -> Self {
        let start = as_of.checked_sub_months(Months::new(12)).unwrap_or(as_of);
        let (traded, own) = Default::default();
        Self { year: day_number(start)..=day_number(as_of), traded, own }
    }

    pub(super) fn add(&mut self, history: &History, exchange: &str) {
        for prices in &history.prices {
            let live = (0..prices.bars.len()).filter(|index| !prices.bars.version_of(*index).retracted);
            let days = live.map(|index| prices.bars.day[index]).filter(|day| self.year.contains(day));
            let days: BTreeSet<i32> = days.collect();
            let symbol = history.symbol.to_string();
            let traded = self.traded.entry(exchange.to_owned()).or_default();
            traded.entry(symbol.clone()).or_default().extend(&days);
            let own = self.own.entry((prices.source.clone(), exchange.to_owned())).or_default();
            own.insert(symbol, days);
        }
    }

    /// Counts the expected sessions of each source: the sessions between its first and last price of each security.
    /// Also counts the expected sessions on which the source has a price.
    pub(super) fn count(&self, sources: &mut BySource) {
        for (exchange, traded) in &self.traded {
            let sessions = sessions(traded);
            for ((source, _), own) in self.own.iter().filter(|((_, of), _)| of == exchange) {
                let found = &mut sources.entry(source.clone()).or_default().sessions;
                for days in own.values() {
                    let Some(span) = span(days) else { continue };
                    let expected = sessions.range(span);
                    found.present += expected.clone().filter(|day| days.contains(day)).count() as u64;
                    found.expected += expected.count() as u64;
                }
            }
        }
    }
}
