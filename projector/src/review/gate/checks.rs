//! Checks of a load: its row counts against those of earlier loads, and its effect on the served values.
//!
//! Values that the gate measured for earlier loads. They show how often a limit would have held a load.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::day::day_number;
use market::decimal::ExactDecimal;
use market::event::Kind;
use market::expectation::{Expectation, ExpectationCheck};
use market::metrics::calendar::{is_session, sessions_between};
use market::row::JsonColumn;
use rust_decimal::Decimal;
use store::{FromRow, sql_row};
use tokio_postgres::{Client, Transaction};

use super::expectations::Limits;
use crate::review::effect::{LoadedRows, RunEffect, SourceReplacement, median};

const EARLIER: &str = include_str!("../../../queries/gate/earlier_loads.sql");
const RECENT_SYMBOLS: &str = include_str!("../../../queries/gate/recent_symbols.sql");

/// Number of loads that [`Expectation::Coverage`] compares with.
const COVERAGE_LOADS: usize = 5;
/// Minimum number of loads, and minimum median of their rows, for [`Expectation::Rows`].
const MIN_ROWS: (usize, u64) = (3, 20);
/// Minimum number of earlier loads with newer and newer sessions, for [`Expectation::Session`].
const MIN_SESSIONS: usize = 3;
/// Minimum number of securities for a median or a share of repeated closes.
const MIN_SECURITIES: usize = 10;
/// Minimum number of cases for a share. Two cases may be chance, whatever their share.
const MIN_CASES: u64 = 3;

/// Earlier loads of files with the same names, the newest first.
#[derive(Debug, Default)]
pub(super) struct EarlierLoads {
    loads: Vec<(Option<NaiveDate>, BTreeMap<Kind, u64>)>,
    /// Symbols of the source with a close in the newest session of these loads, or later.
    recent_symbols: Vec<String>,
}

impl EarlierLoads {
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        source: &str,
        run: &str,
        loaded: &LoadedRows,
    ) -> anyhow::Result<Self> {
        let mut earlier = Self::default();
        for row in transaction.query(EARLIER, &[&source, &loaded.files, &run]).await? {
            let JsonColumn(rows): JsonColumn<BTreeMap<Kind, u64>> = row.try_get("rows")?;
            let newest: Option<NaiveDate> = row.try_get("newest")?;
            earlier.loads.push((newest.filter(|_| rows.contains_key(&Kind::Price)), rows));
        }
        let newest = earlier.loads.iter().take(COVERAGE_LOADS).filter_map(|(newest, _)| *newest).max();
        if let Some(newest) = newest {
            let rows = transaction.query(RECENT_SYMBOLS, &[&source, &day_number(newest)]).await?;
            earlier.recent_symbols = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        }
        Ok(earlier)
    }

    /// Row counts of a kind, the newest load first.
    fn rows(&self, kind: Kind) -> Vec<u64> {
        self.loads.iter().map(|(_, rows)| rows.get(&kind).copied().unwrap_or_default()).collect()
    }
}

/// Checks that were made so far.
pub(super) struct Checks {
    limits: Limits,
    earlier: EarlierValues,
    pub(super) found: Vec<ExpectationCheck>,
}

impl Checks {
    pub(super) async fn load(transaction: &Transaction<'_>, source: &str, run: &str) -> anyhow::Result<Self> {
        let limits = Limits::load(transaction, source).await?;
        let earlier = EarlierValues::load(transaction, source, run).await?;
        Ok(Self { limits, earlier, found: Vec::new() })
    }

    /// Adds a check; `None` is the value of a property that too few cases show.
    pub(super) fn add(
        &mut self,
        expectation: Expectation,
        kind: Kind,
        value: impl Into<Option<Decimal>>,
        examples: Vec<String>,
    ) {
        let Some(value) = value.into() else { return };
        let (limit, earlier) = (self.limits.get(expectation, kind), self.earlier.get(expectation, kind));
        self.found.push(ExpectationCheck::new(expectation, kind, value, limit, earlier, examples));
    }

    pub(super) fn add_row_counts(&mut self, loaded: &LoadedRows, earlier: &EarlierLoads) {
        self.add_coverage(loaded, earlier);
        let newest: Vec<NaiveDate> = earlier.loads.iter().map_while(|(newest, _)| *newest).collect();
        let is_daily = newest.windows(2).take(MIN_SESSIONS - 1).all(|pair| pair[0] > pair[1]);
        if let ([last, ..], Some(own)) = (newest.as_slice(), loaded.newest)
            && is_daily
            && newest.len() >= MIN_SESSIONS
        {
            let sessions = if is_session(own) { sessions_between(*last, own).max(0) } else { 0 };
            let example = format!("newest session {own}, after {last}");
            self.add(Expectation::Session, Kind::Price, Decimal::from(sessions), vec![example]);
        }
        for kind in Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Price) {
            let rows = loaded.rows.get(&kind).copied().unwrap_or_default();
            if let Some((share, median)) = share_of_usual(rows, earlier.rows(kind)) {
                self.add(Expectation::Rows, kind, share, vec![format!("{rows} rows, usually {median}")]);
            }
        }
    }

    /// Adds the share of the source's securities if each of its files usually has one row of each. Otherwise adds the larger
    /// one of two shares: a file of a few symbols has few of its source's securities, and a first daily file has fewer
    /// rows than a history of the same name.
    fn add_coverage(&mut self, loaded: &LoadedRows, earlier: &EarlierLoads) {
        let usual = earlier.rows(Kind::Price).into_iter().take(COVERAGE_LOADS).filter(|rows| *rows > 0).min();
        let Some(usual) = usual else { return };
        let rows = percent(loaded.rows.get(&Kind::Price).copied().unwrap_or_default(), usual);
        let missing = earlier.recent_symbols.iter().filter(|symbol| !loaded.priced.contains(*symbol));
        let missing: Vec<String> = missing.map(|symbol| format!("{symbol} is missing")).collect();
        let recent = earlier.recent_symbols.len() as u64;
        let symbols = percent(recent - missing.len() as u64, recent);
        let is_whole_day = (usual * 10).abs_diff(recent * 10) <= recent;
        let share = if is_whole_day { symbols } else { rows.max(symbols).min(Decimal::ONE_HUNDRED) };
        self.add(Expectation::Coverage, Kind::Price, share, missing);
    }

    /// Adds the checks of the effect. Rows of the sources in `replaces` may be taken out of use.
    pub(super) fn add_effect(&mut self, source: &str, replaces: &[String], effect: &RunEffect) {
        let (found, figures) = (&effect.found, &effect.found.figures);
        for (kind, values) in &figures.values {
            let share = share(values.changed, values.earlier);
            self.add(Expectation::Changed, *kind, share, largest(&values.securities));
            let (factors, rewritten) = (&values.factors, &values.rewritten);
            self.add(Expectation::Factor, *kind, Decimal::from(factors.len()), largest(factors));
            self.add(Expectation::Rewritten, *kind, Decimal::from(rewritten.len()), largest(rewritten));
        }
        for (expectation, kind, changes) in [
            (Expectation::Move, Kind::Price, &figures.moves),
            (Expectation::Forward, Kind::Dividend, &figures.forwards),
        ] {
            let mut percents: Vec<Decimal> = changes.iter().map(|(percent, _)| *percent).collect();
            let is_judged = changes.is_empty() || changes.len() >= MIN_SECURITIES;
            let median = is_judged.then(|| median(&mut percents).unwrap_or_default().abs());
            let sizes = changes.iter().map(|(percent, text)| (percent.abs(), text.clone()));
            let sizes: Vec<(Decimal, String)> = sizes.collect();
            self.add(expectation, kind, median, largest(&sizes));
        }
        let (repeated, moved) = (figures.repeated.len(), figures.moves.len());
        if repeated == 0 || moved >= MIN_SECURITIES {
            let share = share(repeated as u64, moved as u64);
            self.add(Expectation::Repeated, Kind::Price, share, figures.repeated.clone());
        }
        let stopped = share(figures.stopped.len() as u64, found.compared);
        self.add(Expectation::Status, Kind::Dividend, stopped, figures.stopped.clone());
        let LoadedRows { rows, rejects, .. } = &effect.loaded;
        let (refused, rows) = (rejects + found.quarantined.added, rows.values().sum::<u64>() + rejects);
        let quarantined = found.quarantined.first.iter();
        let quarantined = quarantined.map(|row| format!("{}: {}", row.symbol, row.message)).collect();
        self.add(Expectation::Rejected, Kind::Reject, share(refused, rows), quarantined);
        let mut replaced: BTreeMap<Kind, Vec<(u64, String)>> = BTreeMap::new();
        let counts = |replacement: &&SourceReplacement| {
            replacement.source == source && !replaces.contains(&replacement.replaced)
        };
        for replacement in found.replaced.iter().filter(counts) {
            let (of, rows) = (&replacement.replaced, replacement.rows);
            let text = format!("{rows} rows of {of}: {}", replacement.first.join(", "));
            replaced.entry(replacement.kind).or_default().push((rows, text));
        }
        for (kind, sources) in replaced {
            let rows: u64 = sources.iter().map(|(rows, _)| rows).sum();
            self.add(Expectation::Replaced, kind, Decimal::from(rows), largest(&sources));
        }
    }
}

fn percent(count: u64, of: u64) -> Decimal {
    let percent = Decimal::from(count) * Decimal::ONE_HUNDRED;
    percent.checked_div(of.into()).unwrap_or_default()
}

/// Percentage of the median of earlier loads, and this median; `None` for few loads or rows. The rows of some kinds differ
/// from day to day, so a load as small as an earlier one has 100 %.
fn share_of_usual(rows: u64, mut earlier: Vec<u64>) -> Option<(Decimal, u64)> {
    earlier.sort_unstable();
    let median = earlier.get(earlier.len() / 2).copied()?;
    let share = if rows >= earlier[0] { Decimal::ONE_HUNDRED } else { percent(rows, median) };
    (earlier.len() >= MIN_ROWS.0 && median >= MIN_ROWS.1).then_some((share, median))
}

/// Percentage; `None` for a few cases.
fn share(count: u64, of: u64) -> Option<Decimal> {
    (count == 0 || count >= MIN_CASES).then(|| percent(count, of))
}

/// Texts, those with the largest size first.
fn largest<T: Ord + Copy>(sizes: &[(T, String)]) -> Vec<String> {
    let mut sorted: Vec<&(T, String)> = sizes.iter().collect();
    sorted.sort_by_key(|(size, text)| (Reverse(*size), text));
    sorted.into_iter().map(|(_, text)| text.clone()).collect()
}

const EARLIER_VALUES: &str = include_str!("../../../queries/gate/earlier_values.sql");
const STORE: &str = include_str!("../../../queries/gate/store_values.sql");

sql_row! {
    #[derive(Debug)]
    struct ValueRow {
        kind: Kind,
        expectation: Expectation,
        value: ExactDecimal,
    }
}

/// Values of the loads of one source that were measured in the 90 days before a load.
pub(super) struct EarlierValues(BTreeMap<(Kind, Expectation), Vec<Decimal>>);

impl EarlierValues {
    pub(super) async fn load(transaction: &Transaction<'_>, source: &str, run: &str) -> anyhow::Result<Self> {
        let mut values = BTreeMap::<_, Vec<Decimal>>::new();
        for row in transaction.query(EARLIER_VALUES, &[&source, &run]).await? {
            let ValueRow { kind, expectation, value } = ValueRow::from_row(&row)?;
            values.entry((kind, expectation)).or_default().push(value.0);
        }
        Ok(Self(values))
    }

    pub(super) fn get(&self, expectation: Expectation, kind: Kind) -> &[Decimal] {
        self.0.get(&(kind, expectation)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Stores the values of a run. Values of an earlier comparison of the run stay instead.
pub(super) async fn store_values(
    client: &Client,
    [run, source]: [&str; 2],
    checks: &[ExpectationCheck],
) -> anyhow::Result<()> {
    let kinds: Vec<&str> = checks.iter().map(|check| check.kind.as_str()).collect();
    let expectations: Vec<&str> = checks.iter().map(|check| check.expectation.as_str()).collect();
    let values: Vec<ExactDecimal> = checks.iter().map(|check| check.value).collect();
    client.execute(STORE, &[&run, &source, &kinds, &expectations, &values]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_too_small_below_the_median_and_below_every_earlier_load() {
        let share = |rows, earlier: &[u64]| Some(share_of_usual(rows, earlier.to_vec())?.0.to_string());
        assert_eq!(share(8, &[40, 10, 53]).as_deref(), Some("20"));
        assert_eq!(share(10, &[40, 10, 53]).as_deref(), Some("100"));
        assert_eq!(share(0, &[40, 41, 53]).as_deref(), Some("0"));
        assert_eq!(share(0, &[19, 19, 53]), None, "too few rows");
        assert_eq!(share(0, &[40, 41]), None, "too few loads");
        assert_eq!(share(0, &[]), None);
    }
}
